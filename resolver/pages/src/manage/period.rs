//! Periods that a person can choose, in days of the service's time zone.
//!
//! 1. A preset begins with a day and ends now. Dates are whole days, the last one included.
//! 2. What is still to come is left out, so that the period before has the same length.
//! 3. The form shows the dates of the period, and repeats them in the field `was`. Dates that
//!    differ from these were edited, and count though a preset is selected. Otherwise the preset
//!    counts. So one button is enough for both.

use app::FieldErrors;
use jiff::{SignedDuration, Timestamp, ToSpan as _, civil::Date, tz::TimeZone};

use crate::{form::Form, locale::Locale};

/// The value of the field `range` that stands for dates.
const DATES: &str = "dates";
const NO_PERIOD: &str = "no name of a period";
const DATE_LEN: usize = "2026-11-25".len();

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Period {
    Today,
    /// Today and the 6 days before.
    Week,
    /// Today and the 29 days before.
    #[default]
    Month,
    /// Today and the 89 days before.
    Quarter,
    ThisMonth,
    /// The whole month before this one.
    LastMonth,
    Year,
    All,
    /// From a day on, or the first visit, until another, or now.
    Dates(Option<Date>, Option<Date>),
}

impl Period {
    pub(super) const PRESETS: [(Self, &'static str); 8] = [
        (Self::Today, "today"),
        (Self::Week, "7d"),
        (Self::Month, "30d"),
        (Self::Quarter, "90d"),
        (Self::ThisMonth, "month"),
        (Self::LastMonth, "last-month"),
        (Self::Year, "year"),
        (Self::All, "all"),
    ];

    pub(super) fn name(self) -> &'static str {
        let preset = Self::PRESETS.into_iter().find(|(preset, _)| *preset == self);
        preset.map_or(DATES, |(_, name)| name)
    }

    pub(super) fn text(self, t: &Locale) -> String {
        t.text(&format!("period-{}", self.name()))
    }

    /// Reads the fields `range`, `from`, `until` and `was`. What is wrong is recorded.
    pub(super) fn read(query: &Form, wrong: &mut FieldErrors) -> Self {
        let typed = |name: &str| query.value(name).trim().to_owned();
        let (from, until) = (typed("from"), typed("until"));
        let is_edited = query.get("was").is_some_and(|was| was != was_text(&from, &until));
        let preset = query.owned("range").filter(|name| name != DATES).and_then(|name| {
            let found = Self::PRESETS.into_iter().find(|(_, known)| *known == name);
            wrong.note("range", found.map(|(preset, _)| preset).ok_or_else(|| NO_PERIOD.to_owned()))
        });
        match preset {
            Some(preset) if !is_edited => return preset,
            None if !is_edited && from.is_empty() && until.is_empty() => return Self::default(),
            _ => {}
        }
        let mut date = |name: &str, text: &str| -> Option<Date> {
            let expected = || "expected a date such as 2026-11-25".to_owned();
            let read = if text.is_empty() { Ok(None) } else { parse(text).map(Some).ok_or_else(expected) };
            wrong.note(name, read).flatten()
        };
        match (date("from", &from), date("until", &until)) {
            (None, None) => Self::All,
            (from, until) => Self::Dates(from, until),
        }
    }

    /// Returns the fields of a query that [`Self::read`] reads as this period.
    pub(super) fn pairs(self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("range", self.name().to_owned())];
        if let Self::Dates(from, until) = self {
            let dates = [("from", from), ("until", until)];
            pairs.extend(dates.into_iter().filter_map(|(name, date)| Some((name, date?.to_string()))));
        }
        pairs
    }

    /// Returns the first and the last day of the period at a time, in a zone: `None` for the first
    /// visit, and for a period that ends now.
    pub(super) fn dates(self, now: Timestamp, zone: &TimeZone) -> (Option<Date>, Option<Date>) {
        let today = now.to_zoned(zone.clone()).date();
        let back = |days: i64| Some(today.checked_sub(days.days()).unwrap_or(today));
        match self {
            Self::Today => (Some(today), None),
            Self::Week => (back(6), None),
            Self::Month => (back(29), None),
            Self::Quarter => (back(89), None),
            Self::ThisMonth => (Some(today.first_of_month()), None),
            Self::LastMonth => {
                let last = today.first_of_month().yesterday().ok();
                (last.map(Date::first_of_month), last)
            }
            Self::Year => (Some(today.first_of_year()), None),
            Self::All => (None, None),
            Self::Dates(from, until) => (from, until),
        }
    }

    /// Returns the first second, `None` for the first visit, and the last one, `None` for now.
    pub(super) fn bounds(self, now: Timestamp, zone: &TimeZone) -> (Option<Timestamp>, Option<Timestamp>) {
        let (first, last) = self.dates(now, zone);
        let end = last.map(|last| end_of(last, zone)).filter(|end| *end < now);
        (first.map(|first| start_of(first, zone)), end)
    }
}

/// The periods that lists and the log can be limited to.
const OF_LISTS: [Period; 5] =
    [Period::All, Period::Week, Period::Month, Period::ThisMonth, Period::LastMonth];

/// Reads the period of a field of a list; all of the time if it is empty.
pub(super) fn read_period(query: &Form, field: &str, wrong: &mut FieldErrors) -> Period {
    let named = |name: &str| OF_LISTS.into_iter().find(|period| period.name() == name);
    query.read(field, NO_PERIOD, wrong, named).unwrap_or(Period::All)
}

pub(super) fn period_choices(t: &Locale) -> Vec<(&'static str, String)> {
    OF_LISTS.into_iter().map(|period| (period.name(), period.text(t))).collect()
}

/// Returns the value of the field `was` of a form that shows these dates.
pub(super) fn was_text(from: &str, until: &str) -> String {
    format!("{from}/{until}")
}

fn parse(text: &str) -> Option<Date> {
    text.parse().ok().filter(|_| text.len() == DATE_LEN)
}

/// Returns the first second of a day; behind the gap, if a change of the clocks skips midnight.
fn start_of(date: Date, zone: &TimeZone) -> Timestamp {
    date.to_zoned(zone.clone()).map_or(Timestamp::MAX, |start| start.timestamp())
}

fn end_of(date: Date, zone: &TimeZone) -> Timestamp {
    let Ok(next) = date.tomorrow() else { return Timestamp::MAX };
    let next = start_of(next, zone);
    next.checked_sub(SignedDuration::from_secs(1)).unwrap_or(next)
}

#[cfg(test)]
mod tests {
    use app::AppError;

    use super::*;

    fn read(query: &str) -> (Period, Vec<String>) {
        let mut wrong = FieldErrors::default();
        let period = Period::read(&Form::parse(query.as_bytes()), &mut wrong);
        let fields = match wrong.finish() {
            Err(AppError::Invalid(fields)) => fields.into_iter().map(|field| field.field).collect(),
            _ => Vec::new(),
        };
        (period, fields)
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn day(text: &str) -> Option<Date> {
        Some(text.parse().unwrap())
    }

    /// The bounds of a period as texts in UTC; empty for open ones.
    fn bounds(period: Period, now: &str, zone: &str) -> (String, String) {
        let (start, end) = period.bounds(at(now), &TimeZone::get(zone).unwrap());
        let text = |bound: Option<Timestamp>| bound.map(|at| at.to_string()).unwrap_or_default();
        (text(start), text(end))
    }

    #[test]
    fn periods_begin_at_midnight_of_the_zone_and_end_now_or_with_the_last_second_of_their_last_day() {
        use Period::{All, LastMonth, Month, Quarter, ThisMonth, Today, Week, Year};
        let until = |last: &str| Period::Dates(None, day(last));
        let october = Period::Dates(day("2026-10-25"), day("2026-10-25"));
        let new_year = "2026-12-31T18:30Z";
        for (period, now, zone, start, end) in [
            // The same minute is the 24th in New York and the 25th in Kathmandu.
            (Today, "2026-11-24T18:30:00Z", "America/New_York", "2026-11-24T05:00:00Z", ""),
            (Today, "2026-11-24T18:30:00Z", "Asia/Kathmandu", "2026-11-24T18:15:00Z", ""),
            (Week, "2026-11-24T18:30:00Z", "Asia/Kathmandu", "2026-11-18T18:15:00Z", ""),
            (Month, "2026-11-24T18:30:00Z", "UTC", "2026-10-26T00:00:00Z", ""),
            (Quarter, "2026-11-24T18:30:00Z", "UTC", "2026-08-27T00:00:00Z", ""),
            (All, "2026-11-24T18:30:00Z", "UTC", "", ""),
            // The last and the first second of a day belong to different days.
            (Today, "2026-11-24T22:59:59Z", "Europe/Berlin", "2026-11-23T23:00:00Z", ""),
            (Today, "2026-11-24T23:00:00Z", "Europe/Berlin", "2026-11-24T23:00:00Z", ""),
            (Year, "2026-12-31T22:59:59Z", "Europe/Berlin", "2025-12-31T23:00:00Z", ""),
            (Year, "2026-12-31T23:00:00Z", "Europe/Berlin", "2026-12-31T23:00:00Z", ""),
            (ThisMonth, "2026-11-24T18:30:00Z", "Europe/Berlin", "2026-10-31T23:00:00Z", ""),
            // It is January in Kathmandu.
            (ThisMonth, "2026-12-31T18:30:00Z", "Asia/Kathmandu", "2026-12-31T18:15:00Z", ""),
            // Thirty days back, the clocks of Berlin are in summer time.
            (Month, "2026-11-01T12:00:00Z", "Europe/Berlin", "2026-10-02T22:00:00Z", ""),
            // Chile's clocks skip midnight, so that the day begins at one o'clock.
            (Today, "2026-09-06T12:00:00Z", "America/Santiago", "2026-09-06T04:00:00Z", ""),
            // The clocks of Berlin changed on the 25th of October.
            (LastMonth, "2026-11-24T18:30Z", "Europe/Berlin", "2026-09-30T22:00:00Z", "2026-10-31T22:59:59Z"),
            (october, "2026-11-24T00:00Z", "Europe/Berlin", "2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"),
            // The month before is of another year in UTC.
            (LastMonth, new_year, "Asia/Kathmandu", "2026-11-30T18:15:00Z", "2026-12-31T18:14:59Z"),
            (LastMonth, new_year, "UTC", "2026-11-01T00:00:00Z", "2026-11-30T23:59:59Z"),
            (until("2026-11-23"), "2026-11-24T12:00:00Z", "UTC", "", "2026-11-23T23:59:59Z"),
            // A last day that is not over ends now.
            (until("2026-11-24"), "2026-11-24T12:00:00Z", "UTC", "", ""),
            (until("9999-12-31"), "2026-11-24T12:00:00Z", "UTC", "", ""),
        ] {
            let expected = (start.to_owned(), end.to_owned());
            assert_eq!(bounds(period, now, zone), expected, "{period:?} {now} {zone}");
        }
        let last = Period::Dates(day("9999-12-31"), None);
        let now = at("2026-11-24T12:00:00Z");
        assert!(last.bounds(now, &TimeZone::UTC).0.unwrap() > now);
    }

    #[test]
    fn edited_dates_count_and_others_yield_to_the_preset() {
        let dates = Period::Dates(day("2026-11-01"), day("2026-11-02"));
        assert_eq!(read(""), (Period::Month, vec![]));
        assert_eq!(read("range=7d&from=&until=").0, Period::Week);
        assert_eq!(read("from=2026-11-01&until=2026-11-02").0, dates);
        let fields = "from=2026-11-01&until=2026-11-02";
        assert_eq!(read(&format!("range=year&{fields}")).0, Period::Year);
        assert_eq!(read(&format!("range=year&{fields}&was=2026-11-01/2026-11-02")).0, Period::Year);
        assert_eq!(read(&format!("range=year&{fields}&was=2026-01-01/2026-11-24")).0, dates);
        assert_eq!(read(&format!("range=dates&{fields}&was=2026-11-01/2026-11-02")).0, dates);
        assert_eq!(read("range=7d&from=&until=&was=2026-11-01/2026-11-02").0, Period::All);
    }

    #[test]
    fn wrong_fields_are_named() {
        assert_eq!(read("range=8d").1, ["range"]);
        assert_eq!(read("from=2026-02-29&until=tomorrow").1, ["from", "until"]);
        assert_eq!(read("range=dates&from=2026-11-01T10:00").1, ["from"]);
        assert_eq!(read("range=7d&from=x").1, [""; 0], "a preset needs no dates");
    }

    #[test]
    fn a_period_is_read_from_its_own_fields() {
        let day = day("2026-11-01");
        let dates = [Period::Dates(day, None), Period::Dates(None, day), Period::Dates(day, day)];
        for period in Period::PRESETS.into_iter().map(|(preset, _)| preset).chain(dates) {
            let pairs = period.pairs().into_iter().map(|(name, value)| format!("{name}={value}"));
            assert_eq!(read(&pairs.collect::<Vec<_>>().join("&")), (period, vec![]));
        }
    }
}
