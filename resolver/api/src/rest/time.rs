//! Times as clients write them, and as answers show them.

use app::{Field, local_time::local_time};
use jiff::{Timestamp, tz::TimeZone};

/// Parses RFC 3339, a date, or a time without an offset, as people and scripts write it. A space in
/// place of the offset's sign is a plus that a query has decoded.
///
/// # Errors
/// Returns what was expected.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Result<Timestamp, String> {
    let time =
        exact_time(text).or_else(|| local_time(text, zone)).ok_or_else(|| Field::ValidSince.expected())?;
    // In the resolution of the store, so that the stored time equals the requested one.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| Field::ValidSince.expected())
}

/// Parses a time with an offset from UTC.
fn exact_time(text: &str) -> Option<Timestamp> {
    let decoded = || {
        let (time, offset) = text.rsplit_once(' ').filter(|(time, _)| time.contains(':'))?;
        format!("{time}+{offset}").parse().ok()
    };
    text.parse().ok().or_else(decoded)
}

/// Formats a time as RFC 3339 with `+00:00` and whole seconds, as PHP's `DateTimeInterface::ATOM`
/// does.
pub(super) fn atom(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_clients_write_them() {
        let parse_time = |text: &str| parse_time(text, &TimeZone::UTC);
        let expected: Timestamp = "2026-11-22T10:00:00Z".parse().unwrap();
        for text in [
            "2026-11-22T10:00:00+00:00",
            "2026-11-22T12:00:00+02:00",
            "2026-11-22T12:00:00 02:00",
            "2026-11-22T10:00:00Z",
        ] {
            assert_eq!(parse_time(text), Ok(expected), "{text}");
        }
        assert_eq!(parse_time("2026-11-22"), Ok("2026-11-22T00:00:00Z".parse().unwrap()));
        for text in
            ["", "tomorrow", "2026-13-01", "10:00", "20261122", "2026-11-22x10:00", "2026-11-22 25:00", "ä"]
        {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_time_without_an_offset_is_in_the_servers_zone() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        for (text, expected) in [
            ("2031-01-01 10:00:00", "2031-01-01T08:00:00Z"),
            ("2031-01-01T10:00", "2031-01-01T08:00:00Z"),
            ("2031-01-01T10:00:00.123456", "2031-01-01T08:00:00.123Z"),
            ("2031-01-01", "2030-12-31T22:00:00Z"),
            ("2031-01-01T10:00:00Z", "2031-01-01T10:00:00Z"),
            ("2031-01-01 10:00:00+01:00", "2031-01-01T09:00:00Z"),
            ("2031-01-01T10:00:00 01:00", "2031-01-01T09:00:00Z"),
        ] {
            assert_eq!(parse_time(text, &zone), Ok(expected.parse().unwrap()), "{text}");
        }
    }
}
