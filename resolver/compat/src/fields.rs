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

    /// Reads a JSON object. Its numbers and booleans become texts, as a form has them: programs
    /// send a password of digits as a number.
    pub(crate) fn of_json(text: &[u8]) -> Option<Self> {
        let mut fields: Map<String, Value> = serde_json::from_slice(text).ok()?;
        fields.values_mut().for_each(write_out);
        Some(Self(fields))
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

    /// Returns whether a field is true.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| matches!(text, "true" | "on" | "1"))
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name)?.parse().ok()
    }

    /// Returns the texts of a list, or of one text with commas; `None` without either.
    pub(crate) fn texts(&self, name: &str) -> Option<Vec<String>> {
        let texts: Vec<&str> = match self.0.get(name)? {
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect(),
            _ => self.text(name)?.split(',').map(str::trim).filter(|text| !text.is_empty()).collect(),
        };
        Some(texts.into_iter().map(str::to_owned).collect())
    }
}

fn write_out(value: &mut Value) {
    match value {
        Value::Number(_) | Value::Bool(_) => *value = value.to_string().into(),
        Value::Array(items) => items.iter_mut().for_each(write_out),
        Value::Null | Value::String(_) | Value::Object(_) => {}
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
        let json = br#"{"password":1234,"tags":["a",7],"words":" b, c,","none":" "}"#;
        let fields = Fields::of_json(json).unwrap();
        assert_eq!(fields.text("password"), Some("1234"));
        let texts = |name| fields.texts(name).unwrap_or_default().join("|");
        assert_eq!((texts("tags"), texts("words")), ("a|7".to_owned(), "b|c".to_owned()));
        assert_eq!((fields.texts("none"), fields.texts("absent")), (None, None));
        assert!(Fields::of_json(b"[]").is_none() && Fields::of_json(b"a=b").is_none());
    }
}
