//! The fields of a query, a form or a JSON body.

use serde_json::{Map, Value};

#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Map<String, Value>);

impl Fields {
    /// Takes the fields of a body. Numbers and booleans become texts, as a form has them: programs
    /// send a password of digits as a number.
    pub(crate) fn of_json(mut fields: Map<String, Value>) -> Self {
        fields.values_mut().for_each(write_out);
        Self(fields)
    }

    /// Reads a form in parts (RFC 7578), as PHP's curl sends an array.
    pub(crate) fn of_parts(boundary: &str, body: &[u8]) -> Option<Self> {
        let body = std::str::from_utf8(body).ok()?;
        let mut fields = Map::new();
        for part in body.split(&format!("--{boundary}")) {
            // Before the first part and after the last one there is none.
            let Some((head, value)) = part.split_once("\r\n\r\n") else { continue };
            let (_, name) = head.split_once("name=\"")?;
            let (name, _) = name.split_once('"')?;
            fields.insert(name.to_owned(), value.strip_suffix("\r\n").unwrap_or(value).into());
        }
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

/// Returns what separates the parts of a form with this media type; `None` if it is another type.
pub(crate) fn boundary(kind: &str) -> Option<&str> {
    let (kind, parameters) = kind.split_once(';')?;
    let (_, boundary) = parameters.split_once("boundary=")?;
    let boundary = boundary.split(';').next().unwrap_or(boundary).trim().trim_matches('"');
    kind.trim().eq_ignore_ascii_case("multipart/form-data").then_some(boundary)
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
            let fields = Fields::of_json(fields);
            assert_eq!(fields.text("url"), Some("a/b"));
            assert_eq!((fields.is_on("reuse"), fields.number("limit")), (true, Some(5)));
            assert!(fields.is_cleared("empty") && !fields.is_cleared("absent"));
            assert_eq!(fields.text("empty"), None);
        }
    }

    #[test]
    fn forms_in_parts_are_read() {
        let boundary = boundary("Multipart/Form-Data; boundary=\"--x\"; charset=utf-8").unwrap();
        let part = "Content-Disposition: form-data; name=";
        let field = |name: &str, value: &str| format!("----x\r\n{part}\"{name}\"\r\n\r\n{value}\r\n");
        let body = field("url", "a--b") + &field("title", "Ü") + "----x--\r\n";
        let fields = Fields::of_parts(boundary, body.as_bytes()).unwrap();
        assert_eq!((fields.text("url"), fields.text("title")), (Some("a--b"), Some("Ü")));
        assert!(Fields::of_parts("x", b"--x\r\nname: url\r\n\r\na\r\n--x--").is_none());
        assert_eq!(super::boundary("application/json; boundary=x"), None);
    }

    #[test]
    fn numbers_are_texts_and_texts_are_lists() {
        let json = r#"{"password":1234,"tags":["a",7],"words":" b, c,","none":" "}"#;
        let fields = Fields::of_json(serde_json::from_str(json).unwrap());
        assert_eq!(fields.text("password"), Some("1234"));
        let texts = |name| fields.texts(name).unwrap_or_default().join("|");
        assert_eq!((texts("tags"), texts("words")), ("a|7".to_owned(), "b|c".to_owned()));
        assert_eq!((fields.texts("none"), fields.texts("absent")), (None, None));
    }
}
