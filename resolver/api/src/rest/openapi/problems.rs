//! Problems as schemas (RFC 9457): type, title and status of the table of kinds, and the members
//! that some kinds have beside them.

use std::collections::BTreeMap;

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::parameters;
use crate::kind::Kind;

/// Returns the members that problems of a kind have beside the common ones, and whether all have
/// them.
fn members(kind: Kind) -> &'static [(&'static str, bool)] {
    match kind {
        Kind::InvalidData => &[("invalidElements", true), ("expected", true)],
        Kind::NoKey => &[("expectedHeaders", true)],
        Kind::NoShortUrl => &[("shortCode", true), ("domain", false)],
        Kind::SlugTaken => &[("customSlug", true), ("domain", false)],
        Kind::NoDomain => &[("authority", true)],
        Kind::NoTag => &[("tag", true)],
        Kind::TagConflict => &[("oldName", true), ("newName", true)],
        _ => &[],
    }
}

fn schema(kind: Kind) -> Value {
    let (title, name, status) = kind.facts();
    let mut properties = json!({
        "title": { "const": title },
        "type": { "const": name },
        "status": { "const": status.as_u16() },
        "detail": { "type": "string", "description": "What went wrong, for people." },
    });
    let mut required = Vec::new();
    for (name, is_always) in members(kind) {
        properties[name] = match *name {
            "expected" => {
                json!({ "type": "object", "additionalProperties": { "type": "string" }, "x-addition": true })
            }
            "invalidElements" | "expectedHeaders" => {
                json!({ "type": "array", "items": { "type": "string" } })
            }
            _ => json!({ "type": "string" }),
        };
        required.extend(is_always.then_some(*name));
    }
    required.extend(["title", "type", "status", "detail"]);
    json!({
        "type": "object", "description": kind.when(), "properties": properties, "required": required,
    })
}

/// Returns the schemas of all problems, by name.
pub fn problem_schemas() -> Map<String, Value> {
    Kind::all().map(|kind| (format!("{kind:?}"), schema(kind))).collect()
}

/// Returns the answers with these kinds, by status.
pub(super) fn responses(kinds: &[Kind], is_limited: bool) -> Map<String, Value> {
    let mut by_status: BTreeMap<StatusCode, Vec<Kind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.status()).or_default().push(*kind);
    }
    let answer = |(status, kinds): (&StatusCode, &Vec<Kind>)| {
        (status.as_str().to_owned(), response(*status, kinds, is_limited))
    };
    by_status.iter().map(answer).collect()
}

fn response(status: StatusCode, kinds: &[Kind], is_limited: bool) -> Value {
    let name = status.canonical_reason().unwrap_or("Error");
    let schema = |kind: &Kind| json!({ "$ref": format!("#/components/schemas/{kind:?}") });
    let schema = match kinds {
        [only] => schema(only),
        _ => json!({ "anyOf": kinds.iter().map(schema).collect::<Vec<_>>() }),
    };
    let mut headers = Map::new();
    if matches!(status.as_u16(), 429 | 503) {
        headers.insert("Retry-After".to_owned(), parameters::header("RetryAfter"));
    }
    // These are answered before the key is looked up, or have none.
    if is_limited && !matches!(status.as_u16(), 401 | 408 | 413) {
        parameters::add_rate_limit(&mut headers);
    }
    // The schemas describe the kinds.
    let names: Vec<String> = kinds.iter().map(|kind| format!("`{kind:?}`")).collect();
    let mut response = json!({
        "description": format!("{name}: {}", names.join(" or ")),
        "content": { "application/problem+json": { "schema": schema } },
    });
    if !headers.is_empty() {
        response["headers"] = Value::Object(headers);
    }
    response
}

#[cfg(test)]
mod tests {
    use app::{AppError, find_link::LinkName};

    use super::{super::super::problem::Problem, *};
    use crate::authenticate::AuthError;

    #[test]
    fn problems_have_the_members_of_their_schemas() {
        let text = || "x".to_owned();
        let no_link = |domain| AppError::NoLink(LinkName { code: text(), domain });
        for problem in [
            Problem::invalid("title", "x"),
            AuthError::NoKey.into(),
            no_link(None).into(),
            no_link(Some(text())).into(),
            AppError::SlugTaken(LinkName { code: text(), domain: Some(text()) }).into(),
            AppError::NoDomain(text()).into(),
            AppError::NoTag(text()).into(),
            AppError::TagConflict { old: text(), new: text() }.into(),
            AppError::Superseded.into(),
        ] {
            let (schema, (_, body)) = (schema(problem.kind()), problem.shown());
            let body = body.as_object().unwrap();
            for (name, value) in body {
                let schema = &schema["properties"][name];
                assert!(schema.is_object(), "{problem:?} {name}");
                assert!(schema["const"].is_null() || schema["const"] == *value, "{problem:?} {name}");
            }
            let required = schema["required"].as_array().unwrap();
            assert!(required.iter().all(|name| body.contains_key(name.as_str().unwrap())), "{problem:?}");
        }
    }

    #[test]
    fn a_member_that_is_left_out_at_times_is_not_required() {
        let schemas = problem_schemas();
        let missing = &schemas["NoShortUrl"];
        assert_eq!(missing["required"], json!(["shortCode", "title", "type", "status", "detail"]));
        assert!(missing["properties"]["domain"].is_object());
        assert_eq!(schemas["InvalidData"]["properties"]["status"], json!({ "const": 400 }));
        assert_eq!(schemas["Superseded"]["properties"]["type"], json!({ "const": "about:blank" }));
    }

    #[test]
    fn problems_of_one_status_share_an_answer() {
        let answers = responses(&[Kind::NoKey, Kind::WrongKey, Kind::TooManyCalls], true);
        assert_eq!(answers.keys().collect::<Vec<_>>(), ["401", "429"]);
        let schema = &answers["401"]["content"]["application/problem+json"]["schema"];
        assert_eq!(schema["anyOf"].as_array().unwrap().len(), 2);
        assert!(answers["429"]["headers"]["Retry-After"].is_object());
    }
}
