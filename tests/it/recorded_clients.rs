//! The requests of clients that cannot be run here, byte for byte as they send them (`tests/fixtures/clients`).

use std::path::Path;

use harness::{Answer, Resolver};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One request, and what the client needs of its answer.
#[derive(Deserialize)]
struct Step {
    step: String,
    /// Method, path with its query, and body.
    request: (String, String, Option<String>),
    status: u16,
    /// By JSON pointer.
    members: Map<String, Value>,
}

/// Sends a client's requests; its bodies have this media type.
async fn replay(file: &str, content_type: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/clients").join(file);
    let steps: Vec<Step> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let mut code = String::new();
    for Step { step, request: (method, path, body), status, members } in steps {
        let method: Method = method.parse().unwrap();
        let request = resolver.api.http().request(method, format!("{}{path}", resolver.api.url()));
        let request = request.header("X-Api-Key", resolver.api.key());
        let request = match body {
            Some(body) => request.header(CONTENT_TYPE, content_type).body(body),
            None => request,
        };
        let answer = Answer::to(request).await.unwrap();
        assert_eq!(answer.status, status, "{file}: {step}: {answer:?}");
        let json = answer.json().unwrap_or_default();
        for (pointer, expected) in members {
            let expected = if expected == "{CODE}" { Value::from(code.as_str()) } else { expected };
            assert_eq!(json.pointer(&pointer), Some(&expected), "{file}: {step}: {pointer}: {json}");
        }
        if let Some(its) = json["shortCode"].as_str() {
            its.clone_into(&mut code);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_web_client_gets_what_it_asks_for() {
    replay("web-client.json", "application/json").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mobile_app_gets_what_it_asks_for() {
    replay("mobile-app.json", "text/plain; charset=utf-8").await;
}
