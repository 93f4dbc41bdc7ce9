//! The page that crawlers of chats and social networks get instead of a redirect, for a link with
//! a social preview. It shows what the link's owner has written, and not where the link leads.
//!
//! 1. The checks of a redirect come first: a link that would not redirect this crawler has no
//!    preview either.
//! 2. It uses up no visit of a link with a visit limit. Otherwise it is a visit like the redirect
//!    of a crawler.
//! 3. Any client can claim to be such a crawler, and gets the page instead of the target.

use hyper::StatusCode;
use links::{Finding, Link};
use web::{
    Answer,
    visitor_page::{SocialPreview, VisitorPage},
};

use crate::{Redirector, asked::Asked};

/// Returns the page of a link with a preview.
pub(crate) fn social_preview(redirector: &Redirector, asked: &Asked<'_>, link: &Link) -> Answer {
    let preview = link.details().preview.clone().unwrap_or_default();
    let name = redirector.lookup.name_of(link).unwrap_or_default();
    let short_url = format!("{}/{name}", redirector.domain_cache.base(link.domain()));
    asked.step(|| (Finding::PreviewOwn, name));
    let title = preview.title.or_else(|| link.title.clone());
    let shown = SocialPreview {
        title: title.unwrap_or_else(|| short_url.clone()),
        description: preview.description,
        // The target rules may be newer than the preview.
        image: preview.image.filter(|url| redirector.lookup.allows(url)).map(|url| url.as_str().to_owned()),
        short_url,
    };
    VisitorPage::SocialPreview(Box::new(shown)).answer(StatusCode::OK)
}
