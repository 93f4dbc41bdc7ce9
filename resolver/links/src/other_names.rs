//! Other names that a path may be meant as, if no link has the path itself as its name.
//!
//! They are tried in this order: in small letters, without what a chat or a sentence put behind the
//! link, and then each name that the path continues, the longest first.

use percent_encoding::percent_decode_str;

use crate::{DomainSettings, ExtraPath, Link};

/// Maximum number of segments that a name with a path behind it has.
const SEGMENTS_MAX: usize = 4;
/// What may follow a link in a text, beside white space and slashes. It has brackets of Asian texts
/// too, because these have no space between a link and its surroundings.
const TRAILING: &str = ".,;:!?'\"*)]}>…’”»。，、；：！？）】」』》";

/// What makes a name another one than the path's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherWay {
    /// It is in small letters.
    Case,
    /// It ends before a punctuation mark or a slash.
    Trailing,
    /// The path continues behind it.
    Prefix,
}

/// Another name that a path may be meant as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherName<'a> {
    /// The name as the path of a request, escaped.
    pub path: String,
    /// What makes it another one.
    pub way: OtherWay,
    /// Whether its letters are not those of the request.
    pub is_lowered: bool,
    /// The path behind it as it was sent, with the slash; empty if there is none.
    pub behind: &'a str,
}

impl OtherName<'_> {
    /// Returns whether a link that has this name is meant. Minted codes differ in the case of
    /// letters alone.
    pub fn means(&self, link: &Link, of_domain: Option<ExtraPath>) -> bool {
        let is_there = !link.is_deleted() || link.is_blocked();
        is_there
            && (!self.is_lowered || link.slug().is_some())
            && link.extra_path(of_domain).apply(link.long_url.as_str(), self.behind).is_some()
    }
}

impl Link {
    /// Returns what a path behind the link's name does on a domain with this setting.
    pub fn extra_path(&self, of_domain: Option<ExtraPath>) -> ExtraPath {
        self.details().extra_path.or(of_domain).unwrap_or(ExtraPath::Refuse)
    }
}

/// Returns the other names that the path of a request may be meant as on a domain, in the order in
/// which they are tried.
pub fn other_names<'a>(path: &'a str, settings: &DomainSettings) -> Vec<OtherName<'a>> {
    let mut names = Vec::new();
    let mut add = |path: &str, way, behind| {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let lowered = decoded.to_lowercase();
        if way != OtherWay::Case {
            names.push(OtherName { path: path.to_owned(), way, is_lowered: false, behind });
        }
        if settings.ignore_case && lowered != decoded {
            names.push(OtherName { path: escaped(&lowered), way, is_lowered: true, behind });
        }
    };
    add(path, OtherWay::Case, "");
    if settings.ignore_trailing {
        let decoded = percent_decode_str(path).decode_utf8_lossy();
        let is_trailing = |one: char| one == '/' || one.is_whitespace() || TRAILING.contains(one);
        let kept = decoded.trim_end_matches(is_trailing);
        if kept.len() > 1 && kept.len() < decoded.len() {
            add(&escaped(kept), OtherWay::Trailing, "");
        }
    }
    let ends = path.match_indices('/').map(|(at, _)| at).filter(|at| *at > 1);
    let mut ends: Vec<usize> = ends.take(SEGMENTS_MAX).collect();
    ends.reverse();
    for end in ends {
        let (name, behind) = path.split_at(end);
        add(name, OtherWay::Prefix, behind);
    }
    names
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
        for (path, settings, others) in [
            ("/Sale.", &none, &[][..]),
            ("/Sale.", &all, &[("/sale.", ""), ("/Sale", ""), ("/sale", "")]),
            ("/sale", &all, &[]),
            ("/%E3%80%82", &all, &[]),
            ("/sale%E3%80%82)", &all, &[("/sale", "")]),
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
        ] {
            assert_eq!(names(path, settings), expected(others), "{path}");
        }
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
}
