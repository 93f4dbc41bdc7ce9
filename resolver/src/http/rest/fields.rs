//! Reading the fields of a link's body: each gives a value, or says what was expected.

use jiff::{
    Timestamp,
    civil::{Date, DateTime, Time},
    tz::TimeZone,
};
use links::{Authority, LongUrl, LongUrlError, RedirectStatus, Slug, TAGS_MAX, Tag, has_safe_placeholders};
use serde_json::{Map, Value};
use url::Url;

use super::{
    numbers::{flag_of, whole},
    problem::{Invalid, Problem},
};
use crate::http::App;

/// Shlink cuts titles there too.
pub(super) const TITLE_BYTES: usize = 512;
pub(super) const DESCRIPTION_BYTES: usize = 4_096;
pub(super) const STRAY_TARGET_BYTES: usize = 2_048;
/// Characters of a code that is not picked. Shlink keeps as many.
pub(super) const CODE_LEN_MAX: usize = Slug::MAX_LEN;

/// Wrong fields that an answer names.
pub(super) const FIELDS_TOLD: usize = 16;

/// What was expected of a field.
type Read<T> = Result<T, String>;

/// Collects what is wrong, so that an answer names more than the first field.
#[derive(Default)]
pub(super) struct Wrong(Vec<Invalid>);

impl Wrong {
    /// The value, or a note of what was expected.
    pub(super) fn note<T>(&mut self, field: &str, read: Read<T>) -> Option<T> {
        read.map_err(|expected| self.add(field, expected)).ok()
    }

    /// A body may have thousands of wrong fields: the last entry says that there are more.
    fn add(&mut self, field: &str, expected: String) {
        let (field, expected) = match FIELDS_TOLD.checked_sub(self.0.len()) {
            None => return,
            Some(0) => ("(the others)", "expected fewer wrong fields".to_owned()),
            Some(_) => (field, expected),
        };
        self.0.push(Invalid { field: field.to_owned(), expected });
    }

    /// Fails if anything was wrong.
    pub(super) fn check(self) -> Result<(), Problem> {
        if self.0.is_empty() { Ok(()) } else { Err(Problem::InvalidData(self.0)) }
    }
}

pub(super) fn long_url(app: &App, value: Option<&Value>) -> Read<LongUrl> {
    let Some(Value::String(text)) = value else {
        return Err("expected a string with an absolute URL".to_owned());
    };
    let url = LongUrl::parse_allowed(text, &app.own_hosts, &app.schemes).map_err(|error| match error {
        LongUrlError::Scheme => format!("expected one of the schemes {}", app.schemes),
        error => error.to_string(),
    })?;
    if app.directory.entries().targets().allow_url(&url) { Ok(url) } else { Err(DENIED.to_owned()) }
}

const DENIED: &str = "expected a URL whose host links may lead to";

/// Refuses a link that would begin to redirect again though a rule denies one of its targets by
/// now; `field` is to blame.
pub(super) fn check_targets<'a>(
    app: &App,
    field: &str,
    mut targets: impl Iterator<Item = &'a LongUrl>,
) -> Result<(), Problem> {
    let entries = app.directory.entries();
    let is_allowed = targets.all(|url| entries.targets().allow_url(url));
    if is_allowed { Ok(()) } else { Err(Problem::invalid(field, DENIED)) }
}

/// The name of a domain; none for null and for the default one.
pub(super) fn domain(app: &App, value: &Value) -> Read<Option<Authority>> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) if name == "DEFAULT" || app.directory.is_default_name(name) => Ok(None),
        Value::String(name) => Authority::parse(name).map(Some).map_err(|error| error.to_string()),
        _ => Err("expected a string, or null".to_owned()),
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

pub(super) fn description(value: &Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if text.len() <= DESCRIPTION_BYTES && !text.contains('\0') => {
            Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
        }
        _ => Err(format!("expected a string of at most {DESCRIPTION_BYTES} bytes without NUL, or null")),
    }
}

pub(super) fn status(value: &Value) -> Read<Option<RedirectStatus>> {
    let status = whole(value).and_then(|status| u16::try_from(status).ok());
    match (value, status.map(RedirectStatus::try_from)) {
        (Value::Null, _) => Ok(None),
        (_, Some(Ok(status))) => Ok(Some(status)),
        _ => Err("expected 301, 302, 307, 308 or null".to_owned()),
    }
}

/// Whether it can be a password is seen when it is hashed.
pub(super) fn password(value: &Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err("expected a string, or null".to_owned()),
    }
}

/// What stands before a code. One that ends in a slash is made of segments, and keeps them; one that does not is the beginning of a word, and
/// its slashes become dashes as its spaces do, as with Shlink unless its slugs have several segments.
pub(super) fn prefix(value: &Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => {
            let mut prefix = text.trim().trim_start_matches('/').replace(' ', "-");
            if !prefix.ends_with('/') {
                prefix = prefix.replace('/', "-");
            }
            // With any code behind it has to be a slug.
            Slug::pick(&format!("{prefix}00000000")).map_err(|error| error.to_string())?;
            Ok(Some(prefix).filter(|prefix| !prefix.is_empty()))
        }
        _ => Err("expected a string, or null".to_owned()),
    }
}

pub(super) fn title(value: &Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) if !text.contains('\0') => {
            let text = text.trim();
            let end =
                (0..=TITLE_BYTES.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            Ok(Some(text[..end].to_owned()).filter(|title| !title.is_empty()))
        }
        _ => Err("expected a string without NUL, or null".to_owned()),
    }
}

/// None for null: then the flag is what it would be without the field.
pub(super) fn flag(value: &Value) -> Read<Option<bool>> {
    match (value, flag_of(value)) {
        (Value::Null, _) => Ok(None),
        (_, Some(flag)) => Ok(Some(flag)),
        _ => Err("expected true, false or null".to_owned()),
    }
}

pub(super) fn slug(value: &Value, prefix: Option<&str>) -> Read<Option<Slug>> {
    let read = |text: &str| Slug::pick(text).map_err(|error| error.to_string());
    match value {
        Value::Null => Ok(None),
        Value::String(text) => {
            let slug = read(text)?;
            Ok(Some(match prefix {
                Some(prefix) => read(&format!("{prefix}{slug}"))?,
                None => slug,
            }))
        }
        _ => Err("expected a string, or null".to_owned()),
    }
}

/// None for null.
pub(super) fn tags(value: &Value) -> Read<Option<Vec<Tag>>> {
    let expected = || format!("expected an array of at most {TAGS_MAX} strings");
    let items = match value {
        Value::Null => return Ok(None),
        Value::Array(items) if items.len() <= TAGS_MAX => items,
        _ => return Err(expected()),
    };
    let mut tags = Vec::with_capacity(items.len());
    for item in items {
        let tag = Tag::parse(item.as_str().ok_or_else(expected)?).map_err(|error| error.to_string())?;
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    Ok(Some(tags))
}

/// How a code comes about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Strategy {
    /// From the next number.
    #[default]
    Sequence,
    /// From a digest of the long URL.
    Hash,
}

pub(super) fn strategy(value: &Value) -> Read<Strategy> {
    match value {
        Value::Null => Ok(Strategy::Sequence),
        Value::String(name) if name == "sequence" => Ok(Strategy::Sequence),
        Value::String(name) if name == "hash" => Ok(Strategy::Hash),
        _ => Err("expected sequence, hash or null".to_owned()),
    }
}

pub(super) fn code_len(value: &Value) -> Read<Option<usize>> {
    let len =
        whole(value).and_then(|len| usize::try_from(len).ok()).filter(|len| (1..=CODE_LEN_MAX).contains(len));
    match (value, len) {
        (Value::Null, _) => Ok(None),
        (_, Some(len)) => Ok(Some(len)),
        _ => Err(format!("expected a number from 1 to {CODE_LEN_MAX}, or null")),
    }
}

/// None for null.
pub(super) fn count(value: &Value) -> Read<Option<u64>> {
    // Both databases count with a sign.
    let count = whole(value).filter(|count| (1..=i64::MAX as u64).contains(count));
    match (value, count) {
        (Value::Null, _) => Ok(None),
        (_, Some(count)) => Ok(Some(count)),
        _ => Err("expected a whole number from 1, or null".to_owned()),
    }
}

pub(super) fn time(app: &App, value: &Value) -> Read<Option<Timestamp>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => parse_time(text.trim(), &app.time_zone).map(Some),
        _ => Err(TIME.to_owned()),
    }
}

/// Refuses a link that could never redirect. One whose time has passed already is taken, as with Shlink, whose own tests ask for it: it is shown
/// and listed as any other, and lists of links that were moved from elsewhere have such.
pub(super) fn window(since: Option<Timestamp>, until: Option<Timestamp>, wrong: &mut Wrong) {
    if let (Some(since), Some(until)) = (since, until)
        && until <= since
    {
        wrong.note::<()>("validUntil", Err("expected a time after validSince".to_owned()));
    }
}

const TIME: &str = "expected a time such as 2026-11-22T10:00:00+00:00, or a date; \
    without an offset they are in the server's time zone";

/// RFC 3339, or a date by itself, or a time without an offset, as people and scripts write it. A space where the sign of the offset would stand
/// is a plus that a query has decoded.
pub(super) fn parse_time(text: &str, zone: &TimeZone) -> Read<Timestamp> {
    let time = exact_time(text).or_else(|| local_time(text, zone)).ok_or_else(|| TIME.to_owned())?;
    // As finely as it is stored, so that what is stored is what was asked for.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| TIME.to_owned())
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

/// What a JSON object says of its fields, one after the other.
pub(super) fn each<'a>(
    fields: &'a Map<String, Value>,
    wrong: &mut Wrong,
    mut read: impl FnMut(&'a str, &'a Value) -> Read<()>,
) {
    for (name, value) in fields {
        wrong.note(name, read(name, value));
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
