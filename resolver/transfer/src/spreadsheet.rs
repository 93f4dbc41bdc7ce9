//! Values as spreadsheets write them when a file is saved again, in the language of their user.
//!
//! Nothing is guessed: a number has groups of three digits, and a date is read only if it is plain
//! which of its numbers is the day.

use std::borrow::Cow;

/// What separates groups of digits: in English, German, French and Swiss numbers.
const SEPARATORS: &str = ",. \u{a0}\u{202f}'’";
const YES: [&str; 11] = ["1", "true", "yes", "y", "wahr", "ja", "vrai", "oui", "verdadero", "vero", "是"];
const NO: [&str; 10] = ["0", "false", "no", "n", "falsch", "nein", "faux", "non", "falso", "否"];
const AMBIGUOUS: &str = "the day and the month cannot be told apart: write it like 2026-11-30 14:05";

/// Reads a whole number: digits, also in groups, and also with a fraction of zeros.
pub fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let whole = text.rsplit_once(['.', ',']).filter(|(_, fraction)| matches!(*fraction, "0" | "00"));
    let whole = whole.map_or(text, |(whole, _)| whole);
    let is_digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let Some(separator) = whole.chars().find(|one| SEPARATORS.contains(*one)) else {
        return whole.parse().ok();
    };
    let mut groups = whole.split(separator);
    let is_first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()) && is_digits(first));
    let is_grouped = is_first && groups.all(|group| group.len() == 3 && is_digits(group));
    if is_grouped { whole.replace(separator, "").parse().ok() } else { None }
}

/// Returns whether a text is what becomes of a code such as `1e5` or `123456789012`: its digits are
/// lost.
pub fn is_rounded(text: &str) -> bool {
    let is_number = |part: &str, others: &str| {
        !part.is_empty() && part.chars().all(|one| one.is_ascii_digit() || others.contains(one))
    };
    let parts = text.split_once(['E', 'e']);
    parts.is_some_and(|(number, power)| {
        is_number(number, ".,") && power.strip_prefix('+').is_some_and(|power| is_number(power, ""))
    })
}

/// Reads a word for yes or no.
pub(super) fn word(text: &str) -> Option<bool> {
    let word = text.trim().to_lowercase();
    if YES.contains(&&*word) { Some(true) } else { NO.contains(&&*word).then_some(false) }
}

/// Returns a time with its date and hours as in ISO 8601; the text itself if it is none that a
/// spreadsheet writes. The error says why it could be two times.
pub fn time(text: &str) -> Result<Cow<'_, str>, &'static str> {
    let trimmed = text.trim();
    let (date, clock) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, "0:00"));
    let Some(clock) = of_day(clock) else { return Ok(Cow::Borrowed(text)) };
    Ok(day(date)?.map_or(Cow::Borrowed(text), |day| Cow::Owned(format!("{day}T{clock}"))))
}

/// Reads `2026/11/30`, `30.11.2026`, `30/11/2026` or `11/30/2026`.
fn day(text: &str) -> Result<Option<String>, &'static str> {
    let separator = text.chars().find(|one| !one.is_ascii_digit());
    let parts: Vec<&str> = separator.map(|one| text.split(one).collect()).unwrap_or_default();
    let is_digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_date = separator.is_some_and(|one| "/.-".contains(one)) && parts.iter().all(is_digits);
    let [first, second, third] = parts[..] else { return Ok(None) };
    let (year, month, day) = match [first.len(), second.len(), third.len()] {
        _ if !is_date => return Ok(None),
        [4, 1 | 2, 1 | 2] => (first, second, third),
        [1 | 2, 1 | 2, 4] => {
            let number = |part: &str| part.parse().unwrap_or(u8::MAX);
            match (number(first), number(second)) {
                (one, other) if separator == Some('.') || one > 12 || one == other => (third, second, first),
                (_, 13..) => (third, first, second),
                _ => return Err(AMBIGUOUS),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(format!("{year}-{month:0>2}-{day:0>2}")))
}

/// Reads `14:05`, `14:05:00` or `2:05 PM`.
fn of_day(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let half = |name: &str, hours: u8| text.strip_suffix(name).map(|rest| (rest, Some(hours)));
    let (clock, half) = half("am", 0).or_else(|| half("pm", 12)).unwrap_or((text.as_str(), None));
    let parts: Vec<&str> = clock.trim_end().split(':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute] => (hour, minute, "00"),
        [hour, minute, second] => (hour, minute, second),
        _ => return None,
    };
    let is_two_digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let hour: u8 = hour.parse().ok()?;
    let hour = match half {
        None => hour,
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
    };
    (is_two_digits(minute) && is_two_digits(second)).then(|| format!("{hour:02}:{minute}:{second}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, source::read};

    #[test]
    fn numbers_have_groups_of_three_digits_and_no_fraction() {
        for (text, expected) in [
            ("7", 7),
            (" 12 ", 12),
            ("1,234,567", 1_234_567),
            ("1.234", 1_234),
            ("1\u{202f}234", 1_234),
            ("1’234", 1_234),
            ("42.0", 42),
            ("1.234,00", 1_234),
            ("0", 0),
        ] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for text in ["", "1,23", ",123", "1.234,567", "1,234,", "12.5", "1.5e3", "-1", "many"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn words_are_those_of_the_language_of_the_spreadsheet() {
        for (text, expected) in [
            ("TRUE", Some(true)),
            (" Wahr ", Some(true)),
            ("FAUX", Some(false)),
            ("0", Some(false)),
            ("x", None),
        ] {
            assert_eq!(word(text), expected, "{text}");
        }
    }

    #[test]
    fn a_date_is_read_if_its_day_and_month_can_be_told_apart() {
        for (text, expected) in [
            ("11/30/2026 2:05 PM", "2026-11-30T14:05:00"),
            ("30/11/2026 14:05:09", "2026-11-30T14:05:09"),
            ("30.11.2026 9:05", "2026-11-30T09:05:00"),
            ("3.4.2026", "2026-04-03T00:00:00"),
            ("4/4/2026", "2026-04-04T00:00:00"),
            ("2026/3/4 12:00\u{202f}am", "2026-03-04T00:00:00"),
            ("2026-03-04 12:30 pm", "2026-03-04T12:30:00"),
        ] {
            assert_eq!(time(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["3/4/2026", "12-11-2026 10:00"] {
            assert_eq!(time(text), Err(AMBIGUOUS), "{text}");
        }
        for text in [
            "2026-03-04T10:00:00Z",
            "2026-03-04 10:00:00+02:00",
            "2026-03-04 10:00:00 UTC",
            "11/30/26",
            "11/30/2026 13:05 PM",
            "30-Nov-2026",
            "1525132800",
            "1.2",
            "",
        ] {
            assert_eq!(time(text).as_deref(), Ok(text), "{text}");
        }
    }

    #[test]
    fn a_code_of_which_a_number_was_made_is_refused() {
        for (code, expected) in
            [("1.00E+05", true), ("1,23457E+11", true), ("1e5", false), ("E+5", false), ("1e+x", false)]
        {
            assert_eq!(is_rounded(code), expected, "{code}");
        }
        let (links, errors) = read(Source::Csv, "code,url\n1.00E+05,https://e.test/\n1e5,https://e.test/\n");
        assert_eq!((links.len(), errors.len()), (1, 1));
        assert!(errors[0].starts_with("item 1: shortCode: a spreadsheet has"), "{errors:?}");
    }

    #[test]
    fn a_table_that_was_saved_again_is_read() {
        let table = "Link;Date created;Destination URL;Engagements;Archived;;\n\
                     bit.ly/a;11/30/2026 2:05 PM;https://e.test/;1.234;WAHR;;\n\
                     bit.ly/b;3/4/2026 10:00;https://e.test/;7;FALSCH;;\n";
        let (links, errors) = read(Source::Bitly, table);
        assert_eq!(links[0].created_at.unwrap().to_string(), "2026-11-30T14:05:00Z");
        assert_eq!((links[0].visits, &*links[0].tags), (Some(1_234), &["archived".to_owned()][..]));
        assert_eq!(errors, [format!("item 2: createdAt: {AMBIGUOUS}")]);
    }
}
