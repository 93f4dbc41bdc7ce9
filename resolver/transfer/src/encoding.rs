//! The encoding of an input: UTF-8, or UTF-16 as spreadsheets and shells write it. It is found by
//! the byte order mark, or without one by the zero bytes of the first letters.

use std::io::{self, Cursor, Read};

/// The bytes that decide.
const HEAD: u64 = 4;
const PIECE: usize = 8 * 1024;
/// A byte that UTF-8 never has. It stands for half of a character, so that what contains it is
/// refused and not changed.
const NOT_UTF_8: u8 = 0xff;

/// Reads a unit of UTF-16 from its bytes.
type Unit = fn([u8; 2]) -> u16;

/// Returns a reader of the input's text as UTF-8, without its byte order mark.
pub(super) fn decoded<'a>(mut input: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head)?;
    let (mark, unit): (_, Option<Unit>) = match head[..] {
        [0xff, 0xfe, ..] => (2, Some(u16::from_le_bytes)),
        [0xfe, 0xff, ..] => (2, Some(u16::from_be_bytes)),
        [0xef, 0xbb, 0xbf, ..] => (3, None),
        [1..=255, 0, 1..=255, 0] => (0, Some(u16::from_le_bytes)),
        [0, 1..=255, 0, 1..=255] => (0, Some(u16::from_be_bytes)),
        _ => (0, None),
    };
    let input = Cursor::new(head.split_off(mark)).chain(input);
    Ok(match unit {
        None => Box::new(input),
        Some(unit) => Box::new(Utf16 { input, unit, raw: Vec::new(), text: Cursor::default() }),
    })
}

struct Utf16<R> {
    input: R,
    unit: Unit,
    /// Bytes that do not make a character yet.
    raw: Vec<u8>,
    text: Cursor<Vec<u8>>,
}

impl<R: Read> Utf16<R> {
    /// Decodes the next piece. Returns `false` at the end of the input.
    fn decode(&mut self) -> io::Result<bool> {
        let kept = self.raw.len();
        let got = (&mut self.input).take(PIECE as u64).read_to_end(&mut self.raw)?;
        let mut units: Vec<u16> = self.raw.as_chunks::<2>().0.iter().map(|pair| (self.unit)(*pair)).collect();
        // The first half of a pair waits for the other one.
        let is_end = got == 0;
        if !is_end && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            units.pop();
        }
        let mut text = Vec::with_capacity(units.len());
        for decoded in char::decode_utf16(units.iter().copied()) {
            match decoded {
                Ok(one) => text.extend_from_slice(one.encode_utf8(&mut [0; 4]).as_bytes()),
                Err(_) => text.push(NOT_UTF_8),
            }
        }
        self.raw.drain(..units.len() * 2);
        if is_end && kept > 0 && !self.raw.is_empty() {
            self.raw.clear();
            text.push(NOT_UTF_8);
        }
        self.text = Cursor::new(text);
        Ok(!is_end)
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let got = self.text.read(to)?;
        if got > 0 || to.is_empty() {
            return Ok(got);
        }
        // A piece may be too short for a character.
        while self.decode()? && self.text.get_ref().is_empty() {}
        self.text.read(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        decoded(bytes).unwrap().read_to_end(&mut text).unwrap();
        text
    }

    #[test]
    fn a_text_is_the_same_in_each_encoding() {
        let long = "longUrl;title\nhttps://e.test/;Ä 短 🦣\n".repeat(2_000);
        for text in ["ab,c\n", &long] {
            let units = || text.encode_utf16();
            let little: Vec<u8> = units().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = units().flat_map(u16::to_be_bytes).collect();
            for bytes in [
                text.as_bytes().to_vec(),
                [b"\xef\xbb\xbf", text.as_bytes()].concat(),
                [b"\xff\xfe", &little[..]].concat(),
                [b"\xfe\xff", &big[..]].concat(),
                little,
                big,
            ] {
                assert!(read(&bytes) == text.as_bytes(), "{:?}", &bytes[..8]);
            }
        }
        assert_eq!(read(b""), b"");
    }

    #[test]
    fn half_a_character_is_not_text() {
        for bytes in [&b"\xff\xfea\0b"[..], b"\xff\xfea\0\x3d\xd8", b"\xff\xfea\0\x3d\xd8b\0"] {
            assert!(String::from_utf8(read(bytes)).is_err(), "{bytes:?}");
        }
    }
}
