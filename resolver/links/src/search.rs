//! Keys by which texts are searched and sorted, the same on every database and in every locale.
//!
//! The databases compute them too: SQLite calls these functions, and on Postgres the functions of
//! the same names in `schema/postgres/V28__search_keys.sql` do the same.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use super::spelling::nfc;

/// Returns a text without differences of case and spelling, for searches in it.
///
/// It is in upper case, where more letters are one than in lower case: `ß` is `SS`, and the Greek
/// sigma at the end of a word is like any other. The dotted and the dotless `i` of Turkish are the
/// one of other languages, because whoever searches may have neither.
pub fn search_key(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            Cow::Owned(text.to_ascii_uppercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    Cow::Owned(nfc(&text.to_uppercase()).replace('\u{130}', "I"))
}

/// Returns a text by whose bytes texts are sorted regardless of case and accents.
pub fn sort_key(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return search_key(text);
    }
    let is_accent = |one: &char| ('\u{300}'..='\u{36f}').contains(one);
    Cow::Owned(text.to_uppercase().nfd().filter(|one| !is_accent(one)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_spelling_do_not_matter_in_a_search() {
        for (text, other) in [
            ("Über", "ÜBER"),
            ("Über", "u\u{308}ber"),
            ("Straße", "STRASSE"),
            ("ΟΔΟΣ", "οδος"),
            ("ISPARTA", "ısparta"),
            ("İstanbul", "istanbul"),
            ("ПРИВІТ", "привіт"),
            ("\u{1fb3}", "\u{3b1}\u{345}"),
        ] {
            assert_eq!(search_key(text), search_key(other), "{text} {other}");
        }
        assert_ne!(search_key("uber"), search_key("über"));
        assert_eq!(search_key("50%_a"), "50%_A");
    }

    #[test]
    fn titles_are_sorted_regardless_of_case_and_accents() {
        let mut titles = ["zebra", "Äpfel", "apfel", "Zoo", "Apfelsaft", "1", "éclair", "", "дом"];
        titles.sort_by_key(|title| sort_key(title).into_owned());
        assert_eq!(titles, ["", "1", "Äpfel", "apfel", "Apfelsaft", "éclair", "zebra", "Zoo", "дом"]);
    }
}
