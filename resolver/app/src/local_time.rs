//! Times without an offset, which are in the server's time zone.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};

/// Parses a date, or a date and a time, in this zone. A time that a change of the clocks skips is
/// moved behind the gap; of one that occurs twice the first is taken.
pub fn local_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    const DATE_LEN: usize = "2026-11-22".len();
    let time = match text.as_bytes().get(DATE_LEN) {
        None if text.len() == DATE_LEN => text.parse::<Date>().ok()?.to_datetime(Time::midnight()),
        Some(b'T' | b't' | b' ') => text.parse::<DateTime>().ok()?,
        _ => return None,
    };
    time.to_zoned(zone.clone()).ok().map(|time| time.timestamp())
}
