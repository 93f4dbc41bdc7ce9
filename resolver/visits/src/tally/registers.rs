//! HyperLogLog registers of many distinct keys.
//!
//! 1. A register holds the greatest value among the coupons that chose it, so sets are merged by
//!    the greater of each two values.
//! 2. Bytes are taken apart here, with a check of each field, and never by the sketch library: its
//!    deserializer trusts the sums in an image, and panics later on registers that contradict them.
//!
//! Stored as the smallest value, 4 bits for each register above it, and the few values that need
//! more as (gap to the previous such register, value). The 4 bits of registers 0 to 8,191 are the
//! low halves of the bytes and those of the others the high halves, so that the compiler merges
//! sixteen registers at a time.
//!
//! Rejected: `HllUnion` of DataSketches, which adds all registers up anew after each merge.

use datasketches::hll::HllSketch;

use super::{
    chunk::{Damaged, Reader, put_varint},
    uniques::Coupon,
};

pub(super) const REGISTER_MAX: u8 = 63;
const LG_K: u8 = 14;
const COUNT: usize = 1 << LG_K;
const HALF: usize = COUNT / 2;
const NIBBLE_MAX: u8 = 15;

#[derive(Clone, PartialEq, Eq)]
pub(super) struct Registers(Box<[u8; COUNT]>);

impl Default for Registers {
    fn default() -> Self {
        Self(Box::new([0; COUNT]))
    }
}

impl std::fmt::Debug for Registers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Registers").field(&self.estimate()).finish()
    }
}

impl Registers {
    pub(super) fn raise(&mut self, coupons: &[Coupon]) {
        for coupon in coupons {
            let register = &mut self.0[coupon.slot() % COUNT];
            *register = coupon.value().max(*register);
        }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let base = self.0.iter().copied().min().unwrap_or_default().min(REGISTER_MAX - NIBBLE_MAX);
        let nibble = |value: u8| (value - base).min(NIBBLE_MAX);
        bytes.reserve(HALF + 64);
        bytes.push(base);
        let (low, high) = self.0.split_at(HALF);
        bytes.extend(low.iter().zip(high).map(|(low, high)| nibble(*high) << 4 | nibble(*low)));
        let exceptions: Vec<(usize, u8)> =
            (0..).zip(*self.0).filter(|(_, value)| *value > base + NIBBLE_MAX).collect();
        put_varint(bytes, exceptions.len() as u64);
        let mut next = 0;
        for (slot, value) in exceptions {
            put_varint(bytes, (slot - next) as u64);
            bytes.push(value);
            next = slot + 1;
        }
    }

    /// Adds the keys of stored registers.
    pub(super) fn merge_bytes(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        let base = reader.byte("the smallest register")?;
        if base > REGISTER_MAX - NIBBLE_MAX {
            return Err(reader.wrong("a smallest register of at most 48", base));
        }
        let nibbles = reader.take(HALF, "8,192 bytes of registers")?;
        let (low, high) = self.0.split_at_mut(HALF);
        for ((low, high), byte) in low.iter_mut().zip(high).zip(nibbles) {
            *low = (*low).max(base + (byte & NIBBLE_MAX));
            *high = (*high).max(base + (byte >> 4));
        }
        self.merge_exceptions(reader)
    }

    fn merge_exceptions(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        let mut next = 0;
        for _ in 0..reader.below(COUNT + 1, "at most 16,384 exceptions")? {
            let slot = next + reader.below(COUNT - next, "a later one of 16,384 registers")?;
            let value = reader.byte("the value of a register")?;
            if value > REGISTER_MAX {
                return Err(reader.wrong("a register of at most 63", value));
            }
            self.0[slot] = self.0[slot].max(value);
            next = slot + 1;
        }
        Ok(())
    }

    pub(super) fn estimate(&self) -> u64 {
        let sketch = HllSketch::deserialize(&self.image()).expect("the image has the fields of its format");
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate is not negative, and a conversion of one above 2^64 saturates"
        )]
        let count = sketch.composite_estimate().round() as u64;
        count
    }

    /// Returns the image of an HLL_8 sketch, in the format that DataSketches share between
    /// languages.
    fn image(&self) -> Vec<u8> {
        /// Preamble of 10 integers, serial version 1, family 7 (HLL), mode HLL with target HLL_8.
        /// Out of order, so that estimates come from the registers.
        const HEAD: [u8; 8] = [10, 1, 7, LG_K, 0, 1 << 4, 0, 2 << 2 | 2];
        let mut frequencies = [0_u32; REGISTER_MAX as usize + 1];
        self.0.iter().for_each(|value| frequencies[usize::from(*value)] += 1);
        let mut inverse_powers = [0.0_f64; 2];
        for (value, frequency) in (0..).zip(frequencies) {
            inverse_powers[usize::from(value >= 32)] += f64::from(frequency) * 0.5_f64.powi(value);
        }
        let insertion_estimate = 0.0_f64;
        let mut image = Vec::with_capacity(40 + COUNT);
        image.extend(HEAD);
        image.extend(insertion_estimate.to_le_bytes());
        image.extend(inverse_powers.iter().flat_map(|sum| sum.to_le_bytes()));
        image.extend(frequencies[0].to_le_bytes());
        let exceptions = 0_u32;
        image.extend(exceptions.to_le_bytes());
        image.extend_from_slice(&*self.0);
        image
    }
}

#[cfg(test)]
mod tests {
    use datasketches::hll::{HllType, HllUnion};
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Registers, Damaged> {
        let mut registers = Registers::default();
        registers.merge_bytes(&mut Reader::new("visitors", bytes)).map(|()| registers)
    }

    fn written(registers: &Registers) -> Vec<u8> {
        let mut bytes = Vec::new();
        registers.write(&mut bytes);
        bytes
    }

    /// Registers of the library's own sketch, taken out of its image.
    fn library(keys: std::ops::Range<u64>) -> (HllSketch, Registers) {
        let mut sketch = HllSketch::new(LG_K, HllType::Hll8).unwrap();
        keys.for_each(|key| sketch.update(key));
        let registers = sketch.serialize()[40..].try_into().unwrap();
        (sketch, Registers(Box::new(registers)))
    }

    #[test]
    fn estimates_images_and_merges_are_those_of_the_library() {
        let (one, ours) = library(0..30_000);
        let copy = HllSketch::deserialize(&ours.image()).unwrap();
        assert_eq!(copy.composite_estimate(), one.composite_estimate());
        let (other, theirs) = library(20_000..1_000_000);
        let mut union = HllUnion::new(LG_K).unwrap();
        union.update(&one);
        union.update(&other);
        let mut merged = ours;
        merged.merge_bytes(&mut Reader::new("visitors", &written(&theirs))).unwrap();
        // Before these bytes are flags, and an estimate that follows the order of insertions.
        assert_eq!(merged.image()[16..], union.to_sketch(HllType::Hll8).serialize()[16..]);
        assert_eq!(merged.estimate().to_string(), format!("{:.0}", union.estimate()));
    }

    #[test]
    fn the_greatest_registers_are_estimated_and_stored() {
        for value in [0, 1, 15, 16, 48, 49, 63] {
            let registers = Registers(Box::new([value; COUNT]));
            assert_eq!(read(&written(&registers)).unwrap(), registers);
            assert_eq!(registers.estimate() == 0, value == 0);
        }
    }

    #[test]
    fn registers_out_of_range_are_refused() {
        let bytes = written(&Registers::default());
        let changed = |place: usize, with: &[u8]| [&bytes[..place], with].concat();
        read(&bytes).unwrap();
        for damaged in [
            [&[49], &bytes[1..]].concat(),
            changed(HALF, &[]),
            changed(HALF + 1, &[0x81, 0x80, 0x01]),
            changed(HALF + 1, &[1, 0, 64]),
            changed(HALF + 1, &[1, 0x80, 0x80, 0x01, 20]),
            changed(HALF + 1, &[2, 0xff, 0x7f, 20, 0, 20]),
        ] {
            read(&damaged).unwrap_err();
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn any_registers_come_back(
            values in prop::collection::vec(0..=REGISTER_MAX, COUNT), least in 0..=REGISTER_MAX,
        ) {
            let values: Vec<u8> = values.into_iter().map(|value| value.max(least)).collect();
            let registers = Registers(Box::new(values.try_into().unwrap()));
            prop_assert_eq!(read(&written(&registers)).unwrap(), registers);
        }
    }
}
