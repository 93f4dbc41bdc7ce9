//! Parts of a day that reads look at, for subjects whose rows no index has in order.
//!
//! A read of the latest rows before an id would sort all rows of the day. The counts by quarter
//! hour tell how far back enough rows are; within a quarter hour of very many, a guess by their
//! density does, and one that finds too few is doubled.

use std::{collections::BTreeMap, ops::Range};

use visits::{QUARTER, Subject, TimeRange, VisitId};

/// Number of rows of a quarter hour from which on a read looks at a part of it.
const DENSE: u64 = 16_384;
/// In microseconds.
const SHORTEST: i64 = 10_000;

#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Listed visits by quarter hour, without those that have none.
    quarters: BTreeMap<i64, u64>,
    /// Where the first window begins, if that is known.
    pub(super) first: Option<VisitId>,
    /// The last part of a quarter hour of very many rows: the quarter, and its length in
    /// microseconds.
    guess: Option<(i64, i64)>,
}

impl Windows {
    /// Returns windows for a subject; `None` if an index has its rows in order.
    pub(super) fn of(subject: Subject) -> Option<Self> {
        matches!(subject, Subject::All(_) | Subject::Tag(..)).then(Self::default)
    }

    /// Notes that a quarter hour has so many visits.
    pub(super) fn add(&mut self, quarter: i64, listed: u64) {
        if listed > 0 {
            self.quarters.insert(quarter, listed);
        }
    }

    /// Returns the next window of a range of a day: its end is that of the latest visits before the
    /// end of the range, and it has about `most` rows if the day does. A window with fewer is
    /// followed by the one before it.
    pub(super) fn next(&mut self, range: Range<VisitId>, most: usize) -> Range<VisitId> {
        if let Some(first) = self.first.take() {
            return first.max(range.start)..range.end;
        }
        if range.is_empty() {
            return range.start..range.start;
        }
        let mut found = 0;
        let (mut window, most) = (range.start..range.end, most as u64);
        // Ids before the range's start are of another read.
        let earliest = range.start.micros() - QUARTER + 1;
        let latest = range.end.micros();
        for (quarter, listed) in self.quarters.range(earliest..=latest).rev() {
            let ids = TimeRange::of_quarter(*quarter).ids();
            if ids.start >= range.end || ids.end <= range.start {
                continue;
            }
            if *listed > DENSE {
                if found == 0 {
                    let end = ids.end.min(range.end);
                    return self.part(*quarter, *listed, most, end).max(range.start)..end;
                }
                break;
            }
            if found == 0 {
                window.end = ids.end.min(range.end);
            }
            window.start = ids.start.max(range.start);
            found += listed;
            if found >= most {
                return window;
            }
        }
        if found == 0 { range.start..range.start } else { window }
    }

    /// Returns where the last part of a quarter hour before `end` begins.
    fn part(&mut self, quarter: i64, listed: u64, most: u64, end: VisitId) -> VisitId {
        let dense =
            i64::try_from(most.saturating_mul(QUARTER.unsigned_abs()) / listed.max(1)).unwrap_or(QUARTER);
        let length = match self.guess {
            Some((of, length)) if of == quarter => length.saturating_mul(2),
            _ => dense.saturating_mul(2),
        };
        let length = length.clamp(SHORTEST, QUARTER);
        self.guess = Some((quarter, length));
        VisitId::floor((end.micros() - length).max(quarter))
    }

    /// Notes that the last window had enough rows, so that its length is kept.
    pub(super) fn found_enough(&mut self) {
        if let Some((_, length)) = &mut self.guess {
            *length /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use visits::DAY;

    use super::*;
    use crate::visits::visit_memory::START;

    fn windows(quarters: &[(i64, u64)]) -> Windows {
        let mut windows = Windows::default();
        quarters.iter().for_each(|(number, listed)| windows.add(START + number * QUARTER, *listed));
        windows
    }

    fn day() -> Range<VisitId> {
        VisitId::floor(START)..VisitId::floor(START + DAY)
    }

    fn quarters(window: &Range<VisitId>) -> (i64, i64) {
        let number = |id: VisitId| (id.micros() - START) / QUARTER;
        (number(window.start), number(window.end))
    }

    #[test]
    fn a_window_has_the_latest_quarter_hours_with_enough_rows() {
        let mut windows = windows(&[(3, 500), (10, 80), (11, 90), (40, 10)]);
        assert_eq!(quarters(&windows.next(day(), 5)), (40, 41));
        assert_eq!(quarters(&windows.next(day(), 100)), (11, 41));
        assert_eq!(quarters(&windows.next(day(), 1_000)), (3, 41));
        let before = VisitId::floor(START + 11 * QUARTER + QUARTER / 2);
        let window = windows.next(day().start..before, 20);
        assert_eq!((quarters(&window).0, window.end), (11, before));
        let nothing = windows.next(day().start..VisitId::floor(START + 3 * QUARTER), 20);
        assert!(nothing.is_empty() && nothing.start == day().start, "the day is done");
        // All rows of the range were read.
        let inverted = day().end..day().start;
        assert!(windows.next(inverted, 20).is_empty());
    }

    #[test]
    fn a_part_of_a_quarter_hour_of_very_many_doubles_until_it_has_enough_rows() {
        let mut windows = windows(&[(4, 1_000_000), (5, 3)]);
        assert_eq!(quarters(&windows.next(day(), 100)), (5, 6), "the dense one has a window of its own");
        let end = VisitId::floor(START + 5 * QUARTER);
        let mut length = |end| {
            let window = windows.next(day().start..end, 1_000);
            assert_eq!(window.end, end);
            window.end.micros() - window.start.micros()
        };
        let first = [length(end), length(end), length(end)];
        assert_eq!(first, [1, 2, 4].map(|times| times * 2 * QUARTER / 1_000));
        let lengths: Vec<i64> = (0..20).map(|_| length(end)).collect();
        assert_eq!(lengths.last(), Some(&QUARTER), "at most the whole one");
    }

    #[test]
    fn the_first_window_begins_where_it_was_told_to() {
        let mut windows = windows(&[(4, 10)]);
        let start = VisitId::floor(START + 2 * QUARTER);
        windows.first = Some(start);
        assert_eq!(windows.next(day(), 5).start, start);
        assert_eq!(quarters(&windows.next(day(), 5)), (4, 5));
    }
}
