//! Parameters of paths, queries and headers, and headers of answers.

use app::create_link::IDEMPOTENCY_KEY_BYTES;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::super::{docs::Header, route::Route};

/// Adds the parameters of a call to those of the document, by the name of their component. Returns
/// references to them.
pub(super) fn add(
    parameters: &mut Map<String, Value>,
    route: &Route,
    generator: &mut SchemaGenerator,
) -> Vec<Value> {
    let mut of_call: Vec<(String, Value)> = names_in(route.path).map(path_parameter).collect();
    for (name, query) in &route.queries {
        of_call.extend(in_query(name, query(generator).to_value()));
    }
    of_call.extend(route.headers.iter().map(|header| in_header(*header)));
    let reference = |(name, parameter): (String, Value)| {
        let reference = json!({ "$ref": format!("#/components/parameters/{name}") });
        parameters.insert(name, parameter);
        reference
    };
    of_call.into_iter().map(reference).collect()
}

pub(super) fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &str) -> (String, Value) {
    let text = json!({ "type": "string", "minLength": 1 });
    let (description, schema, is_addition) = match name {
        "shortCode" => {
            let description = "The code or slug of a link. A slash in it is written as `%2F`, or as it is: a slug may have several segments.";
            (description, text, false)
        }
        "tag" => ("A tag, percent-encoded.", text, false),
        "domain" => ("A domain with its port, if it has one, or `DEFAULT` for the default one.", text, false),
        "pattern" => ("A pattern as the list shows it, percent-encoded.", text, true),
        "webhook" | "delivery" | "scheduled" => {
            let id = json!({ "type": "integer", "minimum": 1, "maximum": i64::MAX });
            let description = match name {
                "webhook" => "The id of a webhook.",
                "delivery" => "The id of a delivery.",
                _ => "The id of a scheduled edit.",
            };
            (description, id, true)
        }
        _ => {
            let id = json!({ "type": "string", "pattern": "^[0-9a-f]{32}$" });
            ("The id of a reservation.", id, true)
        }
    };
    let mut parameter = json!({
        "name": name, "in": "path", "required": true, "description": description, "schema": schema,
    });
    if is_addition {
        parameter["x-addition"] = json!(true);
    }
    (format!("{name}InPath"), parameter)
}

/// Describes the parameters of a query from the schema of its type.
fn in_query(query: &str, mut schema: Value) -> Vec<(String, Value)> {
    let Some(fields) = schema["properties"].as_object_mut().map(std::mem::take) else { return Vec::new() };
    let required = schema["required"].take();
    let is_required =
        |name: &str| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let parameter = |(name, mut schema): (String, Value)| {
        let mut parameter = json!({ "name": name, "in": "query" });
        if is_required(&name) {
            parameter["required"] = json!(true);
        }
        for key in ["description", "x-addition"] {
            if let Some(value) = schema.as_object_mut().and_then(|schema| schema.remove(key)) {
                parameter[key] = value;
            }
        }
        // A query has no null: a parameter is there or not.
        if schema["type"] == json!(["string", "null"]) {
            schema["type"] = json!("string");
        }
        parameter["schema"] = schema;
        let component = format!("{query}.{}", name.trim_end_matches("[]"));
        (component, parameter)
    };
    fields.into_iter().map(parameter).collect()
}

fn in_header(header: Header) -> (String, Value) {
    let (component, name, description, schema) = match header {
        Header::IfMatch => (
            "IfMatch",
            "If-Match",
            "The `ETag` that the link must still have, several of them, or `*` for any. Without it the call overwrites later changes of others.",
            json!({ "type": "string", "examples": ["\"0\""] }),
        ),
        Header::IdempotencyKey => (
            "IdempotencyKey",
            "Idempotency-Key",
            "A random name of this call, in visible ASCII characters. If the answer is lost, the same call with the same key returns the link that was created the first time. In a call for many links each item has this key together with its place. It belongs to the API key of the call, and is remembered for as long as the operator configured. A call with `findIfExists` ignores it (draft-ietf-httpapi-idempotency-key-header).",
            json!({
                "type": "string", "format": "idempotency-key", "minLength": 1, "maxLength": IDEMPOTENCY_KEY_BYTES
            }),
        ),
    };
    let parameter = json!({
        "name": name, "in": "header", "description": description, "schema": schema, "x-addition": true,
    });
    (component.to_owned(), parameter)
}

pub(super) fn header(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// Adds the two headers with the rest of the caller's rate.
pub(super) fn add_rate_limit(headers: &mut Map<String, Value>) {
    headers.insert("RateLimit-Policy".to_owned(), header("RateLimitPolicy"));
    headers.insert("RateLimit".to_owned(), header("RateLimit"));
}

/// Describes all headers of answers, by name.
pub(super) fn headers() -> Value {
    json!({
        "ETag": {
            "description": "The version of the link in quotes. With it in `If-Match` a call does not overwrite later changes of others.",
            "required": true,
            "schema": { "type": "string", "description": "The version in quotes.", "pattern": "^\"[0-9]+\"$" },
            "example": "\"0\"",
            "x-addition": true,
        },
        "RetryAfter": {
            "description": "The number of seconds to wait before the next call.",
            "required": true,
            "schema": { "type": "integer", "minimum": 1 },
        },
        "RateLimitPolicy": {
            "description": "The number of calls (`q`) in a window of seconds (`w`) that this key or this client may make; only where calls are limited (draft-ietf-httpapi-ratelimit-headers).",
            "schema": { "type": "string" },
            "example": "\"key\";q=600;w=60",
            "x-addition": true,
        },
        "RateLimit": {
            "description": "The number of calls left (`r`), and the seconds until all are available again (`t`).",
            "schema": { "type": "string" },
            "example": "\"key\";r=599;t=1",
            "x-addition": true,
        },
    })
}
