//! Reading the fields of a link's body: each gives a value, or says what was expected.

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use serde_json::{Map, Value};
use url::Url;

use super::problem::{Invalid, Problem};
use crate::{
    http::App,
    links::{Authority, LongUrl, LongUrlError, RedirectStatus, Slug, TAGS_MAX, Tag},
};

/// Shlink cuts titles there too.
pub(super) const TITLE_BYTES: usize = 512;
pub(super) const DESCRIPTION_BYTES: usize = 4_096;
pub(super) const STRAY_TARGET_BYTES: usize = 2_048;
/// Characters of a code that is not picked.
pub(super) const CODE_LEN_MAX: usize = 8;

/// What was expected of a field.
type Read<T> = Result<T, String>;

/// Collects what is wrong, so that an answer names every field and not only the first.
#[derive(Default)]
pub(super) struct Wrong(Vec<Invalid>);

impl Wrong {
    /// The value, or a note of what was expected.
    pub(super) fn note<T>(&mut self, field: &str, read: Read<T>) -> Option<T> {
        read.map_err(|expected| self.0.push(Invalid { field: field.to_owned(), expected })).ok()
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
    let url = LongUrl::parse(text, &app.own_hosts).map_err(|error| error.to_string())?;
    if !app.directory.is_plain() && app.directory.is_ours(&url.authority()) {
        return Err(LongUrlError::OwnDomain.to_string());
    }
    let entries = app.directory.entries();
    let is_allowed = entries.targets().is_empty() || entries.targets().allow(&url.host());
    if is_allowed { Ok(url) } else { Err("expected a URL whose host links may lead to".to_owned()) }
}

/// The name of a domain; none for null and for the default one.
pub(super) fn domain(app: &App, value: &Value) -> Read<Option<Authority>> {
    match value {
        Value::Null => Ok(None),
        Value::String(name) if name == "DEFAULT" || name == app.directory.default_name() => Ok(None),
        Value::String(name) => Authority::parse(name).map(Some).map_err(|error| error.to_string()),
        _ => Err("expected a string, or null".to_owned()),
    }
}

/// Where visitors are sent that no link leads on. Shlink takes any text; an empty one takes it away.
pub(super) fn stray_target(value: &Value) -> Read<Option<String>> {
    // What has a scheme has one of the web's; Shlink takes anything else too.
    let is_web = |text: &str| Url::parse(text).map_or(true, |url| matches!(url.scheme(), "http" | "https"));
    let fits = |text: &str| {
        text.len() <= STRAY_TARGET_BYTES && !text.chars().any(char::is_control) && is_web(text.trim())
    };
    match value {
        Value::Null => Ok(None),
        Value::String(text) if fits(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        _ => Err(format!("expected an http or https URL of at most {STRAY_TARGET_BYTES} bytes, or null")),
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
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
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

/// What stands before a code. It is kept as it is, but for spaces and a slash at the front.
pub(super) fn prefix(value: &Value) -> Read<Option<String>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => {
            let prefix = text.trim().trim_start_matches('/').replace(' ', "-");
            // With any code behind it has to be a slug.
            Slug::parse(&format!("{prefix}00000000")).map_err(|error| error.to_string())?;
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
    match value {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        _ => Err("expected true, false or null".to_owned()),
    }
}

pub(super) fn slug(value: &Value, prefix: Option<&str>) -> Read<Option<Slug>> {
    let read = |text: &str| Slug::parse(text).map_err(|error| error.to_string());
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
    let len = value
        .as_u64()
        .and_then(|len| usize::try_from(len).ok())
        .filter(|len| (1..=CODE_LEN_MAX).contains(len));
    match (value, len) {
        (Value::Null, _) => Ok(None),
        (_, Some(len)) => Ok(Some(len)),
        _ => Err(format!("expected a number from 1 to {CODE_LEN_MAX}, or null")),
    }
}

/// None for null.
pub(super) fn count(value: &Value) -> Read<Option<u64>> {
    match value {
        Value::Null => Ok(None),
        // Both databases count with a sign.
        Value::Number(number) => {
            match number.as_u64().filter(|count| (1..=i64::MAX as u64).contains(count)) {
                Some(count) => Ok(Some(count)),
                None => Err("expected a whole number from 1, or null".to_owned()),
            }
        }
        _ => Err("expected a whole number from 1, or null".to_owned()),
    }
}

pub(super) fn time(value: &Value) -> Read<Option<Timestamp>> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => parse_time(text).map(Some),
        _ => Err(TIME.to_owned()),
    }
}

const TIME: &str =
    "expected a time such as 2026-11-22T10:00:00+00:00, or a date, which means its beginning in UTC";

/// RFC 3339, or a date by itself. A space where the sign of the offset would stand is a plus that a query has decoded.
pub(super) fn parse_time(text: &str) -> Read<Timestamp> {
    let wrong = || TIME.to_owned();
    if let Ok(date) = text.parse::<Date>()
        && text.len() == "2026-11-22".len()
    {
        return Ok(date.to_zoned(TimeZone::UTC).map_err(|_| wrong())?.timestamp());
    }
    let time: Timestamp = text.replacen(' ', "+", 1).parse().map_err(|_| wrong())?;
    // As finely as it is stored, so that what is stored is what was asked for.
    Timestamp::from_millisecond(time.as_millisecond()).map_err(|_| wrong())
}

/// Fields of Shlink's that this version does not carry out pass only with a value that asks for nothing: to accept a limit and then
/// ignore it would be worse than an error.
pub(super) fn without_effect(name: &str, value: &Value) -> Read<()> {
    let asks_for_nothing = match name {
        "validateUrl" => matches!(value, Value::Null | Value::Bool(false)),
        _ => return Err("expected no field of this name".to_owned()),
    };
    if asks_for_nothing {
        Ok(())
    } else {
        Err("expected no value: this version does not support it".to_owned())
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
        for text in ["", "tomorrow", "2026-13-01", "10:00", "2026-11-22T10:00:00"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }
}
