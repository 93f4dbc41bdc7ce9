//! A word that links are grouped by.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest tag, in bytes.
const MAX_LEN: usize = 255;
/// Tags of one link.
pub const TAGS_MAX: usize = 100;

/// A checked tag.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tag(Box<str>);

/// A tag that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a tag of 1 to {MAX_LEN} bytes without control characters")]
pub struct TagError;

impl Tag {
    /// The longest tag, in bytes.
    pub const MAX_LEN: usize = MAX_LEN;

    /// Reads a tag as Shlink does: in small letters, with dashes for spaces.
    ///
    /// # Errors
    /// When nothing is left of it, or too much, or it has control characters.
    pub fn parse(text: &str) -> Result<Self, TagError> {
        Self::exactly(&text.trim().to_lowercase().replace(' ', "-"))
    }

    /// Reads a tag as it is given, in letters of any size: Shlink renames and deletes by exactly such names.
    ///
    /// # Errors
    /// When nothing is left of it, or too much, or it has control characters.
    pub fn exactly(text: &str) -> Result<Self, TagError> {
        let text = text.trim();
        let fits = (1..=MAX_LEN).contains(&text.len()) && !text.chars().any(char::is_control);
        if fits { Ok(Self(text.into())) } else { Err(TagError) }
    }

    /// Takes a tag that was checked when it was stored.
    #[must_use]
    pub fn from_stored(text: &str) -> Self {
        Self(text.into())
    }

    /// The tag as it is kept.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_kept_in_small_letters_with_dashes() {
        assert_eq!(Tag::parse("  Summer Sale ").unwrap().as_str(), "summer-sale");
        assert_eq!(Tag::parse("Ü").unwrap().as_str(), "ü");
        assert_eq!(Tag::exactly(" Summer Sale ").unwrap().as_str(), "Summer Sale");
        for wrong in ["", "  ", "a\u{7}b", &"x".repeat(MAX_LEN + 1)] {
            assert_eq!(Tag::parse(wrong), Err(TagError), "{wrong:?}");
        }
    }
}
