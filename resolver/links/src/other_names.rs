//! Other names that a path may be meant as, if no link has the path itself as its name.
//!
//! They are tried in this order: in small letters, without what a chat or a sentence put behind the
//! link, each name that the path continues, the longest first, and then the name of the link that
//! catches all paths, which the whole path continues.

use std::{borrow::Cow, iter};

use percent_encoding::percent_decode_str;

use crate::{DomainSettings, ExtraPath, Link, LongUrl, Rule};

/// Maximum number of segments that a name with a path behind it has.
const SEGMENTS_MAX: usize = 4;
/// The name of the link that catches all paths, as the path of a request.
const CATCH_ALL: &str = "/*";
/// What may follow a link in a text, beside white space, slashes and invisible characters. What is
/// not UTF-8 is decoded to the last one.
const TRAILING: &str = ".,;:!?'\"`*_~|=&\\)]}>–—…‘’“”›»。，、；：！？．｡､）］｝】」』｣》〉،؛؟۔।\u{fffd}";
/// What begins a text or a query behind a link, beside white space and invisible characters. Texts
/// in Chinese and Japanese have no space there.
const BREAKS: &str = "?#&。，、；：！？（）【】「」『』《》\u{fffd}";
/// Invisible characters that chats and editors put around links. Those that emoji and words have
/// are not among them.
const INVISIBLE: &str = "\u{ad}\u{200b}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\
                         \u{2066}\u{2067}\u{2068}\u{2069}\u{feff}\u{fffc}";
/// Maximum number of names that differ only in how many marks at the end belong to them.
const MARKS_MAX: usize = 3;

/// What makes a name another one than the path's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWay {
    /// It is in small letters.
    Case,
    /// It ends before a punctuation mark, a slash or a text.
    Trailing,
    /// The path continues behind it.
    Prefix,
    /// It is that of the link that catches all paths.
    CatchAll,
}

/// Another name that a path may be meant as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName<'a> {
    /// The name as the path of a request, escaped.
    pub path: String,
    /// What makes it another one.
    pub way: OtherWay,
    /// The name with the letters of the request, without escapes, if they are others.
    pub lowered_from: Option<String>,
    /// The path behind it as it was sent, with the slash; empty if there is none.
    pub behind: &'a str,
}

impl OtherName<'_> {
    /// Returns whether a link that has this name is meant. Minted codes differ in the case of
    /// letters alone.
    pub fn means(&self, link: &Link, of_domain: Option<ExtraPath>) -> bool {
        let is_there = !link.is_deleted() || link.is_blocked();
        is_there
            && (self.lowered_from.is_none() || link.slug().is_some())
            && link.takes(self.behind, of_domain)
    }
}

impl Link {
    /// Returns what a path behind the link's name does on a domain with this setting.
    pub fn extra_path(&self, of_domain: Option<ExtraPath>) -> ExtraPath {
        self.details().extra_path.or(of_domain).unwrap_or(ExtraPath::Refuse)
    }

    /// Returns where the link leads with a path behind its name, by the rule that matched if there
    /// is one: a long URL, and what the path makes of it. Returns `None` if no long URL has a place
    /// for the path.
    pub fn target<'a>(
        &'a self,
        rule: Option<&'a Rule>,
        path: &str,
        of_domain: Option<ExtraPath>,
    ) -> Option<(&'a LongUrl, Cow<'a, str>)> {
        let what = self.extra_path(of_domain);
        let placed = |url: &'a LongUrl| Some((url, what.apply(url.as_str(), path)?));
        match rule {
            Some(rule) if rule.path_pattern().is_some() => {
                Some((&rule.long_url, Cow::Owned(rule.filled(path)?)))
            }
            Some(rule) => placed(&rule.long_url).or_else(|| placed(&self.long_url)),
            None => placed(&self.long_url),
        }
    }

    /// Returns whether a request with this path behind the link's name is for the link: its long
    /// URL or one of its rules has a place for the path.
    pub fn takes(&self, path: &str, of_domain: Option<ExtraPath>) -> bool {
        let is_for = |rule: &Rule| rule.path_pattern().is_some_and(|pattern| pattern.matches(path));
        let may_have_path = path.is_empty() || self.extra_path(of_domain) != ExtraPath::Refuse;
        self.target(None, path, of_domain).is_some() || may_have_path && self.rules().iter().any(is_for)
    }
}

/// Returns whether a slug is that of the link that catches all paths.
pub fn is_catch_all(slug: &str) -> bool {
    CATCH_ALL.strip_prefix('/') == Some(slug)
}

/// Returns the other names that the path of a request may be meant as on a domain, in the order in
/// which they are tried.
pub fn other_names<'a>(path: &'a str, settings: &DomainSettings) -> Vec<OtherName<'a>> {
    let mut names = Vec::new();
    let mut add = |path: &str, way, behind| {
        if way != OtherWay::Case {
            names.push(OtherName { path: path.to_owned(), way, lowered_from: None, behind });
        }
        if settings.ignore_case {
            let decoded = percent_decode_str(path).decode_utf8_lossy();
            let lowered = decoded.to_lowercase();
            if lowered != decoded {
                let lowered_from = decoded.strip_prefix('/').map(str::to_owned);
                names.push(OtherName { path: escaped(&lowered), way, lowered_from, behind });
            }
        }
    };
    add(path, OtherWay::Case, "");
    if settings.ignore_trailing {
        for name in names_before_text(&percent_decode_str(path).decode_utf8_lossy()) {
            add(&escaped(name), OtherWay::Trailing, "");
        }
    }
    let path = if settings.ignore_trailing { without_blanks(path) } else { path };
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 1);
    let mut ends: Vec<usize> = ends.take(SEGMENTS_MAX).collect();
    ends.reverse();
    for end in ends {
        let (name, behind) = path.split_at(end);
        add(name, OtherWay::Prefix, behind);
    }
    if settings.catch_all {
        add(CATCH_ALL, OtherWay::CatchAll, path);
    }
    names
}

/// Returns what is left of a decoded path without what a text put behind it, the longest first:
/// without one mark at the end or a few, as a name may end in marks itself; without all of them;
/// and up to where a text or a query may begin.
fn names_before_text(path: &str) -> Vec<&str> {
    let is_trailing = |one: char| one == '/' || is_blank(one) || TRAILING.contains(one);
    let is_break = |one: char| is_blank(one) || BREAKS.contains(one);
    let with_marks = iter::successors(Some(path), |name| name.strip_suffix(is_trailing));
    let before_break = path.split(is_break).next().unwrap_or_default();
    let bare = [path, before_break].map(|name| name.trim_end_matches(is_trailing));
    let names = with_marks.take(MARKS_MAX + 1).chain(bare);
    let mut names: Vec<&str> = names.filter(|name| name.len() > 1 && name.len() < path.len()).collect();
    names.dedup();
    names
}

fn is_blank(one: char) -> bool {
    one.is_whitespace() || INVISIBLE.contains(one)
}

/// Returns a path as it was sent, but for white space and invisible characters at its end. Marks
/// may belong to what is behind a name, as in `wiki/Name_(company)`.
fn without_blanks(path: &str) -> &str {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let blanks = decoded.len() - decoded.trim_end_matches(is_blank).len();
    let bytes = path.as_bytes();
    // Each byte of the decoded end is sent as itself, or as an escape of three bytes.
    let before = |end: usize| match bytes[..end] {
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => end - 3,
        _ => end - 1,
    };
    &path[..(0..blanks).fold(bytes.len(), |end, _| before(end))]
}

fn escaped(path: &str) -> String {
    percent_encoding::utf8_percent_encode(path, crate::ESCAPED_IN_PATHS).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(path: &str, settings: &DomainSettings) -> Vec<(String, String)> {
        other_names(path, settings).into_iter().map(|name| (name.path, name.behind.to_owned())).collect()
    }

    fn expected(names: &[(&str, &str)]) -> Vec<(String, String)> {
        names.iter().map(|(path, behind)| ((*path).to_owned(), (*behind).to_owned())).collect()
    }

    #[test]
    fn names_are_tried_in_one_order() {
        let none = DomainSettings::default();
        let all = DomainSettings { ignore_case: true, ignore_trailing: true, ..DomainSettings::default() };
        let catching = DomainSettings { ignore_case: true, catch_all: true, ..DomainSettings::default() };
        for (path, settings, others) in [
            ("/Sale.", &none, &[][..]),
            ("/Sale.", &all, &[("/sale.", ""), ("/Sale", ""), ("/sale", "")]),
            ("/sale", &all, &[]),
            ("/%E3%80%82", &all, &[]),
            ("/sale%E3%80%82)", &all, &[("/sale%E3%80%82", ""), ("/sale", "")]),
            ("/a/b/c", &none, &[("/a/b", "/c"), ("/a", "/b/c")]),
            (
                "/a/B/",
                &all,
                &[("/a/b/", ""), ("/a/B", ""), ("/a/b", ""), ("/a/B", "/"), ("/a/b", "/"), ("/a", "/B/")],
            ),
            (
                "/a/b/c/d/e/f",
                &none,
                &[("/a/b/c/d", "/e/f"), ("/a/b/c", "/d/e/f"), ("/a/b", "/c/d/e/f"), ("/a", "/b/c/d/e/f")],
            ),
            ("//a", &none, &[]),
            ("/", &none, &[]),
            ("/", &catching, &[("/*", "/")]),
            ("/A/b", &catching, &[("/a/b", ""), ("/A", "/b"), ("/a", "/b"), ("/*", "/A/b")]),
        ] {
            assert_eq!(names(path, settings), expected(others), "{path}");
        }
    }

    #[test]
    fn what_texts_chats_and_trackers_put_behind_a_name_is_no_part_of_it() {
        for (path, names) in [
            ("/sale\u{200b}", &["/sale"][..]),
            ("/sale\u{feff}\u{a0}", &["/sale\u{feff}", "/sale"]),
            ("/sale_", &["/sale"]),
            ("/sale“", &["/sale"]),
            ("/sale؟", &["/sale"]),
            // A name may end in marks.
            ("/sale!.", &["/sale!", "/sale"]),
            ("/sale).../", &["/sale)...", "/sale)..", "/sale).", "/sale"]),
            ("/sale，快来买", &["/sale"]),
            ("/a/sale today", &["/a/sale"]),
            ("/sale?utm_source=mail", &["/sale"]),
            ("/r&d&utm_source=mail.", &["/r&d&utm_source=mail", "/r"]),
            ("/sale\u{fffd}\u{fffd}x", &["/sale"]),
            ("/sale", &[]),
            ("/短い", &[]),
            ("/sale+", &[]),
            ("/\u{1f469}\u{200d}\u{1f680}x", &[]),
            ("/\u{2764}\u{fe0f}.", &["/\u{2764}\u{fe0f}"]),
            ("/...", &["/..", "/."]),
            ("/?x", &[]),
        ] {
            assert_eq!(names_before_text(path), names, "{path}");
        }
        let settings = DomainSettings { ignore_trailing: true, ..DomainSettings::default() };
        for path in ["/sale%E2%80%8B", "/sale%20", "/sale%A1%A3", "/sale%3Fa=b", "/sale&a=b"] {
            assert!(names(path, &settings).contains(&("/sale".to_owned(), String::new())), "{path}");
        }
    }

    #[test]
    fn blanks_behind_a_path_are_no_part_of_it_and_marks_may_be() {
        for (path, kept) in [
            ("/jira/ABC-1%20%E2%80%8B", "/jira/ABC-1"),
            ("/jira/ABC-1\u{200b}%0A", "/jira/ABC-1"),
            ("/wiki/Name_(company)", "/wiki/Name_(company)"),
            ("/a/%FF%20", "/a/%FF"),
            ("/a/b%2", "/a/b%2"),
        ] {
            assert_eq!(without_blanks(path), kept, "{path}");
        }
        let settings = DomainSettings { ignore_trailing: true, ..DomainSettings::default() };
        assert_eq!(names("/jira/ABC-1%20", &settings)[1], ("/jira".to_owned(), "/ABC-1".to_owned()));
        assert_eq!(names("/jira/ABC-1%20", &DomainSettings::default())[0].1, "/ABC-1%20");
    }

    #[test]
    fn a_name_in_other_letters_means_no_minted_code() {
        let settings = DomainSettings { ignore_case: true, ..DomainSettings::default() };
        let other = &other_names("/ABC", &settings)[0];
        let minted = Link::sample(crate::Details::default());
        let slug = crate::Slug::parse("abc").ok();
        let picked = Link::sample(crate::Details { slug, ..crate::Details::default() });
        assert!(!other.means(&minted, None));
        assert!(other.means(&picked, None));
    }

    #[test]
    fn a_link_takes_what_its_long_url_or_a_rule_has_a_place_for() {
        let rule = |pattern: &str| {
            let condition = crate::Condition::parse("path", None, Some(pattern)).unwrap();
            Rule::new(crate::LongUrl::from_stored("https://a.b/"), vec![condition])
        };
        let link = |extra_path, rules| Link {
            long_url: crate::LongUrl::from_stored("https://a.b/{1}/{2}"),
            ..Link::sample(crate::Details { extra_path, rules, ..crate::Details::default() })
        };
        let filled = link(Some(ExtraPath::Fill), vec![rule("/*/*/#")]);
        for (path, expected) in [("", true), ("/a/b", true), ("/a/b/c", false), ("/a/b/7", true)] {
            assert_eq!(filled.takes(path, None), expected, "{path}");
        }
        let refusing = link(None, vec![rule("/**")]);
        assert!(refusing.takes("", None) && !refusing.takes("/a", None));
        assert!(refusing.takes("/a", Some(ExtraPath::Ignore)));
    }
}
