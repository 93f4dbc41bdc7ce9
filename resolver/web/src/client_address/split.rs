//! Lists with quoted strings (RFC 9110, section 5.6.4), read from their end.
//!
//! From its beginning, a visitor's open quote would swallow what a proxy has appended. From the
//! end, what the proxy wrote is read first, and nothing before it has an effect on that.

/// Splits text at each separator outside of quoted strings, from its end.
pub(super) fn rsplit_unquoted(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let cut = last_unquoted(text, separator);
        rest = cut.map(|cut| &text[..cut]);
        Some(cut.map_or(text, |cut| &text[cut + 1..]))
    })
}

/// Returns the position of the last separator outside of quoted strings.
fn last_unquoted(text: &[u8], separator: u8) -> Option<usize> {
    let mut is_quoted = false;
    for (at, byte) in text.iter().enumerate().rev() {
        match *byte {
            // Within a string, a quote that is not escaped is the one at its beginning.
            b'"' => is_quoted = !is_quoted || is_escaped(&text[..at]),
            byte if byte == separator && !is_quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns whether the character after this text is escaped by a backslash.
fn is_escaped(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_within_quotes_do_not_split() {
        for (text, parts) in [
            ("", &[""][..]),
            ("a", &["a"]),
            ("a,b", &["b", "a"]),
            (",a,", &["", "a", ""]),
            (r#"a="b,c",d"#, &["d", r#"a="b,c""#]),
            (r#"a="b\",c",d"#, &["d", r#"a="b\",c""#]),
            (r#"a="b\\",c="d""#, &[r#"c="d""#, r#"a="b\\""#]),
            (r#"a",b"#, &["b", "a\""]),
            (r#"a,b"#, &["b", "a"]),
        ] {
            let split: Vec<_> = rsplit_unquoted(text.as_bytes(), b',').collect();
            assert_eq!(split, parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>(), "{text}");
        }
    }
}
