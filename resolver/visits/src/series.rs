//! Series of counts over time, in any time zone.
//!
//! 1. Points begin where an interval begins on the clocks of the zone: a day has 23 or 25 hours
//!    when they change, and a week begins on Monday.
//! 2. The first and the last point count what lies in the range only.
//! 3. A series has at most [`POINTS_MAX`] points.
//!
//! Counts come by quarter hour of UTC. All time zones in use differ from UTC by whole quarter
//! hours, so that each quarter hour belongs to one point.

use jiff::{Timestamp, ToSpan as _, Zoned, civil::Date, tz::TimeZone};

use crate::{DAY, QUARTER, TimeRange, id::quarter_of};

/// Maximum number of points of a series.
pub const POINTS_MAX: usize = 10_000;

codes::named_values! {
    /// The distance between the points of a series, the shortest first, with its name in requests
    /// and answers.
    pub enum Interval {
        /// A quarter hour.
        QuarterHour => "15min",
        /// An hour.
        Hour => "hour",
        /// A calendar day.
        Day => "day",
        /// A week, from Monday on.
        Week => "week",
        /// A calendar month.
        Month => "month",
    }
}

impl Interval {
    /// Returns an interval that gives a range about a hundred points at most.
    pub fn fitting(range: TimeRange) -> Self {
        match range.len() {
            len if len <= DAY => Self::QuarterHour,
            len if len <= 4 * DAY => Self::Hour,
            len if len <= 100 * DAY => Self::Day,
            len if len <= 700 * DAY => Self::Week,
            _ => Self::Month,
        }
    }

    /// Returns the beginning of the interval that a time lies in.
    fn floor(self, at: i64, zone: &TimeZone) -> i64 {
        let date = || zoned(at, zone).date();
        let first = match self {
            Self::QuarterHour => return quarter_of(at),
            Self::Hour => return floor_of_hour(quarter_of(at), zone),
            Self::Day => date(),
            Self::Week => {
                let date = date();
                let days = date.weekday().to_monday_zero_offset();
                date.checked_sub(i64::from(days).days()).unwrap_or(date)
            }
            Self::Month => date().first_of_month(),
        };
        start_of(first, zone).unwrap_or(at).min(at)
    }

    /// Returns the beginning of the interval after the one that begins at a time.
    fn next(self, start: i64, zone: &TimeZone) -> i64 {
        let date = || zoned(start, zone).date();
        let after = start.saturating_add(QUARTER);
        let next = match self {
            Self::QuarterHour => return after,
            Self::Hour => return next_hour(start, zone),
            Self::Day => date().tomorrow(),
            Self::Week => date().checked_add(1.week()),
            Self::Month => date().first_of_month().checked_add(1.month()),
        };
        // After the last day of the calendar there is no interval.
        next.ok().and_then(|next| start_of(next, zone)).unwrap_or(i64::MAX).max(after)
    }
}

fn zoned(at: i64, zone: &TimeZone) -> Zoned {
    let limit = if at < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_microsecond(at).unwrap_or(limit).to_zoned(zone.clone())
}

/// Returns the first microsecond of a day; behind the gap, if a change of the clocks skips
/// midnight.
fn start_of(date: Date, zone: &TimeZone) -> Option<i64> {
    date.to_zoned(zone.clone()).ok().map(|start| start.timestamp().as_microsecond())
}

/// Returns the identity of an hour: when the clocks are set back, the same one comes twice.
fn hour_of(at: i64, zone: &TimeZone) -> (Date, i8, i32) {
    let at = zoned(at, zone);
    (at.date(), at.hour(), at.offset().seconds())
}

/// Quarter hours of the longest hour. Both directions stop there, whatever a zone's rules say.
const QUARTERS_OF_HOUR: i64 = 4;

fn floor_of_hour(at: i64, zone: &TimeZone) -> i64 {
    let hour = hour_of(at, zone);
    let earlier = (1..=QUARTERS_OF_HOUR).map(|count| at.saturating_sub(count * QUARTER));
    earlier.take_while(|at| hour_of(*at, zone) == hour).last().unwrap_or(at)
}

fn next_hour(start: i64, zone: &TimeZone) -> i64 {
    let hour = hour_of(start, zone);
    let later = |count: i64| start.saturating_add(count * QUARTER);
    let other = (1..QUARTERS_OF_HOUR).map(later).find(|at| hour_of(*at, zone) != hour);
    other.unwrap_or_else(|| later(QUARTERS_OF_HOUR))
}

/// A series would have too many points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an interval longer than \"{}\", or a shorter range: a series has at most {POINTS_MAX} points", .0.as_str())]
pub struct TooManyPoints(pub Interval);

/// A point of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// The beginning of its interval, in microseconds since 1970.
    pub start: i64,
    /// All visits.
    pub total: i64,
    /// Visits of bots.
    pub bots: i64,
}

/// A series that counts are added to.
#[derive(Clone, Debug)]
pub struct Series {
    /// The range, in whole quarter hours.
    pub range: TimeRange,
    /// The points, the earliest first.
    pub points: Vec<Point>,
}

impl Series {
    /// Makes the points of a range, all of them zero. The range is extended to whole quarter hours.
    pub fn new(range: TimeRange, interval: Interval, zone: &TimeZone) -> Result<Self, TooManyPoints> {
        let range = range.in_quarters();
        let mut points = Vec::new();
        let mut start = interval.floor(range.from, zone);
        while start < range.before {
            if points.len() == POINTS_MAX {
                return Err(TooManyPoints(interval));
            }
            points.push(Point { start, total: 0, bots: 0 });
            start = interval.next(start, zone);
        }
        Ok(Self { range, points })
    }

    /// Returns whether counts of whole UTC days are not enough, since a point or the range begins
    /// or ends within one.
    pub fn needs_quarters(&self) -> bool {
        let bounds = [self.range.from, self.range.before];
        let inner = self.points.iter().skip(1).map(|point| point.start);
        bounds.into_iter().chain(inner).any(|at| at.rem_euclid(DAY) != 0)
    }

    /// Adds visits of a quarter hour, or of a day, by their start in microseconds since 1970. Those
    /// outside the range are passed over.
    pub fn add(&mut self, start: i64, total: i64, bots: i64) {
        if !self.range.contains(start) {
            return;
        }
        let after = self.points.partition_point(|point| point.start <= start);
        if let Some(point) = after.checked_sub(1).and_then(|index| self.points.get_mut(index)) {
            point.total = point.total.saturating_add(total);
            point.bots = point.bots.saturating_add(bots);
        }
    }

    /// Returns the sum of the points: all visits, and those of bots.
    pub fn sum(&self) -> (i64, i64) {
        let add = |(total, bots): (i64, i64), point: &Point| {
            (total.saturating_add(point.total), bots.saturating_add(point.bots))
        };
        self.points.iter().fold((0, 0), add)
    }
}

/// Formats a time as RFC 3339 with the offset of the zone at that time.
pub fn rfc3339(at: i64, zone: &TimeZone) -> String {
    zoned(at, zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_microsecond()
    }

    fn zone(name: &str) -> TimeZone {
        TimeZone::get(name).unwrap()
    }

    /// An interval, a zone and a range, and below them the points.
    const POINTS: &str = "\
day Europe/Berlin 2026-10-24T10:00:00Z 2026-10-26T00:00:00Z
    2026-10-24T00:00:00+02:00 2026-10-25T00:00:00+02:00 2026-10-26T00:00:00+01:00
day Europe/Berlin 2026-03-28T23:00:00Z 2026-03-29T22:15:00Z
    2026-03-29T00:00:00+01:00 2026-03-30T00:00:00+02:00
day Asia/Kolkata 2026-11-24T18:00:00Z 2026-11-24T18:30:00Z
    2026-11-24T00:00:00+05:30
day Asia/Kathmandu 2026-11-24T18:00:00Z 2026-11-24T18:15:01Z
    2026-11-24T00:00:00+05:45 2026-11-25T00:00:00+05:45
# Chile's clocks skip midnight, so that the day begins at one o'clock.
day America/Santiago 2026-09-06T05:00:00Z 2026-09-07T04:00:00Z
    2026-09-06T01:00:00-03:00 2026-09-07T00:00:00-03:00
hour Europe/Berlin 2026-10-25T00:30:00Z 2026-10-25T02:15:00Z
    2026-10-25T02:00:00+02:00 2026-10-25T02:00:00+01:00 2026-10-25T03:00:00+01:00
hour Europe/Berlin 2026-03-29T00:00:00Z 2026-03-29T02:00:00Z
    2026-03-29T01:00:00+01:00 2026-03-29T03:00:00+02:00
hour Asia/Kolkata 2026-11-24T18:00:00Z 2026-11-24T19:00:00Z
    2026-11-24T23:00:00+05:30 2026-11-25T00:00:00+05:30
hour Europe/Berlin 2026-10-25T01:45:00Z 2026-10-25T02:00:00Z
    2026-10-25T02:00:00+01:00
# Lord Howe's clocks change by half an hour.
hour Australia/Lord_Howe 2026-04-04T14:15:00Z 2026-04-04T16:00:00Z
    2026-04-05T01:00:00+11:00 2026-04-05T01:30:00+10:30 2026-04-05T02:00:00+10:30
week Europe/Berlin 2026-10-25T12:00:00Z 2026-11-02T00:00:00Z
    2026-10-19T00:00:00+02:00 2026-10-26T00:00:00+01:00 2026-11-02T00:00:00+01:00
month America/New_York 2026-02-10T00:00:00Z 2026-04-01T00:00:00Z
    2026-02-01T00:00:00-05:00 2026-03-01T00:00:00-05:00
15min UTC 2026-02-10T00:01:00Z 2026-02-10T00:16:00Z
    2026-02-10T00:00:00+00:00 2026-02-10T00:15:00+00:00";

    #[test]
    fn points_begin_where_intervals_begin_on_the_clocks_of_the_zone() {
        let lines: Vec<&str> = POINTS.lines().filter(|line| !line.starts_with('#')).collect();
        for case in lines.chunks(2) {
            let [interval, name, from, before] = case[0].split(' ').collect::<Vec<_>>()[..] else { panic!() };
            let (zone, range) = (zone(name), TimeRange { from: at(from), before: at(before) });
            let series = Series::new(range, Interval::parse(interval).unwrap(), &zone).unwrap();
            let starts: Vec<_> = series.points.iter().map(|point| rfc3339(point.start, &zone)).collect();
            assert_eq!(starts.join(" "), case[1].trim(), "{}", case[0]);
        }
    }

    #[test]
    fn counts_of_days_are_enough_where_all_bounds_are_midnights_of_utc() {
        let needs = |from, before, interval, name: &str| {
            let range = TimeRange { from: at(from), before: at(before) };
            Series::new(range, interval, &zone(name)).unwrap().needs_quarters()
        };
        let (first, last) = ("2026-11-01T00:00:00Z", "2026-11-25T00:00:00Z");
        assert!(!needs(first, last, Interval::Day, "UTC"));
        assert!(!needs(first, last, Interval::Month, "Asia/Kolkata"), "there is one point");
        assert!(needs(first, "2026-11-02T00:00:00Z", Interval::Day, "Asia/Kolkata"));
        assert!(needs(first, last, Interval::Hour, "UTC"));
        assert!(needs(first, "2026-11-25T10:00:00Z", Interval::Day, "UTC"));
    }

    #[test]
    fn too_many_points_are_refused_by_the_name_of_their_interval() {
        let quarters = i64::try_from(POINTS_MAX).unwrap();
        let series = |quarters| {
            let range = TimeRange { from: 0, before: quarters * QUARTER };
            Series::new(range, Interval::QuarterHour, &TimeZone::UTC).map(|series| series.points.len())
        };
        assert_eq!(series(quarters), Ok(POINTS_MAX));
        let error = series(quarters + 1).unwrap_err();
        assert!(error.to_string().contains("longer than \"15min\""), "{error}");
        let endless = TimeRange { from: i64::MIN, before: i64::MAX };
        for interval in Interval::ALL {
            assert_eq!(Series::new(endless, interval, &TimeZone::UTC).err(), Some(TooManyPoints(interval)));
        }
        let last = TimeRange { from: Timestamp::MAX.as_microsecond(), before: i64::MAX - QUARTER };
        assert_eq!(Series::new(last, Interval::Month, &TimeZone::UTC).unwrap().points.len(), 1);
    }

    #[test]
    fn an_interval_is_found_for_every_range() {
        for (days, interval) in [(1, Interval::QuarterHour), (2, Interval::Hour), (30, Interval::Day)] {
            assert_eq!(Interval::fitting(TimeRange { from: 0, before: days * DAY }), interval);
        }
    }

    proptest! {
        #[test]
        fn no_visit_is_counted_twice_or_left_out(
            from in 18_262_i64 * 96..22_000 * 96, len in 1_i64..3_000, interval in 0..5_usize, place in 0..6_usize,
        ) {
            let zone = zone(["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe",
                "America/Havana", "Pacific/Chatham"][place]);
            let range = TimeRange { from: from * QUARTER, before: (from + len) * QUARTER };
            let mut series = Series::new(range, Interval::ALL[interval], &zone).unwrap();
            (-5..len + 5).for_each(|quarter| series.add((from + quarter) * QUARTER, 2, 1));
            prop_assert_eq!(series.sum(), (2 * len, len));
            prop_assert!(series.points.iter().all(|point| point.total > 0));
            prop_assert!(series.points.is_sorted_by(|one, other| one.start < other.start));
        }
    }
}
