//! A keyed bijection on `0..size`, which hides the order of numbers: neighbouring numbers do not
//! give neighbouring codes (B2, G1).
//!
//! 1. `invert(apply(n)) = n` for every `n < size`, and both stay below `size`.
//! 2. The bijection depends only on the key and the size. It is fixed for ever: stored links are
//!    read back through it.
//!
//! From a million codes on it is FF1 (NIST SP 800-38G), over two or three digits of the smallest
//! radix whose power covers the size, so that hardly any number needs a second step of
//! cycle-walking. Below a million FF1 is not defined, and a shuffled table is used: at most 4 MB
//! each way.
//!
//! Rejected: a cipher of our own design, because it would have had no review by others.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};

use super::ff1::Ff1;

/// The smallest domain that FF1 is defined on.
const FF1_MIN: u64 = 1_000_000;
const RADIX_MAX: u64 = 1 << 16;

pub(super) enum Permutation {
    /// FF1 with cycle-walking, for sizes from a million on.
    Ff1 { cipher: Box<Ff1>, size: u64 },
    /// A shuffled table and its inverse, for smaller sizes.
    Table { forward: Vec<u32>, backward: Vec<u32> },
}

impl Permutation {
    /// Creates the bijection on `0..size` for a key.
    pub(super) fn new(key: &[u8; 32], size: u64) -> Self {
        if size < FF1_MIN { Self::shuffle(key, size) } else { Self::ff1(key, size) }
    }

    fn ff1(key: &[u8; 32], size: u64) -> Self {
        let digits = if size <= RADIX_MAX * RADIX_MAX { 2 } else { 3 };
        let cipher = Box::new(Ff1::new(key, smallest_radix(size, digits), digits));
        Self::Ff1 { cipher, size }
    }

    /// Fills a table by a Fisher-Yates shuffle with `ChaCha20`, the same in every release.
    fn shuffle(key: &[u8; 32], size: u64) -> Self {
        let size = u32::try_from(size).expect("a table is made only below a million");
        let mut stream = ChaCha20Rng::from_seed(*key);
        let mut forward: Vec<u32> = (0..size).collect();
        for last in (1..size).rev() {
            forward.swap(last as usize, below(&mut stream, last + 1) as usize);
        }
        let mut backward = vec![0; forward.len()];
        for (number, image) in (0..).zip(&forward) {
            backward[*image as usize] = number;
        }
        Self::Table { forward, backward }
    }

    pub(super) fn apply(&self, number: u64) -> u64 {
        match self {
            Self::Ff1 { cipher, size } => walk(number, *size, |value| cipher.encrypt(value)),
            Self::Table { forward, .. } => look_up(forward, number),
        }
    }

    pub(super) fn invert(&self, position: u64) -> u64 {
        match self {
            Self::Ff1 { cipher, size } => walk(position, *size, |value| cipher.decrypt(value)),
            Self::Table { backward, .. } => look_up(backward, position),
        }
    }
}

/// Applies `step` until the value is below `size` (cycle-walking). Values at or above `size` lie
/// on the same cycles, so the result is a bijection on `0..size` (Black and Rogaway, "Ciphers with
/// Arbitrary Finite Domains", 2002).
fn walk(from: u64, size: u64, step: impl Fn(u64) -> u64) -> u64 {
    assert!(from < size, "only numbers of the keyspace are permuted");
    let mut value = step(from);
    while value >= size {
        value = step(value);
    }
    value
}

fn look_up(table: &[u32], index: u64) -> u64 {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    u64::from(*table.get(index).expect("only numbers of the keyspace are permuted"))
}

/// Returns the smallest radix with `radix^digits >= size`. Floating-point roots round.
fn smallest_radix(size: u64, digits: u32) -> u64 {
    let covers = |radix: u64| u128::from(radix).pow(digits) >= u128::from(size);
    let (mut low, mut high) = (2, RADIX_MAX);
    while low < high {
        let middle = u64::midpoint(low, high);
        if covers(middle) { high = middle } else { low = middle + 1 }
    }
    assert!(covers(low), "62^8 codes fit into three digits of 2^16");
    low
}

/// Draws uniformly from `0..bound`; values in the incomplete last interval are rejected.
fn below(stream: &mut ChaCha20Rng, bound: u32) -> u32 {
    let whole = u32::MAX - u32::MAX % bound;
    loop {
        let drawn = stream.next_u32();
        if drawn < whole {
            return drawn % bound;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_radix_is_the_smallest_that_covers_the_size() {
        for (size, digits) in
            [(FF1_MIN, 2), (1 << 32, 2), ((1 << 32) + 1, 3), (62_u64.pow(6), 3), (62_u64.pow(8), 3)]
        {
            let radix = u128::from(smallest_radix(size, digits));
            assert!(radix.pow(digits) >= u128::from(size));
            assert!((radix - 1).pow(digits) < u128::from(size));
        }
    }

    #[test]
    fn another_key_gives_another_order() {
        for size in [1_000, 2_000_000] {
            let one = Permutation::new(&[1; 32], size);
            let two = Permutation::new(&[2; 32], size);
            let same = (0..1_000).filter(|n| one.apply(*n) == two.apply(*n)).count();
            assert!(same < 20, "{same} of 1,000 agree for size {size}");
        }
    }

    /// Stored links are read back through the bijection, so neither a new release of a crate nor a
    /// clean-up of this file may change it.
    #[test]
    fn the_bijection_is_what_it_was_in_the_first_release() {
        let sizes = [62, 62_u64.pow(3), 62_u64.pow(4), 62_u64.pow(6), 62_u64.pow(8)];
        let images = sizes.map(|size| Permutation::new(&[7; 32], size).apply(1));
        assert_eq!(images, FIRST_RELEASE);
    }

    const FIRST_RELEASE: [u64; 5] = [51, 204_848, 1_534_668, 34_134_606_834, 148_594_447_553_790];
}
