//! Invalid REST calls. Every call is refused with its status, its problem type and the names of its
//! invalid fields, and changes no state.

mod cases;

use std::collections::BTreeMap;

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, expect_problem, get};
use cases::{bodies, domains_tags_and_targets, fields, long_urls, queries, rules};

const URL: &str = "https://example.com/page";
const INVALID: &str = "invalid-data";
const NO_LINK: &str = "short-url-not-found";
const NO_TYPE: &str = "about:blank";

/// The API key that a call is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Admin,
    /// A key that does not exist.
    Stranger,
    /// No key.
    Nobody,
    /// A key with the scope `read` only.
    Reader,
    /// A key with the scope `create` only.
    Creator,
    /// A key with all scopes but `domains` and `admin`, restricted to its own links.
    OwnLinksOnly,
    /// A key with all scopes but `domains` and `admin`, restricted to another domain.
    OtherDomain,
}

/// A call and its expected problem response.
struct Case {
    method: Method,
    path: String,
    who: Who,
    headers: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
    status: u16,
    kind: &'static str,
    /// The expected `invalidElements`; empty for problems without that member.
    fields: Vec<String>,
}

fn case(method: Method, path: impl Into<String>, status: u16, kind: &'static str) -> Case {
    let (path, headers, fields) = (path.into(), Vec::new(), Vec::new());
    Case { method, path, who: Who::Admin, headers, body: None, status, kind, fields }
}

impl Case {
    fn body(self, body: &Value) -> Self {
        self.bytes(body.to_string())
    }

    fn bytes(self, body: impl Into<Vec<u8>>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    fn names(self, fields: &[&str]) -> Self {
        Self { fields: fields.iter().map(|field| (*field).to_owned()).collect(), ..self }
    }

    fn described(&self) -> String {
        let body =
            self.body.as_ref().map(|body| String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned());
        format!("{} {} by {:?} with {:?} {body:?}", self.method, self.path, self.who, self.headers)
    }
}

/// Returns every call of the API with the scope that it requires.
fn calls() -> Vec<(Method, &'static str, &'static str)> {
    vec![
        (Method::POST, "short-urls", "create"),
        (Method::POST, "short-urls/bulk", "create"),
        (Method::POST, "short-urls/bulk-edit", "edit"),
        (Method::GET, "short-urls", "read"),
        (Method::GET, "short-urls/x", "read"),
        (Method::PATCH, "short-urls/x", "edit"),
        (Method::DELETE, "short-urls/x", "delete"),
        (Method::GET, "short-urls/x/redirect-rules", "read"),
        (Method::POST, "short-urls/x/redirect-rules", "edit"),
        (Method::GET, "short-urls/x/visits", "visits"),
        (Method::DELETE, "short-urls/x/visits", "delete"),
        (Method::GET, "tags", "read"),
        (Method::GET, "tags/stats", "read"),
        (Method::PUT, "tags", "edit"),
        (Method::DELETE, "tags", "delete"),
        (Method::GET, "tags/a/visits", "visits"),
        (Method::GET, "domains", "read"),
        (Method::PATCH, "domains/redirects", "admin"),
        (Method::PATCH, "domains/one.example", "admin"),
        (Method::DELETE, "domains/one.example", "admin"),
        (Method::GET, "domains/one.example/visits", "visits"),
        (Method::GET, "visits", "visits"),
        (Method::GET, "visits/orphan", "visits"),
        (Method::DELETE, "visits/orphan", "delete"),
        (Method::GET, "visits/non-orphan", "visits"),
        (Method::GET, "targets", "admin"),
        (Method::PUT, "targets", "admin"),
        (Method::DELETE, "targets/denied.example", "admin"),
        (Method::GET, "audit", "admin"),
        (Method::GET, "history?shortCode=x", "read"),
        (Method::GET, "qr-codes", "read"),
        (Method::POST, "short-urls/x/undo", "edit"),
        (Method::GET, "mercure-info", "read"),
        (Method::POST, "reservations", "reserve"),
        (Method::GET, "reservations", "reserve"),
        (Method::DELETE, "reservations/0123456789abcdef0123456789abcdef", "reserve"),
    ]
}

fn keys() -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, path, scope) in calls() {
        let has_body = matches!(method, Method::POST | Method::PUT | Method::PATCH);
        let refused = |status, kind, who| {
            let case = case(method.clone(), path, status, kind).by(who);
            if has_body { case.body(&json!({})) } else { case }
        };
        cases.push(refused(401, "missing-authentication", Who::Nobody));
        cases.push(refused(401, "missing-authentication", Who::Nobody).header("x-api-key", ""));
        cases.push(refused(401, "invalid-api-key", Who::Stranger));
        let other = if scope == "read" { Who::Creator } else { Who::Reader };
        cases.push(refused(403, NO_TYPE, other));
    }
    for who in [Who::OwnLinksOnly, Who::OtherDomain] {
        for (method, below, body) in [
            (Method::GET, "", None),
            (Method::PATCH, "", Some(json!({ "title": "mine" }))),
            (Method::DELETE, "", None),
            (Method::GET, "/redirect-rules", None),
            (Method::POST, "/redirect-rules", Some(json!({ "redirectRules": [] }))),
            (Method::POST, "/undo", Some(json!({}))),
            (Method::GET, "/visits", None),
            (Method::DELETE, "/visits", None),
        ] {
            for link in ["x", "none"] {
                let foreign = case(method.clone(), format!("short-urls/{link}{below}"), 404, NO_LINK).by(who);
                cases.push(body.iter().fold(foreign, Case::body));
            }
        }
        cases.push(
            case(Method::PUT, "tags", 403, "forbidden-tag-operation")
                .body(&json!({ "oldName": "a", "newName": "c" }))
                .by(who),
        );
        cases.push(case(Method::DELETE, "tags?tags[]=a", 403, "forbidden-tag-operation").by(who));
    }
    cases
}

fn absent_and_taken() -> Vec<Case> {
    let no_domain = "domain-not-found";
    let title = json!({ "title": "T" });
    let create = |status, kind, body: Value| case(Method::POST, "short-urls", status, kind).body(&body);
    vec![
        case(Method::GET, "short-urls/none", 404, NO_LINK),
        case(Method::GET, "short-urls/X", 404, NO_LINK),
        case(Method::GET, "short-urls/a%FF", 404, NO_LINK),
        case(Method::GET, "short-urls/x?domain=one.example", 404, NO_LINK),
        case(Method::GET, "short-urls/x?domain=none.example", 404, NO_LINK),
        case(Method::PATCH, "short-urls/none", 404, NO_LINK).body(&title),
        case(Method::PATCH, "short-urls/none", 400, INVALID).body(&json!({ "title": 7 })).names(&["title"]),
        case(Method::POST, "short-urls/none/redirect-rules", 404, NO_LINK).body(&json!({})),
        case(Method::DELETE, "short-urls/none", 404, NO_LINK),
        case(Method::GET, "short-urls/none/visits?page=two", 404, NO_LINK),
        case(Method::GET, "tags/none/visits", 404, "tag-not-found"),
        case(Method::PUT, "tags", 404, "tag-not-found").body(&json!({ "oldName": "none", "newName": "c" })),
        case(Method::PUT, "tags", 409, "tag-conflict").body(&json!({ "oldName": "a", "newName": "b" })),
        case(Method::GET, "domains/none.example/visits", 404, no_domain),
        case(Method::PATCH, "domains/none.example", 404, no_domain).body(&json!({ "enabled": true })),
        case(Method::PATCH, "domains/a%20b", 404, no_domain).body(&json!({ "enabled": true })),
        case(Method::PATCH, "domains/one.example", 409, NO_TYPE).body(&json!({ "domain": "two.example" })),
        case(Method::DELETE, "targets/none.example", 404, NO_TYPE),
        case(Method::DELETE, "targets/a%2Fb", 404, NO_TYPE),
        case(Method::GET, "reservations/none", 404, NO_TYPE),
        case(Method::GET, "nothing", 404, "not-found"),
        case(Method::PUT, "short-urls/x", 404, "not-found").body(&json!({})),
        case(Method::DELETE, "domains/one.example", 409, NO_TYPE),
        case(Method::POST, "tags", 404, "not-found").body(&json!({})),
        case(Method::DELETE, "targets", 404, "not-found"),
        create(400, "non-unique-slug", json!({ "longUrl": URL, "customSlug": "x" })),
        create(
            400,
            "non-unique-slug",
            json!({ "longUrl": "https://example.org/", "customSlug": "x", "findIfExists": true }),
        ),
        create(422, NO_TYPE, json!({ "longUrl": "https://example.org/" })).header("idempotency-key", "used"),
        create(400, INVALID, json!({ "longUrl": URL }))
            .header("idempotency-key", "")
            .names(&["Idempotency-Key"]),
        create(400, INVALID, json!({ "longUrl": URL }))
            .header("idempotency-key", &"k".repeat(256))
            .names(&["Idempotency-Key"]),
        case(Method::PATCH, "short-urls/x", 412, NO_TYPE).body(&title).header("if-match", "\"7\""),
        case(Method::PATCH, "short-urls/x", 412, NO_TYPE).body(&title).header("if-match", "x"),
        case(Method::DELETE, "short-urls/x", 412, NO_TYPE).header("if-match", "\"7\""),
        case(Method::POST, "short-urls/x/redirect-rules", 412, NO_TYPE)
            .body(&json!({ "redirectRules": [] }))
            .header("if-match", "\"7\""),
    ]
}

async fn ask(admin: &Api, keys: &BTreeMap<Who, String>, case: &Case) -> Answer {
    let url = format!("{}/rest/v3/{}", admin.url(), case.path);
    let request = admin.http().request(case.method.clone(), url);
    let request =
        keys.get(&case.who).into_iter().fold(request, |request, key| request.header("X-Api-Key", key));
    let request = case.headers.iter().fold(request, |request, (name, value)| request.header(*name, value));
    let request = case
        .body
        .iter()
        .fold(request, |request, body| request.header("content-type", "application/json").body(body.clone()));
    Answer::to(request).await.unwrap()
}

async fn start() -> (Alone, BTreeMap<Who, String>) {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let all = "create,read,edit,delete,visits,reserve";
    let mut keys = BTreeMap::from([(Who::Admin, api.key().to_owned()), (Who::Stranger, "0".repeat(64))]);
    for (who, name, args) in [
        (Who::Reader, "reader", &["--scopes", "read"][..]),
        (Who::Creator, "creator", &["--scopes", "create"]),
        (Who::OwnLinksOnly, "own", &["--scopes", all, "--own-links-only"]),
        (Who::OtherDomain, "other", &["--scopes", all, "--domain", "two.example"]),
    ] {
        keys.insert(who, alone.with_new_key(name, args).await.key().to_owned());
    }
    api.create_with(&json!({ "longUrl": URL, "customSlug": "x", "tags": ["a", "b"] })).await.unwrap();
    api.create_with(&json!({ "longUrl": URL, "customSlug": "y", "domain": "one.example" })).await.unwrap();
    let once = api.post().header("X-Api-Key", api.key()).header("Idempotency-Key", "used");
    Answer::to(once.json(&json!({ "longUrl": URL }))).await.unwrap().success().unwrap();
    for pattern in ["denied.example", "*.denied.example", "192.0.2.7"] {
        let put = api.http().put(format!("{}/rest/v3/targets", api.url())).header("X-Api-Key", api.key());
        Answer::to(put.json(&json!({ "pattern": pattern, "allowed": false })))
            .await
            .unwrap()
            .success()
            .unwrap();
    }
    (alone, keys)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_wrong_call_is_answered_with_its_own_problem_and_changes_nothing() {
    let (alone, keys_of) = start().await;
    let api = alone.api();
    let looks = [
        "short-urls",
        "short-urls/x",
        "short-urls/x/redirect-rules",
        "tags/stats",
        "domains",
        "targets",
        "audit",
        "reservations",
    ];
    let state = async || {
        let mut state = Vec::new();
        for look in looks {
            state.push(get(api, look).await);
        }
        state
    };
    let before = state().await;
    let own = format!("{}/x", api.url());
    let cases = [
        bodies(),
        fields(),
        long_urls(&own),
        rules(),
        domains_tags_and_targets(),
        queries(),
        keys(),
        absent_and_taken(),
    ];
    for case in cases.iter().flatten() {
        let answer = ask(api, &keys_of, case).await;
        assert_eq!(answer.status, case.status, "{}: {answer:?}", case.described());
        let problem = expect_problem(&answer, case.status, case.kind);
        let named = if case.fields.is_empty() { Value::Null } else { json!(case.fields) };
        assert_eq!(problem["invalidElements"], named, "{}: {problem}", case.described());
        if case.kind == "missing-authentication" {
            assert_eq!(problem["expectedHeaders"], json!(["X-Api-Key"]), "{}", case.described());
        }
        for field in &case.fields {
            let reason = problem["expected"][field].as_str().unwrap_or_default();
            assert!(!reason.is_empty(), "{}: {problem}", case.described());
        }
    }
    assert_eq!(state().await, before, "a refused call has changed something");
    let logs = alone.resolver.process.logs();
    assert!(!logs.contains("panicked"), "{logs}");
}
