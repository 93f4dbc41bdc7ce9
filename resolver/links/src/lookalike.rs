//! Detection of lookalike slugs, such as a zero-width space or a Cyrillic `a` among Latin letters.
//!
//! 1. Invisible characters, and characters that change the text direction of their neighbours, are
//!    refused, except where they belong to a text: in emoji (`emoji.rs`), and the two joiners where
//!    they shape the letters beside them (RFC 5892, appendix A.1 and A.2), as in Persian and Hindi.
//! 2. A word has letters of one script, or of Latin and one of the script groups that are written
//!    together with it (Japanese, Chinese, Korean): the level "Highly Restrictive" of UTS 39.
//!    Digits, punctuation and pictographs belong to every script. Different words may have
//!    different scripts: a title with both becomes `ñandú-тест`, and Shlink's clients create such
//!    slugs.
//! 3. A word entirely in another script is accepted, although some such words look like Latin ones.
//!    Refusing them would refuse whole languages.
//!
//! These checks apply to new slugs only. A stored or imported link keeps redirecting under the name
//! that it has.

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, JoiningType},
};
use unicode_normalization::char::canonical_combining_class;
use unicode_script::{Script, ScriptExtension, UnicodeScript as _};

use super::emoji::emoji_len;

/// Zero-width non-joiner and zero-width joiner.
const ZWNJ: char = '\u{200c}';
const ZWJ: char = '\u{200d}';
/// The combining class of a virama, which joins two consonants.
const VIRAMA: u8 = 9;

/// Groups of scripts that are written together, each also with Latin.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Bopomofo],
    &[Script::Han, Script::Hangul],
];

/// Returns `true` for characters that are invisible or change the text direction: default ignorable
/// code points, line and paragraph separators, the blank Braille pattern and the interlinear
/// annotation characters.
fn is_invisible(one: char) -> bool {
    CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(one)
        || matches!(one, '\u{2028}' | '\u{2029}' | '\u{2800}' | '\u{fff9}'..='\u{fffb}')
}

/// Returns the first character of a text that is invisible, or changes the text direction, and does
/// not belong where it is.
pub(super) fn first_invisible(text: &str) -> Option<char> {
    if text.is_ascii() {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let mut at = 0;
    while let Some(one) = chars.get(at) {
        let emoji = emoji_len(&chars[at..]);
        if emoji == 0 && is_invisible(*one) && !is_joiner_in_context(&chars, at) {
            return Some(*one);
        }
        at += emoji.max(1);
    }
    None
}

/// Returns `true` for a joiner that shapes the letters beside it (RFC 5892, appendix A.1 and A.2).
fn is_joiner_in_context(chars: &[char], at: usize) -> bool {
    let (before, after) = (&chars[..at], &chars[at + 1..]);
    let is_after_virama = before.last().is_some_and(|one| canonical_combining_class(*one) == VIRAMA);
    match chars[at] {
        ZWJ => is_after_virama,
        ZWNJ => is_after_virama || is_between_joining(before, after),
        _ => false,
    }
}

/// Returns `true` between two letters that would join without a non-joiner.
fn is_between_joining(before: &[char], after: &[char]) -> bool {
    let types = CodePointMapData::<JoiningType>::new();
    let joining = |one: &char| Some(types.get(*one)).filter(|joining| *joining != JoiningType::Transparent);
    let left = before.iter().rev().find_map(joining);
    let right = after.iter().find_map(joining);
    matches!(left, Some(JoiningType::LeftJoining | JoiningType::DualJoining))
        && matches!(right, Some(JoiningType::RightJoining | JoiningType::DualJoining))
}

/// Returns `true` if the letters of a word belong to one script, or to scripts that are written
/// together. Characters common to all scripts do not count.
pub(super) fn is_one_script(word: &str) -> bool {
    if word.is_ascii() {
        return true;
    }
    let scripts: Vec<ScriptExtension> = word
        .chars()
        .map(|one| one.script_extension())
        .filter(|scripts| !scripts.is_common() && !scripts.is_inherited())
        .collect();
    let Some(first) = scripts.first() else { return true };
    let shared = scripts.iter().fold(*first, |shared, scripts| shared.intersection(*scripts));
    let is_written = |group: &[Script]| {
        let fits = |scripts: &ScriptExtension| {
            scripts.contains_script(Script::Latin) || group.iter().any(|one| scripts.contains_script(*one))
        };
        scripts.iter().all(fits)
    };
    !shared.is_empty() || TOGETHER.iter().any(|group| is_written(group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joiners_are_allowed_where_they_shape_letters_and_styles_in_emoji() {
        for text in [
            // Persian: "I want", "books".
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            "\u{6a9}\u{62a}\u{627}\u{628}\u{200c}\u{647}\u{627}",
            // With a vowel sign between letter and joiner.
            "\u{628}\u{64e}\u{200c}\u{647}",
            // Devanagari: half forms of a consonant.
            "\u{915}\u{94d}\u{200d}\u{937}",
            "\u{915}\u{94d}\u{200c}\u{937}",
            "\u{2764}\u{fe0f}",
            "\u{1f469}\u{200d}\u{1f680}-1\u{fe0f}\u{20e3}",
            "\u{1f441}\u{200d}\u{1f5e8}",
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "\u{1f44d}\u{1f3fd}",
            "\u{1f1e9}\u{1f1ea}",
        ] {
            assert_eq!(first_invisible(text), None, "{text:?}");
        }
        for (text, found) in [
            ("pro\u{200b}mo", '\u{200b}'),
            ("pro\u{200c}mo", '\u{200c}'),
            ("pro\u{200d}mo", '\u{200d}'),
            ("promo\u{fe0f}", '\u{fe0f}'),
            ("1\u{fe0f}", '\u{fe0f}'),
            ("\u{2764}\u{fe0f}\u{fe0f}", '\u{fe0f}'),
            // Alef joins to its right only, and a joiner at an end joins nothing.
            ("\u{627}\u{200c}\u{628}", '\u{200c}'),
            ("\u{628}\u{200c}", '\u{200c}'),
            ("\u{200d}\u{915}", '\u{200d}'),
            ("\u{1f680}\u{200d}\u{1f680}", '\u{200d}'),
            ("\u{1f3f4}\u{e0067}\u{e007f}", '\u{e0067}'),
            ("a\u{2066}b", '\u{2066}'),
        ] {
            assert_eq!(first_invisible(text), Some(found), "{text:?}");
        }
    }

    #[test]
    fn scripts_that_are_written_together_pass_and_mixtures_do_not() {
        let together = "promo-2026 überraschung привіт 短い セール2026 iphone手机 tシャツ kpop노래 🦣🔥 \
                        日本-sale γειά e\u{301}t\u{e9} _~!";
        for text in together.split(' ') {
            assert!(is_one_script(text), "{text}");
        }
        let mixed = "p\u{430}ypal \u{440}romo αbc привітabc 短いабв 노래かな";
        for text in mixed.split(' ') {
            assert!(!is_one_script(text), "{text}");
        }
    }
}
