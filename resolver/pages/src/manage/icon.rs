//! The icon of a host that links lead to, for the list of links. Hosts that have none get a globe.
//!
//! The file comes from another host. Its headers keep a browser from running it as a page.

use app::{AppError, icons::host_of};
use hyper::{
    StatusCode,
    body::Bytes,
    header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderValue, X_CONTENT_TYPE_OPTIONS},
};
use url::form_urlencoded::byte_serialize;
use web::{Answer, answer};

use crate::{context::Context, error::PageError};

pub(super) const PATH: &str = "/manage/icon";
const POLICY: &str = "default-src 'none'; sandbox";
const DAY: &str = "private, max-age=86400";
const HOUR: &str = "private, max-age=3600";

/// Returns the address of the icon for a long URL, which is the same for all URLs of a host; `None`
/// for a URL that browsers do not load.
pub(super) fn address(long_url: &str) -> Option<String> {
    let host: String = byte_serialize(host_of(long_url)?.as_bytes()).collect();
    Some(format!("{PATH}?host={host}"))
}

pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    if context.links.icons.is_none() {
        return Err(PageError::NoPage);
    }
    let globe = |kept| {
        let (media_type, bytes) = context.pages.renderer.assets.file("globe.svg");
        picture(media_type, bytes, kept)
    };
    match context.links.icon(context.query.value("host"), context.by).await {
        Ok(Some(icon)) => Ok(picture(icon.media_type, icon.bytes, DAY)),
        Ok(None) => Ok(globe(HOUR)),
        // The next page asks for it again.
        Err(AppError::TooMuchAtOnce(_)) => Ok(globe("no-store")),
        Err(error) => Err(error.into()),
    }
}

fn picture(media_type: &'static str, bytes: Bytes, kept: &'static str) -> Answer {
    let mut answer = answer(StatusCode::OK, media_type, bytes);
    let headers =
        [(CACHE_CONTROL, kept), (CONTENT_SECURITY_POLICY, POLICY), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    for (name, value) in headers {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urls_of_a_host_have_one_address() {
        for (long_url, expected) in [
            ("https://e.example/a", Some("/manage/icon?host=e.example")),
            ("http://E.example:8080/b?c", Some("/manage/icon?host=e.example")),
            ("https://[::1]/", Some("/manage/icon?host=%5B%3A%3A1%5D")),
            ("https://a&b.example/", Some("/manage/icon?host=a%26b.example")),
            ("mailto:a@e.example", None),
        ] {
            assert_eq!(address(long_url).as_deref(), expected, "{long_url}");
        }
    }
}
