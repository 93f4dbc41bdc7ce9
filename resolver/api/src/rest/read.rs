//! Reads DTOs from JSON and queries, so that all wrong fields are reported at once.
//!
//! A valid body is parsed straight into its type. Only if that fails is it taken apart: each field
//! is read by itself, and a wrong or unknown one is recorded with what would be right. serde's own
//! errors stop at the first field and name neither the field of a wrong value nor what is expected
//! in the words of the API. (`eserde` would collect errors; it is young.)

use std::collections::HashMap;

use app::{AppError, FieldErrors, InvalidField, values::read_time};
use jiff::{Timestamp, tz::TimeZone};
use schemars::{JsonSchema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{problem::Problem, query::Query};

/// The message for a field that the request does not have.
pub(super) const UNKNOWN: &str = "unknown field";

/// A DTO of a request, whose fields are read one by one if one of them is wrong. Its `Deserialize`
/// needs `#[serde(default)]`, and its schema names all fields.
pub(super) trait Fields: DeserializeOwned + Default + JsonSchema {
    /// Fields that are passed over.
    const IGNORED: &[&str] = &[];

    /// Describes the values that a field takes; as its schema does, unless the type says more.
    fn expected(field: &str) -> String {
        let schema = Self::json_schema(&mut SchemaGenerator::default()).to_value();
        described(&schema["properties"][field]).to_owned()
    }

    /// Returns the names of all fields, in their order.
    fn names() -> Vec<String> {
        let schema = Self::json_schema(&mut SchemaGenerator::default()).to_value();
        let fields = schema["properties"].as_object();
        fields.map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
    }

    fn has(name: &str) -> bool {
        Self::names().iter().any(|one| one == name)
    }

    /// Describes why a field of this name is refused.
    fn refused(_field: &str) -> String {
        UNKNOWN.to_owned()
    }
}

fn described(schema: &Value) -> &'static str {
    let is_any = schema["type"].is_null() && schema["enum"].is_null() && schema["anyOf"].is_array();
    let inner = if is_any { &schema["anyOf"][0] } else { schema };
    let has = |place: &str, value: Value| match &inner[place] {
        Value::Array(all) => all.contains(&value),
        one => *one == value,
    };
    let is_flag = has("type", json!("boolean")) || has("enum", json!(true));
    let is_optional = is_any || has("type", json!("null")) || has("enum", Value::Null);
    match (is_flag, is_optional) {
        _ if has("type", json!("array")) => "expected an array",
        _ if has("type", json!("integer")) => "expected a whole number",
        (true, false) => "expected true or false",
        (true, true) => "expected true, false or null",
        (false, false) => "expected a string",
        (false, true) => "expected a string, or null",
    }
}

/// Reads the fields of a JSON object; wrong ones are in the second value. An empty body has no
/// fields. Nor has an empty array: that is what PHP writes for an empty object.
pub(super) fn read_fields<T: Fields>(body: &[u8]) -> Result<(T, FieldErrors), Problem> {
    // serde would read an array as the fields in their order.
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    match is_object.then(|| serde_json::from_slice(body)) {
        Some(Ok(fields)) => Ok((fields, FieldErrors::default())),
        _ => Ok(read_object(object(body)?)),
    }
}

/// Parses a JSON object; see [`read_fields`].
pub(super) fn object(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let is_empty_array =
        || matches!(body.trim_ascii(), [b'[', inside @ .., b']'] if inside.trim_ascii().is_empty());
    if body.is_empty() || is_empty_array() {
        return Ok(Map::new());
    }
    serde_json::from_slice(body).map_err(|_| Problem::MalformedBody)
}

/// Reads a parsed object. Wrong fields are in the second value.
pub(super) fn read_object<T: Fields>(mut fields: Map<String, Value>) -> (T, FieldErrors) {
    fields.retain(|name, _| !T::IGNORED.contains(&name.as_str()));
    let read = |fields| serde_json::from_value::<T>(Value::Object(fields));
    let mut wrong = FieldErrors::default();
    if let Ok(all) = read(fields.clone()) {
        return (all, wrong);
    }
    let mut right = Map::new();
    for (name, value) in fields {
        if wrong.is_full() {
            break;
        }
        if !T::has(&name) {
            wrong.add(&name, T::refused(&name));
        } else if read(Map::from_iter([(name.clone(), value.clone())])).is_ok() {
            right.insert(name, value);
        } else {
            wrong.add(&name, T::expected(&name));
        }
    }
    // Fields that are valid one by one are valid together. Should they not be, the request is
    // refused, because an edit without its fields would seem to have been made.
    let read = read(right).unwrap_or_else(|error| {
        wrong.add("(the fields)", error.to_string());
        T::default()
    });
    (read, wrong)
}

/// Reads the parameters of a query. Empty ones, and those of other types, are passed over; unknown
/// ones were refused before.
pub(super) fn read_query<T: Fields>(query: &Query) -> (T, FieldErrors) {
    let mut fields = query.fields();
    if let Ok(read) = serde_json::from_value(Value::Object(fields.clone())) {
        return (read, FieldErrors::default());
    }
    fields.retain(|name, _| T::has(name));
    read_object(fields)
}

pub(super) fn time_range(
    (start, end): (Option<&str>, Option<&str>),
    zone: &TimeZone,
    wrong: &mut FieldErrors,
) -> (Option<Timestamp>, Option<Timestamp>) {
    let mut time = |name, text: Option<&str>| {
        wrong.note(name, text.map(|text| read_time(text, zone)).transpose()).flatten()
    };
    (time("startDate", start), time("endDate", end))
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
