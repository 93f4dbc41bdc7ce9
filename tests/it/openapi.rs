//! The API matches its OpenAPI document: schemathesis makes valid and invalid calls of every
//! operation in `/rest/v3/openapi.json` and compares every response with the document. The router
//! knows no method that the document lacks. `tests/run` installs schemathesis.

use std::time::Duration;

use harness::{Launch, Resolver, Scratch, installed::in_environment};
use reqwest::Method;
use serde_json::Value;

/// The call that adds a rule for targets.
const RULE: &str = "setTarget";
/// The call whose answer does not end.
const STREAM: &str = "watchVisits";
const RUN_WITHIN: Duration = Duration::from_secs(400);
/// The environment variable with the folder of the Python environment that has schemathesis, and
/// the folder without it. `tests/run` creates it.
const VENV: (&str, &str) = ("SHORTMINT_SCHEMATHESIS", "target/venv-schemathesis");
/// The problem type for a method and path without a route.
const NO_ROUTE: &str = "https://shlink.io/api/error/not-found";

/// Hooks that generate values for the document's formats. Without them most calls meant to be valid
/// would be invalid.
const HOOKS: &str = r#"
import schemathesis
from hypothesis import strategies as st

word = st.from_regex(r"[a-z0-9]{1,12}", fullmatch=True)
host = st.builds("{}.example".format, st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True))
octet = st.integers(0, 255)
address = st.builds("{}.{}.{}.{}".format, octet, octet, octet, octet)
line = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)
date = st.builds("{:04}-{:02}-{:02}".format, st.integers(1970, 2100), st.integers(1, 12), st.integers(1, 28))
sixty = st.integers(0, 59)
for name, strategy in {
    "iri": st.builds("https://{}/{}".format, host, word),
    "authority": host,
    "host-pattern": st.one_of(st.builds("*.{}".format, host), host),
    "slug": st.uuids().map(str),
    "path-prefix": word.map("{}/".format),
    "tag": word,
    "keyspace": st.just("default"),
    "country": st.sampled_from(["DE", "FR", "ZW"]),
    "address-pattern": st.one_of(address, address.map("{}/24".format), st.builds("{}.*.{}.*".format, octet, octet)),
    "path-pattern": word.map("/{}/#/**".format),
    "line": line,
    "external-id": word,
    "fallback-target": st.one_of(st.builds("https://{}/{}".format, host, word), word.map("/{}".format)),
    "query-template": word.map("utm_source={{domain}}&utm_campaign={}".format),
    "password": line,
    "reason": line,
    "idempotency-key": st.from_regex(r"[!-~]{1,12}", fullmatch=True),
    "date": date,
    "local-date-time": st.builds("{} {:02}:{:02}:{:02}".format, date, st.integers(0, 23), sixty, sixty),
    "date-time": st.builds("{}T{:02}:{:02}:{:02}+01:00".format, date, st.integers(0, 23), sixty, sixty),
}.items():
    schemathesis.openapi.format(name, strategy)
"#;

/// The settings of schemathesis, each exception with its reason.
const SETTINGS: &str = r#"
hooks = "hooks.py"
seed = 7
continue-on-failure = true

[auth.openapi.ApiKey]
api_key = "${OPENAPI_KEY}"

[generation]
max-examples = 6
allow-x00 = false
database = "none"

[checks]
# As Shlink does, a wrong method is answered with 404, and OPTIONS is answered anywhere: another test looks at methods.
unsupported_method.enabled = false
allow_header_conformance.enabled = false
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "409", "412", "413", "422"]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "412", "422"]

# Each item has a result of its own: a wrong one does not fail the call.
[[operations]]
include-operation-id = ["createShortUrls", "fillReservation"]
checks.negative_data_rejection.enabled = false

# What they take depends on what no schema knows: other links, the default domain, which texts are URLs or hosts. A JSON number may be
# written with a fraction of zero, which a count may not.
[[operations]]
include-operation-id = [
    "createShortUrl", "editShortUrl", "setRedirectRules", "editDomainRedirects", "editDomain", "setTarget", "reserve", "createWebhook",
    "editWebhook",
    # An interval has to fit the length of the range.
    "getStats",
    "explainShortUrl",
    "undoShortUrlEdit",
    # A moment has to be in the future.
    "scheduleShortUrlEdit",
    "changeShortUrls",
    # Two colours have to differ, and a list, codes and a reservation exclude each other.
    "packQrCodes",
]
checks.positive_data_acceptance.enabled = false

# To go through all that is at the border of their schemas takes a minute; they are called with random bodies instead.
[[operations]]
include-operation-id = ["createShortUrl", "createShortUrls", "changeShortUrls", "editShortUrl", "scheduleShortUrlEdit", "setRedirectRules", "fillReservation"]
phases.coverage.enabled = false
"#;

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_sample_of_calls_are_what_the_document_describes() {
    // Creates are among them, because most calls want a link that exists.
    const CREATE: &str = "createShortUrl";
    compare_answers(|ids| {
        let others = ids.iter().filter(|id| *id != CREATE && *id != RULE && *id != STREAM);
        let sample: Vec<String> = others.step_by(4).cloned().chain([CREATE.to_owned()]).collect();
        vec![sample]
    })
    .await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn every_answer_is_one_that_the_document_describes() {
        compare_answers(|ids| {
            let others = ids.iter().filter(|id| *id != RULE && *id != STREAM).cloned();
            // Once a rule allows some hosts, links to all others are refused, so it comes last.
            vec![others.collect(), vec![RULE.to_owned()]]
        })
        .await;
    }
}

/// Calls the operations that `choose` returns of all ids, one list after the other.
async fn compare_answers(choose: impl FnOnce(&[String]) -> Vec<Vec<String>>) {
    let (scratch, resolver) = (Scratch::new().unwrap(), Resolver::embedded().unwrap().start().await.unwrap());
    let mut document = document(&resolver).await;
    close(&mut document["components"]["schemas"]);
    let parameters = document["components"]["parameters"].as_object_mut().unwrap();
    parameters.values_mut().for_each(allow_empty);
    let path = |name: &str| scratch.path().join(name);
    std::fs::write(path("openapi.json"), document.to_string()).unwrap();
    std::fs::write(path("hooks.py"), HOOKS).unwrap();
    std::fs::write(path("schemathesis.toml"), SETTINGS).unwrap();

    for chosen in choose(&operation_ids(&document)) {
        let tested = chosen.len();
        let program = in_environment(VENV.0, VENV.1, "schemathesis").unwrap();
        let schemathesis = Launch::new(&scratch, "schemathesis", program)
            .env("PYTHONPATH", scratch.path())
            .env("OPENAPI_KEY", resolver.api.key())
            .args(["--config-file", "schemathesis.toml", "run", "openapi.json", "--no-color"])
            .args(["--url", resolver.api.url()])
            .args(chosen.iter().flat_map(|id| ["--include-operation-id", id.as_str()]));
        let finished = schemathesis.run(RUN_WITHIN).await.unwrap();
        assert!(finished.status.success(), "{}\n{}", finished.stdout, finished.stderr);
        assert!(finished.stdout.contains(&format!("Tested: {tested}\n")), "{tested}: {}", finished.stdout);
        let links = resolver.api.http().get(format!("{}/rest/v3/short-urls", resolver.api.url()));
        let links = links.header("X-Api-Key", resolver.api.key()).send().await.unwrap();
        let links: Value = links.json().await.unwrap();
        let created = links["shortUrls"]["pagination"]["totalItems"].as_u64().unwrap();
        assert!(created > 3, "expected links to be created, and not only refused: {created}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_router_knows_the_methods_of_the_document_and_no_others() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let document = document(&resolver).await;
    let described = operations(&document);
    for path in document["paths"].as_object().unwrap().keys() {
        for method in [Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let is_described = described.contains(&(method.clone(), path.clone()));
            let named = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
            let url = format!("{}{}", resolver.api.url(), named.collect::<Vec<_>>().join("/"));
            let call =
                resolver.api.http().request(method.clone(), url).header("X-Api-Key", resolver.api.key());
            let answer = call.send().await.unwrap();
            let kind = answer.headers().get("content-type");
            if is_described && kind.is_some_and(|kind| kind == "text/event-stream") {
                continue;
            }
            let answer = answer.text().await.unwrap();
            // Some responses have no body, or one that is not JSON.
            let kind =
                serde_json::from_str(&answer).map_or(Value::Null, |answer: Value| answer["type"].clone());
            let is_expected = is_described || is_of_link(&method, path);
            assert_eq!(kind != NO_ROUTE, is_expected, "{method} {path}: {answer}");
        }
    }
}

/// Returns whether a call on the path of an action addresses a link instead. With GET, PATCH and
/// DELETE, `bulk`, `bulk-edit` or a trailing `restore`, `move`, `block`, `unblock` or `undo` is
/// part of a short code, which a link may have.
fn is_of_link(method: &Method, path: &str) -> bool {
    let is_name = path.starts_with("/rest/v3/short-urls/bulk")
        || ["/restore", "/move", "/block", "/unblock", "/undo"].iter().any(|verb| path.ends_with(verb));
    is_name && [Method::GET, Method::PATCH, Method::DELETE].contains(method)
}

async fn document(resolver: &Resolver) -> Value {
    // The document needs no API key.
    let answer = resolver.api.get("rest/v3/openapi.json").await.unwrap();
    answer.json().unwrap()
}

/// Returns the methods and paths of the document.
fn operations(document: &Value) -> Vec<(Method, String)> {
    let paths = document["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let methods: Vec<Method> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_ascii_uppercase().parse().unwrap())
            .collect();
        methods.into_iter().map(|method| (method, path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

/// Returns the ids of the document's operations.
fn operation_ids(document: &Value) -> Vec<String> {
    let paths = document["paths"].as_object().unwrap().values();
    let of_path = |item: &Value| -> Vec<String> {
        let calls = item.as_object().unwrap().values();
        calls.map(|call| call["operationId"].as_str().unwrap().to_owned()).collect()
    };
    paths.flat_map(of_path).collect()
}

/// Forbids fields that a schema does not describe. The document itself allows more fields in
/// responses, for later releases.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_open = fields.get("properties").is_some_and(Value::is_object)
                && fields.get("type").is_some_and(|kind| kind == "object")
                && !fields.contains_key("additionalProperties");
            if is_open {
                fields.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            fields.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

/// Allows an empty value of an optional query parameter. The API ignores those, as the document
/// says in words.
fn allow_empty(parameter: &mut Value) {
    let is_optional = parameter["in"] == "query" && parameter["required"] != true;
    if is_optional && parameter["schema"]["type"] != "array" {
        let schema = parameter["schema"].take();
        parameter["schema"] = serde_json::json!({ "anyOf": [schema, { "const": "" }] });
    }
}
