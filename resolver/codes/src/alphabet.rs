//! The alphabet of codes, written down once.

/// Digits before upper before lower case: the order of ASCII, so codes sort as their positions do.
pub(super) const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// How many characters there are.
pub(super) const BASE: u64 = ALPHABET.len() as u64;

/// Where each byte stands in the alphabet; 255 where it does not.
const POSITIONS: [u8; 256] = {
    let mut positions = [u8::MAX; 256];
    let mut position: u8 = 0;
    while (position as usize) < ALPHABET.len() {
        positions[ALPHABET[position as usize] as usize] = position;
        position += 1;
    }
    positions
};

/// The position of a character.
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
