//! The only source of randomness: SplitMix64, five lines that give the same stream on every machine
//! and in every release.

/// A stream of numbers that its seed determines.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// Creates the stream of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number in `low..=high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.draw() % (high - low + 1)
    }

    /// Draws an index below `len`, which is not 0.
    pub(super) fn index(&mut self, len: usize) -> usize {
        let len = u64::try_from(len).unwrap_or(u64::MAX);
        usize::try_from(self.draw() % len).unwrap_or(0)
    }

    /// Draws one of the values.
    pub(super) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.index(values.len())]
    }

    /// Draws true with a probability of `permille` thousandths.
    pub(super) fn chance(&mut self, permille: u64) -> bool {
        permille > 0 && self.draw() % 1_000 < permille
    }

    /// Returns a separate stream, so that one actor's draws do not shift another's.
    pub(super) fn fork(&mut self) -> Self {
        Self(self.draw())
    }
}
