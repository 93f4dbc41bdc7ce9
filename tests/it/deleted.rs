//! Deleted links: they are listed, and a restore brings them back with all their properties.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{
    Alone, Place, call, done, expect_problem, get, leads_to, listed, on_either_store, plus, visit,
};

const URL: &str = "https://example.com/page";

async fn delete(api: &Api, name: &str) {
    call(api, Method::DELETE, &format!("short-urls/{name}"), None).await.success().unwrap();
}

async fn restore(api: &Api, name: &str) -> Answer {
    call(api, Method::POST, &format!("short-urls/{name}"), None).await
}

async fn make(api: &Api, wish: Value) -> Value {
    let whole = plus(json!({ "longUrl": URL, "tags": ["b", "a"], "title": "T", "maxVisits": 9 }), &wish);
    api.create_with(&whole).await.unwrap().json
}

on_either_store!(a_deleted_link_comes_back_as_it_was);

/// Deletes and restores five links: a minted one, a mintable slug, a slug that is not mintable, and
/// on another domain a minted code and a slug.
async fn a_deleted_link_comes_back_as_it_was(place: Place) {
    let [api, _] = &place.apis();
    let there = "one.example";
    let minted = make(api, json!({})).await;
    let minted_there = make(api, json!({ "domain": there })).await;
    make(api, json!({ "customSlug": "abc123" })).await;
    make(api, json!({ "customSlug": "summer/2026" })).await;
    make(api, json!({ "customSlug": "winter/2026", "domain": there })).await;
    let code = |link: &Value| link["shortCode"].as_str().unwrap().to_owned();
    let names = [
        (code(&minted), "", "s.test"),
        (code(&minted_there), "?domain=one.example", there),
        ("abc123".to_owned(), "", "s.test"),
        ("summer/2026".to_owned(), "", "s.test"),
        ("winter/2026".to_owned(), "?domain=one.example", there),
    ];
    for (name, domain, host) in &names {
        let before = get(api, &format!("short-urls/{name}{domain}")).await;
        assert_eq!((&before["deletedAt"], &before["tags"]), (&Value::Null, &json!(["a", "b"])), "{before}");
        delete(api, &format!("{name}{domain}")).await;
        assert_eq!(visit(api, host, name).await, (404, None), "{name}{domain}");

        let list = get(api, "short-urls?deleted=true").await;
        let [shown] = &list["shortUrls"]["data"].as_array().unwrap()[..] else { panic!("{list}") };
        assert_eq!(shown["shortCode"], **name);
        assert_eq!(shown["tags"], json!(["a", "b"]), "what it had");
        assert!(shown["deletedAt"].is_string(), "{shown}");

        let after = restore(api, &format!("{name}/restore{domain}")).await.success().unwrap();
        assert_eq!(after.header("etag"), Some("\"2\""));
        let mut after = after.json().unwrap();
        assert_eq!(get(api, &format!("short-urls/{name}{domain}")).await, after);
        assert_eq!(after["version"], 2, "deleted, and brought back");
        for field in ["version", "editedAt", "editedBy"] {
            after[field] = before[field].clone();
        }
        assert_eq!(after, before);
        assert_eq!(visit(api, host, name).await, leads_to(URL), "{name}{domain}");
        assert_eq!(listed(api, "deleted=true").await, [""; 0]);
    }
    assert_eq!(listed(api, "tags[]=a").await.len(), names.len());
    let absent = restore(api, &format!("{}/restore", names[0].0)).await;
    expect_problem(&absent, 404, "short-url-not-found");
    let log = get(api, "audit").await;
    assert_eq!(log["audit"]["data"][0]["action"], "restore-link", "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_that_had_a_slug_the_last_one_comes_back_unless_somebody_has_it() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    // A mintable slug, and one that is not mintable.
    for slug in ["abc123", "summer/2026"] {
        for title in ["first", "second"] {
            make(api, json!({ "customSlug": slug, "title": title })).await;
            delete(api, slug).await;
        }
        assert_eq!(listed(api, &format!("deleted=true&searchTerm={slug}")).await.len(), 2, "{slug}");
        let path = format!("{slug}/restore");
        let back = restore(api, &path).await.success().unwrap().json().unwrap();
        assert_eq!(back["title"], "second");
        let again = restore(api, &path).await;
        expect_problem(&again, 400, "non-unique-slug");
        assert_eq!(get(api, &format!("short-urls/{slug}")).await["title"], "second");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_brings_back_what_it_may_see_and_delete() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let link = make(api, json!({})).await;
    let code = link["shortCode"].as_str().unwrap();
    delete(api, code).await;
    let path = format!("{code}/restore");
    let editor = alone.with_new_key("editor", &["--scopes", "read,edit"]).await;
    assert_eq!(restore(&editor, &path).await.status, 403);
    let stranger = alone.with_new_key("stranger", &["--scopes", "read,delete", "--own-links-only"]).await;
    expect_problem(&restore(&stranger, &path).await, 404, "short-url-not-found");
    assert_eq!(listed(&stranger, "deleted=true").await, [""; 0]);
    let janitor = alone.with_new_key("janitor", &["--scopes", "delete"]).await;
    assert_eq!(restore(&janitor, &path).await.status, 200);
    assert_eq!(done(api, Method::GET, &format!("short-urls/{code}"), None).await["tags"], json!(["a", "b"]));
}
