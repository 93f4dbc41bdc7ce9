//! JSON as commands print it with `--json` and `--ndjson`.
//!
//! JSON escapes only the control characters below U+0020. Texts that other people wrote may contain
//! further ones that command a terminal or reorder its line, so those are escaped too. Parsers read
//! the same values.

use std::fmt::Write as _;

use serde_json::Value;

/// Formats a value over several lines, with a line break at the end.
pub fn pretty(value: &Value) -> String {
    escaped(&format!("{value:#}\n"))
}

/// Formats a value on one line, with a line break at the end.
pub(super) fn line(value: &Value) -> String {
    escaped(&format!("{value}\n"))
}

/// Escapes characters that a terminal does not show as they are. In JSON they occur within strings
/// only, and one escape of four digits suffices for each.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for one in json.chars() {
        if is_command(one) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\u{:04x}", u32::from(one));
        } else {
            text.push(one);
        }
    }
    text
}

/// Returns whether a character is DEL, one of the C1 controls, a separator of lines, or a
/// bidirectional control (UAX #9).
fn is_command(one: char) -> bool {
    matches!(
        one,
        '\u{7F}'..='\u{9F}'
            | '\u{61C}'
            | '\u{200E}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_does_not_command_the_terminal_and_keeps_its_values() {
        let value = json!({
            "title": "\u{1B}[31m\u{7F}\u{9B}31m exe\u{202E}txt \u{2066}x\u{2069}\u{2028}\u{200F}\u{61C}",
            "\u{85}": ["über 短い 😀", "\\u009b", "a\nb"],
        });
        for text in [pretty(&value), line(&value)] {
            assert!(!text.chars().any(is_command) && !text.contains('\u{1B}'), "{text:?}");
            assert!(text.contains("\\u009b31m exe\\u202etxt") && text.contains("über 短い 😀"), "{text:?}");
            assert!(text.ends_with('\n'), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
        assert_eq!(line(&value).lines().count(), 1);
        assert_eq!(pretty(&json!({ "a": 1 })), "{\n  \"a\": 1\n}\n");
    }
}
