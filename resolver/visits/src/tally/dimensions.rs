//! Visits by referrer, browser, place and so on.
//!
//! 1. The sum of a dimension never changes when values are folded into [`OTHER`].
//! 2. Unknown values count under the empty text, so that each dimension adds up by itself.
//! 3. Counts are signed and wrap, as those of quarter hours do. A value whose counts are zero is
//!    not kept.
//! 4. In memory a dimension has at most [`VALUES_HELD`] values, whatever is added or read.
//!
//! A value that was folded counts from zero when it returns, so counts are exact as long as a
//! dimension has at most [`VALUES_MAX`] values.
//!
//! Rejected: a space-saving sketch, because its counts are too high by amounts that differ from
//! value to value, so that the sum of a dimension would not be its number of visits.
//!
//! A chunk:
//!
//! ```text
//! header    format 1; argument: bit 0 = all values have the same counts, which come first;
//!           bit 1 = each dimension has one value, so their numbers are left out
//! varint    the dimensions that have values, a bit for each code
//! [total, bots]                           if all have the same counts
//! for each of these dimensions:
//!   [number of values]                    unless each has one
//!   for each value: text [total, bots]    unless all have the same counts
//! text      a code of the dictionary, below 0xC0,
//!           or 0xC0 + bytes shared with the text before, number of other bytes, these bytes
//! ```
//!
//! Both bits are set in the chunk of a single visit, which is what most links get at a time: its
//! header and counts take 5 bytes, and each known value one.

use std::{borrow::Cow, cmp::Reverse, ops::AddAssign};

use super::{
    chunk::{Damaged, Reader, put_header, put_signed, put_varint},
    dictionary,
    dimension::Dimension,
};

/// The value under which the visits of folded values count.
pub const OTHER: &str = "(other)";
/// Maximum number of values of a dimension that are stored, besides [`OTHER`].
pub const VALUES_MAX: usize = 1_000;
/// Maximum number of values of a dimension in memory. Once there are more, they are folded.
pub const VALUES_HELD: usize = 2_000;
/// Maximum length of a value, in bytes. Longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 64;

const FORMAT: u8 = 1;
const SAME_COUNTS: u8 = 1;
const ONE_EACH: u8 = 2;
/// The first byte of a text that the dictionary does not have. Codes are below.
const SPELLED: u8 = dictionary::CODES;
/// The greatest number of shared bytes that the first byte of a text has room for.
const SHARED_MAX: usize = (u8::MAX - SPELLED) as usize;

/// How many visits had a value, or a change of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCount {
    /// All visits.
    pub total: i64,
    /// Visits by bots.
    pub bots: i64,
}

impl ValueCount {
    /// Counts one visit.
    pub fn one(is_bot: bool) -> Self {
        Self { total: 1, bots: i64::from(is_bot) }
    }
}

impl AddAssign for ValueCount {
    fn add_assign(&mut self, other: Self) {
        self.total = self.total.wrapping_add(other.total);
        self.bots = self.bots.wrapping_add(other.bots);
    }
}

/// Values in the order of their texts. Most subjects of a batch have one visit, and so one value in
/// each dimension, for which a tree would take ten times the memory.
type ValueCounts = Vec<(Box<str>, ValueCount)>;

/// Visits of a day by the values of each dimension.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DimensionCounts([ValueCounts; Dimension::ALL.len()]);

impl DimensionCounts {
    /// Adds visits with a value.
    pub fn add(&mut self, dimension: Dimension, value: &str, count: ValueCount) {
        if count == ValueCount::default() {
            return;
        }
        let values = &mut self.0[dimension as usize];
        // Cut between two characters.
        let value = &value[..value.floor_char_boundary(VALUE_BYTES_MAX)];
        match place(values, value) {
            Ok(at) => {
                values[at].1 += count;
                if values[at].1 == ValueCount::default() {
                    values.remove(at);
                }
            }
            Err(at) => {
                if values.is_empty() {
                    values.reserve_exact(1);
                }
                values.insert(at, (value.into(), count));
                if values.len() > VALUES_HELD {
                    fold(values);
                }
            }
        }
    }

    /// Adds the visits of another.
    pub fn merge(&mut self, other: &Self) {
        for (dimension, values) in other.present() {
            values.iter().for_each(|(value, count)| self.add(dimension, value, *count));
        }
    }

    /// Returns what takes these visits away.
    pub(super) fn negated(&self) -> Self {
        let mut negated = self.clone();
        for (_, count) in negated.0.iter_mut().flatten() {
            *count = ValueCount { total: count.total.wrapping_neg(), bots: count.bots.wrapping_neg() };
        }
        negated
    }

    /// Returns the values of a dimension, ordered by text.
    pub fn values(&self, dimension: Dimension) -> impl ExactSizeIterator<Item = (&str, ValueCount)> {
        self.0[dimension as usize].iter().map(|(value, count)| (&**value, *count))
    }

    /// Returns the visits of a dimension.
    pub fn sum(&self, dimension: Dimension) -> ValueCount {
        let mut sum = ValueCount::default();
        self.values(dimension).for_each(|(_, count)| sum += count);
        sum
    }

    fn present(&self) -> impl Iterator<Item = (Dimension, &ValueCounts)> {
        Dimension::ALL.into_iter().zip(&self.0).filter(|(_, values)| !values.is_empty())
    }

    /// Returns a chunk with all of it; empty if there are no visits. Values beyond the 1,000
    /// greatest of a dimension are stored as their sum.
    pub fn chunk(&self) -> Vec<u8> {
        let mut stored = Cow::Borrowed(self);
        if !self.0.iter().all(is_folded) {
            stored.to_mut().0.iter_mut().for_each(fold);
        }
        let present: Vec<_> = stored.present().collect();
        if present.is_empty() { Vec::new() } else { write(&present) }
    }

    /// Reads a column. Values beyond the 1,000 greatest of a dimension are folded.
    pub fn from_chunks(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut counts = Self::default();
        let mut reader = Reader::new("dimensions", bytes);
        while !reader.is_at_end() {
            read(&mut reader, &mut counts)?;
        }
        counts.0.iter_mut().for_each(fold);
        Ok(counts)
    }
}

/// Returns where a value is, or where it belongs.
fn place(values: &ValueCounts, value: &str) -> Result<usize, usize> {
    values.binary_search_by(|(it, _)| (**it).cmp(value))
}

fn is_folded(values: &ValueCounts) -> bool {
    values.len() <= VALUES_MAX + usize::from(place(values, OTHER).is_ok())
}

/// Keeps the values with the greatest totals, ties by text, and adds the rest to [`OTHER`].
///
/// A negative total counts by its magnitude: it corrects visits that stand in another row, and
/// would be lost to the reader of both.
fn fold(values: &mut ValueCounts) {
    if is_folded(values) {
        return;
    }
    let mut other = place(values, OTHER).map_or_else(|_| ValueCount::default(), |at| values.remove(at).1);
    // Stable, so values with equal totals stay in the order of their texts.
    values.sort_by_key(|(_, count)| Reverse(count.total.unsigned_abs()));
    values.drain(VALUES_MAX..).for_each(|(_, count)| other += count);
    if other != ValueCount::default() {
        values.push((OTHER.into(), other));
    }
    values.sort_unstable_by(|(one, _), (another, _)| one.cmp(another));
}

fn write(present: &[(Dimension, &ValueCounts)]) -> Vec<u8> {
    let same = same_count(present);
    let is_one_each = present.iter().all(|(_, values)| values.len() == 1);
    let mut bytes = Vec::new();
    let flags = if same.is_some() { SAME_COUNTS } else { 0 } | if is_one_each { ONE_EACH } else { 0 };
    put_header(&mut bytes, FORMAT, flags);
    put_varint(&mut bytes, present.iter().map(|(dimension, _)| 1 << *dimension as usize).sum());
    if let Some(count) = same {
        put_count(&mut bytes, count);
    }
    let mut before = "";
    for (dimension, values) in present {
        if !is_one_each {
            put_varint(&mut bytes, values.len() as u64);
        }
        for (value, count) in *values {
            put_text(&mut bytes, *dimension, value, before);
            before = value;
            if same.is_none() {
                put_count(&mut bytes, *count);
            }
        }
    }
    bytes
}

fn same_count(present: &[(Dimension, &ValueCounts)]) -> Option<ValueCount> {
    let mut counts = present.iter().flat_map(|(_, values)| values.iter().map(|(_, count)| count));
    let first = counts.next()?;
    counts.all(|count| count == first).then_some(*first)
}

fn put_count(bytes: &mut Vec<u8>, count: ValueCount) {
    put_signed(bytes, count.total);
    put_signed(bytes, count.bots);
}

fn put_text(bytes: &mut Vec<u8>, dimension: Dimension, text: &str, before: &str) {
    if let Some(code) = dictionary::code(dimension, text) {
        bytes.push(code);
        return;
    }
    let pairs = text.bytes().zip(before.bytes()).take(SHARED_MAX);
    let shared = pairs.take_while(|(byte, before)| byte == before).count();
    let [shared_byte, rest_byte] =
        [shared, text.len() - shared].map(|len| u8::try_from(len).expect("a value has at most 64 bytes"));
    bytes.extend([SPELLED + shared_byte, rest_byte]);
    bytes.extend(&text.as_bytes()[shared..]);
}

fn read(reader: &mut Reader<'_>, counts: &mut DimensionCounts) -> Result<(), Damaged> {
    let (format, flags) = reader.header()?;
    if format != FORMAT || flags > SAME_COUNTS | ONE_EACH {
        return Err(reader.wrong("a header of 16 to 19 (format 1)", format << 4 | flags));
    }
    let present = reader.below(1 << Dimension::ALL.len(), "a set of known dimensions")?;
    let same = if flags & SAME_COUNTS == 0 { None } else { Some(count(reader)?) };
    let mut text = Vec::with_capacity(VALUE_BYTES_MAX);
    for dimension in Dimension::ALL.into_iter().filter(|dimension| present >> *dimension as usize & 1 == 1) {
        let number = if flags & ONE_EACH == 0 { reader.varint("a number of values")? } else { 1 };
        for _ in 0..number {
            read_text(reader, dimension, &mut text)?;
            let count = same.map_or_else(|| count(reader), Ok)?;
            counts.add(dimension, reader.text(&text)?, count);
        }
    }
    Ok(())
}

fn count(reader: &mut Reader<'_>) -> Result<ValueCount, Damaged> {
    let total = reader.signed("a number of visits")?;
    Ok(ValueCount { total, bots: reader.signed("a number of visits by bots")? })
}

/// Reads a text in place of the one before.
fn read_text(reader: &mut Reader<'_>, dimension: Dimension, text: &mut Vec<u8>) -> Result<(), Damaged> {
    let first = reader.byte("a value")?;
    let shared = if let Some(shared) = first.checked_sub(SPELLED) {
        usize::from(shared)
    } else {
        let known = dictionary::text(dimension, first)
            .ok_or_else(|| reader.wrong("a code of the dimension's dictionary", first))?;
        text.clear();
        text.extend(known.as_bytes());
        return Ok(());
    };
    if shared > text.len() {
        return Err(reader.wrong("no more bytes than the value before has", first - SPELLED));
    }
    let rest = reader.below(VALUE_BYTES_MAX - shared + 1, "a value of at most 64 bytes")?;
    text.truncate(shared);
    text.extend(reader.take(rest, "the bytes of a value")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(total: i64) -> ValueCount {
        ValueCount { total, bots: total / 2 }
    }

    /// Returns the values from the greatest total down; [`OTHER`] is the last.
    fn ranked(counts: &DimensionCounts, dimension: Dimension) -> Vec<(&str, ValueCount)> {
        let mut ranked: Vec<_> = counts.values(dimension).collect();
        ranked.sort_by_key(|(value, count)| (*value == OTHER, Reverse(count.total)));
        ranked
    }

    #[test]
    fn the_greatest_values_stay_and_the_others_add_up() {
        let mut counts = DimensionCounts::default();
        for number in 0..3_000_i64 {
            counts.add(Dimension::City, &format!("{number:04}"), count(number + 1));
        }
        counts.add(Dimension::City, "gone", count(-5_000));
        let sum = counts.sum(Dimension::City);
        counts.0.iter_mut().for_each(fold);
        assert_eq!(counts.sum(Dimension::City), sum);
        let ranked = ranked(&counts, Dimension::City);
        assert_eq!(ranked.len(), VALUES_MAX + 1);
        assert_eq!(ranked[0], ("2999", count(3_000)));
        // The value with a negative total is the thousandth.
        assert_eq!(ranked[VALUES_MAX - 2], ("2001", count(2_002)));
        assert_eq!(ranked[VALUES_MAX - 1], ("gone", count(-5_000)));
        assert_eq!(ranked[VALUES_MAX].0, OTHER);
    }

    #[test]
    fn of_equal_values_the_first_by_text_stay() {
        let mut counts = DimensionCounts::default();
        for number in (0..=VALUES_MAX).rev() {
            counts.add(Dimension::Rule, &format!("{number:04}"), count(2));
        }
        counts.0.iter_mut().for_each(fold);
        let values: Vec<_> = counts.values(Dimension::Rule).map(|(value, _)| value.to_owned()).collect();
        assert_eq!(values.len(), VALUES_MAX + 1);
        assert_eq!((&*values[0], &*values[1], &*values[VALUES_MAX]), (OTHER, "0000", "0999"));
        let folded = counts.clone();
        counts.0.iter_mut().for_each(fold);
        assert_eq!(counts, folded);
    }

    #[test]
    fn memory_is_bounded_while_values_are_added() {
        let mut counts = DimensionCounts::default();
        for number in 0..20_000_i64 {
            counts.add(Dimension::Referrer, &format!("{number}.example"), count(2));
            assert!(counts.values(Dimension::Referrer).len() <= VALUES_HELD);
        }
        assert_eq!(counts.sum(Dimension::Referrer), ValueCount { total: 40_000, bots: 20_000 });
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let mut counts = DimensionCounts::default();
        counts.add(Dimension::City, &format!("{}é", "a".repeat(63)), count(2));
        counts.add(Dimension::City, &"b".repeat(65), count(2));
        let values: Vec<_> = counts.values(Dimension::City).map(|(value, _)| value).collect();
        assert_eq!(values, [&"a".repeat(63), &"b".repeat(64)]);
    }

    #[test]
    fn a_value_without_visits_is_not_kept() {
        let mut counts = DimensionCounts::default();
        counts.add(Dimension::Os, "", count(0));
        counts.add(Dimension::Os, "iOS", count(4));
        counts.add(Dimension::Os, "iOS", count(-4));
        assert_eq!(counts, DimensionCounts::default());
    }

    fn one_visit(values: [&str; Dimension::ALL.len()], is_bot: bool) -> DimensionCounts {
        let mut counts = DimensionCounts::default();
        for (dimension, value) in Dimension::ALL.into_iter().zip(values) {
            counts.add(dimension, value, ValueCount::one(is_bot));
        }
        counts
    }

    #[test]
    fn a_single_visit_is_short() {
        let typical = Dimension::ALL.map(|dimension| match dimension {
            Dimension::Referrer => "www.google.com",
            Dimension::Browser => "Chrome Mobile",
            Dimension::Os => "Android",
            Dimension::Device => "mobile",
            Dimension::Country => "US",
            Dimension::Region => "US/California",
            Dimension::City => "US/California/San Francisco",
            Dimension::Language => "en-US",
            Dimension::Outcome => "redirected",
            Dimension::Rule => "",
        });
        let rare = Dimension::ALL.map(|dimension| match dimension {
            Dimension::Referrer => "news.example.org",
            Dimension::Browser => "Quite Rare Browser",
            Dimension::Os => "Plan 9",
            Dimension::Language => "tlh",
            known => typical[known as usize],
        });
        for (values, len) in [([""; Dimension::ALL.len()], 15), (typical, 42), (rare, 89)] {
            for is_bot in [false, true] {
                let counts = one_visit(values, is_bot);
                assert_eq!(counts.chunk().len(), len, "{values:?}");
                assert_eq!(DimensionCounts::from_chunks(&counts.chunk()).unwrap(), counts);
            }
        }
    }

    #[test]
    fn texts_share_at_most_63_bytes_and_may_end_within_a_character() {
        let mut counts = DimensionCounts::default();
        let long = "a".repeat(VALUE_BYTES_MAX);
        for (dimension, value) in [
            (Dimension::Browser, &*long),
            (Dimension::Os, &long),
            (Dimension::City, "FR/\u{e8}"),
            (Dimension::City, "FR/\u{e9}"),
        ] {
            counts.add(dimension, value, ValueCount { total: -3, bots: 7 });
        }
        assert_eq!(DimensionCounts::from_chunks(&counts.chunk()).unwrap(), counts);
    }

    #[test]
    fn a_hostile_column_stays_within_memory_and_keeps_its_sum() {
        let mut column = Vec::new();
        let mut sum = ValueCount::default();
        for number in 0..5 * VALUES_HELD {
            let mut counts = DimensionCounts::default();
            let count = ValueCount { total: 1 + i64::from(number < 10), bots: 1 };
            counts.add(Dimension::Referrer, &number.to_string(), count);
            sum += count;
            column.extend(counts.chunk());
        }
        let counts = DimensionCounts::from_chunks(&column).unwrap();
        assert_eq!(counts.values(Dimension::Referrer).len(), VALUES_MAX + 1);
        assert_eq!(counts.sum(Dimension::Referrer), sum);
        let greatest = counts.values(Dimension::Referrer).filter(|(_, count)| count.total == 2);
        assert!(greatest.map(|(value, _)| value).eq((0..10).map(|number| number.to_string())));
        assert!(counts.values(Dimension::Referrer).any(|(value, _)| value == OTHER));
        assert_eq!(DimensionCounts::from_chunks(&counts.chunk()).unwrap(), counts);
    }

    #[test]
    fn damage_is_refused() {
        let spelled = |shared: u8, rest: u8, bytes: &[u8]| {
            [&[0x13, 0b10, 2, 0, SPELLED + shared, rest][..], bytes].concat()
        };
        assert!(DimensionCounts::from_chunks(&spelled(0, 1, b"x")).is_ok());
        let full = [&[0x13, 0b11, 2, 0, SPELLED, 64][..], &[b'x'; 64]].concat();
        let too_long = [&full[..], &[SPELLED + 63, 2, b'y', b'y']].concat();
        assert!(DimensionCounts::from_chunks(&[&full[..], &[SPELLED + 63, 1, b'y']].concat()).is_ok());
        for bytes in [
            vec![0x23, 0b10, 2, 0, 0],
            vec![0x14, 0b10, 2, 0, 0],
            vec![0x13, 0x80, 0x08, 2, 0, 0],
            vec![0x13, 0b10, 2, 0, SPELLED - 1],
            vec![0x10, 0b10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0],
            spelled(1, 1, b"x"),
            too_long,
            spelled(0, 65, &[b'x'; 65]),
            spelled(0, 2, b"x"),
            spelled(0, 1, b"\xff"),
        ] {
            DimensionCounts::from_chunks(&bytes).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn any_counts_come_back(
            entries in prop::collection::vec((0..10_usize, "\\PC{0,70}", any::<i64>(), any::<i64>()), 0..60),
            negated in any::<bool>(),
        ) {
            let mut counts = DimensionCounts::default();
            for (dimension, value, total, bots) in &entries {
                counts.add(Dimension::ALL[*dimension], value, ValueCount { total: *total, bots: *bots });
            }
            if negated {
                counts = counts.negated();
            }
            prop_assert_eq!(DimensionCounts::from_chunks(&counts.chunk()).unwrap(), counts);
        }
    }
}
