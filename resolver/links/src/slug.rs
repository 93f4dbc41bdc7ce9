//! Slugs: hand-picked codes.

use serde::{Deserialize, Serialize};

use super::{
    Invalid,
    lookalike::{first_invisible, is_one_script},
    reserved::{self, OUR_FIRST},
    spelling::canonical,
    text_value::text_value,
};

/// Last segments that are reserved for paths of the service or the API, after a code.
const OUR_LAST: [&str; 4] = ["qr-code", "track", "visits", "redirect-rules"];
/// Those of them that the service answers beside its links.
const BELOW_LINKS: [&str; 2] = ["qr-code", "track"];
const BETWEEN_WORDS: [char; 5] = ['/', '-', '_', '.', '~'];
/// Characters that end a path (RFC 3986, general delimiters), begin an escape, or are rewritten by
/// browsers. The slash, which separates segments, is not among them.
const FORBIDDEN: &str = ":?#[]@%\\\"<>^`{|}";

/// A validated slug, as links show it.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slug(Box<str>);

text_value!(Slug);

const EMPTY: Invalid = Invalid::because("expected at least one character beside slashes and spaces");
/// The length is [`Slug::MAX_LEN`].
const TOO_LONG: Invalid = Invalid::because("expected at most 255 bytes");
/// Those of [`FORBIDDEN`].
const CHARACTERS: Invalid =
    Invalid::because("control characters and any of :?#[]@%\\\"<>^`{|} are not allowed");
/// Browsers remove dot segments from a path.
const SEGMENTS: Invalid = Invalid::because("expected no empty segment, and none that is . or ..");
/// With mixed scripts, a slug could pass for another one.
const SCRIPTS: Invalid = Invalid::because(
    "expected the letters of a word to be of one script, or of scripts that are written together",
);
const RESERVED: Invalid = Invalid::because("expected another word: this one is a path of the service itself");
const WELL_KNOWN: Invalid = Invalid::because(
    "expected another word: this one has a meaning of its own for browsers, crawlers or other services",
);

impl Slug {
    /// Maximum length of a slug, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses a slug as Shlink does: slashes at its ends are dropped, spaces become dashes, several
    /// segments are allowed. Lookalikes are not refused here.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let text = text.trim().trim_matches('/').trim().replace(' ', "-");
        if text.is_empty() {
            return Err(EMPTY);
        }
        if text.len() > Slug::MAX_LEN {
            return Err(TOO_LONG);
        }
        let is_forbidden = |one: char| one.is_control() || one.is_whitespace() || FORBIDDEN.contains(one);
        if text.chars().any(is_forbidden) {
            return Err(CHARACTERS);
        }
        let segments: Vec<&str> = text.split('/').collect();
        if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
            return Err(SEGMENTS);
        }
        let is_ours = OUR_FIRST.contains(&segments[0])
            || segments.len() > 1 && segments.last().is_some_and(|last| OUR_LAST.contains(last));
        if is_ours {
            return Err(RESERVED);
        }
        Ok(Self(text.into()))
    }

    /// Parses the slug of a new link in its canonical spelling, and refuses lookalikes of other
    /// slugs and names with a meaning of their own.
    pub fn pick(text: &str) -> Result<Self, Invalid> {
        let written = Self::parse(text)?;
        if let Some(one) = first_invisible(&written.0) {
            return Err(invisible(one));
        }
        let slug = written.kept()?;
        if slug.0.ends_with('+') {
            // It would take the place of the preview of another link.
            return Err(RESERVED);
        }
        if !slug.0.split(BETWEEN_WORDS).all(is_one_script) {
            return Err(SCRIPTS);
        }
        Ok(slug)
    }

    /// Returns the slug under which a new link is kept that has this name already elsewhere, such
    /// as an imported one: in its canonical spelling. Lookalikes are accepted.
    pub fn kept(&self) -> Result<Self, Invalid> {
        let text = canonical(&self.0);
        if text.is_empty() {
            return Err(EMPTY);
        }
        if text.len() > Slug::MAX_LEN {
            return Err(TOO_LONG);
        }
        let slug = Self(text.into());
        slug.check_meaning()?;
        Ok(slug)
    }

    /// Returns the slug in small letters, in its canonical spelling. It is not checked again: it
    /// may be longer than before, or a name with a meaning of its own.
    #[must_use]
    pub fn to_lowercase(self) -> Self {
        Self(canonical(&self.0.to_lowercase()).into())
    }

    /// Checks that no new link under this name would stand for something else.
    pub fn check_meaning(&self) -> Result<(), Invalid> {
        let first = self.0.split('/').next().unwrap_or_default();
        if reserved::is_ours(first) {
            return Err(RESERVED);
        }
        if reserved::is_well_known(first) { Err(WELL_KNOWN) } else { Ok(()) }
    }

    /// Returns whether two slugs are spellings of the same name.
    pub fn is_same(&self, other: &str) -> bool {
        *self.0 == *other || !self.0.is_ascii() && canonical(&self.0) == canonical(other)
    }

    /// Returns the slug that a request path names: the path without its first slash,
    /// percent-decoded. `None` if it could not be a slug.
    pub fn of_path(path: &str) -> Option<Self> {
        let decoded = percent_encoding::percent_decode_str(path.strip_prefix('/')?).decode_utf8().ok()?;
        // A path that is not spelled as slugs are kept names no slug. Guessing is rejected.
        Self::parse(&decoded).ok().filter(|slug| *slug.0 == *decoded)
    }
}

/// Returns whether the service itself answers a request for this path, or may in a later release,
/// and not a link or a fallback target.
pub fn is_of_service(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_first = path.split('/').next().is_some_and(|first| OUR_FIRST.contains(&first));
    let is_link = |before: &str| before.len() > 1 && before.ends_with('/');
    is_first || BELOW_LINKS.iter().any(|name| path.strip_suffix(*name).is_some_and(is_link))
}

/// Refuses a character that is invisible or changes the text direction.
fn invisible(one: char) -> Invalid {
    let code = u32::from(one);
    format!("expected no character that is invisible or changes the direction of text: U+{code:04X} is one")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_service_are_no_links() {
        for path in ["/rest/v3", "/manage", "/robots.txt", "/abc/qr-code", "/a/b/track"] {
            assert!(is_of_service(path), "{path}");
        }
        for path in ["/", "/abc", "/qr-code", "//track", "/abc/tracks", "/manager", "/abc/track/"] {
            assert!(!is_of_service(path), "{path}");
        }
    }

    #[test]
    fn slugs_are_read_as_shlink_reads_them_or_refused_with_the_reason() {
        for (text, kept) in [
            ("promo", "promo"),
            (" /summer sale/ ", "summer-sale"),
            ("a/b/c", "a/b/c"),
            ("überraschung", "überraschung"),
            ("短い", "短い"),
            ("v1.2_x~y", "v1.2_x~y"),
        ] {
            assert_eq!(Slug::parse(text).unwrap().as_str(), kept, "{text:?}");
        }
        let long = "x".repeat(Slug::MAX_LEN + 1);
        for (text, reason) in [
            ("", EMPTY),
            (" / ", EMPTY),
            (long.as_str(), TOO_LONG),
            ("a?b", CHARACTERS),
            ("a\nb", CHARACTERS),
            ("a%20b", CHARACTERS),
            ("a//b", SEGMENTS),
            ("a/../b", SEGMENTS),
            ("rest", RESERVED),
            ("rest/v3", RESERVED),
            ("manage", RESERVED),
            ("_pages/x", RESERVED),
            ("robots.txt", RESERVED),
            ("promo/qr-code", RESERVED),
            ("promo/visits", RESERVED),
        ] {
            assert_eq!(Slug::parse(text), Err(reason), "{text:?}");
        }
    }

    #[test]
    fn a_new_slug_cannot_pass_for_another_and_an_old_one_is_still_found() {
        for (text, reason) in [
            ("pro\u{200b}mo", invisible('\u{200b}')),
            ("promo\u{202e}gpj", invisible('\u{202e}')),
            ("promo\u{fe0f}", invisible('\u{fe0f}')),
            ("ads.txt", WELL_KNOWN),
            ("Sitemap.xml/2", WELL_KNOWN),
            ("Manage", RESERVED),
            ("sale/p\u{430}ypal", SCRIPTS),
            ("my-p\u{430}ypal-login", SCRIPTS),
        ] {
            assert_eq!(Slug::pick(text), Err(reason), "{text:?}");
            assert_eq!(Slug::of_path(&format!("/{text}")).unwrap().as_str(), text);
        }
        for text in ["sale/привіт", "ñandú-тест-🦣"] {
            assert_eq!(Slug::pick(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn a_new_slug_has_one_spelling() {
        for (text, kept) in [
            ("cafe\u{301}", "caf\u{e9}"),
            ("\u{2764}\u{fe0f}", "\u{2764}"),
            ("Sale-\u{1f469}\u{200d}\u{1f680}", "Sale-\u{1f469}\u{200d}\u{1f680}"),
        ] {
            let slug = Slug::pick(text).unwrap();
            assert_eq!(slug.as_str(), kept);
            assert!(slug.is_same(text) && Slug::parse(text).unwrap().is_same(kept));
            assert_eq!(Slug::parse(text).unwrap().kept(), Ok(slug));
        }
        assert!(!Slug::pick("cafe").unwrap().is_same("caf\u{e9}"));
        // Composed, this letter is longer.
        let long = "\u{958}".repeat(Slug::MAX_LEN / 3);
        assert_eq!(Slug::pick(&long), Err(TOO_LONG));
        let error = Slug::pick("a\u{200b}").unwrap_err().to_string();
        assert!(error.contains("U+200B"), "{error}");
    }

    #[test]
    fn small_letters_of_every_script_are_kept_in_one_spelling() {
        for (text, small) in [
            ("Promo/Sale-1", "promo/sale-1"),
            ("ÜBER", "über"),
            ("CAFE\u{301}", "caf\u{e9}"),
            ("ПРИВІТ", "привіт"),
            ("短い", "短い"),
        ] {
            let slug = Slug::parse(text).unwrap().to_lowercase();
            assert_eq!(slug.as_str(), small);
            assert_eq!(slug.clone().to_lowercase(), slug);
        }
    }

    #[test]
    fn a_path_leads_to_the_slug_that_it_spells_and_to_no_other() {
        let of = |path| Slug::of_path(path).map(|slug| slug.to_string());
        assert_eq!(of("/promo").as_deref(), Some("promo"));
        assert_eq!(of("/%C3%BCber").as_deref(), Some("über"));
        assert_eq!(of("/a/b").as_deref(), Some("a/b"));
        for path in ["/", "/promo/", "//promo", "/a%20b", "/%ff", "/rest/x"] {
            assert_eq!(of(path), None, "{path}");
        }
    }
}
