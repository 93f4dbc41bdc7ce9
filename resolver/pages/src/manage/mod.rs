//! The management pages, for a session of an API key.

mod audit;
mod bulk;
mod chosen;
mod domains;
mod keys;
mod link;
mod link_form;
mod list;
mod paged;
mod period;
mod qr_sheet;
mod reservations;
mod rules;
mod shown;
mod statistics;
mod tags;
mod targets;

use std::sync::Arc;

use hyper::Method;
use links::Link;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use web::Answer;

use crate::{Pages, error::PageError, request::PageRequest, session::Session};

/// The address of the list of links.
pub(crate) const PATH: &str = "/manage";
/// The beginning of the address of a link's page; its name follows.
const LINK: &str = "/manage/link/";
/// What is escaped in the name of a link; a slash is not.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns the address of a link's page.
pub(crate) fn address(pages: &Pages, link: &Link) -> String {
    let name = pages.api.lookup.name_of(link).unwrap_or_default();
    let domain = pages.api.domain_cache.shown_name(link.domain());
    address_of(&name, domain.as_deref())
}

fn address_of(name: &str, domain: Option<&str>) -> String {
    let name = utf8_percent_encode(name, ESCAPED);
    let domain = domain.map(|domain| format!("?domain={}", utf8_percent_encode(domain, NON_ALPHANUMERIC)));
    format!("{LINK}{name}{}", domain.unwrap_or_default())
}

/// Answers a request for a management page.
pub(crate) async fn answer(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let is_form = *request.method == Method::POST;
    if let Some(name) = request.path().strip_prefix(LINK) {
        let name = percent_decode_str(name).decode_utf8().map_err(|_| PageError::NoPage)?;
        return if is_form {
            link::change(pages, request, session, &name).await
        } else {
            link::show(pages, request, session, &name).await
        };
    }
    if let Some(name) = request.path().strip_prefix(rules::PATH) {
        let name = percent_decode_str(name).decode_utf8().map_err(|_| PageError::NoPage)?;
        return if is_form {
            rules::change(pages, request, session, &name).await
        } else {
            rules::show(pages, request, session, &name).await
        };
    }
    match (request.path(), is_form) {
        (PATH, false) => list::show(pages, request, session).await,
        (PATH, true) => chosen::change(pages, request, session).await,
        (statistics::PATH, false) => statistics::show(pages, request, session).await,
        (statistics::TABLE, false) => statistics::download(pages, request, session).await,
        (statistics::COUNT, false) => statistics::count(pages, request, session).await,
        (tags::PATH, false) => tags::show(pages, request, session).await,
        (tags::PATH, true) => tags::change(pages, request, session).await,
        (domains::PATH, false) => domains::show(pages, request, session).await,
        (domains::PATH, true) => domains::change(pages, request, session).await,
        (bulk::PATH, false) => Ok(bulk::show(request, session)),
        (bulk::PATH, true) => bulk::submit(pages, request, session).await,
        (targets::PATH, false) => targets::show(pages, request, session).await,
        (targets::PATH, true) => targets::change(pages, request, session).await,
        (keys::PATH, false) => keys::show(pages, request, session).await,
        (keys::PATH, true) => keys::change(pages, request, session).await,
        (reservations::PATH, false) => reservations::show(pages, request, session).await,
        (reservations::PATH, true) => reservations::change(pages, request, session).await,
        (reservations::TABLE, false) => reservations::download(pages, request, session).await,
        (qr_sheet::PATH, false) => qr_sheet::show(pages, request, session).await,
        (audit::PATH, false) => audit::show(pages, request, session).await,
        _ => Err(PageError::NoPage),
    }
}
