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

use std::{cmp::Reverse, collections::BTreeMap, mem, ops::AddAssign};

use super::dimension::Dimension;

/// The value under which the visits of folded values count.
pub const OTHER: &str = "(other)";
/// Maximum number of values of a dimension that are stored, besides [`OTHER`].
pub const VALUES_MAX: usize = 1_000;
/// Maximum number of values of a dimension in memory. Once there are more, they are folded.
pub const VALUES_HELD: usize = 4_000;
/// Maximum length of a value, in bytes. Longer ones are cut.
pub const VALUE_BYTES_MAX: usize = 64;

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

pub(super) type ValueCounts = BTreeMap<Box<str>, ValueCount>;

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
        if let Some(sum) = values.get_mut(value) {
            *sum += count;
            if *sum == ValueCount::default() {
                values.remove(value);
            }
        } else {
            values.insert(value.into(), count);
            if values.len() > VALUES_HELD {
                fold(values);
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
        for count in negated.0.iter_mut().flat_map(BTreeMap::values_mut) {
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

    pub(super) fn present(&self) -> impl Iterator<Item = (Dimension, &ValueCounts)> {
        Dimension::ALL.into_iter().zip(&self.0).filter(|(_, values)| !values.is_empty())
    }

    /// Folds every dimension to the values that are stored.
    pub(super) fn fold(&mut self) {
        self.0.iter_mut().for_each(fold);
    }

    /// Returns whether no dimension has more values than are stored.
    pub(super) fn is_folded(&self) -> bool {
        self.0.iter().all(is_folded)
    }
}

fn is_folded(values: &ValueCounts) -> bool {
    values.len() <= VALUES_MAX + usize::from(values.contains_key(OTHER))
}

/// Keeps the values with the greatest totals, ties by text, and adds the rest to [`OTHER`].
///
/// A negative total counts by its magnitude: it corrects visits that stand in another row, and
/// would be lost to the reader of both.
fn fold(values: &mut ValueCounts) {
    if is_folded(values) {
        return;
    }
    let mut other = values.remove(OTHER).unwrap_or_default();
    let mut ranked: Vec<_> = mem::take(values).into_iter().collect();
    // Stable, so values with equal totals stay in the order of their texts.
    ranked.sort_by_key(|(_, count)| Reverse(count.total.unsigned_abs()));
    ranked.drain(VALUES_MAX..).for_each(|(_, count)| other += count);
    values.extend(ranked);
    if other != ValueCount::default() {
        values.insert(OTHER.into(), other);
    }
}

#[cfg(test)]
mod tests {
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
        counts.fold();
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
        counts.fold();
        let values: Vec<_> = counts.values(Dimension::Rule).map(|(value, _)| value.to_owned()).collect();
        assert_eq!(values.len(), VALUES_MAX + 1);
        assert_eq!((&*values[0], &*values[1], &*values[VALUES_MAX]), (OTHER, "0000", "0999"));
        let folded = counts.clone();
        counts.fold();
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
}
