//! `GET /rest/v3/openapi.json`: the API in OpenAPI 3.1. An addition to Shlink's API.
//!
//! The document is made from the table of routes, from the schemas of the DTOs, and from the
//! problems that calls are answered with, so that it cannot say what the code does not do.
//! `tests/it/openapi.rs` compares it with a running resolver.
//!
//! Rejected: utoipa, whose attributes take literals only, so that limits would stand twice.

mod operation;
mod parameters;
mod problems;

use std::sync::Arc;

use hyper::{Method, StatusCode};
use links::scope::Scope;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{
    call::Call,
    docs::{TOPICS, Topic},
    health,
    json::JSON,
    problem::Problem,
    route::{BODY_BYTES, Handler, Route},
};
use operation::{describe, generator};
pub use problems::problem_schemas;
use web::{Answer, answer};

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/rest/v3/openapi.json", Handler::Open(|call| Box::pin(show(call))))
            .document("describe", Topic::Service, "Describe the API")
            .addition()
            .answers::<dto::OpenApi>("The API in OpenAPI 3.1."),
    ]
}

async fn show(call: &Call) -> Result<Answer, Problem> {
    let api = &call.api;
    let write = || document(&api.router.routes, &api.public_url).to_string().into();
    Ok(answer(StatusCode::OK, JSON, api.openapi.get_or_init(write).clone()))
}

/// Writes the document. `public_url` is the address that its paths belong to.
fn document(routes: &[Arc<Route>], public_url: &str) -> Value {
    // Requests and answers differ in which fields are required.
    let mut requests = generator(SchemaSettings::draft2020_12().for_deserialize());
    let mut answers = generator(SchemaSettings::draft2020_12().for_serialize());
    let (mut parameters, mut paths) = (Map::new(), Map::new());
    for route in routes {
        let Some(id) = route.id else { continue };
        let operation = describe(route, id, (&mut requests, &mut answers), &mut parameters);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let topics = TOPICS.map(|(_, name, description)| json!({ "name": name, "description": description }));
    let mut schemas = requests.take_definitions(true);
    schemas.extend(answers.take_definitions(true));
    schemas.extend(problem_schemas());
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
        "paths": paths,
        "components": {
            "securitySchemes": {
                "ApiKey": {
                    "type": "apiKey", "in": "header", "name": "X-Api-Key",
                    "description": "A key that the operator has created. It has scopes, and may be limited to one domain or to its own links.",
                },
            },
            "schemas": schemas,
            "parameters": parameters,
            "headers": parameters::headers(),
        },
    })
}

fn description() -> String {
    let scopes = Scope::ALL.map(|scope| format!("`{scope}`")).join(", ");
    let paragraphs = [
        format!(
            "Clients of Shlink's REST API v3 work unchanged; the level is {}. Calls, parameters and fields that Shlink lacks are marked with \
             `x-addition: true`. An addition never changes what is Shlink's.",
            health::API_LEVEL
        ),
        format!("A key has some of the scopes {scopes}; each call names the one it needs in `x-scope`. `{}` includes all.", Scope::Admin),
        "Slugs may have several segments, and clients send their slashes unescaped: the calls of a link, with all paths below it, take \
         `/rest/v3/short-urls/a/b` too. OpenAPI has no such paths, so generated clients have to write the slash as `%2F`, which \
         means the same."
            .to_owned(),
        "Problems follow RFC 9457, with up to 16 wrong fields at once. Where Shlink has a type for them it is the same; all others have the \
         type `about:blank`, and their status says what they are. A method that a path does not have is answered like an unknown path, with 404 \
         (`NoRoute`). A missing key is reported before a malformed body, which is not read without one."
            .to_owned(),
        format!(
            "Bodies are JSON of at most {BODY_BYTES} bytes, unless a call says otherwise; their media type is ignored. Empty \
             parameters are ignored. Unknown parameters and fields are refused with 400, so that a misspelled filter is not taken for none; \
             of a parameter, the problem names the known one that is like it. Lengths of texts count bytes of UTF-8, and no text contains NUL."
        ),
        "Every call with GET is answered with HEAD too, without the body. OPTIONS is answered with 204 anywhere, and every answer to a request \
         with `Origin` may be read by scripts of any origin. Requests that are not HTTP, or whose heads are too large, are answered by the server below \
         the API, without a problem."
            .to_owned(),
    ];
    paragraphs.join("\n\n")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shown() -> Value {
        document(&crate::rest::router(true).routes, "https://s.test")
    }

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
        let document = shown();
        assert_eq!(document["servers"][0]["url"], "https://s.test");
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in &found {
            assert!(document.pointer(reference.strip_prefix('#').unwrap()).is_some(), "{reference}");
        }
        for kind in ["schemas", "parameters", "headers"] {
            for name in document["components"][kind].as_object().unwrap().keys() {
                let reference = format!("#/components/{kind}/{name}");
                // A path that does not exist has no place in the document; its answer is described
                // in words.
                assert!(found.contains(reference.as_str()) || name == "NoRoute", "{reference}");
            }
        }
    }

    #[test]
    fn every_call_names_the_parameters_of_its_path_once_and_has_an_id_of_its_own() {
        let document = shown();
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
        let document = shown();
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
}
