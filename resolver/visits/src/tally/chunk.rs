//! Chunks as bytes: a header, varints, and a reader that refuses damaged ones.
//!
//! A chunk begins with a byte whose high half is its format, so that a later format can stand
//! beside earlier ones in the same column. The low half is an argument of the format.
//!
//! 1. Reading allocates nothing on account of a number in the bytes: every item that is announced
//!    takes bytes of its own, and reading stops where they end.
//! 2. Numbers are varints of base 128, the lowest group first. Signed ones are zigzag encoded.

/// Why a stored column cannot be read: its bytes are not chunks of known formats.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: expected {expected}, found {found}")]
pub struct Damaged {
    column: &'static str,
    expected: &'static str,
    found: String,
}

/// The argument of a header that announces a count as a varint of its own.
const COUNT_FOLLOWS: u8 = 15;

/// Appends a header. Both numbers are below 16.
pub(super) fn put_header(bytes: &mut Vec<u8>, format: u8, argument: u8) {
    debug_assert!(format < 16 && argument < 16, "each is half a byte");
    bytes.push(format << 4 | argument);
}

/// Appends a header whose argument is a count, or says that the count follows.
pub(super) fn put_counted_header(bytes: &mut Vec<u8>, format: u8, count: usize) {
    match u8::try_from(count) {
        Ok(count) if count < COUNT_FOLLOWS => put_header(bytes, format, count),
        _ => {
            put_header(bytes, format, COUNT_FOLLOWS);
            put_varint(bytes, count as u64);
        }
    }
}

pub(super) fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put_varint(bytes, (number << 1 ^ number >> 63).cast_unsigned());
}

/// The bytes of a column that are still to be read.
pub(super) struct Reader<'a> {
    column: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(column: &'static str, bytes: &'a [u8]) -> Self {
        Self { column, rest: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the header of a chunk: its format and its argument.
    pub(super) fn header(&mut self) -> Result<(u8, u8), Damaged> {
        let byte = self.byte("the header of a chunk")?;
        Ok((byte >> 4, byte & 15))
    }

    /// Returns the count that the argument of a header announces.
    pub(super) fn announced(&mut self, argument: u8) -> Result<u64, Damaged> {
        if argument == COUNT_FOLLOWS { self.varint("a count") } else { Ok(u64::from(argument)) }
    }

    pub(super) fn byte(&mut self, expected: &'static str) -> Result<u8, Damaged> {
        self.rest.split_off_first().copied().ok_or_else(|| self.short(expected))
    }

    pub(super) fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], Damaged> {
        self.rest.split_off(..count).ok_or_else(|| self.short(expected))
    }

    pub(super) fn varint(&mut self, expected: &'static str) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(expected)?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong("a number of at most 10 bytes", number))
    }

    pub(super) fn below(&mut self, limit: usize, expected: &'static str) -> Result<usize, Damaged> {
        let number = self.varint(expected)?;
        usize::try_from(number)
            .ok()
            .filter(|number| *number < limit)
            .ok_or_else(|| self.wrong(expected, number))
    }

    pub(super) fn signed(&mut self, expected: &'static str) -> Result<i64, Damaged> {
        let number = self.varint(expected)?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// Returns the error for a number that is not accepted.
    pub(super) fn wrong(&self, expected: &'static str, found: impl Into<u64>) -> Damaged {
        let found: u64 = found.into();
        Damaged { column: self.column, expected, found: found.to_string() }
    }

    pub(super) fn text<'b>(&self, bytes: &'b [u8]) -> Result<&'b str, Damaged> {
        let other =
            |_| Damaged { column: self.column, expected: "UTF-8 text", found: "other bytes".to_owned() };
        std::str::from_utf8(bytes).map_err(other)
    }

    fn short(&self, expected: &'static str) -> Damaged {
        Damaged { column: self.column, expected, found: "the end of the column".to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new("quarters", bytes)
    }

    proptest! {
        #[test]
        fn numbers_come_back(number in any::<u64>(), bits in 0..64_u32, count in 0..40_usize) {
            let number = number >> bits;
            let mut bytes = Vec::new();
            put_counted_header(&mut bytes, 3, count);
            put_varint(&mut bytes, number);
            put_signed(&mut bytes, number.cast_signed());
            put_signed(&mut bytes, number.cast_signed().wrapping_neg());
            let mut reader = reader(&bytes);
            let (format, argument) = reader.header().unwrap();
            prop_assert_eq!((format, reader.announced(argument)), (3, Ok(count as u64)));
            prop_assert_eq!(reader.varint("number"), Ok(number));
            prop_assert_eq!(reader.signed("number"), Ok(number.cast_signed()));
            prop_assert_eq!(reader.signed("number"), Ok(number.cast_signed().wrapping_neg()));
            prop_assert!(reader.is_at_end());
        }
    }

    #[test]
    fn small_numbers_take_one_byte_and_the_greatest_ten() {
        for (number, len) in [(0, 1), (-64, 1), (63, 1), (64, 2), (i64::MAX, 10), (i64::MIN, 10)] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            assert_eq!(bytes.len(), len, "{number}");
        }
    }

    #[test]
    fn damage_is_named() {
        for (damaged, named) in [
            (reader(&[0x80]).varint("a count").err(), "a count, found the end of the column"),
            (reader(&[7]).below(7, "a number below 7").err(), "a number below 7, found 7"),
            (reader(&[0x80; 11]).varint("a count").err(), "a number of at most 10 bytes, found 0"),
            (reader(&[]).text(&[0xff]).err(), "UTF-8 text, found other bytes"),
        ] {
            assert_eq!(damaged.unwrap().to_string(), format!("column quarters: expected {named}"));
        }
    }
}
