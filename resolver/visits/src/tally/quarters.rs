//! Visits by quarter hour of a UTC day: totals in every time zone, and pages at any depth.
//!
//! 1. Counts are signed: visits are deleted and links change their tags, and such a change is
//!    appended like any other.
//! 2. Sums wrap instead of overflowing, so that the order in which chunks are merged never matters.
//!    Only damaged bytes come near the limit.
//! 3. Quarter hours without visits are not stored.
//!
//! Each visit is in one of four classes, so a chunk of a single visit has a single number. A cell
//! is a quarter hour and a class; a chunk lists the cells that are not zero as (gap to the previous
//! cell, count).

use crate::{DAY, Day, QUARTER};

use super::chunk::{Damaged, Reader, put_counted_header, put_signed, put_varint};

/// The only format of chunks so far.
const FORMAT: u8 = 1;
/// Classes of visits: listed or not, by a person or by a bot.
const CLASSES: usize = 4;
const CELLS: usize = Quarter::COUNT as usize * CLASSES;

/// A quarter hour of a UTC day, counted from midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quarter(u8);

impl Quarter {
    /// Quarter hours of a day.
    pub const COUNT: u8 = 96;

    /// Returns the quarter hour of a time in microseconds since 1970.
    pub fn of(at: i64) -> Self {
        Self(u8::try_from(at.rem_euclid(DAY) / QUARTER).expect("a day has 96 quarter hours"))
    }

    /// Returns where it begins on a day, in microseconds since 1970.
    pub fn start(self, day: Day) -> i64 {
        day.start() + i64::from(self.0) * QUARTER
    }
}

/// How many visits there were, or a change of these numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All visits.
    pub total: i64,
    /// Visits by bots.
    pub bots: i64,
    /// Visits that are counted and have no row.
    pub unlisted: i64,
    /// Visits by bots among those without a row.
    pub unlisted_bots: i64,
}

impl Counts {
    fn add(&mut self, class: usize, count: i64) {
        let when = |is_in: bool| if is_in { count } else { 0 };
        self.total = self.total.wrapping_add(count);
        self.bots = self.bots.wrapping_add(when(class == 1 || class == 3));
        self.unlisted = self.unlisted.wrapping_add(when(class >= 2));
        self.unlisted_bots = self.unlisted_bots.wrapping_add(when(class == 3));
    }
}

fn cell(quarter: Quarter, is_bot: bool, is_listed: bool) -> usize {
    usize::from(quarter.0) * CLASSES + usize::from(is_bot) + 2 * usize::from(!is_listed)
}

/// Visits of a day by quarter hour: the cells that are not zero, in their order, as in a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuarterCounts(Vec<(usize, i64)>);

impl QuarterCounts {
    /// Counts a visit.
    pub fn add(&mut self, quarter: Quarter, is_bot: bool, is_listed: bool) {
        self.add_to(cell(quarter, is_bot, is_listed), 1);
    }

    /// Moves a visit from the listed ones to the others.
    pub fn unlist(&mut self, quarter: Quarter, is_bot: bool) {
        self.add_to(cell(quarter, is_bot, true), -1);
        self.add_to(cell(quarter, is_bot, false), 1);
    }

    fn add_to(&mut self, cell: usize, count: i64) {
        let place = match self.0.last() {
            Some((last, _)) if *last >= cell => self.0.binary_search_by_key(&cell, |(cell, _)| *cell),
            _ => Err(self.0.len()),
        };
        match place {
            Err(place) if count != 0 => self.0.insert(place, (cell, count)),
            Err(_) => {}
            Ok(place) => {
                let sum = &mut self.0[place].1;
                *sum = sum.wrapping_add(count);
                if *sum == 0 {
                    self.0.remove(place);
                }
            }
        }
    }

    /// Returns what takes these visits away.
    pub(super) fn negated(&self) -> Self {
        Self(self.0.iter().map(|(cell, count)| (*cell, count.wrapping_neg())).collect())
    }

    /// Returns the visits of the day.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.0.iter().for_each(|(cell, count)| total.add(cell % CLASSES, *count));
        total
    }

    /// Returns the quarter hours that have visits, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Quarter, Counts)> {
        let of_one_quarter = self.0.chunk_by(|(one, _), (next, _)| one / CLASSES == next / CLASSES);
        of_one_quarter.map(|cells| {
            let quarter = u8::try_from(cells[0].0 / CLASSES).expect("a cell is below 384");
            let mut counts = Counts::default();
            cells.iter().for_each(|(cell, count)| counts.add(cell % CLASSES, *count));
            (Quarter(quarter), counts)
        })
    }

    /// Returns a chunk with all of it; empty if there are no visits.
    pub fn chunk(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.0.is_empty() {
            return bytes;
        }
        put_counted_header(&mut bytes, FORMAT, self.0.len());
        let mut next = 0;
        for (cell, count) in &self.0 {
            put_varint(&mut bytes, (cell - next) as u64);
            put_signed(&mut bytes, *count);
            next = cell + 1;
        }
        bytes
    }

    /// Reads a column.
    pub fn from_chunks(bytes: &[u8]) -> Result<Self, Damaged> {
        let mut counts = Self::default();
        let mut reader = Reader::new("quarters", bytes);
        while !reader.is_at_end() {
            counts.merge_chunk(&mut reader)?;
        }
        Ok(counts)
    }

    fn merge_chunk(&mut self, reader: &mut Reader<'_>) -> Result<(), Damaged> {
        let (format, argument) = reader.header()?;
        if format != FORMAT {
            return Err(reader.wrong("a chunk of format 1", format));
        }
        let mut next = 0;
        for _ in 0..reader.announced(argument)? {
            let cell = next + reader.below(CELLS - next, "a later quarter hour of the day")?;
            next = cell + 1;
            self.add_to(cell, reader.signed("a number of visits")?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn changes() -> impl Strategy<Value = Vec<(usize, i64)>> {
        prop::collection::vec((0..CELLS, any::<i64>()), 0..400)
    }

    fn counts_of(changes: &[(usize, i64)]) -> QuarterCounts {
        let mut counts = QuarterCounts::default();
        changes.iter().for_each(|(cell, count)| counts.add_to(*cell, *count));
        counts
    }

    proptest! {
        #[test]
        fn any_counts_come_back_from_one_chunk_and_from_many(one in changes(), other in changes()) {
            let both = counts_of(&[&one[..], &other].concat());
            let (one, other) = (counts_of(&one), counts_of(&other));
            prop_assert_eq!(&QuarterCounts::from_chunks(&one.chunk()).unwrap(), &one);
            let column = [one.chunk(), other.chunk()].concat();
            prop_assert_eq!(QuarterCounts::from_chunks(&column).unwrap(), both);
        }

        #[test]
        fn nothing_is_left_when_all_is_subtracted(changes in changes()) {
            let counts = counts_of(&changes);
            let column = [counts.chunk(), counts.negated().chunk()].concat();
            let none = QuarterCounts::from_chunks(&column).unwrap();
            prop_assert_eq!(none.chunk(), Vec::<u8>::new());
            prop_assert_eq!(none, QuarterCounts::default());
        }
    }

    #[test]
    fn a_visit_takes_four_bytes_at_most() {
        for quarter in 0..Quarter::COUNT {
            for (is_bot, is_listed) in [(false, false), (false, true), (true, false), (true, true)] {
                let mut counts = QuarterCounts::default();
                counts.add(Quarter(quarter), is_bot, is_listed);
                assert!(counts.chunk().len() <= 4, "{counts:?}");
                let (bots, unlisted) = (i64::from(is_bot), i64::from(!is_listed));
                let one = Counts { total: 1, bots, unlisted, unlisted_bots: bots * unlisted };
                assert!(counts.iter().eq([(Quarter(quarter), one)]), "{counts:?}");
                assert_eq!(QuarterCounts::from_chunks(&counts.chunk()).unwrap(), counts);
            }
        }
    }

    #[test]
    fn a_quarter_hour_is_that_of_its_day() {
        for (at, number) in [(0, 0), (DAY + QUARTER - 1, 0), (DAY - 1, 95), (-1, 95)] {
            assert_eq!(Quarter::of(at), Quarter(number));
        }
        assert_eq!(Quarter(95).start(Day::from_stored(1)), 2 * DAY - QUARTER);
    }

    #[test]
    fn quarters_are_in_their_order_and_add_up() {
        let counts = counts_of(&[(4 * 95 + 3, 3), (3, 1), (4 * 40 + 3, 2)]);
        assert!(counts.iter().map(|(quarter, _)| quarter.0).eq([0, 40, 95]));
        assert_eq!(counts.total(), Counts { total: 6, bots: 6, unlisted: 6, unlisted_bots: 6 });
    }

    #[test]
    fn cells_past_the_end_of_the_day_and_unknown_formats_are_refused() {
        for bytes in [&[0x11, 0x80, 0x03, 2][..], &[0x12, 0xff, 0x02, 2, 0, 2], &[0x21, 0, 2], &[0x11, 0]] {
            QuarterCounts::from_chunks(bytes).unwrap_err();
        }
    }
}
