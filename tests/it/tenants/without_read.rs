//! A key without the scope `read` changes links, and learns their names and versions only.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, call, done, get};

/// Returns the version of an answer that has the name of the link and nothing else.
fn version(answer: &Answer, code: &str) -> String {
    let shown = answer.json().unwrap();
    let mut names: Vec<&str> = shown.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!((names, &shown["shortCode"]), (vec!["shortCode", "shortUrl"], &json!(code)), "{answer:?}");
    answer.header("etag").unwrap().to_owned()
}

async fn write(api: &Api, method: Method, path: &str, body: Value) -> String {
    let answer = call(api, method, &format!("short-urls/x{path}"), Some(body)).await.success().unwrap();
    version(&answer, "x")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_change_is_the_links_name() {
    let alone = Alone::start(&[]).await;
    let wish = json!({ "longUrl": "https://example.com/secret", "customSlug": "x", "tags": ["secret"] });
    alone.api().create_with(&wish).await.unwrap();
    let writer = alone.with_new_key("writer", &["--scopes", "create,edit,delete,domains"]).await;
    let (patch, post) = (Method::PATCH, Method::POST);
    assert_eq!(write(&writer, patch.clone(), "", json!({ "title": "T" })).await, "\"1\"");
    assert_eq!(
        write(&writer, post.clone(), "/redirect-rules", json!({ "redirectRules": [] })).await,
        "\"1\""
    );
    assert_eq!(write(&writer, post.clone(), "/move", json!({ "domain": "other.example" })).await, "\"2\"");
    let back = call(
        &writer,
        post.clone(),
        "short-urls/x/move?domain=other.example",
        Some(json!({ "domain": "DEFAULT" })),
    );
    assert_eq!(version(&back.await.success().unwrap(), "x"), "\"3\"");
    assert_eq!(call(&writer, Method::DELETE, "short-urls/x", None).await.status, 204);
    assert_eq!(write(&writer, post, "/restore", json!({})).await, "\"5\"");
    for finds in [false, true, true] {
        let wish =
            json!({ "longUrl": "https://example.com/own", "customSlug": "own", "findIfExists": finds });
        assert_eq!(version(&writer.try_create_with(&wish).await.unwrap(), "own"), "\"0\"");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_changes_nothing_leaves_no_trace() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let wish =
        json!({ "longUrl": "https://example.com/", "customSlug": "x", "title": "T", "tags": ["b", "a"] });
    api.create_with(&wish).await.unwrap();
    let made = get(api, "short-urls/x").await;
    let log = async || get(api, "audit").await["audit"]["data"].as_array().unwrap().len();
    let before = log().await;
    for edit in [
        json!({}),
        json!({ "title": "T" }),
        json!({ "tags": ["a", "b"], "longUrl": "https://example.com/" }),
        json!({ "maxVisits": null, "enabled": true }),
    ] {
        let after = done(api, Method::PATCH, "short-urls/x", Some(edit.clone())).await;
        assert_eq!(after, made, "{edit}");
    }
    assert_eq!(log().await, before);
    let stale = api.http().patch(format!("{}/rest/v3/short-urls/x", api.url())).json(&json!({}));
    let stale = stale.header("X-Api-Key", api.key()).header("If-Match", "\"7\"");
    assert_eq!(Answer::to(stale).await.unwrap().status, 412);
    let tagged = done(api, Method::PATCH, "short-urls/x", Some(json!({ "tags": ["a"] }))).await;
    assert_eq!(tagged["version"], 1);
    assert_eq!(log().await, before + 1);
}
