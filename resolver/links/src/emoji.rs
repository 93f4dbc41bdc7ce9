//! Emoji that are recommended for general interchange (RGI, UTS #51): single characters, flags,
//! keycaps, skin tones, and sequences that are joined by ZWJ. Which there are says the crate
//! `emojis`; a sequence of other emoji that looks joined could pass for them, and is no emoji here.

use super::spelling::EMOJI_STYLE;

/// Maximum number of characters of a sequence, U+FE0F not counted.
const CHARS_MAX: usize = 10;

/// Returns the number of characters of the longest emoji that a text begins with; 0 if it begins
/// with none. U+FE0F may be after any character of it, and missing anywhere.
pub(super) fn emoji_len(text: &[char]) -> usize {
    let (mut bare, mut count, mut longest, mut at) = (String::new(), 0, 0, 0);
    while let Some(&one) = text.get(at).filter(|one| count < CHARS_MAX && **one != EMOJI_STYLE) {
        bare.push(one);
        count += 1;
        at += 1;
        if text.get(at) == Some(&EMOJI_STYLE) {
            at += 1;
        }
        if emojis::get(&bare).is_some() {
            longest = at;
        }
    }
    longest
}

/// Returns a text without U+FE0F in which emoji have it where keyboards type it.
pub(super) fn with_style(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let (mut styled, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(one) = chars.get(at) {
        let emoji: String = chars[at..at + emoji_len(&chars[at..])].iter().collect();
        let found = emojis::get(&emoji).map(emojis::Emoji::as_str);
        match found.filter(|found| found.chars().filter(|one| *one != EMOJI_STYLE).eq(emoji.chars())) {
            Some(found) => styled.push_str(found),
            // The crate finds some sequences with the skin tones of others.
            None if !emoji.is_empty() => styled.push_str(&emoji),
            None => styled.push(*one),
        }
        at += emoji.chars().count().max(1);
    }
    styled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(text: &str) -> usize {
        emoji_len(&text.chars().collect::<Vec<_>>())
    }

    #[test]
    fn every_emoji_is_known_with_its_style_and_without() {
        let (mut known, mut styled) = (0, 0);
        for emoji in emojis::iter().flat_map(|one| one.skin_tones().into_iter().flatten().chain([one])) {
            let bare = emoji.as_str().replace(EMOJI_STYLE, "");
            assert_eq!(len(emoji.as_str()), emoji.as_str().chars().count(), "{emoji}");
            assert_eq!(len(&bare), bare.chars().count(), "{emoji}");
            assert_eq!(with_style(&bare).replace(EMOJI_STYLE, ""), bare, "{emoji}");
            known += 1;
            styled += usize::from(with_style(&bare) == emoji.as_str());
        }
        assert!(known > 3_700 && styled > known - 100, "{styled} of {known}");
    }

    #[test]
    fn what_only_looks_like_an_emoji_is_none() {
        for text in ["", "a", "1", "1\u{fe0f}", "\u{200d}", "\u{fe0f}", "\u{1f3f4}\u{e0067}\u{e007f}x"] {
            assert!(len(text) <= 1, "{text:?}");
        }
        // Two rockets that are joined, and a flag of letters that are no region.
        assert_eq!(len("\u{1f680}\u{200d}\u{1f680}"), 1);
        assert_eq!(len("\u{1f1fd}\u{1f1fd}"), 0);
    }
}
