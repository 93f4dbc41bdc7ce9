//! Tags, by which links are grouped.

use serde::{Deserialize, Serialize};

use super::{Invalid, spelling::nfc, text_value::text_value};

/// Maximum number of tags of one link.
pub const TAGS_MAX: usize = 100;
/// The length is [`Tag::MAX_LEN`].
const INVALID: Invalid = Invalid::because("expected a tag of 1 to 255 bytes without control characters");

/// A validated tag.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag(Box<str>);

text_value!(Tag);

impl Tag {
    /// Maximum length of a tag, in bytes.
    pub const MAX_LEN: usize = 255;

    /// Parses a tag as Shlink does: in lower case, with dashes for spaces. All spellings of a text
    /// are one tag, in NFC.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::exactly(&text.trim().to_lowercase().replace(' ', "-"))
    }

    /// Parses a tag in NFC, with its case and inner spaces: Shlink renames and deletes tags so.
    pub fn exactly(text: &str) -> Result<Self, Invalid> {
        let text = nfc(text.trim());
        let fits = (1..=Tag::MAX_LEN).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits { Ok(Self((*text).into())) } else { Err(INVALID) }
    }

    /// Wraps a tag that was validated when it was stored.
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_kept_in_small_letters_with_dashes() {
        assert_eq!(Tag::parse("  Summer Sale ").unwrap().as_str(), "summer-sale");
        assert_eq!(Tag::parse("Ü").unwrap().as_str(), "ü");
        assert_eq!(Tag::parse("CAFE\u{301}").unwrap().as_str(), "caf\u{e9}");
        assert_eq!(Tag::exactly("Cafe\u{301}").unwrap().as_str(), "Caf\u{e9}");
        assert_eq!(Tag::exactly(" Summer Sale ").unwrap().as_str(), "Summer Sale");
        for wrong in ["", "  ", "a\u{7}b", &"x".repeat(Tag::MAX_LEN + 1)] {
            assert_eq!(Tag::parse(wrong), Err(INVALID), "{wrong:?}");
        }
    }
}
