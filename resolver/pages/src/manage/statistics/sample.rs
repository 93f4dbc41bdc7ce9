//! Statistics for tests.

use app::visit_stats::{RangeCount, VisitCount, VisitStats};
use visits::{DAY, Day, TimeRange, series::Interval, tally::Estimate};

pub(super) const START: i64 = 1_764_028_800_000_000;

pub(super) fn counted(from: i64, totals: &[u64]) -> RangeCount {
    let days = i64::try_from(totals.len()).unwrap();
    let starts = (0..days).map(|day| from + day * DAY);
    let count = |total: &u64| VisitCount { total: *total, bots: 0 };
    RangeCount {
        range: TimeRange { from, before: from + days * DAY },
        visits: VisitCount { total: totals.iter().sum(), bots: 0 },
        points: starts.zip(totals.iter().map(count)).collect(),
    }
}

/// Returns statistics of days from [`START`] on, and of the nine days before.
pub(super) fn stats(current: &[u64], previous: Option<&[u64]>) -> VisitStats {
    let exact = Estimate { count: 0, is_exact: true };
    VisitStats {
        current: counted(START, current),
        interval: Interval::Day,
        days: (Day::of(START), Day::of(START)),
        dimensions: Vec::new(),
        visitors: exact,
        addresses: exact,
        previous: previous.map(|totals| counted(START - 9 * DAY, totals)),
    }
}
