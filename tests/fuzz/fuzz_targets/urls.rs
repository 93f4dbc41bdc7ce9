//! Long URLs, schemes, slugs, domains, placeholders, and the visitor's query.
//!
//! The input is four lines: a list of schemes, a URL or target, a query, and a path. The path may
//! have more lines.
//!
//! 1. What a parser accepts, it accepts again unchanged, and it is within the parser's bounds.
//! 2. A long URL has an allowed scheme, no credentials, no white space, no control character, and
//!    is no short link of the service's own domain. Its `Location` has only characters of a URI,
//!    and names the same URL, apart from what URIs have to escape.
//! 3. No list of schemes allows script.
//! 4. The visitor chooses neither scheme nor host of a filled target, whatever the path is. A
//!    filled target is at most as long as a long URL.
//! 5. A forwarded query is merged as the documentation says, pair by pair, or not at all.
//!    Forwarding changes nothing before the query and nothing behind it, and keeps its bound.
#![no_main]

use http::HeaderValue;
use libfuzzer_sys::fuzz_target;
use links::{
    Authority, LongUrl, OwnAddress, Schemes, Slug, fill_placeholders, forward_query, has_safe_placeholders,
    location, requested_authority,
};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{Host, Url};

/// Schemes that run script or show what no site served.
const SCRIPT: [&str; 5] = ["javascript", "data", "vbscript", "file", "blob"];
/// The limits of a forwarded query.
const PAIRS_MAX: usize = 1_000;
const FORWARDED_MAX: usize = 8 * 1024;
/// The service's own domain.
const OWN: &str = "s.test";

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut lines = text.splitn(4, '\n');
    let [schemes, target, query, path] = std::array::from_fn(|_| lines.next().unwrap_or_default());

    let schemes = check_schemes(schemes);
    for text in [target, path] {
        check_long_url(text, &schemes);
        check_slug(text);
        check_authority(text);
    }
    check_placeholders(target, path);
    check_forwarding(target, query);
});

fn check_schemes(text: &str) -> Schemes {
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    let Ok(schemes) = Schemes::parse(&names) else { return Schemes::default() };
    let shown: Vec<String> = schemes.to_string().split(", ").map(str::to_owned).collect();
    assert_eq!(Schemes::parse(&shown).as_ref(), Ok(&schemes));
    assert!(shown.iter().all(|name| schemes.allow(name)));
    assert!(!SCRIPT.iter().any(|name| schemes.allow(name)), "{schemes}");
    schemes
}

fn check_long_url(text: &str, schemes: &Schemes) {
    let host = Host::Domain(OWN.to_owned());
    let own = [80, 443].map(|port| OwnAddress { host: host.clone(), port, path: String::new() });
    let Ok(long_url) = LongUrl::parse(text, &own, schemes) else { return };
    let kept = long_url.as_str();
    assert_eq!(kept, text.trim_matches(' '), "it is kept as it was written");
    assert_eq!(LongUrl::parse(kept, &own, schemes).as_ref(), Ok(&long_url));
    assert!(kept.len() <= LongUrl::MAX_LEN);
    assert!(!kept.contains(|one: char| one.is_control() || one.is_whitespace()), "{kept:?}");
    let url = Url::parse(kept).expect("a long URL is one");
    assert!(schemes.allow(url.scheme()) && !SCRIPT.contains(&url.scheme()), "{kept:?}");
    assert!(url.username().is_empty() && url.password().is_none(), "{kept:?}");
    let header = location(kept);
    assert!(HeaderValue::from_str(&header).is_ok() && is_plain(&header), "{header:?}");
    let named = Url::parse(&header).map(|named| location(named.as_str()));
    assert_eq!(named, Ok(location(url.as_str())), "the header names the same URL");
    assert_eq!(location(&header), header);
    if matches!(url.scheme(), "http" | "https") {
        check_web_url(&long_url, &url);
    }
}

/// Returns `true` if a text has no character that a URI must escape.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte))
}

fn check_web_url(long_url: &LongUrl, url: &Url) {
    let host = url.host_str().unwrap_or_default();
    assert!((1..=253).contains(&host.len()), "{long_url}");
    assert_eq!(long_url.authority_and_path().1, url.path());
    let behind = long_url.as_str().split_once("://").map_or("", |(_, behind)| behind);
    let authority = behind.split(['/', '?', '#']).next().unwrap_or_default();
    assert!(!authority.is_empty() && !authority.contains(['@', '\\']), "{long_url}");
    let is_own = host.trim_end_matches('.') == OWN
        && matches!(url.port_or_known_default(), Some(80 | 443));
    assert!(!(is_own && Slug::of_path(url.path()).is_some()), "{long_url} is a short link");
}

fn check_slug(text: &str) {
    let Ok(slug) = Slug::parse(text) else {
        assert!(Slug::pick(text).is_err());
        return;
    };
    assert_eq!(Slug::parse(slug.as_str()).as_ref(), Ok(&slug));
    assert!((1..=Slug::MAX_LEN).contains(&slug.as_str().len()));
    let path = format!("/{}", utf8_percent_encode(slug.as_str(), NON_ALPHANUMERIC));
    assert_eq!(Slug::of_path(&path).as_ref(), Some(&slug));
    if let Ok(picked) = Slug::pick(text) {
        assert_eq!(picked, slug);
    }
}

fn check_authority(text: &str) {
    if let Ok(authority) = Authority::parse(text) {
        let named = authority.as_str();
        assert_eq!(Authority::parse(named).as_ref(), Ok(&authority));
        assert_eq!(requested_authority(named), named);
        assert_eq!(requested_authority(&named.to_ascii_uppercase()), named);
    }
    assert!(requested_authority(text).len() <= text.len());
}

fn check_placeholders(target: &str, path: &str) {
    let is_safe = has_safe_placeholders(target);
    let Some(filled) = fill_placeholders(target, OWN, path) else {
        let is_too_long = 9 * (target.len() + 1) * (path.len() + OWN.len() + 1) > LongUrl::MAX_LEN;
        assert!(!is_safe || is_too_long, "{target:?}");
        return;
    };
    assert!(is_safe, "{target:?}");
    if !["{DOMAIN}", "{ORIGINAL_PATH}"].iter().any(|name| target.contains(name)) {
        assert_eq!(filled, target);
        return;
    }
    assert!(filled.len() <= LongUrl::MAX_LEN);
    if target.contains(char::is_control) {
        // Neither the API nor a long URL takes such a target, and URL parsers drop some of them.
        return;
    }
    if let Some(plain) = fill_placeholders(target, OWN, "/") {
        assert_eq!(site(&filled), site(&plain), "{target:?} with {path:?}");
    }
}

/// Returns what a visitor must not choose: scheme, credentials, host and port.
fn site(url: &str) -> Option<(String, String, Option<String>, Option<u16>)> {
    let url = Url::parse(url).ok()?;
    let credentials = format!("{}:{}", url.username(), url.password().unwrap_or_default());
    Some((url.scheme().to_owned(), credentials, url.host_str().map(str::to_owned), url.port()))
}

fn check_forwarding(long_url: &str, query: &str) {
    let forwarded = forward_query(long_url, query);
    let merged = merged(long_url, query);
    let is_web = Url::parse(long_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let is_bounded = long_url.len().max(query.len()).max(merged.len()) <= FORWARDED_MAX
        && (1..=PAIRS_MAX).contains(&pairs(query).filter(|pair| !pair.is_empty()).count());
    assert!(forwarded.is_some() || !is_web || !is_bounded, "{long_url:?} with {query:?}");
    let Some(forwarded) = forwarded else { return };
    assert!(is_bounded);
    assert_eq!(forwarded, merged);
    if LongUrl::parse(long_url, &[], &Schemes::default()).is_ok_and(|kept| kept.as_str() == long_url) {
        assert_eq!(site(&forwarded), site(long_url), "{long_url:?} with {query:?}");
    }
}

/// Returns the merged URL by the documentation: the visitor's values in place of the URL's, new
/// keys behind, everything else as it was.
fn merged(long_url: &str, query: &str) -> String {
    let (rest, fragment) = match long_url.find('#') {
        Some(at) => long_url.split_at(at),
        None => (long_url, ""),
    };
    let (base, own) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut placed, mut result) = (Vec::new(), Vec::new());
    for pair in pairs(own) {
        let has_key = |rival: &&str| !pair.is_empty() && !rival.is_empty() && key(rival) == key(pair);
        let rivals: Vec<&str> = pairs(query).filter(has_key).collect();
        if rivals.is_empty() {
            result.push(pair);
        } else if !placed.contains(&key(pair)) {
            placed.push(key(pair));
            result.extend(rivals);
        }
    }
    let others = pairs(query).filter(|pair| pair.is_empty() || !placed.contains(&key(pair)));
    let (kept, others) = (result.join("&"), others.collect::<Vec<_>>());
    let separator = if kept.is_empty() || kept.ends_with('&') { "" } else { "&" };
    if others.iter().all(|pair| pair.is_empty()) {
        return format!("{base}?{kept}{fragment}");
    }
    format!("{base}?{kept}{separator}{}{fragment}", others.join("&"))
}

fn pairs(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|_| !query.is_empty())
}

/// Returns a key as servers decode it.
fn key(pair: &str) -> Vec<u8> {
    let key = pair.split('=').next().unwrap_or_default().replace('+', "%20");
    percent_decode_str(&key).collect()
}
