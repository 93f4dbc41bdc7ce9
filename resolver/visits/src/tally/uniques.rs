//! Distinct visitors and addresses: a list while they are few, HyperLogLog registers afterwards.
//!
//! 1. The result depends on the set of keys alone, not on their order, nor on how they were divided
//!    into chunks. So the estimate is computed from the registers. The estimator that follows the
//!    order of insertions (HIP) would be a fifth more precise, but has no meaning after a merge.
//! 2. A list has at most 2,048 coupons of 4 bytes, as many bytes as the registers take.
//! 3. Keys cannot be taken away: a register does not tell which keys raised it.
//!
//! A coupon is what the registers need of a key: 26 bits that choose a register, and a value of
//! 6 bits, as in DataSketches. Two keys have the same one with a probability of 2^-27.6, so a list
//! misses a key in one of 400 sets of 1,000.
//!
//! Rejected: lists of the keys themselves, which are exact and take twice the bytes of every visit
//! that is counted.

use super::{
    chunk::{Damaged, Reader, put_counted_header},
    registers::{REGISTER_MAX, Registers},
};

/// Relative error of an estimate, as two standard deviations: 95 % of the estimates are closer.
///
/// 2 × 1.03896 / √16,384, where 1.03896 = √(3 ln 2 − 1) holds for estimators that know the
/// registers and nothing else (Ertl, "New cardinality estimation algorithms for HyperLogLog
/// sketches", 2017; DataSketches, `HllUtil`).
pub const RELATIVE_ERROR: f64 = 2.0 * 1.038_96 / 128.0;

/// Format of a chunk that lists coupons; its argument is their number.
const COUPONS: u8 = 1;
const REGISTERS: u8 = 2;
const LIST_MAX: usize = 2_048;
/// Number of coupons from which sorting is faster than inserting each at its place.
const SORT_FROM: usize = 8;
const SLOT_BITS: u32 = 26;
const COUPON_BYTES: usize = size_of::<u32>();

/// The kept form of a key: the number of a register and a value for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Coupon(u32);

impl Coupon {
    /// Computes the coupon of a key. Keys may be hashes, or numbers in any pattern.
    fn of(key: u64) -> Self {
        let mixed = mix(key);
        let slot = u32::try_from(mixed & ((1 << SLOT_BITS) - 1)).expect("a slot has 26 bits");
        let value = (mixed >> SLOT_BITS).leading_zeros() - SLOT_BITS + 1;
        Self(value << SLOT_BITS | slot)
    }

    /// Wraps a stored coupon; `None` if its value is zero.
    fn from_stored(bytes: [u8; COUPON_BYTES]) -> Option<Self> {
        let number = u32::from_le_bytes(bytes);
        (number >> SLOT_BITS > 0).then_some(Self(number))
    }

    pub(super) fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    /// Returns the value of the register, 1 to [`REGISTER_MAX`].
    pub(super) fn value(self) -> u8 {
        const { assert!(u32::MAX >> SLOT_BITS == REGISTER_MAX as u32, "six bits fit a register") };
        (self.0 >> SLOT_BITS).to_le_bytes()[0]
    }
}

/// A bijection in which every bit of the key changes half of the result (`SplitMix64`, Stafford's
/// variant 13).
fn mix(key: u64) -> u64 {
    let key = (key ^ key >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ key >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ key >> 31
}

/// How many distinct keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Distinct keys.
    pub count: u64,
    /// Whether the keys were counted rather than estimated. If not, [`RELATIVE_ERROR`] applies.
    pub is_exact: bool,
}

/// A set of 64-bit keys that can be counted and merged, but neither listed nor diminished.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uniques {
    /// Ordered, without repetitions, at most [`LIST_MAX`]; none once there are registers.
    list: Vec<Coupon>,
    registers: Option<Registers>,
}

impl Uniques {
    /// Adds a key.
    pub fn add(&mut self, key: u64) {
        self.add_all(&[Coupon::of(key)]);
    }

    /// Counts the keys.
    pub fn estimate(&self) -> Estimate {
        match &self.registers {
            None => Estimate { count: self.list.len() as u64, is_exact: true },
            Some(registers) => Estimate { count: registers.estimate(), is_exact: false },
        }
    }

    /// Returns a chunk with all of it; empty if there are no keys.
    pub fn chunk(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(registers) = &self.registers {
            put_counted_header(&mut bytes, REGISTERS, 0);
            registers.write(&mut bytes);
        } else if !self.list.is_empty() {
            put_counted_header(&mut bytes, COUPONS, self.list.len());
            bytes.extend(self.list.iter().flat_map(|coupon| coupon.0.to_le_bytes()));
        }
        bytes
    }

    /// Adds the keys of a stored column, which is faster than to read it into a set of its own.
    /// After an error the set has the keys of the bytes before, and should be dropped.
    pub fn merge_chunks(&mut self, column: &'static str, bytes: &[u8]) -> Result<(), Damaged> {
        let mut reader = Reader::new(column, bytes);
        while !reader.is_at_end() {
            match reader.header()? {
                (COUPONS, argument) => self.merge_coupons(&mut reader, argument)?,
                (REGISTERS, 0) => self.registers().merge_bytes(&mut reader)?,
                (format, argument) => {
                    let expected = "a header of 16 to 32 (formats 1 and 2)";
                    return Err(reader.wrong(expected, format << 4 | argument));
                }
            }
        }
        Ok(())
    }

    /// Reads a column of this name.
    pub fn from_chunks(column: &'static str, bytes: &[u8]) -> Result<Self, Damaged> {
        let mut uniques = Self::default();
        uniques.merge_chunks(column, bytes)?;
        Ok(uniques)
    }

    fn merge_coupons(&mut self, reader: &mut Reader<'_>, argument: u8) -> Result<(), Damaged> {
        let count = reader.announced(argument)?;
        let len = usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(COUPON_BYTES);
        let (stored, _) = reader.take(len, "as many coupons as announced")?.as_chunks();
        for part in stored.chunks(LIST_MAX) {
            let coupons: Option<Vec<Coupon>> = part.iter().copied().map(Coupon::from_stored).collect();
            self.add_all(&coupons.ok_or_else(|| reader.wrong("coupons with values above zero", 0_u64))?);
        }
        Ok(())
    }

    fn add_all(&mut self, coupons: &[Coupon]) {
        if let Some(registers) = &mut self.registers {
            return registers.raise(coupons);
        }
        if coupons.len() < SORT_FROM {
            for coupon in coupons {
                let Err(place) = self.list.binary_search(coupon) else { continue };
                self.list.insert(place, *coupon);
            }
        } else {
            self.list.extend(coupons);
            // Stable sorting merges what is ordered already.
            self.list.sort();
            self.list.dedup();
        }
        if self.list.len() > LIST_MAX {
            self.registers();
        }
    }

    /// Turns the list into registers, if it is not yet.
    fn registers(&mut self) -> &mut Registers {
        let registers = self.registers.get_or_insert_default();
        registers.raise(&std::mem::take(&mut self.list));
        registers
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uniques(keys: impl IntoIterator<Item = u64>) -> Uniques {
        let mut uniques = Uniques::default();
        keys.into_iter().for_each(|key| uniques.add(key));
        uniques
    }

    fn read(bytes: &[u8]) -> Result<Uniques, Damaged> {
        Uniques::from_chunks("visitors", bytes)
    }

    #[test]
    fn chunks_have_the_sizes_that_storage_counts_on() {
        for (count, len) in [(0, 0), (1, 5), (14, 57), (15, 62), (1_000, 4_003), (2_048, 8_195)] {
            let uniques = uniques(0..count);
            assert_eq!(uniques.chunk().len(), len, "{count} keys");
            assert_eq!(uniques.estimate(), Estimate { count, is_exact: true });
        }
        for count in [2_049, 10_000, 100_000, 1_000_000] {
            let uniques = uniques(0..count);
            let len = uniques.chunk().len();
            assert!((8_192..8_300).contains(&len), "{count} keys: {len} bytes");
            assert!(!uniques.estimate().is_exact);
        }
    }

    #[test]
    fn any_division_into_chunks_gives_the_same_set() {
        for (count, parts) in [(9, 3_u16), (2_048, 5), (2_049, 2_049), (9_000, 3), (9_000, 4_500)] {
            let all = uniques(0..count);
            let part = |first: u16| uniques((u64::from(first)..count).step_by(usize::from(parts)));
            let column: Vec<u8> = (0..parts).flat_map(|first| part(first).chunk()).collect();
            assert_eq!(read(&column).unwrap(), all, "{count} keys in {parts} chunks");
            assert_eq!(read(&all.chunk()).unwrap(), all);
        }
    }

    #[test]
    fn sets_are_merged_in_every_state() {
        for (one, other) in [(5, 5), (5, 5_000), (5_000, 5), (5_000, 9_000)] {
            let mut merged = uniques(0..one);
            merged.merge_chunks("visitors", &uniques(3..other).chunk()).unwrap();
            assert_eq!(merged, uniques(0..one.max(other)));
        }
    }

    #[test]
    fn a_hostile_list_becomes_registers() {
        let mut column = vec![0x1f, 0xa0, 0x8d, 0x06];
        column.extend((0..100_000_u32).flat_map(|slot| (1 << SLOT_BITS | slot).to_le_bytes()));
        assert!(!read(&column).unwrap().estimate().is_exact);
        // Announced without bytes: nothing is allocated for it.
        read(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]).unwrap_err();
    }

    #[test]
    fn coupons_without_a_value_and_unknown_formats_are_refused() {
        for bytes in [&[0x11, 1, 0, 0, 0][..], &[0x21, 0], &[0x31, 0], &[0x12, 0, 0, 0, 4]] {
            read(bytes).unwrap_err();
        }
    }

    #[test]
    fn values_follow_the_zeros_of_the_mixed_key() {
        let values: Vec<u8> = (0..10_000).map(|key| Coupon::of(key).value()).collect();
        for (value, expected) in [(1, 5_000), (2, 2_500), (3, 1_250), (4, 625)] {
            let count = values.iter().filter(|found| **found == value).count();
            // Five standard deviations at most.
            assert!(count.abs_diff(expected) < 250, "value {value}: {count} times");
        }
        assert_eq!(Coupon::of(0).value(), 39, "the mixed key is zero, too");
    }

    proptest! {
        #[test]
        fn sets_of_few_keys_count_and_come_back(keys in prop::collection::hash_set(any::<u64>(), 0..200)) {
            let uniques = uniques(keys.iter().copied());
            prop_assert_eq!(uniques.estimate().count, keys.len() as u64);
            prop_assert_eq!(uniques.chunk().is_empty(), keys.is_empty());
            prop_assert_eq!(read(&uniques.chunk()).unwrap(), uniques);
        }
    }
}
