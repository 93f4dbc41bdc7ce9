//! The alphabet of codes, defined in one place.

/// The characters of codes in ASCII order (digits, upper case, lower case), so codes sort as their
/// positions do.
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

#[cfg(test)]
mod tests {
    use super::*;

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
