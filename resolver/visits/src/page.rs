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
pub fn listed(counts: Counts, people_only: bool) -> u64 {
    let all = counts.total.saturating_sub(counts.unlisted);
    let bots = if people_only { counts.bots.saturating_sub(counts.unlisted_bots) } else { 0 };
    u64::try_from(all.saturating_sub(bots)).unwrap_or(0)
}

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageStart {
    /// The start of the quarter hour in microseconds since 1970.
    pub quarter: i64,
    /// Rows of the quarter hour to skip, from the latest on.
    pub skip: u64,
}

/// Adds up the listed visits of quarter hours, which come the latest first, and finds where the
/// page begins that skips so many. It begins nowhere if it lies behind the last one.
pub fn find_page(skip: u64, quarters: impl IntoIterator<Item = (i64, u64)>) -> (u64, Option<PageStart>) {
    let (mut total, mut start) = (0_u64, None);
    for (quarter, listed) in quarters {
        let before = total;
        total = total.saturating_add(listed);
        if start.is_none() && skip < total {
            start = Some(PageStart { quarter, skip: skip - before });
        }
    }
    (total, start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_counted_and_a_page_behind_the_last_begins_nowhere() {
        let quarters = [(30, 3), (20, 0), (10, 2), (0, 4)];
        assert_eq!(find_page(5, quarters[..3].iter().copied()), (5, None));
        assert_eq!(find_page(5, quarters), (9, Some(PageStart { quarter: 0, skip: 0 })));
        assert_eq!(find_page(4, quarters), (9, Some(PageStart { quarter: 10, skip: 1 })));
    }

    #[test]
    fn visits_without_rows_are_on_no_page() {
        let counts = Counts { total: 10, bots: 4, unlisted: 3, unlisted_bots: 1 };
        assert_eq!((listed(counts, false), listed(counts, true)), (7, 4));
        let damaged = Counts { total: i64::MIN, bots: i64::MAX, unlisted: i64::MAX, unlisted_bots: 0 };
        assert_eq!((listed(damaged, false), listed(damaged, true)), (0, 0));
    }
}
