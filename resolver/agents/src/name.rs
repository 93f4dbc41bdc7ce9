//! Names of browsers, systems, brands and models, and versions.

use std::fmt;

/// A name or a version, bounded in length. Not every agent has one: see [`Name::is_known`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(Box<str>);

impl Name {
    /// The maximum length in bytes.
    pub const MAX: usize = 64;
    /// The text of a name that the user agent does not tell.
    pub const UNKNOWN: &str = "unknown";

    /// Creates a name without the text's control characters and the blanks around it, cut to
    /// [`Name::MAX`] bytes between two characters. An empty text is an unknown name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut name = String::new();
        for letter in text.trim().chars().filter(|it| !it.is_control()) {
            if name.len() + letter.len_utf8() > Self::MAX {
                break;
            }
            name.push(letter);
        }
        Self(Box::from(name.trim()))
    }

    /// Returns the text, which is [`Name::UNKNOWN`] for an unknown name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if self.is_known() { &self.0 } else { Self::UNKNOWN }
    }

    /// Returns whether the user agent tells this name.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_between_characters_and_have_no_control_characters() {
        assert_eq!(Name::new(" Chrome\u{7}\u{85} Mobile\r\n").as_str(), "Chrome Mobile");
        assert_eq!(Name::new(&"x".repeat(65)).as_str(), "x".repeat(64));
        assert_eq!(Name::new(&format!("x{}", "ü".repeat(40))).as_str(), format!("x{}", "ü".repeat(31)));
        assert_eq!(Name::new(&format!("{} {}", "x".repeat(63), "y")).as_str(), "x".repeat(63));
    }

    #[test]
    fn an_empty_text_is_an_unknown_name() {
        for text in ["", " ", "\0\n"] {
            assert!(!Name::new(text).is_known());
            assert_eq!(Name::new(text).to_string(), "unknown");
        }
        assert_eq!(Name::default(), Name::new(""));
    }
}
