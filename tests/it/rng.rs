//! Random numbers of a seed, the same everywhere.

/// A generator (splitmix64), by its state.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// Begins at a mixed state: those of neighbouring seeds would give the same numbers, shifted by
    /// one.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Self(seed).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap()
    }

    /// Returns `true` once in `times`.
    pub(crate) fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// Returns an item, if there is one.
    pub(crate) fn any<'a, T>(&mut self, of: &'a [T]) -> Option<&'a T> {
        let place = self.below(of.len());
        of.get(place)
    }

    /// Returns a slug that is also a mintable code.
    pub(crate) fn code(&mut self) -> String {
        const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        (0..6).map(|_| char::from(DIGITS[self.below(DIGITS.len())])).collect()
    }
}
