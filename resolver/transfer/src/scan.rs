//! Finds the end of a JSON value (RFC 8259), byte by byte.

use std::io::{self, BufRead};

/// Maximum nesting depth of values, which is also the JSON parser's limit.
const DEPTH: usize = 128;

/// Returns the buffered bytes, after a read if the buffer is empty. Interrupted reads are retried.
pub(super) fn fill(input: &mut impl BufRead) -> io::Result<&[u8]> {
    while let Err(error) = input.fill_buf() {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    input.fill_buf()
}

/// A scanner for the end of a value.
#[derive(Default)]
pub(super) struct Scan {
    /// The expected closing brackets, the next one last.
    closers: Vec<u8>,
    quoted: bool,
    escaped: bool,
}

/// The role of a byte relative to the scanned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A part of the value.
    Inside,
    /// The last byte of the value.
    Last,
    /// The first byte after the value.
    After,
    /// A byte that is invalid at this position.
    Wrong,
}

impl Scan {
    pub(super) fn step(&mut self, byte: u8) -> Step {
        if self.quoted {
            let ends = byte == b'"' && !self.escaped;
            self.escaped = byte == b'\\' && !self.escaped;
            self.quoted = !ends;
            return if ends && self.closers.is_empty() { Step::Last } else { Step::Inside };
        }
        match byte {
            b'"' => self.quoted = true,
            b'{' | b'[' if self.closers.len() == DEPTH => return Step::Wrong,
            b'{' => self.closers.push(b'}'),
            b'[' => self.closers.push(b']'),
            b'}' | b']' => match self.closers.pop() {
                None => return Step::After,
                Some(closer) if closer != byte => return Step::Wrong,
                Some(_) if self.closers.is_empty() => return Step::Last,
                Some(_) => {}
            },
            b',' if self.closers.is_empty() => return Step::After,
            _ if self.closers.is_empty() && byte.is_ascii_whitespace() => return Step::After,
            _ => {}
        }
        Step::Inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_ends_where_its_brackets_or_quotes_close_or_another_sign_stands() {
        let (opened, closed) = ("[".repeat(DEPTH), "]".repeat(DEPTH));
        for (text, end) in [
            ("{}x", Some((1, Step::Last))),
            (r#"{"a":["}"]},"#, Some((10, Step::Last))),
            (r#""a\\"b""#, Some((4, Step::Last))),
            (r#""a\"b""#, Some((5, Step::Last))),
            ("12,", Some((2, Step::After))),
            ("12 ,", Some((2, Step::After))),
            ("12]", Some((2, Step::After))),
            ("]", Some((0, Step::After))),
            ("[}", Some((1, Step::Wrong))),
            ("{\"a\":[1}", Some((7, Step::Wrong))),
            ("{\"a\"", None),
            (&format!("{opened}{closed}"), Some((2 * DEPTH - 1, Step::Last))),
            (&format!("{opened}["), Some((DEPTH, Step::Wrong))),
        ] {
            let mut scan = Scan::default();
            let mut steps = text.bytes().map(|byte| scan.step(byte)).enumerate();
            assert_eq!(steps.find(|(_, step)| *step != Step::Inside), end, "{text:.40}");
        }
    }
}
