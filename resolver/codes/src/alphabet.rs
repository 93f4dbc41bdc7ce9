//! The alphabet of codes, defined in one place.

/// The characters of codes in ASCII order (digits, upper case, lower case), so codes sort as their
/// positions do.
pub(super) const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

pub(super) const BASE: u64 = ALPHABET.len() as u64;

/// The position of each byte in the alphabet; 255 for a byte outside it.
const POSITIONS: [u8; 256] = {
    let mut positions = [u8::MAX; 256];
    let mut position: u8 = 0;
    while (position as usize) < ALPHABET.len() {
        positions[ALPHABET[position as usize] as usize] = position;
        position += 1;
    }
    positions
};

/// Returns the position of a character, 0 to 61; `None` if it is not in the alphabet.
pub(super) fn position(character: u8) -> Option<u8> {
    let position = POSITIONS[usize::from(character)];
    (position != u8::MAX).then_some(position)
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
    }
}
