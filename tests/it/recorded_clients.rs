//! Recorded requests of clients that cannot run here, replayed byte for byte
//! (`tests/fixtures/clients`).

use std::path::Path;

use harness::{Answer, Resolver};
use reqwest::{Method, header::CONTENT_TYPE};
use serde::Deserialize;
use serde_json::{Map, Value};

/// A recorded request, and the parts of the response that the client needs.
#[derive(Deserialize)]
struct Step {
    step: String,
    /// The method, the path with its query, and the body.
    request: (String, String, Option<String>),
    status: u16,
    /// The expected members of the response by JSON pointer. The value `{CODE}` stands for the last
    /// short code in a response.
    members: Map<String, Value>,
}

/// Replays the requests of a file. Bodies are sent with this content type.
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
