//! `POST /rest/v3/short-urls`

use serde_json::{Map, Value};

use super::{
    json,
    problem::{Invalid, Problem},
    short_url::ShortUrl,
};
use crate::{
    api_key::ApiKeyId,
    create::CreateError,
    http::{Answer, App},
    links::{Draft, LongUrl},
};

/// Shlink cuts titles there too.
const TITLE_BYTES: usize = 512;

/// Creates a link. Shlink answers 200, not 201.
pub(super) async fn create(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Answer, Problem> {
    let draft = draft(app, fields, key)?;
    let created = app.creator.create(draft).await.map_err(|error| match error {
        CreateError::Exhausted => Problem::Exhausted,
        CreateError::NoNumber | CreateError::NoStore | CreateError::Overloaded => Problem::Unavailable,
    })?;
    Ok(json(&ShortUrl::of(app, &created.code, &created.link)))
}

/// Reads the fields and names every one that is wrong, not only the first.
pub(super) fn draft(app: &App, fields: &Map<String, Value>, key: ApiKeyId) -> Result<Draft, Problem> {
    let mut invalid = Vec::new();
    let long_url = read_long_url(app, fields).map_err(|reason| invalid.push(reason)).ok();
    let mut title = None;
    let (mut crawlable, mut forward_query) = (false, true);
    for (name, value) in fields {
        let read = match name.as_str() {
            "longUrl" => Ok(()),
            "title" => read_title(value).map(|text| title = text),
            "crawlable" => read_flag(value, false).map(|flag| crawlable = flag),
            "forwardQuery" => read_flag(value, true).map(|flag| forward_query = flag),
            _ => read_without_effect(name, value),
        };
        if let Err(expected) = read {
            invalid.push(Invalid { field: name.clone(), expected });
        }
    }
    match long_url {
        Some(long_url) if invalid.is_empty() => {
            Ok(Draft { long_url, title, crawlable, forward_query, created_by: key })
        }
        _ => Err(Problem::InvalidData(invalid)),
    }
}

fn read_long_url(app: &App, fields: &Map<String, Value>) -> Result<LongUrl, Invalid> {
    let invalid = |expected| Invalid { field: "longUrl".to_owned(), expected };
    match fields.get("longUrl") {
        Some(Value::String(text)) => {
            LongUrl::parse(text, &app.own_hosts).map_err(|error| invalid(error.to_string()))
        }
        _ => Err(invalid("expected a string with an absolute URL".to_owned())),
    }
}

fn read_title(value: &Value) -> Result<Option<String>, String> {
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

fn read_flag(value: &Value, default: bool) -> Result<bool, String> {
    match value {
        Value::Null => Ok(default),
        Value::Bool(flag) => Ok(*flag),
        _ => Err("expected true, false or null".to_owned()),
    }
}

/// Fields of Shlink's that this version does not carry out pass only with a value that asks for nothing: to accept a slug
/// or an expiry and then ignore it would be worse than an error.
fn read_without_effect(name: &str, value: &Value) -> Result<(), String> {
    let asks_for_nothing = match name {
        "customSlug" | "shortCodeLength" | "validSince" | "validUntil" | "maxVisits" | "domain"
        | "pathPrefix" => value.is_null(),
        "findIfExists" | "validateUrl" => matches!(value, Value::Null | Value::Bool(false)),
        "tags" => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
        _ => return Err("expected no field of this name".to_owned()),
    };
    if asks_for_nothing {
        Ok(())
    } else {
        Err("expected no value: this version does not support it".to_owned())
    }
}
