//! Seconds since 1970, as JSON numbers: each field with a time of creates, edits and redirect rules
//! takes them, and refuses milliseconds.

use jiff::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, get};

/// In the year 2087: a scheduled edit is in the future.
const SECONDS: i64 = 3_700_000_000;
const URL: &str = "https://example.com/";
const FAR: &str = "2090-01-01";
const FARTHER: &str = "2090-01-02";

/// Makes the body of a call with a time.
type Body = fn(Value) -> Value;

/// Calls with a time, and where it is read again.
const ROWS: [(Method, &str, Body, &str, &str); 13] = [
    (
        Method::POST,
        "short-urls",
        |time| json!({ "longUrl": URL, "customSlug": "a", "validSince": time }),
        "short-urls/a",
        "/meta/validSince",
    ),
    (
        Method::POST,
        "short-urls",
        |time| json!({ "longUrl": URL, "customSlug": "b", "validUntil": time }),
        "short-urls/b",
        "/meta/validUntil",
    ),
    (
        Method::POST,
        "short-urls/bulk",
        |time| json!([{ "longUrl": URL, "customSlug": "c", "validSince": time }]),
        "short-urls/c",
        "/meta/validSince",
    ),
    (
        Method::POST,
        "short-urls/bulk",
        |time| json!([{ "longUrl": URL, "customSlug": "d", "validUntil": time }]),
        "short-urls/d",
        "/meta/validUntil",
    ),
    (
        Method::PATCH,
        "short-urls/edited",
        |time| json!({ "validSince": time }),
        "short-urls/edited",
        "/meta/validSince",
    ),
    (
        Method::PATCH,
        "short-urls/edited",
        |time| json!({ "validUntil": time }),
        "short-urls/edited",
        "/meta/validUntil",
    ),
    (
        Method::POST,
        "short-urls/bulk-edit",
        |time| json!({ "shortUrls": [{ "shortCode": "changed" }], "changes": { "validSince": time } }),
        "short-urls/changed",
        "/meta/validSince",
    ),
    (
        Method::POST,
        "short-urls/bulk-edit",
        |time| json!({ "shortUrls": [{ "shortCode": "changed" }], "changes": { "validUntil": time } }),
        "short-urls/changed",
        "/meta/validUntil",
    ),
    (
        Method::POST,
        "schedule?shortCode=planned",
        |time| json!({ "scheduledFor": time, "title": "New" }),
        "schedule?shortCode=planned",
        "/scheduledEdits/data/0/scheduledFor",
    ),
    (
        Method::POST,
        "schedule?shortCode=planned",
        |time| json!({ "scheduledFor": FAR, "validSince": time }),
        "schedule?shortCode=planned",
        "/scheduledEdits/data/1/fields/validSince",
    ),
    (
        Method::POST,
        "schedule?shortCode=planned",
        |time| json!({ "scheduledFor": FARTHER, "validUntil": time }),
        "schedule?shortCode=planned",
        "/scheduledEdits/data/2/fields/validUntil",
    ),
    (
        Method::POST,
        "short-urls/edited/redirect-rules",
        |time| rule("before-date", &time),
        "short-urls/edited/redirect-rules",
        "/redirectRules/0/conditions/0/matchValue",
    ),
    (
        Method::POST,
        "short-urls/edited/redirect-rules",
        |time| rule("after-date", &time),
        "short-urls/edited/redirect-rules",
        "/redirectRules/0/conditions/0/matchValue",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_time_of_a_link_may_be_a_number_of_seconds() {
    let alone = Alone::start(&["--time-zone", "Europe/Berlin"]).await;
    let api = alone.api();
    for slug in ["edited", "changed", "planned"] {
        api.create_with(&json!({ "longUrl": URL, "customSlug": slug })).await.unwrap();
    }
    // Each row has a second of its own, so that none reads what another one has stored.
    for ((method, path, body, read, member), seconds) in ROWS.into_iter().zip(SECONDS..) {
        let row = format!("{method} {path} {member}");
        let refused = call(api, method.clone(), path, Some(body(json!(seconds * 1_000)))).await;
        assert!(refused.body.contains("this one looks like milliseconds"), "{row}: {refused:?}");
        call(api, method, path, Some(body(json!(seconds)))).await.success().unwrap();
        let stored = get(api, read).await;
        let time = stored.pointer(member).and_then(Value::as_str).unwrap_or_default();
        let time = time.parse::<Timestamp>().map(Timestamp::as_second);
        assert_eq!(time.ok(), Some(seconds), "{row}: {stored}");
    }
}

fn rule(kind: &str, time: &Value) -> Value {
    let condition = json!({ "type": kind, "matchValue": time });
    json!({ "redirectRules": [{ "longUrl": URL, "conditions": [condition] }] })
}
