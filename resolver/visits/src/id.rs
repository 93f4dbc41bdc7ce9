//! Ids of visits, and the days, quarter hours and ranges of time that they lie in.

use std::ops::Range;

use jiff::{Timestamp, civil::Date, tz::TimeZone};

/// 2020-01-01T00:00:00Z in microseconds since 1970, from which ids count.
const EPOCH: i64 = 1_577_836_800_000_000;
/// Bits of an id below its time.
const LOW_BITS: u32 = 13;
const THREAD_BITS: u32 = 6;
/// The latest time that an id can have, in microseconds since 2020: in the year 2055.
const LATEST: i64 = (1 << 50) - 1;

/// Microseconds in a day.
pub const DAY: i64 = 86_400_000_000;
/// Microseconds in a quarter hour.
pub const QUARTER: i64 = 900_000_000;

/// The slot of a producer, which stores the visits of one spool. At most 128 spools store at a
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u8);

impl Slot {
    /// Number of slots.
    pub const COUNT: u8 = 128;

    /// Returns the slot with a number, if there is one.
    pub fn new(number: u8) -> Option<Self> {
        (number < Self::COUNT).then_some(Self(number))
    }

    /// Returns the number.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// The thread that recorded a visit, below [`Thread::COUNT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread(u8);

impl Thread {
    /// Number of threads. Listener threads beyond them share buffers.
    pub const COUNT: u8 = 1 << THREAD_BITS;

    /// Returns the thread whose buffer a listener's thread uses.
    pub fn of(index: usize) -> Self {
        Self(u8::try_from(index % usize::from(Self::COUNT)).expect("a remainder of 64 fits into a byte"))
    }

    /// Returns the number.
    pub fn get(self) -> u8 {
        self.0
    }
}

codes::stored_number! {
    /// The id of a visit: its time, and below that its producer's slot and thread.
    ///
    /// Ids order visits by time, and serve as cursors. Those of a producer are unique, because the
    /// times of a thread strictly increase ([`Arena::push`](crate::Arena::push)), and a slot has
    /// one producer at a time. A backlog that its producer stores under another slot may repeat an
    /// id of that slot, of the same microsecond and thread.
    pub struct VisitId(i64);
}

impl VisitId {
    /// The greatest id.
    pub const MAX: Self = Self(i64::MAX);
    /// The bits of an id below its slot, for queries.
    pub const BELOW_SLOT: u32 = THREAD_BITS;

    /// Makes the id of a visit at a time in microseconds since 1970. Times before 2020 or after
    /// 2055 are cut to that range.
    pub fn new(at: i64, slot: Slot, thread: Thread) -> Self {
        Self(Self::floor(at).0 | i64::from(slot.0) << THREAD_BITS | i64::from(thread.0))
    }

    /// Returns the lowest id of a time in microseconds since 1970.
    pub fn floor(at: i64) -> Self {
        Self(at.saturating_sub(EPOCH).clamp(0, LATEST) << LOW_BITS)
    }

    /// Returns the time of the visit in microseconds since 1970.
    pub fn micros(self) -> i64 {
        (self.0 >> LOW_BITS) + EPOCH
    }

    /// Returns the time of the visit.
    pub fn at(self) -> Timestamp {
        Timestamp::from_microsecond(self.micros()).unwrap_or(Timestamp::MAX)
    }

    /// Returns the slot of the producer.
    pub fn slot(self) -> Slot {
        Slot(u8::try_from((self.0 >> THREAD_BITS) & 0x7f).expect("seven bits fit into a byte"))
    }

    /// Returns the thread that recorded the visit.
    pub fn thread(self) -> Thread {
        Thread(u8::try_from(self.0 & 0x3f).expect("six bits fit into a byte"))
    }
}

codes::stored_number! {
    /// A UTC day, counted from 1970-01-01.
    pub struct Day(i32);
}

impl Day {
    /// Returns the day of a time in microseconds since 1970.
    pub fn of(at: i64) -> Self {
        Self(i32::try_from(at.div_euclid(DAY)).unwrap_or(i32::MAX))
    }

    /// Returns the first microsecond of the day.
    pub fn start(self) -> i64 {
        i64::from(self.0) * DAY
    }

    /// Returns the next day.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Returns the day a number of days earlier.
    pub fn minus(self, days: i32) -> Self {
        Self(self.0.saturating_sub(days))
    }

    /// Returns the month of the day.
    pub fn month(self) -> Month {
        let start = Timestamp::from_microsecond(self.start()).unwrap_or(Timestamp::MAX);
        let date = TimeZone::UTC.to_datetime(start);
        Month(i32::from(date.year()) * 12 + i32::from(date.month()) - 1)
    }
}

codes::stored_number! {
    /// A calendar month: twelve times the year, plus 0 for January.
    pub struct Month(i32);
}

impl Month {
    /// Returns the first day of the month.
    pub fn first_day(self) -> Day {
        let year = i16::try_from(self.0.div_euclid(12)).unwrap_or(i16::MAX);
        let month = i8::try_from(self.0.rem_euclid(12) + 1).unwrap_or(1);
        let first = Date::new(year, month, 1).unwrap_or(Date::MAX).to_zoned(TimeZone::UTC);
        Day::of(first.map_or(i64::MAX, |first| first.timestamp().as_microsecond()))
    }

    /// Returns the next month.
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

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

impl Days {
    /// All days.
    pub const ALWAYS: Self = Self { first: Day(i32::MIN), end: Day(i32::MAX) };
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

    #[test]
    fn ids_are_ordered_by_time_and_give_back_their_parts() {
        let at: Timestamp = "2026-11-25T10:20:30.123456Z".parse().unwrap();
        let (slot, thread) = (Slot::new(127).unwrap(), Thread::of(63));
        let id = VisitId::new(at.as_microsecond(), slot, thread);
        assert_eq!((id.at(), id.slot(), id.thread()), (at, slot, thread));
        let next = VisitId::new(at.as_microsecond() + 1, Slot::new(0).unwrap(), Thread::of(64));
        assert!(VisitId::floor(at.as_microsecond()) < id && id < next);
        assert_eq!(next.thread().get(), 0);
        assert_eq!(VisitId::new(i64::MAX, slot, thread).at().to_string()[..4], *"2055");
        assert_eq!(VisitId::new(i64::MIN, slot, thread).at().to_string()[..4], *"2020");
        assert_eq!(Slot::new(128), None);
    }

    #[test]
    fn days_and_months_are_those_of_the_calendar() {
        let at: Timestamp = "2024-02-29T23:59:59.999999Z".parse().unwrap();
        let day = Day::of(at.as_microsecond());
        assert_eq!(day.start() + DAY - 1, at.as_microsecond());
        assert_eq!(day.month().get(), 2024 * 12 + 1);
        assert_eq!(day.next().month(), day.month().next());
        assert_eq!(day.month().next().first_day(), day.next());
        assert_eq!(Day::of(-1).get(), -1);
    }

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
