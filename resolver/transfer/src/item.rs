//! A raw item of an input, whose fields are not interpreted yet.

use std::{borrow::Cow, fmt};

use jiff::{Timestamp, tz::TimeZone};
use links::read_time;
use serde_json::{Map, Value};
use url::Url;

use super::{row::RowError, spreadsheet};

/// A raw item: a JSON object or a table row. Absent, null and empty fields read as `None`.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) place: u64,
    /// The item's fields; cells of a table are strings.
    pub(super) fields: Map<String, Value>,
    /// The zone of times without an offset.
    pub(super) zone: TimeZone,
}

impl Item {
    /// Returns the value of a field. A dot in the name leads into an object.
    fn find(&self, field: &'static str) -> Result<Option<&Value>, RowError> {
        let mut names = field.split('.');
        let mut value = names.next().and_then(|name| self.fields.get(name));
        for name in names {
            value = match value {
                None | Some(Value::Null) => None,
                Some(Value::Object(inner)) => inner.get(name),
                Some(_) => return Err(self.wrong(field, "an object around it")),
            };
        }
        Ok(value.filter(|value| !value.is_null() && value.as_str() != Some("")))
    }

    /// Returns the error for an invalid field of this item.
    pub(super) fn wrong(&self, field: &'static str, expected: &'static str) -> RowError {
        self.broken(field, format_args!("expected {expected}"))
    }

    /// Returns the error for a field of this item with this problem.
    pub(super) fn broken(&self, field: &'static str, problem: impl fmt::Display) -> RowError {
        RowError::item(self.place, format_args!("{field}: {problem}"))
    }

    pub(super) fn text(&self, field: &'static str) -> Result<Option<String>, RowError> {
        match self.find(field)? {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(field, "a text")),
        }
    }

    /// Reads a string field that must be present.
    pub(super) fn needed(&self, field: &'static str) -> Result<String, RowError> {
        self.text(field)?.ok_or_else(|| self.wrong(field, "a text that is not empty"))
    }

    /// Reads an unsigned integer field, which some systems write as a string, and spreadsheets with
    /// its digits in groups.
    pub(super) fn count(&self, field: &'static str) -> Result<Option<u64>, RowError> {
        let count = match self.find(field)? {
            None => return Ok(None),
            // A column with gaps has fractions of zero in some programs.
            Some(Value::Number(number)) => {
                let text = number.to_string();
                text.strip_suffix(".0").unwrap_or(&text).parse().ok()
            }
            Some(Value::String(text)) => spreadsheet::number(text),
            Some(_) => None,
        };
        count.map(Some).ok_or_else(|| self.wrong(field, "a whole number from 0 on"))
    }

    /// Reads a boolean field. Tables and some databases write it as 0 or 1, or as a word.
    pub(super) fn flag(&self, field: &'static str) -> Result<Option<bool>, RowError> {
        let flag = match self.find(field)? {
            None => return Ok(None),
            Some(Value::Bool(flag)) => Some(*flag),
            Some(Value::Number(number)) => digit(number.as_u64()),
            Some(Value::String(text)) => spreadsheet::word(text),
            Some(_) => None,
        };
        flag.map(Some).ok_or_else(|| self.wrong(field, "true or false"))
    }

    /// Reads an angle in degrees; 0 if it is absent.
    pub(super) fn degrees(&self, field: &'static str) -> Result<f64, RowError> {
        let degrees = match self.find(field)? {
            None => return Ok(0.0),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        let degrees = degrees.filter(|degrees: &f64| degrees.abs() <= 360.0);
        degrees.ok_or_else(|| self.wrong(field, "an angle in degrees"))
    }

    pub(super) fn time(&self, field: &'static str) -> Result<Option<Timestamp>, RowError> {
        let Some(value) = self.find(field)? else { return Ok(None) };
        let text = text_of_time(value).ok_or_else(|| self.wrong(field, "a text"))?;
        let text = spreadsheet::time(&text).map_err(|problem| self.broken(field, problem))?;
        read_time(&text, &self.zone).map(Some).map_err(|error| self.broken(field, error))
    }

    /// Reads a list of strings, without the blank ones.
    pub(super) fn texts(&self, field: &'static str) -> Result<Vec<String>, RowError> {
        let wrong = || self.wrong(field, "a list of texts");
        let list = match self.find(field)? {
            None => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(wrong()),
        };
        let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
        let filled = texts.ok_or_else(wrong)?.into_iter().filter(|text| !text.trim().is_empty());
        Ok(filled.map(str::to_owned).collect())
    }

    /// Reads a short URL field, split into domain and code.
    pub(super) fn short_url(&self, field: &'static str) -> Result<Option<ShortUrl>, RowError> {
        let Some(text) = self.text(field)? else { return Ok(None) };
        let expected = "an absolute URL such as https://s.example/code";
        ShortUrl::parse(&text).map(Some).ok_or_else(|| self.wrong(field, expected))
    }
}

/// Returns the text of a time, which JSON may have as a number of seconds.
pub(super) fn text_of_time(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            Some(text.strip_suffix(".0").unwrap_or(&text).to_owned())
        }
        _ => None,
    }
}

fn digit(number: Option<u64>) -> Option<bool> {
    number.filter(|number| *number <= 1).map(|number| number == 1)
}

/// A short URL, split into domain and code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShortUrl {
    /// The host, with its port if the URL has one.
    pub(super) domain: String,
    /// The whole path without its first slash, percent-decoded, as visitors request it.
    pub(super) code: Option<String>,
}

impl ShortUrl {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Some systems write `bit.ly/code`.
        let is_bare = text.split_once('/').is_some_and(|(host, _)| host.contains('.') && !host.contains(':'));
        let url = if is_bare { Url::parse(&format!("https://{text}")) } else { Url::parse(text) }.ok()?;
        let host = url.host_str()?;
        let domain = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let path = percent_encoding::percent_decode_str(url.path().strip_prefix('/')?).decode_utf8().ok()?;
        let code = Some(path).filter(|path| !path.is_empty()).map(Cow::into_owned);
        Some(Self { domain, code })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(json: &str) -> Item {
        Item {
            place: 7,
            fields: serde_json::from_str(json).unwrap(),
            zone: TimeZone::fixed(jiff::tz::offset(2)),
        }
    }

    #[test]
    fn absent_null_and_empty_fields_are_none() {
        for json in ["{}", r#"{"a":null}"#, r#"{"a":""}"#] {
            let item = item(json);
            assert_eq!(item.text("a").unwrap(), None);
            assert_eq!(item.count("a").unwrap(), None);
            assert_eq!(item.flag("a").unwrap(), None);
            assert_eq!(item.time("a").unwrap(), None);
            assert_eq!(item.text("a.b").unwrap_or(None), None);
            assert_eq!(item.texts("a").unwrap(), Vec::<String>::new());
            assert!(item.needed("a").is_err());
        }
        assert_eq!(item(r#"{"a":["x"," ","y"]}"#).texts("a").unwrap(), ["x", "y"]);
    }

    #[test]
    fn numbers_and_flags_are_read_from_texts_too() {
        for (json, count) in
            [("7", 7), ("\" 7\"", 7), ("7.0", 7), ("\"1,234\"", 1_234), ("18446744073709551615", u64::MAX)]
        {
            assert_eq!(item(&format!("{{\"a\":{json}}}")).count("a").unwrap(), Some(count), "{json}");
        }
        for json in ["-1", "1.5", "\"x\"", "true", "[]", "18446744073709551616"] {
            assert!(item(&format!("{{\"a\":{json}}}")).count("a").is_err(), "{json}");
        }
        for (json, flag) in [("true", true), ("0", false), ("\"1\"", true), ("\"FALSE\"", false)] {
            assert_eq!(item(&format!("{{\"a\":{json}}}")).flag("a").unwrap(), Some(flag), "{json}");
        }
        for json in ["2", "\"maybe\"", "[]", "\" \""] {
            assert!(item(&format!("{{\"a\":{json}}}")).flag("a").is_err(), "{json}");
        }
    }

    #[test]
    fn times_have_an_offset_or_are_in_the_zone_of_the_import() {
        for (text, same) in [
            ("2018-05-01T02:00:00+02:00", "2018-05-01T00:00:00Z"),
            ("2018-05-01T00:00:00.000Z", "2018-05-01T00:00:00Z"),
            ("2018-05-01 02:00:00", "2018-05-01T00:00:00Z"),
            ("2018-05-01T09:00:00[Asia/Tokyo]", "2018-05-01T00:00:00Z"),
            (" 2018-05-01 ", "2018-04-30T22:00:00Z"),
            ("1525132800", "2018-05-01T00:00:00Z"),
        ] {
            let read = item(&format!("{{\"a\":\"{text}\"}}")).time("a").unwrap().unwrap();
            assert_eq!(read.to_string(), same, "{text}");
        }
        for number in ["1525132800", "1525132800.0"] {
            let read = item(&format!("{{\"a\":{number}}}")).time("a").unwrap().unwrap();
            assert_eq!(read.to_string(), "2018-05-01T00:00:00Z", "{number}");
        }
        for number in ["1525132800000", "1525132800.5", "-1525132800", "7", "true", "[]"] {
            assert!(item(&format!("{{\"a\":{number}}}")).time("a").is_err(), "{number}");
        }
        for text in ["yesterday", "2018-13-01", "0000-00-00 00:00:00"] {
            let error = item(&format!("{{\"a\":\"{text}\"}}")).time("a").unwrap_err().to_string();
            assert!(error.starts_with("item 7: a: not a time: write it like"), "{text}: {error}");
        }
    }

    #[test]
    fn a_short_url_has_a_domain_and_a_code() {
        for (text, domain, code) in [
            ("https://s.test/abc", "s.test", Some("abc")),
            ("http://s.test:8080/a/b", "s.test:8080", Some("a/b")),
            ("https://s.test/%F0%9F%A6%A3", "s.test", Some("🦣")),
            ("https://s.test/🦣", "s.test", Some("🦣")),
            ("https://s.test", "s.test", None),
            ("s.test/abc", "s.test", Some("abc")),
        ] {
            let expected = ShortUrl { domain: domain.into(), code: code.map(Into::into) };
            assert_eq!(ShortUrl::parse(text), Some(expected), "{text}");
        }
        for text in ["abc", "/abc", "mailto:a@b", "https://s.test/%ff"] {
            assert_eq!(ShortUrl::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_object_that_is_none_is_told_apart_from_one_that_is_absent() {
        assert_eq!(item(r#"{"m":{"a":"x"}}"#).text("m.a").unwrap().as_deref(), Some("x"));
        assert_eq!(item(r#"{"m":null}"#).text("m.a").unwrap(), None);
        let error = item(r#"{"m":[1]}"#).text("m.a").unwrap_err().to_string();
        assert_eq!(error, "item 7: m.a: expected an object around it");
    }
}
