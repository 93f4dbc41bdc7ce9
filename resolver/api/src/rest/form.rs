//! Bodies of web forms. Shlink takes them wherever it takes JSON, and shell scripts of its clients
//! send them.

use hyper::{
    HeaderMap,
    body::Bytes,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::{problem::Problem, query::name_of_list};

/// Maximum length of a form in bytes, whatever the limit of its route: it is decoded on a
/// listener's thread, and the decoded text is on no account.
const BYTES: usize = 64 * 1024;
/// Maximum number of fields of a form. A link has about twenty, and a hundred tags.
const FIELDS: usize = 256;

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Returns whether a body is a form. JSON with the media type of a form is JSON: curl sends it that
/// way by default.
pub(super) fn is_one(headers: &HeaderMap, body: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_form = kind.get(..FORM.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(FORM));
    is_form && !matches!(body.trim_ascii_start().first(), None | Some(b'{' | b'['))
}

/// Converts a form to equivalent JSON. An empty field is null. A form that is too long is refused
/// before it is decoded.
pub(super) fn read(body: &[u8]) -> Result<Bytes, Problem> {
    if body.len() > BYTES {
        return Err(Problem::BodyTooLarge { limit: BYTES });
    }
    if body.iter().filter(|byte| **byte == b'&').count() >= FIELDS {
        return Err(Problem::TooManyValues { most: FIELDS as u64 });
    }
    let mut fields: Map<String, Value> = Map::new();
    for (name, value) in form_urlencoded::parse(body) {
        let value = if value.is_empty() { Value::Null } else { Value::String(value.into_owned()) };
        match name_of_list(&name) {
            Some(list) => match fields.entry(list).or_insert_with(|| Value::Array(Vec::new())) {
                Value::Array(items) => items.push(value),
                // As in PHP, the last of two fields with the same name wins.
                other => *other = Value::Array(vec![value]),
            },
            None => {
                fields.insert(name.into_owned(), value);
            }
        }
    }
    Ok(Value::Object(fields).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(kind: &'static str, body: &'static str) -> String {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        if !is_one(&headers, body.as_bytes()) {
            return body.to_owned();
        }
        String::from_utf8(read(body.as_bytes()).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_form_is_read_as_the_json_that_says_the_same() {
        let form = "application/x-www-form-urlencoded; charset=utf-8";
        for (body, json) in [
            ("longUrl=https%3A%2F%2Fa.b%2F&title=a+b", r#"{"longUrl":"https://a.b/","title":"a b"}"#),
            ("tags[]=a&tags%5B1%5D=b&title=", r#"{"tags":["a","b"],"title":null}"#),
            ("tags=a&tags[]=b", r#"{"tags":["b"]}"#),
            ("a[b]=1", r#"{"a[b]":"1"}"#),
            ("x", r#"{"x":null}"#),
            ("", ""),
            (" {\"longUrl\":1}", " {\"longUrl\":1}"),
        ] {
            assert_eq!(converted(form, body), json, "{body}");
        }
        assert_eq!(converted("application/json", "a=b"), "a=b");
        assert_eq!(converted("Application/X-WWW-form-urlencoded", "a=b"), r#"{"a":"b"}"#);
    }

    #[test]
    fn a_form_is_refused_before_it_is_decoded() {
        let long = |bytes: usize| format!("title={}", "x".repeat(bytes - "title=".len()));
        assert!(read(long(BYTES).as_bytes()).is_ok());
        let refused = read(long(BYTES + 1).as_bytes());
        assert!(matches!(refused, Err(Problem::BodyTooLarge { limit: BYTES })), "{refused:?}");
        assert!(read("a=&".repeat(FIELDS - 1).as_bytes()).is_ok());
        let refused = read("a=&".repeat(FIELDS).as_bytes());
        assert!(matches!(refused, Err(Problem::TooManyValues { most: 256 })), "{refused:?}");
    }
}
