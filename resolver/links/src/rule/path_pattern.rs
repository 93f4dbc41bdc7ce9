//! Patterns of the path behind a link's name: `/v#.#/**` for `/v1.30/concepts/`.
//!
//! Rejected: regular expressions. One may take a thousand times as long as a pattern, or megabytes,
//! and a link may have a hundred of them.

use std::{borrow::Cow, ops::RangeInclusive};

use percent_encoding::{CONTROLS, utf8_percent_encode};

use super::Text;
use crate::extra_path::leads_out;

/// Maximum number of wildcards: `{1}` to `{9}` stand for what they match.
const WILDCARDS_MAX: usize = 9;
/// Maximum length of a path that is compared, in bytes.
const PATH_MAX: usize = 1_024;

/// A pattern that a whole path matches. `#` stands for digits and `*` for any characters of one
/// segment, at least one each, and `**` for anything. As much as possible belongs to the first
/// wildcards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    /// The pattern as it was written.
    pub(crate) text: Text,
    pieces: Box<[Piece]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A text, escaped as browsers send it.
    Literal(Box<str>),
    Digits,
    Segment,
    Anything,
}

impl PathPattern {
    /// Parses a pattern, which begins with a slash.
    pub fn parse(text: Text) -> Option<Self> {
        let mut rest = Some(text.as_str()).filter(|text| text.starts_with('/'))?;
        let mut pieces = Vec::new();
        while !rest.is_empty() {
            let (piece, len) = if rest.starts_with("**") {
                (Piece::Anything, 2)
            } else if rest.starts_with('*') {
                (Piece::Segment, 1)
            } else if rest.starts_with('#') {
                (Piece::Digits, 1)
            } else {
                let len = rest.find(['*', '#']).unwrap_or(rest.len());
                let literal: Cow<'_, str> = utf8_percent_encode(&rest[..len], CONTROLS).into();
                (Piece::Literal(literal.into()), len)
            };
            pieces.push(piece);
            rest = &rest[len..];
        }
        let wildcards = pieces.iter().filter(|piece| piece.is_wildcard()).count();
        (wildcards <= WILDCARDS_MAX).then(|| Self { text, pieces: pieces.into() })
    }

    /// Returns whether a path matches, as it was sent. Without a path, `/` matches.
    pub fn matches(&self, path: &str) -> bool {
        self.parts(path).is_some()
    }

    /// Returns what each wildcard matches of a path. Returns `None` if the path does not match, or
    /// if it or a part of it has dot segments.
    pub fn parts<'a>(&self, path: &'a str) -> Option<Vec<&'a str>> {
        let path = if path.is_empty() { "/" } else { path };
        let begins = |piece: &Piece| matches!(piece, Piece::Literal(text) if path.starts_with(&**text));
        if path.len() > PATH_MAX || !self.pieces.first().is_some_and(begins) || leads_out(path) {
            return None;
        }
        let fits = self.fits(path);
        let (mut at, mut parts) = (0, Vec::new());
        for (piece, fits_behind) in self.pieces.iter().zip(&fits[1..]) {
            let end = match piece {
                Piece::Literal(text) => {
                    Some(at + text.len()).filter(|end| fits_behind.get(*end) == Some(&true))
                }
                _ => piece.ends(path, at).rev().find(|end| fits_behind[*end]),
            }?;
            if piece.is_wildcard() {
                parts.push(path.get(at..end)?);
            }
            at = end;
        }
        (!parts.iter().any(|part| leads_out(part))).then_some(parts)
    }

    /// Returns, for each piece and for the end, the places of the path from which on it and all
    /// pieces behind it match. Its cost is the product of both lengths.
    fn fits(&self, path: &str) -> Vec<Vec<bool>> {
        let mut behind = vec![false; path.len() + 1];
        behind[path.len()] = true;
        let mut all = vec![behind];
        for piece in self.pieces.iter().rev() {
            let behind = &all[all.len() - 1];
            let mut fits = vec![false; path.len() + 1];
            for at in (0..=path.len()).rev() {
                fits[at] = match piece {
                    Piece::Literal(text) => {
                        let is_there = path.as_bytes()[at..].starts_with(text.as_bytes());
                        is_there && behind[at + text.len()]
                    }
                    Piece::Anything => behind[at] || fits.get(at + 1) == Some(&true),
                    Piece::Digits | Piece::Segment => {
                        let is_its = path.as_bytes().get(at).is_some_and(|byte| piece.takes(*byte));
                        is_its && (behind[at + 1] || fits[at + 1])
                    }
                };
            }
            all.push(fits);
        }
        all.reverse();
        all
    }
}

impl Piece {
    fn is_wildcard(&self) -> bool {
        !matches!(self, Self::Literal(_))
    }

    fn takes(&self, byte: u8) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Digits => byte.is_ascii_digit(),
            Self::Segment => byte != b'/',
            Self::Anything => true,
        }
    }

    /// Returns where a wildcard that begins at a place may end.
    fn ends(&self, path: &str, at: usize) -> RangeInclusive<usize> {
        let count = path.as_bytes()[at..].iter().take_while(|byte| self.takes(**byte)).count();
        at + usize::from(*self != Self::Anything)..=at + count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Option<PathPattern> {
        PathPattern::parse(Text::parse(text)?)
    }

    #[test]
    fn a_path_matches_as_a_whole_and_each_wildcard_has_its_part() {
        for (pattern, path, parts) in [
            ("/", "", Some(&[][..])),
            ("/", "/", Some(&[])),
            ("/", "/a", None),
            ("/*", "/a", Some(&["a"])),
            ("/*", "/a/", None),
            ("/*", "/", None),
            ("/*/", "/a/", Some(&["a"])),
            ("/*/**", "/a/", Some(&["a", ""])),
            ("/*/**", "/a/b/c/", Some(&["a", "b/c/"])),
            ("/**", "//a", Some(&["/a"])),
            ("/v#.#", "/v1.30", Some(&["1", "30"])),
            ("/v#.#", "/v1.30/", None),
            ("/v#.#", "/v1.x", None),
            ("/v#.#/**", "/v1.30/a", Some(&["1", "30", "a"])),
            ("/v#.#.#-rc.#/**", "/v1.2.3-rc.4/x", Some(&["1", "2", "3", "4", "x"])),
            ("/v#.#.#-rc.#/**", "/v1.2.3-gamma.4/x", None),
            ("/**/release", "/a/release/b/release", Some(&["a/release/b"])),
            ("/**/#", "/e2e/123", Some(&["e2e", "123"])),
            ("/**/#/", "/e2e/x/", None),
            ("/**#", "/123", Some(&["12", "3"])),
            ("/ü/*", "/%C3%BC/%C3%A4", Some(&["%C3%A4"])),
            ("/ü/*", "/ü/a", None),
            ("/*", "/ä", Some(&["ä"])),
            ("/**", "/a/../b", None),
            ("/**", "/%2e", None),
            ("/v*", "/v..", None),
            ("/v*", "/v...", Some(&["..."])),
        ] {
            assert_eq!(parse(pattern).unwrap().parts(path).as_deref(), parts, "{pattern} {path}");
        }
        let long = format!("/{}", "a".repeat(PATH_MAX));
        assert!(!parse("/**").unwrap().matches(&long));
        assert!(parse("/**").unwrap().matches(&long[..PATH_MAX]));
    }

    #[test]
    fn a_pattern_begins_with_a_slash_and_has_a_placeholder_for_each_wildcard() {
        for text in ["a", "*", "**/a", "/##########", "/**********/*********"] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in ["/", "/a b?", "/#########", "/***"] {
            assert_eq!(parse(text).unwrap().text.as_str(), text);
        }
    }

    proptest! {
        /// Joined again, the parts give the path.
        #[test]
        fn parts_make_up_the_path(pattern in "/[a/#*]{0,6}", path in "/[a/1]{0,8}") {
            let Some(pattern) = parse(&pattern) else { return Ok(()) };
            let Some(parts) = pattern.parts(&path) else { return Ok(()) };
            let mut parts = parts.into_iter();
            let joined: String = pattern
                .pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Literal(text) => text.to_string(),
                    _ => parts.next().unwrap_or_default().to_owned(),
                })
                .collect();
            prop_assert_eq!(joined, path);
        }
    }
}
