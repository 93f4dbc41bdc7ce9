//! Equal spellings of one text (UAX #15): `café` with one character for the last letter, and with
//! an accent of its own, look the same and are the same name.
//!
//! 1. New slugs and tags are kept in NFC. Emoji of slugs are kept without U+FE0F, which selects
//!    between two pictures of the same character and is typed by some keyboards only.
//! 2. Earlier versions kept every spelling. So a text is looked up as it was written first, then as
//!    it would be kept today, and then in the spellings that programs produce: decomposed (NFD),
//!    and with U+FE0F. Of two such links, the one with the exact spelling wins.
//! 3. A text of ASCII has one spelling, and is neither scanned twice nor copied.

use std::borrow::Cow;

use unicode_normalization::{IsNormalized, UnicodeNormalization as _, is_nfc_quick};

/// Selects the coloured picture of the character before it.
pub(super) const EMOJI_STYLE: char = '\u{fe0f}';

/// Returns a text in NFC.
pub fn nfc(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.nfc().collect())
}

/// Returns a slug's text as new links keep it: in NFC and without U+FE0F.
pub(super) fn canonical(text: &str) -> Cow<'_, str> {
    if text.contains(EMOJI_STYLE) {
        let bare: String = text.chars().filter(|one| *one != EMOJI_STYLE).collect();
        return Cow::Owned(nfc(&bare).into_owned());
    }
    nfc(text)
}

/// Returns the spellings under which a slug may be stored, each once, the best first.
pub fn slug_spellings(text: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = vec![Cow::Borrowed(text)];
    if !text.is_ascii() {
        let kept = canonical(text).into_owned();
        let others = [kept.nfd().collect(), super::emoji::with_style(&kept), kept];
        add(&mut spellings, others.into_iter().rev());
    }
    spellings
}

/// Returns the spellings under which a tag may be stored, each once, the best first.
pub fn tag_spellings(text: &str) -> Vec<Cow<'_, str>> {
    let mut spellings = vec![Cow::Borrowed(text)];
    if !text.is_ascii() {
        add(&mut spellings, [nfc(text).into_owned(), text.nfd().collect()].into_iter());
    }
    spellings
}

fn add(spellings: &mut Vec<Cow<'_, str>>, others: impl Iterator<Item = String>) {
    for other in others {
        if !spellings.iter().any(|known| **known == *other) {
            spellings.push(Cow::Owned(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_is_tried_once_and_the_written_one_first() {
        assert_eq!(slug_spellings("plain"), ["plain"]);
        assert_eq!(slug_spellings("短い"), ["短い"]);
        assert_eq!(slug_spellings("caf\u{e9}"), ["caf\u{e9}", "cafe\u{301}"]);
        assert_eq!(slug_spellings("cafe\u{301}"), ["cafe\u{301}", "caf\u{e9}"]);
        assert_eq!(slug_spellings("\u{2764}"), ["\u{2764}", "\u{2764}\u{fe0f}"]);
        assert_eq!(slug_spellings("\u{2764}\u{fe0f}"), ["\u{2764}\u{fe0f}", "\u{2764}"]);
        assert_eq!(tag_spellings("e\u{301}\u{e9}"), ["e\u{301}\u{e9}", "\u{e9}\u{e9}", "e\u{301}e\u{301}"]);
    }

    #[test]
    fn one_spelling_is_kept_however_the_text_is_written() {
        for (text, kept) in [
            ("\u{2764}\u{fe0f}cafe\u{301}", "\u{2764}caf\u{e9}"),
            // With the mark between them, accent and letter would not meet.
            ("e\u{fe0f}\u{301}", "\u{e9}"),
            ("\u{ac00}", "\u{ac00}"),
            ("\u{1100}\u{1161}", "\u{ac00}"),
            ("\u{212b}", "\u{c5}"),
            ("1\u{fe0f}\u{20e3}", "1\u{20e3}"),
        ] {
            assert_eq!(canonical(text), kept, "{text:?}");
            assert_eq!(canonical(kept), kept);
        }
    }
}
