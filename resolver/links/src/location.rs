//! The value of the header `Location`, for every redirect to a stored target.
//!
//! 1. It is always a URI reference of RFC 3986. A target that is one already stays as it was
//!    written, but the host of a web address is written as DNS has it, behind two slashes.
//! 2. A browser ends at the same address as when it opens the target itself. Only what browsers
//!    send raw and RFC 3986 forbids is escaped in that address: `|`, `[` and the like.
//! 3. What is escaped already is not escaped again. A percent sign that escapes nothing is escaped
//!    itself.
//!
//! Rejected: the text of the parsed URL, which drops default ports and dot segments, and changes
//! the case of hosts. Servers that sign their URLs notice.

use std::net::Ipv6Addr;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode_byte};
use url::Host;

use crate::{
    forward::{FORWARDED_MAX, add_query, forward_query},
    reference::{AUTHORITY_MAX, Reference, without_ignored},
};

/// Characters escaped in a path: all but slashes and the unreserved characters of RFC 3986.
pub const ESCAPED_IN_PATHS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns a target as the value of a `Location` header.
pub fn location(target: &str) -> String {
    let target = without_ignored(target);
    let reference = Reference::split(&target);
    let Reference { scheme, authority, path, query, fragment } = reference;
    let mut text = String::with_capacity(target.len());
    if let Some(scheme) = scheme {
        text.push_str(scheme);
        text.push(':');
    }
    match authority {
        Some(authority) => {
            text.push_str("//");
            push_authority(&mut text, authority, reference.is_special());
        }
        None if looks_like_scheme(&reference) => text.push_str("./"),
        None => {}
    }
    // Browsers take the one for the other, but not where a backslash is escaped.
    let slash = if reference.is_special() { "/" } else { "\\" };
    for (index, part) in path.split('\\').enumerate() {
        escape(&mut text, if index > 0 { slash } else { "" }, is_in_path);
        escape(&mut text, part, is_in_path);
    }
    for (mark, part) in [('?', query), ('#', fragment)] {
        if let Some(part) = part {
            text.push(mark);
            escape(&mut text, part, is_in_query);
        }
    }
    text
}

/// Returns a long URL with a visitor's query as the value of a `Location` header. Returns `None` if
/// the query is not passed on (see [`forward_query`]).
pub fn location_with_query(long_url: &str, query: &str) -> Option<String> {
    forward_query(long_url, query).map(|merged| location(&merged)).filter(|text| text.len() <= FORWARDED_MAX)
}

/// Returns the value of a `Location` header with those parameters of a query that it lacks. Returns
/// `None` if it stays as it is (see [`add_query`]).
pub fn location_with_added(to: &str, query: &str) -> Option<String> {
    add_query(to, query).map(|added| location(&added)).filter(|text| text.len() <= FORWARDED_MAX)
}

/// Returns `true` if a colon in the first segment would end a scheme.
fn looks_like_scheme(Reference { scheme, authority, path, .. }: &Reference<'_>) -> bool {
    let first = path.split(['/', '\\']).next().unwrap_or_default();
    scheme.is_none() && authority.is_none() && first.contains(':')
}

fn push_authority(text: &mut String, authority: &str, is_special: bool) {
    let (user, address) =
        authority.rsplit_once('@').map_or((None, authority), |(user, rest)| (Some(user), rest));
    if let Some(user) = user {
        escape(text, user, |byte| is_in_host(byte) || byte == b':');
        text.push('@');
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    match address.rsplit_once(':') {
        Some((host, port)) if is_port(port) => {
            push_host(text, host, is_special);
            text.push(':');
            text.push_str(port);
        }
        _ => push_host(text, address, is_special),
    }
}

/// Appends a host. Browsers decode that of a web address and look it up by its A-labels. Other
/// hosts they leave alone.
fn push_host(text: &mut String, host: &str, is_special: bool) {
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = bracketed.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    if is_address || host.bytes().all(is_in_host) {
        return text.push_str(host);
    }
    let is_name = is_special && host.len() <= AUTHORITY_MAX;
    match is_name.then(|| Host::parse(host)) {
        Some(Ok(host)) => escape(text, &host.to_string(), is_in_host),
        _ => escape(text, host, is_in_host),
    }
}

/// Appends a part in which all bytes are escaped that `is_plain` does not allow. What is escaped
/// already is appended as it is.
fn escape(text: &mut String, part: &str, is_plain: impl Fn(u8) -> bool) {
    // Almost every part is plain as a whole.
    if part.bytes().all(&is_plain) {
        return text.push_str(part);
    }
    let bytes = part.as_bytes();
    for (at, &byte) in bytes.iter().enumerate() {
        let digits = bytes.get(at + 1..at + 3);
        let is_escape = byte == b'%' && digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        push_byte(text, byte, is_escape || is_plain(byte));
    }
}

pub(crate) fn push_byte(text: &mut String, byte: u8, is_plain: bool) {
    if is_plain { text.push(char::from(byte)) } else { text.push_str(percent_encode_byte(byte)) }
}

/// Returns `true` for `unreserved` and `sub-delims` of RFC 3986.
fn is_in_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

/// Returns `true` for `pchar`, apart from escapes, and the slash.
pub(crate) fn is_in_path(byte: u8) -> bool {
    is_in_host(byte) || b":@/".contains(&byte)
}

/// Returns `true` for what RFC 3986 allows in a query and in a fragment, apart from escapes.
fn is_in_query(byte: u8) -> bool {
    is_in_path(byte) || byte == b'?'
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use url::Url;

    use super::*;

    #[test]
    fn what_no_uri_may_have_is_escaped_and_everything_else_stays() {
        for (target, expected) in [
            ("https://e.example/a|b^c`d{e}\"f<g>", "https://e.example/a%7Cb%5Ec%60d%7Be%7D%22f%3Cg%3E"),
            ("HTTPS://E.example:443/a/../b%7e?c=%20+'d", "HTTPS://E.example:443/a/../b%7e?c=%20+'d"),
            ("https://e.example/a\\b?c\\d#e\\f", "https://e.example/a/b?c%5Cd#e%5Cf"),
            ("https://e.example/%zz%4%?q[]=100%#%", "https://e.example/%25zz%254%25?q%5B%5D=100%25#%25"),
            ("https://b\u{fc}cher.example/\u{fc}#\u{fc}", "https://xn--bcher-kva.example/%C3%BC#%C3%BC"),
            ("https://%65.example:8080", "https://e.example:8080"),
            ("https://a{b}.example/", "https://a%7Bb%7D.example/"),
            ("http://[::1]:81/[x]", "http://[::1]:81/%5Bx%5D"),
            ("http://[bad/x", "http://%5Bbad/x"),
            ("https:\\\\e.example\\", "https://e.example/"),
            ("\\/e.example", "//e.example"),
            (" ht\ntps://e.example/\t", "https://e.example/"),
            ("https://a:b@c@d.example/", "https://a:b%40c@d.example/"),
            ("mailto:a\"b@x.y?subject=c d", "mailto:a%22b@x.y?subject=c%20d"),
            ("app://h\u{f6}st\\x/", "app://h%C3%B6st%5Cx/"),
            ("/lost and found", "/lost%20and%20found"),
            ("1:2", "./1:2"),
            ("a|b:c/d", "./a%7Cb:c/d"),
            ("?a", "?a"),
        ] {
            assert_eq!(location(target), expected, "{target}");
            assert_eq!(location(expected), expected);
        }
    }

    /// Escapes what RFC 3986 does not allow, so that addresses compare that differ in this only.
    fn escaped(url: &Url) -> String {
        let (url, fragment) = url.as_str().split_once('#').unwrap_or((url.as_str(), ""));
        let mut text = String::new();
        escape(&mut text, url, is_in_query);
        escape(&mut text, fragment, is_in_query);
        text
    }

    fn is_uri_reference(text: &str) -> bool {
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let host = Reference::split(text).authority.unwrap_or_default();
        let path = rest.replacen(host, "", 1);
        let allowed = |part: &str, others: &str| {
            let is_allowed = |one: char| one.is_ascii_alphanumeric() || "-._~!$&'()*+,;=%:@/".contains(one);
            part.chars().all(|one| is_allowed(one) || others.contains(one))
                && part.split('%').skip(1).all(|behind| {
                    behind.len() >= 2 && behind.bytes().take(2).all(|byte| byte.is_ascii_hexdigit())
                })
        };
        allowed(host, "[]") && allowed(&path, "") && allowed(query, "?") && allowed(fragment, "?")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn a_browser_ends_where_the_target_leads(
            before in "(https?:|HTTP:|app:|mailto:|)[/\\\\]{0,3}",
            host in "([a-c\u{fc}.%@:\\[\\]{}|]|%6[1-9]|\\[::1\\]|e\\.example){0,4}(:80)?",
            rest in "([/\\\\?#]|[ -{}~]|%[0-9a-f]{2}|%2[eE]|\u{fc}|\u{1f600}|\t){0,12}",
        ) {
            let mut target = format!("{before}{host}/{rest}");
            if before.starts_with("app") {
                // The crate takes a backslash for the end of a port here, browsers do not.
                target = target.replace('\\', "/");
            }
            let to = location(&target);
            prop_assert!(is_uri_reference(&to), "{to}");
            prop_assert_eq!(location(&to), to.as_str());
            // A bracket stands in a host only, and without two slashes it depends on the page what
            // is one.
            let reference = without_ignored(&target);
            let reference = Reference::split(&reference);
            let is_either = reference.scheme.is_some() && !reference.is_absolute();
            if is_either && reference.path.contains(['[', ']']) {
                return Ok(());
            }
            for base in ["https://own.example/code", "http://own.example/a/b"] {
                let base = Url::parse(base).unwrap();
                if let Ok(url) = base.join(&target) {
                    let led = base.join(&to).map(|led| escaped(&led));
                    prop_assert_eq!(led, Ok(escaped(&url)), "{}", to);
                }
            }
        }
    }
}
