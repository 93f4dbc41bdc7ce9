//! Requests to a service below a path, such as `https://example.com/s/`.
//!
//! The path is cut off before anything else looks at it. A request without it is served as well: a
//! proxy may have cut it off, and checks of the health come without. Files of app links are at the
//! root of the host only.

use hyper::{Request, Uri, http::uri::PathAndQuery};
use redirect::app_links;

/// Cuts off `base`, a path without a slash at its end, from the address of a request that is below
/// it.
pub(super) fn cut_off<B>(base: &str, mut request: Request<B>) -> Request<B> {
    if !base.is_empty()
        && let Some(below) = below(base, request.uri())
    {
        *request.uri_mut() = below;
    }
    request
}

fn below(base: &str, uri: &Uri) -> Option<Uri> {
    if app_links::is_file(uri.path().strip_prefix(base)?) {
        return None;
    }
    let rest = uri.path_and_query()?.as_str().strip_prefix(base)?;
    let rest = match rest.bytes().next() {
        Some(b'/') => PathAndQuery::try_from(rest),
        None | Some(b'?') => PathAndQuery::try_from(format!("/{rest}")),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest.ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_cut_off_whole_or_not_at_all() {
        for (uri, base, expected) in [
            ("/s/abc?x=/s/", "/s", "/abc?x=/s/"),
            ("/s/s/abc", "/s", "/s/abc"),
            ("/s/", "/s", "/"),
            ("/s", "/s", "/"),
            ("/s?x=1", "/s", "/?x=1"),
            ("http://e.test/s/abc", "/s", "http://e.test/abc"),
            ("/shop", "/s", "/shop"),
            ("/s/.well-known/assetlinks.json?x", "/s", "/s/.well-known/assetlinks.json?x"),
            ("/s/.well-known/mercure", "/s", "/.well-known/mercure"),
            ("/abc/s/", "/s", "/abc/s/"),
            ("/s/abc", "/s/abc", "/"),
            ("/s/abc", "", "/s/abc"),
        ] {
            let request = Request::builder().uri(uri).body(()).unwrap();
            assert_eq!(cut_off(base, request).uri().to_string(), expected, "{uri} {base}");
        }
    }
}
