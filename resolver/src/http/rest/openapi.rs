//! `GET /rest/v3/openapi.json`: the API in OpenAPI 3.1. An addition of ours.
//!
//! The document is built from the constants that the handlers use, and its problems from the answers that they give, so that it cannot say
//! what the code does not do. `tests/it/openapi.rs` compares it with a running resolver.

mod bodies;
mod operation;
mod parameters;
mod paths;
mod problems;
mod schemas;

use links::scope::Scope;
use operation::Topic;
use serde_json::{Map, Value, json};

use super::{access, health};

/// The document. `public_url` is what its paths stand behind.
pub(super) fn document(public_url: &str) -> Value {
    let topics = Topic::ALL.map(|topic| json!({ "name": topic.name(), "description": topic.description() }));
    let mut schemas = schemas::schemas();
    schemas.extend(bodies::schemas());
    schemas.extend(problems::schemas());
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "Shortmint",
            "summary": "Short links, in the shapes of Shlink's REST API v3",
            "description": description(),
            "version": env!("CARGO_PKG_VERSION"),
        },
        "servers": [{ "url": public_url, "description": "Where short links of the default domain are." }],
        "security": [{ "ApiKey": [] }],
        "tags": topics,
        "paths": paths::all(),
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey", "in": "header", "name": "X-Api-Key",
                    "description": "A key that the operator has made. It has scopes, and may be limited to one domain or to links of its own.",
                },
            },
            "schemas": schemas,
            "parameters": parameters::all(),
            "headers": parameters::headers(),
        },
    })
}

fn description() -> String {
    let scopes = Scope::ALL.map(|scope| format!("`{scope}`")).join(", ");
    let paragraphs = [
        format!(
            "Clients of Shlink's REST API v3 work unchanged; the level is {}. What Shlink does not have is marked with `x-addition: true`: \
            whole calls, parameters and fields. An addition never changes what is Shlink's.",
            health::API_LEVEL
        ),
        format!("A key has some of the scopes {scopes}; each call says in `x-scope` which one it needs. `{}` is good for all.", Scope::Admin),
        "Slugs may have several segments, and clients send their slashes as they are: the calls of a link, with all that stands below it, take \
        `/rest/v3/short-urls/a/b` too. OpenAPI cannot say that of a path, so that generated clients have to write the slash as `%2F`, which \
        means the same."
            .to_owned(),
        "Problems are told as RFC 9457 has it, up to 16 wrong fields at once. Where Shlink has a type for them it is the same; all others are of the \
        type `about:blank`, and their status says what they are. A method that a path does not have is answered like an unknown path, with 404 \
        (`NoRoute`). A missing key is noticed before a malformed body, which is not read without one."
            .to_owned(),
        format!(
            "Bodies are JSON of at most {} bytes, if nothing else is said; their media type is not looked at. Parameters that are not known are \
            passed over, and so are empty ones. Unknown fields are refused, but for the names of a tag. Lengths of texts \
            count bytes of UTF-8, and no text has a NUL in it.",
            access::BODY_BYTES
        ),
        "Every call with GET is answered with HEAD too, without the body. OPTIONS is answered with 204 anywhere, and every answer to a request \
        with `Origin` may be read by scripts of any origin. Requests that are not HTTP, or whose heads are too large, are answered by the server below \
        the API, without a problem."
            .to_owned(),
    ];
    paragraphs.join("\n\n")
}

/// Marks what Shlink does not have.
fn ours(mut value: Value) -> Value {
    value["x-addition"] = json!(true);
    value
}

/// A text, and what else is said of it.
fn text(description: &str, rest: &[(&str, Value)]) -> Value {
    let mut text = json!({ "type": "string", "description": description });
    for (name, value) in rest {
        text[name] = value.clone();
    }
    text
}

/// The schema of what may be null too.
fn nullable(mut schema: Value) -> Value {
    schema["type"] = json!([schema["type"].take(), "null"]);
    schema
}

/// A time that is sent.
fn moment(description: &str) -> Value {
    json!({
        "type": "string",
        "description": format!(
            "{description} RFC 3339, or a date, which means its beginning. Without an offset it is in the server's time zone, UTC unless the operator \
            says otherwise."
        ),
        "anyOf": [{ "format": "date-time" }, { "format": "date" }, { "format": "local-date-time" }],
        "examples": ["2030-12-31T18:00:00+01:00", "2030-12-31", "2030-12-31 18:00:00"],
    })
}

/// An object without any other fields.
fn object(description: &str, required: &[&str], properties: Map<String, Value>) -> Value {
    let mut object = json!({
        "type": "object", "description": description, "properties": properties, "additionalProperties": false,
    });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every `$ref` below a value.
    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    fn operations(document: &Value) -> Vec<(String, String, &Value)> {
        let paths = document["paths"].as_object().unwrap();
        let of_path = |(path, item)| {
            let item: &Value = item;
            let path: &String = path;
            item.as_object().unwrap().iter().map(|(method, call)| (method.clone(), path.clone(), call))
        };
        paths.iter().flat_map(of_path).collect()
    }

    #[test]
    fn every_reference_leads_somewhere_and_every_component_is_referred_to() {
        let document = document("https://s.test");
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
        }
        for kind in ["schemas", "parameters", "headers"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                let reference = format!("#/components/{kind}/{name}");
                // A path that does not exist has no place in the document; its answer is described in words.
                assert!(found.contains(reference.as_str()) || name == "NoRoute", "{reference}");
            }
        }
    }

    #[test]
    fn every_call_names_the_parameters_of_its_path_once_and_has_an_id_of_its_own() {
        let document = document("https://s.test");
        let mut ids = BTreeSet::new();
        for (method, path, call) in operations(&document) {
            assert!(ids.insert(call["operationId"].as_str().unwrap()), "{method} {path}");
            let parameters = call["parameters"].as_array().cloned().unwrap_or_default();
            let resolved = parameters
                .iter()
                .map(|parameter| document.pointer(&parameter["$ref"].as_str().unwrap()[1..]).unwrap());
            let (in_path, others): (Vec<_>, Vec<_>) = resolved.partition(|one| one["in"] == "path");
            let names: BTreeSet<_> = in_path.iter().map(|one| one["name"].as_str().unwrap()).collect();
            let wanted: BTreeSet<_> =
                path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(names, wanted, "{method} {path}");
            let distinct: BTreeSet<_> = others.iter().map(|one| one["name"].as_str().unwrap()).collect();
            assert_eq!(distinct.len(), others.len(), "{method} {path}");
        }
    }

    #[test]
    fn calls_with_a_key_tell_what_its_lack_comes_to_and_calls_without_do_not() {
        let document = document("https://s.test");
        for (method, path, call) in operations(&document) {
            let is_open = call["security"] == json!([]);
            assert_eq!(call["x-scope"].is_string(), !is_open, "{method} {path}");
            for status in ["401", "403", "429", "503"] {
                let is_told = call["responses"][status].is_object();
                let is_health = path.ends_with("/health") && status == "503";
                assert_eq!(is_told, !is_open || is_health, "{method} {path} {status}");
            }
        }
    }

    #[test]
    fn paths_stand_behind_the_public_url() {
        assert_eq!(document("https://s.test")["servers"][0]["url"], "https://s.test");
    }
}
