//! Slugs that look like others: nobody sees a zero-width space, or that an `a` is Cyrillic.
//!
//! 1. Characters that are not seen, or that turn the direction of their neighbours, are refused
//!    wherever they stand.
//! 2. A word is of one script, or of Latin with one of the groups that are written together with
//!    it (Japanese, Chinese, Korean): "Highly Restrictive" of UTS 39. Digits, punctuation and
//!    pictures are of every script. Words may differ: `ñandú-тест` is what a title becomes that has
//!    both, and Shlink's clients create such slugs.
//! 3. A word that is wholly of another script passes, though some look like Latin ones: to refuse
//!    those would refuse whole languages.
//!
//! This is asked of new slugs. What is stored, or brought along by an import, leads on under the
//! name that it has.

use unicode_script::{Script, ScriptExtension, UnicodeScript as _};

/// Scripts that are written together, with Latin beside them.
const TOGETHER: [&[Script]; 3] = [
    &[Script::Han, Script::Hiragana, Script::Katakana],
    &[Script::Han, Script::Bopomofo],
    &[Script::Han, Script::Hangul],
];

/// Whether a character is not seen, or changes the direction of what is: default ignorable code
/// points and format characters.
pub(super) fn is_invisible(one: char) -> bool {
    matches!(
        one,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether the letters of a word are of scripts that people write together.
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
