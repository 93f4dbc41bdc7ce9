//! FF1 (NIST SP 800-38G) for the sizes that codes have: two or three digits, no tweak, numbers
//! instead of digit strings.
//!
//! With so few digits the standard's variables are small. The half that a round encrypts fits into
//! four bytes, so a round is one AES block (*d* = 8, and *Q* is one block), and the first block,
//! *P*, is constant. Every code is minted and read back through this cipher. By `bench mint` on
//! 2026-11-22 the general implementation in the crate `fpe`, with its big integers, took 12 times
//! as long, and that was a sixth of a resolver's work for a create. The tests compare this
//! implementation with `fpe`.

use aes::{
    Aes256,
    cipher::{
        BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser, KeyInit, consts::U16,
    },
};

const ROUNDS: u8 = 10;
/// The standard's largest radix: it has at most two bytes.
const RADIX_MAX: u64 = 1 << 16;
/// The standard's *u*: the number of digits in the left half, for two digits in all as for three.
const LEFT: u32 = 1;

/// The FF1 cipher on `0..radix^digits`.
pub(super) struct Ff1 {
    aes: Aes256,
    /// *P* encrypted with AES: the chaining value at the start of each round.
    prefix: u128,
    /// Sizes of the left half (`radix^u`) and of the right half (`radix^v`).
    sizes: [u64; 2],
    /// The standard's *b*: the length of the right half in bytes.
    width: usize,
}

impl Ff1 {
    /// Creates the cipher for a key.
    ///
    /// # Panics
    /// Panics if `digits` is not 2 or 3, or `radix` is not from 2 to 2^16.
    pub(super) fn new(key: &[u8; 32], radix: u64, digits: u32) -> Self {
        assert!(
            (2..=3).contains(&digits) && (2..=RADIX_MAX).contains(&radix),
            "the halves fit into four bytes"
        );
        let sizes = [radix.pow(LEFT), radix.pow(digits - LEFT)];
        let bits = u64::BITS - (sizes[1] - 1).leading_zeros();
        let aes = Aes256::new(key.into());
        let mut prefix = [0; 16];
        prefix[..3].copy_from_slice(&[1, 2, 1]);
        prefix[3..6].copy_from_slice(&radix.to_be_bytes()[5..]);
        prefix[6] = ROUNDS;
        prefix[7..8].copy_from_slice(&LEFT.to_be_bytes()[3..]);
        prefix[8..12].copy_from_slice(&digits.to_be_bytes());
        aes.encrypt_block((&mut prefix).into());
        Self { aes, prefix: u128::from_be_bytes(prefix), sizes, width: bits.div_ceil(8) as usize }
    }

    pub(super) fn encrypt(&self, value: u64) -> u64 {
        self.run(value, Direction::Forward)
    }

    pub(super) fn decrypt(&self, value: u64) -> u64 {
        self.run(value, Direction::Backward)
    }

    fn run(&self, value: u64, direction: Direction) -> u64 {
        let mut halves = (value / self.sizes[1], value % self.sizes[1]);
        self.aes.encrypt_with_backend(Rounds { cipher: self, halves: &mut halves, direction });
        halves.0 * self.sizes[1] + halves.1
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Forward,
    Backward,
}

/// All rounds in one call of the backend: on a processor with wide registers the backend prepares
/// its keys at every call.
struct Rounds<'a> {
    cipher: &'a Ff1,
    halves: &'a mut (u64, u64),
    direction: Direction,
}

impl BlockSizeUser for Rounds<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Rounds<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let (mut a, mut b) = *self.halves;
        match self.direction {
            Direction::Forward => {
                for round in 0..ROUNDS {
                    let size = self.cipher.size_in(round);
                    let sum = a + self.cipher.pad(backend, round, b) % size;
                    (a, b) = (b, if sum < size { sum } else { sum - size });
                }
            }
            Direction::Backward => {
                for round in (0..ROUNDS).rev() {
                    let size = self.cipher.size_in(round);
                    let less = self.cipher.pad(backend, round, a) % size;
                    (a, b) = (if less <= b { b - less } else { b + size - less }, a);
                }
            }
        }
        *self.halves = (a, b);
    }
}

impl Ff1 {
    /// Returns the size of the half that a round changes.
    fn size_in(&self, round: u8) -> u64 {
        self.sizes[usize::from(round % 2)]
    }

    /// Returns the standard's *y*: the pad of a round, computed from the half that stays.
    #[inline(always)]
    fn pad<B: BlockCipherEncBackend<BlockSize = U16>>(&self, backend: &B, round: u8, half: u64) -> u64 {
        let block = self.prefix ^ (u128::from(round) << (8 * self.width) | u128::from(half));
        let mut block = block.to_be_bytes().into();
        backend.encrypt_block_inplace(&mut block);
        block[..8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }
}

#[cfg(test)]
mod tests {
    use fpe::ff1::{FF1, FlexibleNumeralString};
    use proptest::prelude::*;

    use super::*;

    fn reference(key: &[u8; 32], radix: u64, digits: usize, value: u64) -> u64 {
        let mut numerals = vec![0_u16; digits];
        let mut left = value;
        for numeral in numerals.iter_mut().rev() {
            *numeral = u16::try_from(left % radix).unwrap();
            left /= radix;
        }
        let cipher = FF1::<Aes256>::new(key, u32::try_from(radix).unwrap()).unwrap();
        let enciphered = cipher.encrypt(&[], &FlexibleNumeralString::from(numerals)).unwrap();
        Vec::<u16>::from(enciphered).into_iter().fold(0, |value, numeral| value * radix + u64::from(numeral))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn it_is_what_another_implementation_makes_of_it_and_leads_back(
            key in any::<[u8; 32]>(), radix in 1_000..=RADIX_MAX, digits in 2_u32..=3, value in any::<u64>(),
        ) {
            let value = value % radix.pow(digits);
            let cipher = Ff1::new(&key, radix, digits);
            let enciphered = cipher.encrypt(value);
            prop_assert_eq!(enciphered, reference(&key, radix, digits as usize, value));
            prop_assert_eq!(cipher.decrypt(enciphered), value);
        }
    }

    /// Covers the sizes at which the width of a half changes, and both ends of the radix.
    #[test]
    fn the_widths_of_halves_change_where_the_standard_says() {
        let key = [9; 32];
        let radixes = [1_000, 1_001, 4_095, 4_096, 4_097, 3_844, 60_000, RADIX_MAX - 1, RADIX_MAX];
        for (radix, digits) in radixes.into_iter().flat_map(|radix| [(radix, 2), (radix, 3)]) {
            let cipher = Ff1::new(&key, radix, digits);
            for value in [0, 1, radix - 1, radix, radix.pow(digits) / 2, radix.pow(digits) - 1] {
                let expected = reference(&key, radix, digits as usize, value);
                assert_eq!(cipher.encrypt(value), expected, "{value} in {digits} digits of {radix}");
            }
        }
    }
}
