//! Shlink's placeholders in fallback redirects: `{DOMAIN}` and `{ORIGINAL_PATH}`.
//!
//! They are replaced only after the host of a URL that has one, because the visitor chooses the
//! values. In `https://example.com{ORIGINAL_PATH}` the path `/@evil.example/` would name another
//! host, and `{ORIGINAL_PATH}` alone could become any URL.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

const DOMAIN: &str = "{DOMAIN}";
const ORIGINAL_PATH: &str = "{ORIGINAL_PATH}";

/// Returns `true` if all placeholders stand where they are replaced.
#[must_use]
pub fn has_safe_placeholders(target: &str) -> bool {
    split(target).is_some()
}

/// Fills the placeholders of a fallback target. Returns `None` if a placeholder is not after the
/// host. In the query the values are percent-encoded, because their characters may have a meaning
/// there.
#[must_use]
pub fn fill_placeholders(target: &str, domain: &str, path: &str) -> Option<String> {
    let (fixed, rest) = split(target)?;
    let (before, query) = rest.split_once('?').map_or((rest, None), |(before, query)| (before, Some(query)));
    // Browsers treat a backslash as a slash.
    let tail = path.trim_start_matches('/').replace('\\', "%5C");
    let plain = before.replace(DOMAIN, domain).replace(ORIGINAL_PATH, &tail);
    let escape = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let query =
        query.map(|query| query.replace(DOMAIN, &escape(domain)).replace(ORIGINAL_PATH, &escape(path)));
    Some(query.map_or_else(|| format!("{fixed}{plain}"), |query| format!("{fixed}{plain}?{query}")))
}

/// Splits a target after its host. Returns `None` if a placeholder is not after a host.
fn split(target: &str) -> Option<(&str, &str)> {
    let is_placeholder = |text: &str| text.contains(DOMAIN) || text.contains(ORIGINAL_PATH);
    if !is_placeholder(target) {
        return Some((target, ""));
    }
    let (scheme, behind) = target.split_once("://")?;
    let is_web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let end = behind.find(['/', '\\', '?', '#']).filter(|end| is_web && *end > 0)?;
    let (fixed, rest) = target.split_at(scheme.len() + "://".len() + end);
    (!is_placeholder(fixed)).then_some((fixed, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_behind_the_host_and_escaped_in_the_query() {
        for (target, expected) in [
            ("https://a.b/", "https://a.b/"),
            ("https://a.b/{ORIGINAL_PATH}", "https://a.b/x/y&z%5C"),
            ("https://a.b/?d={DOMAIN}&p={ORIGINAL_PATH}", "https://a.b/?d=s%2Ert&p=%2Fx%2Fy%26z%5C"),
            ("https://a.b/{DOMAIN}#{ORIGINAL_PATH}", "https://a.b/s.rt#x/y&z%5C"),
            ("HTTP://a.b?{DOMAIN}", "HTTP://a.b?s%2Ert"),
            ("/lost", "/lost"),
        ] {
            assert_eq!(fill_placeholders(target, "s.rt", "/x/y&z\\").as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_visitor_never_chooses_the_host() {
        for target in [
            "https://a.b{ORIGINAL_PATH}",
            "https://{DOMAIN}.b/",
            "https://a.b:{ORIGINAL_PATH}/",
            "https://{ORIGINAL_PATH}",
            "{ORIGINAL_PATH}",
            "/{ORIGINAL_PATH}",
            "//{ORIGINAL_PATH}",
            "https:{ORIGINAL_PATH}",
            "https:///{ORIGINAL_PATH}",
            "x://a.b/{ORIGINAL_PATH}",
        ] {
            assert!(!has_safe_placeholders(target), "{target}");
            assert_eq!(fill_placeholders(target, "s.rt", "/@evil.example/"), None, "{target}");
        }
    }
}
