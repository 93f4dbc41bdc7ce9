//! Check characters, so that a code that was typed wrong leads nowhere instead of to another link.
//!
//! The positions of a code's characters in an alphabet of 32 are elements of the field GF(2⁵). The
//! check character makes the sum of all of them zero, each multiplied by another power of 2. So no
//! two codes differ in one character alone, or in two that have changed places; of all other texts
//! of the length, one in 32 is a code. Crockford's own check symbols detect the same, but five of
//! them are neither letters nor digits.

/// x⁵ + x² + 1, of which 2 is a root with 31 different powers.
const POLYNOMIAL: u8 = 0b10_0101;

/// Returns the position of the check character of these positions, 0 to 31. It is 0 for a code that
/// includes its check character.
pub(super) fn check_position(positions: impl Iterator<Item = u8>) -> u8 {
    positions.fold(0, |sum, position| double(sum ^ position))
}

fn double(element: u8) -> u8 {
    let doubled = element << 1;
    if doubled < 32 { doubled } else { doubled ^ POLYNOMIAL }
}
