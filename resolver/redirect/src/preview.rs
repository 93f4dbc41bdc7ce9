//! `GET /{code}+`: where a link leads, without following it. It is no visit.
//!
//! The target is shown only if every visitor is led to it, and as often as they like: not behind a
//! password, by rules, or with a visit limit.

use hyper::StatusCode;
use links::Finding;
use web::{
    Answer,
    visitor_page::{LinkPreview, VisitorPage},
};

use crate::{
    Redirector,
    asked::Asked,
    follow::{check_live, check_visits_left, find},
    request::path_before,
    visit::Refusal,
};

/// The suffix of the path, after the code or slug.
pub(crate) const SUFFIX: &str = "+";

pub(crate) async fn preview(redirector: &Redirector, asked: &Asked<'_>) -> Result<Answer, Refusal> {
    let path = path_before(asked.path, SUFFIX).unwrap_or(asked.path);
    let asked = &Asked { path, ..*asked };
    asked.step(|| (Finding::PreviewShown, path.to_owned()));
    let found = find(redirector, asked).await?;
    let (link, now) = (&found.link, asked.now(redirector));
    check_live(redirector, &found, now, asked)?;
    check_visits_left(redirector, &found, asked).await?;
    let has_password = link.password().is_some();
    let is_same_for_all = !has_password && !link.is_limited() && link.rules().is_empty();
    let name = redirector.lookup.name_of(link).unwrap_or_default();
    let preview = LinkPreview {
        short_url: format!("{}/{name}", redirector.domain_cache.base(link.domain())),
        target: found.target(None).filter(|_| is_same_for_all).map(|(_, placed)| placed.into_owned()),
        has_password,
        // A title may reveal what a password protects.
        title: link.title.clone().filter(|_| is_same_for_all),
        created: link.created_at.strftime("%Y-%m-%d").to_string(),
        path: path.to_owned(),
    };
    Ok(VisitorPage::Preview(Box::new(preview)).answer(StatusCode::OK))
}
