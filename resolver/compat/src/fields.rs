//! The fields of a query or a body.

use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Map<String, Value>);

impl Fields {
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
        let is_word = matches!(self.text(name), Some("true" | "on" | "1"));
        is_word || self.0.get(name).is_some_and(|value| *value == true)
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
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_and_json_say_the_same() {
        for body in [
            json!({ "url": " a/b ", "reuse": "true", "limit": "5", "empty": "" }),
            json!({ "url": "a/b", "reuse": true, "limit": 5, "empty": null }),
        ] {
            let Value::Object(fields) = body else { unreachable!("an object") };
            let fields = Fields(fields);
            assert_eq!(fields.text("url"), Some("a/b"));
            assert_eq!((fields.is_on("reuse"), fields.number("limit")), (true, Some(5)));
            assert!(fields.is_cleared("empty") && !fields.is_cleared("absent"));
            assert_eq!(fields.text("empty"), None);
        }
    }
}
