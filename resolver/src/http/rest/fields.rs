//! Reading the fields of a link's body: each gives a value, or says what was expected.

use app::Field;
use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use links::has_safe_placeholders;
use serde_json::Value;
use url::Url;

use super::numbers::{flag_of, whole};
use crate::http::App;

pub(super) const STRAY_TARGET_BYTES: usize = 2_048;

/// A value, or what was expected of the field.
type Read<T> = Result<T, String>;

/// Reads a string; `None` for null.
pub(super) fn text(field: Field, value: Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(field.expected()),
    }
}

/// Reads an array of strings; `None` for null.
pub(super) fn texts(field: Field, value: Value) -> Read<Option<Vec<String>>> {
    let item = |item| text(field, item)?.ok_or_else(|| field.expected());
    match value {
        Value::Null => Ok(None),
        Value::Array(items) => items.into_iter().map(item).collect::<Read<_>>().map(Some),
        _ => Err(field.expected()),
    }
}

/// Reads a whole number; `None` for null.
pub(super) fn number(field: Field, value: &Value) -> Read<Option<u64>> {
    match (value, whole(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(number)) => Ok(Some(number)),
        _ => Err(field.expected()),
    }
}

/// Reads a flag; `None` for null, which means the flag's default.
pub(super) fn flag(value: &Value) -> Read<Option<bool>> {
    match (value, flag_of(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(flag)) => Ok(Some(flag)),
        _ => Err(Field::Enabled.expected()),
    }
}

/// Where visitors are sent that no link leads on. Shlink takes any text; an empty one takes it away.
pub(super) fn stray_target(value: &Value) -> Read<Option<String>> {
    // What has a scheme has one of the web's; Shlink takes anything else too.
    let is_web = |text: &str| Url::parse(text).map_or(true, |url| matches!(url.scheme(), "http" | "https"));
    let fits = |text: &str| {
        text.len() <= STRAY_TARGET_BYTES
            && !text.chars().any(char::is_control)
            && is_web(text.trim())
            && has_safe_placeholders(text.trim())
    };
    match value {
        Value::Null => Ok(None),
        Value::String(text) if fits(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        _ => Err(format!(
            "expected an http or https URL of at most {STRAY_TARGET_BYTES} bytes with placeholders behind its host only, or null"
        )),
    }
}

pub(super) fn time(app: &App, value: &Value) -> Read<Option<Timestamp>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => parse_time(text.trim(), &app.time_zone).map(Some),
        _ => Err(Field::ValidSince.expected()),
    }
}

/// RFC 3339, or a date by itself, or a time without an offset, as people and scripts write it. A space where the sign of the offset would stand
/// is a plus that a query has decoded.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Read<Timestamp> {
    let time =
        exact_time(text).or_else(|| local_time(text, zone)).ok_or_else(|| Field::ValidSince.expected())?;
    // As finely as it is stored, so that what is stored is what was asked for.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| Field::ValidSince.expected())
}

/// A time that says how far it is from UTC.
fn exact_time(text: &str) -> Option<Timestamp> {
    let decoded = || {
        let (time, offset) = text.rsplit_once(' ').filter(|(time, _)| time.contains(':'))?;
        format!("{time}+{offset}").parse().ok()
    };
    text.parse().ok().or_else(decoded)
}

/// A date, or a date and a time, in this zone. One that a change of the clocks leaves out is that much later, and one that comes twice is the
/// first.
pub(super) fn local_time(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    const DATE_LEN: usize = "2026-11-22".len();
    let time = match text.as_bytes().get(DATE_LEN) {
        None if text.len() == DATE_LEN => text.parse::<Date>().ok()?.to_datetime(Time::midnight()),
        Some(b'T' | b't' | b' ') => text.parse::<DateTime>().ok()?,
        _ => return None,
    };
    time.to_zoned(zone.clone()).ok().map(|time| time.timestamp())
}

/// Fields of Shlink's that mean nothing here, or nothing any more: its clients send them all the same. Those of its answers come back from
/// clients that change what they have read.
pub(super) const WITHOUT_EFFECT: [&str; 8] = [
    "validateUrl",
    "deviceLongUrls",
    "titleWasAutoResolved",
    "shortUrl",
    "dateCreated",
    "visitsCount",
    "visitsSummary",
    "hasRedirectRules",
];

/// Passes over what Shlink knows and what means nothing here. What nobody knows is refused: a misspelt limit would be no limit.
pub(super) fn without_effect(name: &str) -> Read<()> {
    match name {
        name if WITHOUT_EFFECT.contains(&name) => Ok(()),
        "meta" => Err("expected validSince, validUntil and maxVisits by themselves".to_owned()),
        _ => Err("expected no field of this name".to_owned()),
    }
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
