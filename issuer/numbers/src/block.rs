//! Ranges and blocks of numbers.
//!
//! 1. A range is half-open and never empty. Its end never passes [`Span::LIMIT`], so no arithmetic
//!    on ranges can wrap.
//! 2. The start of a block is never computed by subtraction (I2): allocation takes the front of a
//!    range.

use serde::{Deserialize, Serialize};

use crate::{Generation, Invalid, Namespace};

/// A contiguous half-open range `[start, end)` of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u64, u64)", into = "(u64, u64)")]
pub struct Span {
    start: u64,
    end: u64,
}

impl Span {
    /// The exclusive upper bound of all numbers: 62^8 codes need 47.6 bits, and a link's id keeps
    /// 48 bits for the number.
    pub const LIMIT: u64 = 1 << 48;

    /// Returns the range of `len` numbers from `start`, unless it is empty or passes the limit.
    pub fn new(start: u64, len: u64) -> Result<Self, Invalid> {
        match start.checked_add(len) {
            Some(end) if len > 0 && end <= Self::LIMIT => Ok(Self { start, end }),
            _ => Err(format!(
                "range: expected start + len within 2^48 and len at least 1, got start {start} and len {len}"
            )
            .into()),
        }
    }

    /// Returns the first number.
    pub fn start(self) -> u64 {
        self.start
    }

    /// Returns the exclusive end: the number after the last.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Returns the count of numbers, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Returns whether every number of `other` is in this range.
    pub fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns whether the two ranges share a number.
    pub fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// Splits off at most `len` numbers from the front, and returns `(front, rest)`. `rest` is
    /// `None` if the front is the whole range.
    ///
    /// # Panics
    /// Panics if `len` is 0, because the front would be empty.
    pub fn take_front(self, len: u64) -> (Self, Option<Self>) {
        assert!(len > 0, "a block has at least one number");
        if len >= self.len() {
            return (self, None);
        }
        let middle = self.start + len;
        (Self { start: self.start, end: middle }, Some(Self { start: middle, end: self.end }))
    }
}

impl TryFrom<(u64, u64)> for Span {
    type Error = Invalid;

    fn try_from((start, len): (u64, u64)) -> Result<Self, Invalid> {
        Self::new(start, len)
    }
}

impl From<Span> for (u64, u64) {
    fn from(span: Span) -> Self {
        (span.start, span.len())
    }
}

/// A range of one namespace that was allocated to one holder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Block {
    /// The number space that the range belongs to.
    pub namespace: Namespace,
    /// The range of numbers.
    pub span: Span,
    /// The fencing token of this allocation.
    pub generation: Generation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_that_is_empty_or_wraps_cannot_be_made() {
        for (start, len) in [
            (0, 0),
            (u64::MAX, 1),
            (1, u64::MAX),
            (Span::LIMIT, 1),
            (0, Span::LIMIT + 1),
            (u64::MAX, u64::MAX),
        ] {
            assert!(Span::new(start, len).is_err(), "{start} {len}");
        }
        assert_eq!(Span::new(Span::LIMIT - 1, 1).map(Span::end), Ok(Span::LIMIT));
    }

    #[test]
    fn every_small_pair_of_ranges_agrees_with_sets_of_numbers() {
        let spans = || (0..6).flat_map(|start| (1..6).filter_map(move |len| Span::new(start, len).ok()));
        for a in spans() {
            for b in spans() {
                let shared = (a.start()..a.end()).filter(|n| (b.start()..b.end()).contains(n)).count();
                assert_eq!(a.overlaps(b), shared > 0);
                assert_eq!(a.contains(b), shared as u64 == b.len());
            }
            for len in 1..8 {
                let (front, rest) = a.take_front(len);
                assert_eq!(front.start(), a.start());
                assert_eq!(front.len() + rest.map_or(0, Span::len), a.len());
                assert_eq!(rest.map_or(a.end(), Span::start), front.end());
            }
        }
    }
}
