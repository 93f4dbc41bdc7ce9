//! Detection of lookalike slugs, such as a zero-width space or a Cyrillic `a` among Latin letters.
//!
//! 1. Invisible characters, and characters that change the text direction of their neighbours, are
//!    refused everywhere in a slug.
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

use unicode_script::{Script, ScriptExtension, UnicodeScript as _};

/// Groups of scripts that are written together, each also with Latin.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Bopomofo],
    &[Script::Han, Script::Hangul],
];

/// Returns `true` for characters that are invisible or change the text direction: default ignorable
/// code points, line and paragraph separators, the blank Braille pattern and the interlinear
/// annotation characters.
pub(super) fn is_invisible(one: char) -> bool {
    matches!(
        one,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns `true` if the letters of a word belong to one script, or to scripts that are written
/// together. Characters common to all scripts do not count.
pub(super) fn is_one_script(word: &str) -> bool {
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
    fn scripts_that_are_written_together_pass_and_mixtures_do_not() {
        for text in [
            "promo-2026",
            "überraschung",
            "привіт",
            "短い",
            "セール2026",
            "iphone手机",
            "tシャツ",
            "kpop노래",
            "🦣🔥",
            "日本-sale",
            "γειά",
            "e\u{301}t\u{e9}",
            "_~!",
        ] {
            assert!(is_one_script(text), "{text}");
        }
        for text in ["p\u{430}ypal", "\u{440}romo", "αbc", "привітabc", "短いабв", "노래かな"]
        {
            assert!(!is_one_script(text), "{text}");
        }
    }
}
