//! The parts of a target as a browser reads them: the WHATWG URL Standard, for a reference that is
//! resolved against an http or https address.
//!
//! The crate `url` normalizes while it parses. This keeps the text of each part, for those that
//! have to measure it before it is parsed, or to write it as it was given.

use std::borrow::Cow;

use crate::scheme::is_scheme;

/// Maximum length of an authority as it was written, in bytes. Non-ASCII letters take several bytes
/// here and fewer in DNS, and the parser's time for a label grows with the square of its length.
pub(crate) const AUTHORITY_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    /// The scheme as it was written, without the colon.
    pub(crate) scheme: Option<&'a str>,
    /// User, host and port.
    pub(crate) authority: Option<&'a str>,
    /// The path. In a web address, a backslash separates like a slash.
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) fragment: Option<&'a str>,
}

/// Removes what browsers ignore: controls and spaces around, tabs and line ends everywhere.
pub(crate) fn without_ignored(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|character| character <= ' ');
    let is_ignored = |character| matches!(character, '\t' | '\n' | '\r');
    if text.contains(is_ignored) { Cow::Owned(text.replace(is_ignored, "")) } else { Cow::Borrowed(text) }
}

impl<'a> Reference<'a> {
    /// Splits a text that has nothing that browsers ignore.
    pub(crate) fn split(text: &'a str) -> Self {
        let (text, fragment) = cut(text, '#');
        let (text, query) = cut(text, '?');
        let (scheme, rest) = match text.split_once(':') {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, text),
        };
        let (authority, path) = split_authority(rest, is_special(scheme));
        Self { scheme, authority, path, query, fragment }
    }

    /// Returns `true` if a backslash separates, and hosts are names in DNS.
    pub(crate) fn is_special(&self) -> bool {
        is_special(self.scheme)
    }

    /// Returns `true` if the target means the same, whatever it is resolved against. `https:a` is a
    /// path on a page that was served with https, and a host on others.
    pub(crate) fn is_absolute(&self) -> bool {
        self.scheme.is_some() && (self.authority.is_some() || !self.is_special())
    }

    /// Returns `true` if the authority is short enough to be parsed. In place of one that the
    /// scheme does not introduce, a path is measured.
    pub(crate) fn has_plausible_authority(&self) -> bool {
        let may_be_host =
            || if self.is_special() { self.path.split(is_slash).find(|part| !part.is_empty()) } else { None };
        let authority = self.authority.or_else(|| self.scheme.and_then(|_| may_be_host()));
        authority.is_none_or(|authority| authority.len() <= AUTHORITY_MAX)
    }
}

/// Returns `true` if pages are loaded by this scheme. Upper case letters count as lower case ones.
pub(crate) fn is_web(scheme: &str) -> bool {
    ["http", "https"].iter().any(|name| scheme.eq_ignore_ascii_case(name))
}

/// Returns `true` for the schemes that the URL Standard calls special, and for none.
fn is_special(scheme: Option<&str>) -> bool {
    const OTHERS: [&str; 4] = ["ws", "wss", "ftp", "file"];
    scheme.is_none_or(|scheme| is_web(scheme) || OTHERS.iter().any(|name| scheme.eq_ignore_ascii_case(name)))
}

fn is_slash(character: char) -> bool {
    matches!(character, '/' | '\\')
}

fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    text.split_once(mark).map_or((text, None), |(text, behind)| (text, Some(behind)))
}

/// Splits what follows the scheme. A web address may have any number of slashes before its host.
fn split_authority(rest: &str, is_special: bool) -> (Option<&str>, &str) {
    let separates = |character| character == '/' || is_special && character == '\\';
    let behind = rest.trim_start_matches(separates);
    let slashes = rest.len() - behind.len();
    if slashes < 2 {
        return (None, rest);
    }
    let behind = if is_special { behind } else { &rest[2..] };
    let (authority, path) = behind.split_at(behind.find(separates).unwrap_or(behind.len()));
    (Some(authority), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<&str>, Option<&str>, &str) {
        let Reference { scheme, authority, path, .. } = Reference::split(text);
        (scheme, authority, path)
    }

    #[test]
    fn a_host_is_found_where_browsers_look_for_it() {
        for (text, scheme, authority, path) in [
            ("https://a.b:8/c", Some("https"), Some("a.b:8"), "/c"),
            ("HTTPS:\\/\\a.b\\c", Some("HTTPS"), Some("a.b"), "\\c"),
            ("https:a.b", Some("https"), None, "a.b"),
            ("//a.b/c", None, Some("a.b"), "/c"),
            ("/\\a.b", None, Some("a.b"), ""),
            ("\\a", None, None, "\\a"),
            ("a:b", Some("a"), None, "b"),
            ("1:b", None, None, "1:b"),
            ("app:///c", Some("app"), Some(""), "/c"),
            ("app://a\\b/c", Some("app"), Some("a\\b"), "/c"),
            ("a/b://c", None, None, "a/b://c"),
        ] {
            assert_eq!(parts(text), (scheme, authority, path), "{text}");
        }
        let whole = Reference::split("//a/b?c?d#e?f#g");
        assert_eq!((whole.query, whole.fragment), (Some("c?d"), Some("e?f#g")));
        assert_eq!(without_ignored(" \u{1}ht\ttp:/\n/a b\r \0"), "http://a b");
    }

    #[test]
    fn an_authority_is_measured_wherever_it_stands() {
        let long = "a".repeat(AUTHORITY_MAX + 1);
        for before in ["https://", "//", "/\\", "https:", "https:/", "app://", "https:////"] {
            let at_most = format!("{before}{}/x", &long[1..]);
            assert!(Reference::split(&at_most).has_plausible_authority(), "{before}");
            let too_long = format!("{before}{long}/x");
            assert!(!Reference::split(&too_long).has_plausible_authority(), "{before}");
        }
        for before in ["/", "", "mailto:", "https://a/"] {
            let text = format!("{before}{long}");
            assert!(Reference::split(&text).has_plausible_authority(), "{before}");
        }
    }
}
