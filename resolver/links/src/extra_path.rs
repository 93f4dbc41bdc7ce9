//! What a path behind a link's name does: `/docs/a/b` for the link `docs`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::{
    Invalid, LongUrl, Rule,
    fallback_target::{escaped_in_path, escaped_segments, fill, split},
    reference::{Reference, is_web, without_ignored},
};

/// Placeholders for the segments of a path, in their order.
const SEGMENTS: [&str; 9] = ["{1}", "{2}", "{3}", "{4}", "{5}", "{6}", "{7}", "{8}", "{9}"];
/// The placeholder for the segments that have none.
const REST: &str = "{rest}";
const NO_PLACEHOLDER: Invalid = Invalid::because(
    "fill needs {1} to {9} or {rest} behind the host of each long URL, as in https://example.com/{rest}: \
     add one, or choose another value",
);
/// Elsewhere the visitor would choose the host.
const MISPLACED: Invalid = Invalid::because(
    "a path needs http or https URLs, with placeholders only behind the host, as in \
     https://example.com/{rest}: change the long URL, or choose another value",
);

codes::named_values! {
    /// What a path behind a link's name does.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ExtraPath {
        /// The request is not for the link.
        Refuse => "refuse",
        /// The link redirects as without it.
        Ignore => "ignore",
        /// It is appended to the path of the long URL.
        Append => "append",
        /// Its segments take the place of `{1}`, `{2}`, … in the long URL, and what is left of it
        /// that of `{rest}`. With fewer segments, also with none, the long URL ends before the
        /// first place that is left.
        Fill => "fill",
    }
}

impl ExtraPath {
    /// What a domain may say for its links: all but to fill their long URLs, which have no places
    /// for that.
    pub const OF_DOMAINS: [Self; 3] = [Self::Refuse, Self::Ignore, Self::Append];

    /// Finds what a domain may say by its name.
    pub fn parse_for_domain(name: &str) -> Result<Self, Invalid> {
        let found = Self::OF_DOMAINS.into_iter().find(|value| value.as_str() == name);
        found.ok_or(Invalid::because("expected refuse, ignore, append or null"))
    }

    /// Returns the long URL that a path leads to, which is empty, or begins with the slash behind
    /// the link's name. The path is as it was sent, and is escaped once.
    ///
    /// Returns `None` if the request is not for the link: its path is refused, has dot segments or
    /// more segments than the long URL has places for, or makes the URL too long.
    pub fn apply<'a>(self, long_url: &'a str, path: &str) -> Option<Cow<'a, str>> {
        match self {
            Self::Append | Self::Fill if leads_out(path) => None,
            Self::Fill => fill_segments(long_url, path).map(Cow::Owned),
            _ if path.is_empty() => Some(Cow::Borrowed(long_url)),
            Self::Refuse => None,
            Self::Ignore => Some(Cow::Borrowed(long_url)),
            Self::Append => append(long_url, path).map(Cow::Owned),
        }
    }
}

/// Returns whether a path has dot segments. Browsers send none; another client would be led out of
/// the folder that the long URL names, to what may be another's on that host.
pub(crate) fn leads_out(path: &str) -> bool {
    let decoded = |segment| percent_decode_str(segment).decode_utf8_lossy();
    path.split('/').any(|segment| matches!(&*decoded(segment), "." | ".."))
}

/// Checks that a path can fill the long URLs of a link that has this setting, and those of its
/// rules about the path, and that no visitor chooses their hosts.
pub fn check_templates<'a>(
    extra_path: Option<ExtraPath>,
    long_url: Option<&LongUrl>,
    rules: impl IntoIterator<Item = &'a Rule>,
) -> Result<(), Invalid> {
    let fills = extra_path == Some(ExtraPath::Fill);
    long_url.filter(|_| fills).map_or(Ok(()), check_template)?;
    rules.into_iter().try_for_each(|rule| match rule.path_pattern() {
        Some(_) if has_placeholder(rule.long_url.as_str()) => check_template(&rule.long_url),
        None if fills => check_template(&rule.long_url),
        _ => Ok(()),
    })
}

/// Checks that the segments of a path can fill a long URL, and that no visitor chooses its host.
fn check_template(long_url: &LongUrl) -> Result<(), Invalid> {
    let Reference { scheme, authority, .. } = Reference::split(long_url.as_str());
    let host = authority.filter(|host| !host.is_empty() && scheme.is_some_and(is_web));
    if host.is_none_or(has_placeholder) {
        return Err(MISPLACED);
    }
    if has_placeholder(long_url.as_str()) { Ok(()) } else { Err(NO_PLACEHOLDER) }
}

fn has_placeholder(text: &str) -> bool {
    SEGMENTS.iter().chain([&REST]).any(|name| text.contains(name))
}

/// Returns a long URL with the parts of a path that wildcards match. A placeholder without a
/// wildcard is empty.
pub(crate) fn fill_wildcards(long_url: &str, parts: &[&str]) -> Option<String> {
    let parts = parts.iter().copied().chain(std::iter::repeat(""));
    let values: Vec<(&str, &str)> = SEGMENTS.into_iter().zip(parts).collect();
    fill(long_url, &values, escaped_segments)
}

fn append(long_url: &str, path: &str) -> Option<String> {
    let long_url = without_ignored(long_url);
    if !Reference::split(&long_url).scheme.is_some_and(is_web) {
        return None;
    }
    let (before, after) = long_url.split_at(long_url.find(['?', '#']).unwrap_or(long_url.len()));
    // Without a path, the slash ends the host.
    let url = format!("{}/{}{after}", before.strip_suffix('/').unwrap_or(before), escaped_in_path(path));
    (url.len() <= LongUrl::MAX_LEN).then_some(url)
}

fn fill_segments(long_url: &str, path: &str) -> Option<String> {
    let count = SEGMENTS.iter().rposition(|name| long_url.contains(name)).map_or(0, |last| last + 1);
    let mut segments = path.trim_start_matches('/').splitn(count + 1, '/');
    let mut values: Vec<(&str, &str)> = SEGMENTS[..count].iter().copied().zip(segments.by_ref()).collect();
    let rest = segments.next().unwrap_or_default();
    let given = values.iter().take_while(|(_, segment)| !segment.is_empty()).count();
    let is_full = given == count;
    let has_gap = values[given..].iter().any(|(_, segment)| !segment.is_empty());
    if has_gap || !(rest.is_empty() || is_full && long_url.contains(REST)) {
        return None;
    }
    values.truncate(given);
    values.push((REST, rest));
    if is_full {
        return fill(long_url, &values, escaped_in_path);
    }
    fill(before_places(long_url, &SEGMENTS[given..])?, &values, escaped_in_path)
}

/// Returns a long URL up to the part with the first of these placeholders, which are behind its
/// host: the segment of its path, the parameter of its query, or its fragment.
fn before_places<'a>(long_url: &'a str, names: &[&str]) -> Option<&'a str> {
    let (fixed, behind) = split(long_url, names)?;
    let place = names.iter().filter_map(|name| behind.find(name)).min().unwrap_or(behind.len());
    let part = behind[..place].rfind(['/', '?', '&', '#']).unwrap_or_default();
    let slash = usize::from(behind[part..].starts_with('/'));
    Some(&long_url[..fixed.len() + part + slash])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_appended_before_query_and_fragment() {
        for (long_url, path, url) in [
            ("https://a.b", "/c", Some("https://a.b/c")),
            ("https://a.b/", "/c/d", Some("https://a.b/c/d")),
            ("https://a.b/x?y#z", "/c/", Some("https://a.b/x/c/?y#z")),
            ("https://a.b?y=/", "/c", Some("https://a.b/c?y=/")),
            ("https://a.b/x", "/%2F%20\u{e9}|", Some("https://a.b/x/%2F%20%C3%A9%7C")),
            ("https://a.b", "//evil.example", Some("https://a.b/evil.example")),
            ("https://a.b", "/@evil.example", Some("https://a.b/@evil.example")),
            ("https://a.b/x", "/c/../d", None),
            ("https://a.b/x", "/%2e%2E", None),
            ("https://a.b/x", "/./c", None),
            ("https://a.b/x", "/.c/.../%252e%252e", Some("https://a.b/x/.c/.../%252e%252e")),
            ("https://a.b/x", "/..%2Fc%5C..", Some("https://a.b/x/..%2Fc%5C..")),
            ("mailto:a@b.example", "/c", None),
            ("https://a.b/x", "", Some("https://a.b/x")),
        ] {
            assert_eq!(ExtraPath::Append.apply(long_url, path).as_deref(), url, "{long_url} {path}");
        }
        let long = format!("/{}", "x".repeat(LongUrl::MAX_LEN));
        assert_eq!(ExtraPath::Append.apply("https://a.b", &long), None);
        assert_eq!(ExtraPath::Ignore.apply("https://a.b", &long).as_deref(), Some("https://a.b"));
        assert_eq!(ExtraPath::Refuse.apply("https://a.b", "/c"), None);
    }

    #[test]
    fn segments_take_the_places_that_the_long_url_has_for_them() {
        let issue = "https://a.b/{1}/issues/{2}?q={2}";
        let file = "https://a.b/{1}/blob/main/{rest}#top";
        for (long_url, path, url) in [
            (issue, "/repo/7", Some("https://a.b/repo/issues/7?q=7")),
            (issue, "/repo/7/", Some("https://a.b/repo/issues/7?q=7")),
            (issue, "/a%2Fb/7%26x=1", Some("https://a.b/a%2Fb/issues/7&x=1?q=7%26x%3D1")),
            (issue, "/{2}/7", Some("https://a.b/%7B2%7D/issues/7?q=7")),
            (issue, "/repo//7", None),
            (issue, "/repo/7/8", None),
            (file, "/repo", Some("https://a.b/repo/blob/main/#top")),
            (file, "/repo/src/lib.rs", Some("https://a.b/repo/blob/main/src/lib.rs#top")),
            (issue, "/%2E./7", None),
            (file, "/repo/../..", None),
            ("https://{1}/", "/evil.example", None),
            ("https://{1}/", "", None),
            ("https://a.b/", "", Some("https://a.b/")),
            ("https://a.b/", "/c", None),
        ] {
            assert_eq!(ExtraPath::Fill.apply(long_url, path).as_deref(), url, "{long_url} {path}");
        }
    }

    #[test]
    fn without_all_segments_the_long_url_ends_before_the_first_place_that_is_left() {
        for (long_url, path, url) in [
            ("https://a.b/{1}/issues/{2}?q={2}", "", "https://a.b/"),
            ("https://a.b/{1}/issues/{2}?q={2}", "/", "https://a.b/"),
            ("https://a.b/{1}/issues/{2}?q={2}", "/repo", "https://a.b/repo/issues/"),
            ("https://a.b/{1}/issues/{2}?q={2}", "/repo//", "https://a.b/repo/issues/"),
            ("https://a.b/browse/{1}", "", "https://a.b/browse/"),
            ("https://a.b/browse/PRE-{1}/x", "", "https://a.b/browse/"),
            ("https://a.b/{1}/blob/{rest}#top", "", "https://a.b/"),
            ("https://a.b/docs/{rest}#top", "", "https://a.b/docs/#top"),
            ("https://a.b/x?view=list&id={1}&y", "", "https://a.b/x?view=list"),
            ("https://a.b/search?q={1}", "", "https://a.b/search"),
            ("https://a.b?q={2}&r={1}", "/r", "https://a.b"),
            ("https://a.b/x#{1}", "/", "https://a.b/x"),
        ] {
            assert_eq!(ExtraPath::Fill.apply(long_url, path).as_deref(), Some(url), "{long_url} {path}");
        }
    }

    #[test]
    fn what_wildcards_match_takes_its_place_with_all_its_slashes() {
        for (long_url, parts, url) in [
            ("https://a.b/{1}", &["/1"][..], Some("https://a.b//1")),
            ("https://a.b/{2}/x{1}?q={1}#{3}", &["a/b", "%C3%A4"], Some("https://a.b/%C3%A4/xa/b?q=a%2Fb#")),
            ("https://a.b", &["c"], Some("https://a.b")),
            ("https://a.b{1}", &["/c"], None),
            ("https://{1}/", &["evil.example"], None),
        ] {
            assert_eq!(fill_wildcards(long_url, parts).as_deref(), url, "{long_url}");
        }
        let long = "x".repeat(LongUrl::MAX_LEN);
        assert_eq!(fill_wildcards("https://a.b/{1}", &[&long]), None);
    }

    #[test]
    fn rules_about_the_path_need_no_placeholder() {
        let rule = |url: &str, pattern: Option<&str>| {
            let condition = |text| crate::Condition::parse("path", None, Some(text)).unwrap();
            Rule::new(LongUrl::from_stored(url), pattern.map(condition).into_iter().collect())
        };
        let own = LongUrl::from_stored("https://a.b/{1}");
        let check = |extra_path, rule| check_templates(extra_path, Some(&own), &[rule]);
        let fill = Some(ExtraPath::Fill);
        for extra_path in [fill, None] {
            assert_eq!(check(extra_path, rule("https://a.b/", Some("/"))), Ok(()));
            assert_eq!(check(extra_path, rule("https://a.b/{1}", Some("/*"))), Ok(()));
            assert_eq!(check(extra_path, rule("https://{1}.b/", Some("/*"))), Err(MISPLACED));
        }
        assert_eq!(check(fill, rule("https://a.b/", None)), Err(NO_PLACEHOLDER));
        assert_eq!(check(None, rule("https://a.b/", None)), Ok(()));
        let plain = LongUrl::from_stored("https://a.b/");
        assert_eq!(check_templates(fill, Some(&plain), &[]), Err(NO_PLACEHOLDER));
    }

    #[test]
    fn a_template_has_placeholders_and_they_are_behind_the_host() {
        for text in [
            "https://a.b/{1}",
            "HTTP://a.b:8080/x/{9}/{rest}?y={2}#{3}",
            "https://a.b?q={rest}",
            "https://a.b#{1}",
        ] {
            assert_eq!(check_template(&LongUrl::from_stored(text)), Ok(()), "{text}");
        }
        for (text, error) in [
            ("https://a.b/", NO_PLACEHOLDER),
            ("https://a.b/{0}{10}{REST}{ORIGINAL_PATH}", NO_PLACEHOLDER),
            ("https://{1}.b/{2}", MISPLACED),
            ("https://a.b{rest}", MISPLACED),
            ("https://a.b:{1}/", MISPLACED),
            ("https://a.b@{1}/", MISPLACED),
            ("https:///{1}", MISPLACED),
            ("https:\\\\{1}\\x", MISPLACED),
            ("https:{1}/{2}", MISPLACED),
            ("{1}://a.b/{2}", MISPLACED),
            ("{1}", MISPLACED),
            ("app://a.b/{1}", MISPLACED),
            ("mailto:{1}@a.b", MISPLACED),
        ] {
            assert_eq!(check_template(&LongUrl::from_stored(text)), Err(error), "{text}");
        }
    }
}
