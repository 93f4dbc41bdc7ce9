//! Alphabets: the characters in which codes are minted, and those that are read as them.

use super::code::{ALPHABET, position};

/// The characters of Crockford's base 32 in small letters, in ASCII order. Those that look like
/// others are left out, and `u`, without which fewer codes are rude words.
const CROCKFORD: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The characters of a keyspace's codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Alphabet {
    /// Digits, capitals and small letters. Each stands for itself alone.
    Base62,
    /// Crockford's base 32 (<https://www.crockford.com/base32.html>): small letters are read in any
    /// case, the letter `o` as zero, and `i` and `l` as one.
    Crockford,
}

impl Alphabet {
    /// Returns the characters in which codes are minted, in ASCII order.
    pub(super) fn characters(self) -> &'static [u8] {
        match self {
            Self::Base62 => ALPHABET,
            Self::Crockford => CROCKFORD,
        }
    }

    /// Returns the number of characters in which codes are minted.
    pub(super) fn base(self) -> u64 {
        self.characters().len() as u64
    }

    /// Returns the position of a character in which codes are minted; `None` for any other.
    pub(super) fn position(self, character: u8) -> Option<u8> {
        match self {
            Self::Base62 => position(character),
            Self::Crockford => {
                let place = CROCKFORD.binary_search(&character).ok()?;
                u8::try_from(place).ok()
            }
        }
    }

    /// Returns the position of the character that this one is read as; `None` if no code has it.
    pub(super) fn read(self, character: u8) -> Option<u8> {
        match self {
            Self::Base62 => self.position(character),
            Self::Crockford => self.position(match character.to_ascii_lowercase() {
                b'o' => b'0',
                b'i' | b'l' => b'1',
                small => small,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_characters_are_in_order_and_each_is_read_as_itself() {
        for alphabet in [Alphabet::Base62, Alphabet::Crockford] {
            let characters = alphabet.characters();
            assert!(characters.windows(2).all(|pair| pair[0] < pair[1]));
            for (place, character) in (0..).zip(characters) {
                assert_eq!(alphabet.position(*character), Some(place));
                assert_eq!(alphabet.read(*character), Some(place));
            }
            let read = ALPHABET.iter().filter(|one| alphabet.read(**one).is_some()).count();
            let expected = if alphabet == Alphabet::Base62 { 62 } else { 60 };
            assert_eq!(read, expected, "all of them, but not u in Crockford's");
            assert_eq!(alphabet.read(b'-'), None);
        }
    }

    #[test]
    fn capitals_and_look_alikes_are_read_as_crockford_says() {
        let read = |one| Alphabet::Crockford.read(one);
        for (spellings, minted) in [("0oO", b'0'), ("1iIlL", b'1'), ("aA", b'a'), ("zZ", b'z')] {
            for one in spellings.bytes() {
                assert_eq!(read(one), Alphabet::Crockford.position(minted), "{}", char::from(one));
            }
        }
        assert_eq!((read(b'u'), read(b'U')), (None, None));
    }
}
