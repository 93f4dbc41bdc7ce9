//! The addresses of pages that other pages lead to. Those of a page alone are in its file.

use app::find_link::LinkName;
use links::ESCAPED_IN_PATHS;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::form_urlencoded;

/// The address of the form that creates a link. `/` shows it too, unless that leads elsewhere.
pub(crate) const CREATE: &str = "/manage/create";
pub(crate) const LINKS: &str = "/manage";
/// The beginning of the address of a link's page; its name follows.
pub(crate) const LINK: &str = "/manage/link/";
pub(crate) const STATISTICS: &str = "/manage/statistics";
pub(crate) const TAGS: &str = "/manage/tags";
pub(crate) const EXPLAIN: &str = "/manage/explain";
pub(crate) const QR_SHEET: &str = "/manage/qr-sheet";
pub(crate) const QR_PACK: &str = "/manage/qr-codes";
/// The address of the form that opens a session.
pub(crate) const SIGN_IN: &str = "/_pages/sign-in";

/// Returns whether a path is that of a page, and of no link. The home page is not among them: it
/// may be a redirect of its domain.
pub fn is_page(path: &str) -> bool {
    let first = path.strip_prefix('/').unwrap_or(path).split('/').next();
    matches!(first, Some("manage" | "cluster" | "_pages"))
}

/// Returns whether a text is a path of this service, with or without a query. `//host` and `/\host`
/// lead to another one.
pub(crate) fn is_same_site(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes.next() == Some(b'/') && !matches!(bytes.next(), Some(b'/' | b'\\'));
    begins && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

pub(crate) fn link_page(LinkName { code, domain }: &LinkName) -> String {
    let code = utf8_percent_encode(code, ESCAPED_IN_PATHS);
    let encoded = |domain: &String| format!("?domain={}", utf8_percent_encode(domain, NON_ALPHANUMERIC));
    format!("{LINK}{code}{}", domain.as_ref().map(encoded).unwrap_or_default())
}

pub(crate) fn link_statistics(LinkName { code, domain }: &LinkName) -> String {
    let domain = domain.as_deref().map(|domain| ("domain", domain));
    let fields = [("of", "link"), ("code", code.as_str())].into_iter().chain(domain);
    format!("{STATISTICS}?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish())
}

/// Returns the address of the explanation of a short URL, or of what is typed as one.
pub(crate) fn explain_page(short_url: &str) -> String {
    format!("{EXPLAIN}?shortUrl={}", utf8_percent_encode(short_url, NON_ALPHANUMERIC))
}

pub(crate) fn with_parameter(address: &str, parameter: &str) -> String {
    let separator = if address.contains('?') { '&' } else { '?' };
    format!("{address}{separator}{parameter}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_service_are_led_back_to() {
        for path in ["/", "/manage?page=2&tag=a%20b", "/a//b"] {
            assert!(is_same_site(path), "{path}");
        }
        let elsewhere = ["", "manage", "//evil.example", "/\\evil.example", "https://evil.example"];
        for path in elsewhere.into_iter().chain(["/a b", "/a\r\nb", "/ü"]) {
            assert!(!is_same_site(path), "{path}");
        }
    }

    #[test]
    fn names_of_links_are_escaped_in_addresses() {
        for (code, domain, expected) in [
            ("aB3x9Q", None, "aB3x9Q"),
            ("a/b c?d", Some("s.example:80"), "a/b%20c%3Fd?domain=s%2Eexample%3A80"),
        ] {
            let name = LinkName { code: code.to_owned(), domain: domain.map(str::to_owned) };
            assert_eq!(link_page(&name), format!("{LINK}{expected}"));
        }
    }
}
