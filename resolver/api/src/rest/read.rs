//! Reads DTOs from JSON and queries, so that all wrong fields are reported at once.
//!
//! A valid body is parsed straight into its type. Only if that fails is it taken apart: each field
//! is read by itself, and a wrong or unknown one is recorded with what was expected. serde's own
//! errors stop at the first field and name neither the field of a wrong value nor what is expected
//! in the words of the API. (`eserde` would collect errors; it is young.)

use std::{collections::HashMap, iter};

use app::{AppError, FieldErrors, InvalidField};
use serde::de::{DeserializeOwned, value::MapDeserializer};
use serde_aux::serde_introspection::serde_introspect;
use serde_json::{Map, Value};

use super::{problem::Problem, query::Query};

/// The message for a field that the request does not have.
pub(super) const UNKNOWN: &str = "expected no field of this name";

/// A DTO of a request, whose fields are read one by one if one of them is wrong. Its `Deserialize`
/// needs `#[serde(default)]`.
pub(super) trait Fields: DeserializeOwned + Default {
    /// Describes the values that a field takes.
    fn expected(field: &str) -> String;

    /// Describes why a field of this name is refused.
    fn refused(_field: &str) -> String {
        UNKNOWN.to_owned()
    }
}

/// Reads the fields of a JSON object. An empty body is an object without fields. So is an empty
/// array: that is what PHP writes for an empty object.
pub(super) fn read_fields<T: Fields>(body: &[u8]) -> Result<(T, FieldErrors), Problem> {
    if is_empty(body) {
        return Ok((T::default(), FieldErrors::default()));
    }
    let mut wrong = FieldErrors::default();
    let fields = match parse(body) {
        Some(fields) => fields,
        None => read_each(object(body)?, &mut wrong),
    };
    Ok((fields, wrong))
}

/// Parses a JSON object whose fields are all valid. serde would read an array as the fields in
/// their order.
pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    is_object.then(|| serde_json::from_slice(body).ok()).flatten()
}

/// Parses a JSON object; see [`read_fields`].
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    if is_empty(body) {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|_| Problem::MalformedBody)
}

fn is_empty(body: &[u8]) -> bool {
    let is_empty_array =
        || matches!(body.trim_ascii(), [b'[', inside @ .., b']'] if inside.trim_ascii().is_empty());
    body.is_empty() || is_empty_array()
}

/// Like [`read_object`], but records wrong fields beside others.
pub(super) fn read_each<T: Fields>(fields: Map<String, Value>, wrong: &mut FieldErrors) -> T {
    let known = serde_introspect::<T>();
    let mut right = Map::new();
    for (name, value) in fields {
        if wrong.is_full() {
            break;
        }
        if !known.contains(&name.as_str()) {
            wrong.note::<()>(&name, Err(T::refused(&name)));
            continue;
        }
        let alone = MapDeserializer::<_, serde_json::Error>::new(iter::once((name.as_str(), &value)));
        match T::deserialize(alone) {
            Ok(_) => {
                right.insert(name, value);
            }
            Err(_) => {
                wrong.note::<()>(&name, Err(T::expected(&name)));
            }
        }
    }
    // Fields that are valid one by one are valid together. Should they not be, the request is
    // refused, because an edit without its fields would seem to have been made.
    serde_json::from_value(Value::Object(right)).unwrap_or_else(|error| {
        wrong.note::<()>("(the fields)", Err(error.to_string()));
        T::default()
    })
}

/// Reads a parsed object field by field. Wrong fields are in the second value.
pub(super) fn read_object<T: Fields>(fields: Map<String, Value>) -> (T, FieldErrors) {
    let mut wrong = FieldErrors::default();
    (read_each(fields, &mut wrong), wrong)
}

/// Reads the parameters of a query. Unknown and empty ones are passed over.
pub(super) fn read_query<T: Fields>(query: &Query) -> (T, FieldErrors) {
    let mut fields = Map::new();
    for name in serde_introspect::<T>() {
        let value = match name.strip_suffix("[]") {
            Some(list) => Some(query.list(list).map(Value::from).collect()),
            None => query.text(name).map(Value::from),
        };
        fields.extend(value.map(|value| ((*name).to_owned(), value)));
    }
    read_object(fields)
}

/// Sorts the wrong fields that an error names by their places in the request. The long URL comes
/// first, since a request needs it, and what the request does not have comes next.
pub(super) fn in_order(error: AppError, body: &[u8]) -> AppError {
    let AppError::Invalid(mut wrong) = error else { return error };
    if wrong.len() < 2 {
        return AppError::Invalid(wrong);
    }
    let fields: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
    let places: HashMap<&str, usize> =
        fields.keys().enumerate().map(|(place, name)| (name.as_str(), place + 1)).collect();
    wrong.sort_by_key(|InvalidField { field, .. }| match field.as_str() {
        name if name == app::Field::LongUrl.name() => 0,
        name if name.starts_with('(') => usize::MAX,
        name => places.get(name).copied().unwrap_or_default(),
    });
    AppError::Invalid(wrong)
}
