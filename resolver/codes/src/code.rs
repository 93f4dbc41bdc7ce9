//! Short codes: one to eight characters of the alphabet, which is defined here.

use std::fmt;

use super::alphabet::Alphabet;

/// The characters of codes in ASCII order, so that codes sort as their positions do.
pub(super) const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) const BASE: u64 = ALPHABET.len() as u64;

/// Returns the position of a character, 0 to 61; `None` if it is not in the alphabet.
pub(super) fn position(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'A'..=b'Z' => Some(character - b'A' + 10),
        b'a'..=b'z' => Some(character - b'a' + 36),
        _ => None,
    }
}

/// A string of the form that minting produces, stored inline.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code {
    len: u8,
    bytes: [u8; Code::MAX_LEN],
}

/// The error for a text that is not a code: empty, too long, or with other characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 1 to 8 characters of 0-9, A-Z and a-z")]
pub struct CodeError;

impl Code {
    /// The length of the longest minted code, in characters.
    pub const MAX_LEN: usize = 8;

    /// Parses a code from a path segment.
    pub fn parse(text: &str) -> Result<Self, CodeError> {
        let source = text.as_bytes();
        let len = u8::try_from(source.len()).map_err(|_| CodeError)?;
        if source.is_empty()
            || source.len() > Self::MAX_LEN
            || source.iter().any(|byte| position(*byte).is_none())
        {
            return Err(CodeError);
        }
        let mut bytes = [0; Self::MAX_LEN];
        bytes[..source.len()].copy_from_slice(source);
        Ok(Self { len, bytes })
    }

    /// Returns the code as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(self.characters()).expect("a code has only ASCII characters")
    }

    /// Returns the number of characters, 1 to 8.
    #[expect(clippy::len_without_is_empty, reason = "a code is never empty")]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn characters(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// Returns the code of `len` characters of an alphabet: the position of the first, and `rest`
    /// in the alphabet's base.
    pub(super) fn compose(alphabet: Alphabet, len: usize, first: u8, rest: u64) -> Self {
        debug_assert!((1..=Self::MAX_LEN).contains(&len));
        let (characters, base) = (alphabet.characters(), alphabet.base());
        let mut bytes = [0; Self::MAX_LEN];
        let mut left = rest;
        for byte in bytes[1..len].iter_mut().rev() {
            *byte = characters[usize::try_from(left % base).expect("a remainder of at most 62 fits")];
            left /= base;
        }
        bytes[0] = characters[usize::from(first)];
        Self { len: u8::try_from(len).expect("a code has at most eight characters"), bytes }
    }

    /// Returns the code with one more character. It must have had fewer than eight.
    pub(super) fn followed_by(mut self, character: u8) -> Self {
        self.bytes[self.len()] = character;
        self.len += 1;
        self
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Returns whether a code equals a reserved word of the URL paths. No link has such a code.
pub fn is_reserved(code: &Code) -> bool {
    matches!(code.as_str(), "rest" | "manage" | "cluster")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_have_been_minted_is_no_code() {
        for bad in ["", "123456789", "a-b", "ä", "a b", "a/b", "\0"] {
            assert_eq!(Code::parse(bad), Err(CodeError), "{bad:?}");
        }
        assert_eq!(Code::parse("x7Kp2q").unwrap().as_str(), "x7Kp2q");
    }

    #[test]
    fn the_alphabet_has_each_letter_and_digit_once() {
        let mut sorted = *ALPHABET;
        sorted.sort_unstable();
        assert_eq!(&sorted, ALPHABET);
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(sorted.iter().all(u8::is_ascii_alphanumeric));
        assert_eq!((0..=255).filter(|byte| position(*byte).is_some()).count(), 62);
        assert!((0..62).all(|place: u8| position(ALPHABET[usize::from(place)]) == Some(place)));
    }
}
