//! The fields of a query, a form or a JSON body.

use serde_json::{Map, Value};
use url::form_urlencoded;

/// Maximum number of fields of a form. No API has so many.
const FIELDS_MAX: usize = 200;

#[derive(Debug, Default)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Reads `application/x-www-form-urlencoded`. Of two fields with one name the last holds.
    pub(crate) fn of_form(text: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(text).take(FIELDS_MAX);
        Self(pairs.map(|(name, value)| (name.into_owned(), value.into())).collect())
    }

    /// Reads a JSON object.
    pub(crate) fn of_json(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok().map(Self)
    }

    /// Returns a text that is not blank, without white space around it.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str().map(str::trim).filter(|text| !text.is_empty())
    }

    pub(crate) fn owned(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// Returns whether there is a field that is null or empty.
    pub(crate) fn is_cleared(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value.is_null() || value.as_str() == Some(""))
    }

    /// Returns whether a field is true, also as a text.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let value = self.0.get(name);
        let is_word = |value: &Value| value.as_str().is_some_and(|text| matches!(text, "true" | "on" | "1"));
        value.is_some_and(|value| *value == true || is_word(value))
    }

    /// Returns a number, also one that is written as a text.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        let value = self.0.get(name)?;
        value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
    }

    /// Returns the texts of a list; `None` without one.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let items = self.0.get(name)?.as_array()?;
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_and_json_say_the_same() {
        let form = Fields::of_form(b"url=+a%2Fb+&reuse=true&limit=5&empty=&url2=x&url2=y");
        let json = br#"{"url":"a/b","reuse":true,"limit":5,"empty":null,"url2":"y"}"#;
        let json = Fields::of_json(json).unwrap();
        for fields in [form, json] {
            assert_eq!((fields.text("url"), fields.text("url2")), (Some("a/b"), Some("y")));
            assert_eq!((fields.is_on("reuse"), fields.number("limit")), (true, Some(5)));
            assert!(fields.is_cleared("empty") && !fields.is_cleared("absent"));
            assert_eq!(fields.text("empty"), None);
        }
        assert!(Fields::of_json(b"[]").is_none() && Fields::of_json(b"a=b").is_none());
    }
}
