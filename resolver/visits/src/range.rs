//! Ranges of time, in microseconds since 1970.

use std::ops::Range;

use crate::{Day, QUARTER, VisitId};

/// Visits from a time on, and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first microsecond, since 1970.
    pub from: i64,
    /// The microsecond after the last one.
    pub before: i64,
}

/// Days from the first one to before the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days {
    /// The first day.
    pub first: Day,
    /// The day after the last one.
    pub end: Day,
}

impl TimeRange {
    /// Returns the range of the quarter hour that begins at a time.
    pub fn of_quarter(start: i64) -> Self {
        Self { from: start, before: start.saturating_add(QUARTER) }
    }

    /// Returns whether the range contains no time.
    pub fn is_empty(self) -> bool {
        self.from >= self.before
    }

    /// Returns the length in microseconds; 0 for an empty range.
    pub fn len(self) -> i64 {
        self.before.saturating_sub(self.from).max(0)
    }

    /// Returns the part that lies in another range.
    pub fn within(self, other: Self) -> Self {
        Self { from: self.from.max(other.from), before: self.before.min(other.before) }
    }

    /// Returns whether a time lies in the range.
    pub fn contains(self, at: i64) -> bool {
        (self.from..self.before).contains(&at)
    }

    /// Extends the range to whole quarter hours, which counters are kept of.
    pub fn in_quarters(self) -> Self {
        let before = quarter_of(self.before.saturating_add(QUARTER - 1));
        Self { from: quarter_of(self.from), before }
    }

    /// Returns the UTC days that the range touches.
    pub fn days(self) -> Days {
        let (first, last) = (Day::of(self.from), Day::of(self.before.saturating_sub(1)));
        Days { first, end: if self.is_empty() { first } else { last.next() } }
    }

    /// Returns the ids that a visit of the range can have: the lowest, and the one after the
    /// highest.
    pub fn ids(self) -> Range<VisitId> {
        VisitId::floor(self.from)..VisitId::floor(self.before)
    }
}

pub(crate) fn quarter_of(at: i64) -> i64 {
    at.saturating_sub(at.rem_euclid(QUARTER))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DAY;

    #[test]
    fn ranges_are_cut_and_extended() {
        let range = TimeRange { from: 5, before: DAY + 1 };
        assert_eq!(range.days(), Days { first: Day::from_stored(0), end: Day::from_stored(2) });
        assert_eq!(TimeRange { before: DAY, ..range }.days().end, Day::from_stored(1));
        assert_eq!(range.in_quarters(), TimeRange { from: 0, before: DAY + QUARTER });
        assert_eq!(range.in_quarters().in_quarters(), range.in_quarters());
        let first = TimeRange { from: 0, before: DAY };
        assert_eq!(range.within(first), TimeRange { from: 5, before: DAY });
        assert!(range.contains(5) && range.contains(DAY) && !range.contains(DAY + 1));
        assert!(first.within(TimeRange::of_quarter(DAY)).is_empty());
        let none = TimeRange { from: 9, before: 3 }.days();
        assert_eq!(none.first, none.end);
        assert_eq!((TimeRange { from: 9, before: 3 }.len(), range.len()), (0, DAY - 4));
    }
}
