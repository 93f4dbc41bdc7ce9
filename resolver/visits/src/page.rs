//! Pages of visits by number: where a page begins, from counters alone.
//!
//! 1. Quarter hours are given the latest first, as a list shows its visits.
//! 2. Only visits with rows are on pages ([`listed`]). Of a quarter hour that a bound of the list
//!    cuts, the caller counts the rows.
//! 3. The quarter hour that holds the beginning of a page is found without reading a row. What is
//!    left to skip are rows of that quarter hour.
//!
//! Rejected: cursors alone, because clients of Shlink ask for pages by number, several at a time.
//! Rejected: OFFSET from the beginning of the list, which reads every row before the page.

use crate::tally::Counts;

/// Returns how many visits of a quarter hour have rows: all of them, or those of people.
#[must_use]
pub fn listed(counts: Counts, people_only: bool) -> u64 {
    let all = counts.total.saturating_sub(counts.unlisted);
    let bots = if people_only { counts.bots.saturating_sub(counts.unlisted_bots) } else { 0 };
    u64::try_from(all.saturating_sub(bots)).unwrap_or(0)
}

/// A page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number, from 1.
    pub number: u64,
    /// Visits on a page, at least 1.
    pub size: u64,
}

impl Page {
    /// Returns the number of visits before the page.
    #[must_use]
    pub fn skip(self) -> u64 {
        self.number.saturating_sub(1).saturating_mul(self.size)
    }

    /// Returns the number of pages of a list. An empty list has one.
    #[must_use]
    pub fn count(self, total: u64) -> u64 {
        total.div_ceil(self.size.max(1)).max(1)
    }
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageStart {
    /// The start of the quarter hour in microseconds since 1970.
    pub quarter: i64,
    /// Rows of the quarter hour to skip, from the latest on.
    pub skip: u64,
    /// Rows of the quarter hour within the list.
    pub listed: u64,
}

/// Finds where a page begins.
#[derive(Clone, Copy, Debug)]
pub struct PageFinder {
    skip: u64,
    total: u64,
    start: Option<PageStart>,
}

impl PageFinder {
    /// Looks for the page that begins after so many visits.
    #[must_use]
    pub fn new(skip: u64) -> Self {
        Self { skip, total: 0, start: None }
    }

    /// Adds a quarter hour with its number of listed visits. It must be earlier than those before.
    pub fn add(&mut self, quarter: i64, listed: u64) {
        let before = self.total;
        self.total = self.total.saturating_add(listed);
        if self.start.is_none() && self.skip < self.total {
            self.start = Some(PageStart { quarter, skip: self.skip - before, listed });
        }
    }

    /// Returns the number of visits on all pages.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns where the page begins; `None` if it lies behind the last one.
    #[must_use]
    pub fn start(&self) -> Option<PageStart> {
        self.start
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{Day, QUARTER, TimeRange};

    /// A visit of the simulated store: its time, whether a bot made it, and whether it has a row.
    type Visit = (i64, bool, bool);

    /// The rows that a list shows, the latest first.
    fn rows(visits: &[Visit], range: TimeRange, people_only: bool) -> Vec<i64> {
        let is_shown =
            |(at, is_bot, is_listed): &&Visit| *is_listed && range.contains(*at) && !(people_only && *is_bot);
        let mut rows: Vec<i64> = visits.iter().filter(is_shown).map(|visit| visit.0).collect();
        rows.sort_unstable_by(|one, other| other.cmp(one));
        rows
    }

    /// The counters of the simulated store.
    fn counters(visits: &[Visit]) -> BTreeMap<i64, Counts> {
        let mut counters: BTreeMap<i64, Counts> = BTreeMap::new();
        for (at, is_bot, is_listed) in visits {
            let quarter = at.div_euclid(QUARTER) * QUARTER;
            *counters.entry(quarter).or_default() += Counts::one(*is_bot, *is_listed);
        }
        counters
    }

    /// Reads a page as a use case does: the counters first, then the rows of one day after another.
    fn read_page(visits: &[Visit], range: TimeRange, people_only: bool, page: Page) -> (u64, Vec<i64>) {
        let mut finder = PageFinder::new(page.skip());
        for (quarter, counts) in counters(visits).into_iter().rev() {
            let whole = TimeRange::of_quarter(quarter);
            let part = whole.within(range);
            let count = if part == whole {
                listed(counts, people_only)
            } else {
                rows(visits, part, people_only).len() as u64
            };
            finder.add(quarter, count);
        }
        let mut read = Vec::new();
        let size = usize::try_from(page.size).unwrap();
        if let Some(start) = finder.start() {
            let mut skip = usize::try_from(start.skip).unwrap();
            let mut before = range.before.min(start.quarter + QUARTER);
            while read.len() < size && before > range.from {
                let day = TimeRange::of_day(Day::of(before - 1));
                let of_day = rows(visits, TimeRange { before, ..day }.within(range), people_only);
                read.extend(of_day.into_iter().skip(std::mem::take(&mut skip)).take(size - read.len()));
                before = day.from;
            }
        }
        (finder.total(), read)
    }

    fn visits() -> impl Strategy<Value = Vec<Visit>> {
        // Many share a quarter hour, and some days have none.
        let at = (0..4_i64, 0..4_i64, 0..QUARTER)
            .prop_map(|(day, quarter, at)| day * 2 * crate::DAY + quarter * QUARTER + at);
        prop::collection::vec((at, any::<bool>(), prop::bool::weighted(0.8)), 0..120)
    }

    proptest! {
        #[test]
        fn every_page_of_every_size_is_a_slice_of_the_sorted_list(
            visits in visits(), people_only in any::<bool>(), size in 1_u64..40,
            from in prop::option::of(0..7 * crate::DAY), before in prop::option::of(0..7 * crate::DAY),
        ) {
            let range = TimeRange { from: from.unwrap_or(0), before: before.unwrap_or(8 * crate::DAY) };
            let sorted = rows(&visits, range, people_only);
            for number in 1..=sorted.len() as u64 / size + 2 {
                let page = Page { number, size };
                let (total, read) = read_page(&visits, range, people_only, page);
                let first = usize::try_from(page.skip()).unwrap().min(sorted.len());
                let end = (first + usize::try_from(size).unwrap()).min(sorted.len());
                prop_assert_eq!(total, sorted.len() as u64);
                prop_assert_eq!(&read[..], &sorted[first..end]);
            }
        }
    }

    #[test]
    fn pages_are_counted_and_those_behind_the_last_begin_nowhere() {
        let page = |number, size| Page { number, size };
        assert_eq!((page(1, 10).count(0), page(1, 10).count(10), page(1, 10).count(11)), (1, 1, 2));
        assert_eq!((page(3, 10).skip(), page(u64::MAX, 3).skip()), (20, u64::MAX));
        let mut finder = PageFinder::new(5);
        [(30, 3), (20, 0), (10, 2)].into_iter().for_each(|(quarter, count)| finder.add(quarter, count));
        assert_eq!((finder.total(), finder.start()), (5, None));
        finder.add(0, 4);
        assert_eq!(finder.start(), Some(PageStart { quarter: 0, skip: 0, listed: 4 }));
    }

    #[test]
    fn visits_without_rows_are_on_no_page() {
        let counts = Counts { total: 10, bots: 4, unlisted: 3, unlisted_bots: 1 };
        assert_eq!((listed(counts, false), listed(counts, true)), (7, 4));
        let damaged = Counts { total: i64::MIN, bots: i64::MAX, unlisted: i64::MAX, unlisted_bots: 0 };
        assert_eq!((listed(damaged, false), listed(damaged, true)), (0, 0));
    }
}
