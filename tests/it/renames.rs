//! Links that get other names: they stay what they are, lead from the new name as soon as that is
//! acknowledged, and are not found under the former one.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, Place, call, expect_problem, get, leads_to, on_either_store, plus, visit};

const URL: &str = "https://example.com/page";
const HOST: &str = "s.test";
const ONE: &str = "one.example";

async fn make(api: &Api, wish: Value) -> String {
    let whole = plus(json!({ "longUrl": URL, "tags": ["a"], "title": "T" }), &wish);
    api.create_with(&whole).await.unwrap().code
}

async fn rename(api: &Api, name: &str, to: &str) -> Answer {
    call(api, Method::PATCH, &format!("short-urls/{name}"), Some(json!({ "customSlug": to }))).await
}

on_either_store!(a_link_gets_other_names);

/// Gives a minted link, a mintable slug and another slug a slug that is no code, one that is, and
/// their former name. `other` is a resolver that has each link in its cache, and is asked as soon
/// as the new name is acknowledged.
async fn a_link_gets_other_names(place: Place) {
    let [api, other] = &place.apis();
    let names = [
        make(api, json!({})).await,
        make(api, json!({ "customSlug": "abc123" })).await,
        make(api, json!({ "customSlug": "summer/2026" })).await,
    ];
    for (number, name) in names.iter().enumerate() {
        let before = get(api, &format!("short-urls/{name}")).await;
        let mut from = name.clone();
        for (version, to) in (1..).zip([format!("winter/{number}"), format!("spr{number}ng"), name.clone()]) {
            assert_eq!(visit(other, HOST, &from).await, leads_to(URL), "{from}");
            let renamed = rename(api, &from, &to).await.success().unwrap().json().unwrap();
            assert_eq!(visit(other, HOST, &to).await, leads_to(URL), "{to} was {from}");
            assert_eq!(visit(api, HOST, &to).await, leads_to(URL), "{to} was {from}");
            assert_eq!(visit(api, HOST, &from).await, (404, None), "{from} is {to}");
            let former = call(api, Method::GET, &format!("short-urls/{from}"), None).await;
            expect_problem(&former, 404, "short-url-not-found");
            assert_eq!((&renamed["shortCode"], &renamed["version"]), (&json!(to), &json!(version)));
            assert!(renamed["shortUrl"].as_str().unwrap().ends_with(&format!("/{to}")), "{renamed}");
            for kept in ["dateCreated", "longUrl", "tags", "title"] {
                assert_eq!(renamed[kept], before[kept], "{kept}");
            }
            let log = get(api, "audit").await;
            let last = &log["audit"]["data"][0];
            assert_eq!((&last["action"], &last["subject"]), (&json!("edit-link"), &json!(to)));
            let changed = &last["details"]["changed"]["shortCode"];
            assert_eq!(changed, &json!({ "from": from, "to": to }), "{last}");
            from = to;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_former_slug_is_free_and_a_code_is_not() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let (minted, picked) = (make(api, json!({})).await, make(api, json!({ "customSlug": "abc123" })).await);
    let next = json!({ "longUrl": "https://example.com/next" });
    for (number, code) in [&minted, &picked].into_iter().enumerate() {
        rename(api, code, &format!("name/{number}")).await.success().unwrap();
        let wish = json!({ "longUrl": URL, "customSlug": code });
        expect_problem(&api.try_create_with(&wish).await.unwrap(), 400, "non-unique-slug");
    }
    for slug in ["summer/2026", "spring"] {
        make(api, json!({ "customSlug": "first" })).await;
        rename(api, "first", slug).await.success().unwrap();
        rename(api, slug, &format!("{slug}/old")).await.success().unwrap();
        // No deleted link has the former name.
        for (action, body) in [("restore", None), ("block", Some(json!({ "reason": "phishing" })))] {
            let refused = call(api, Method::POST, &format!("short-urls/{slug}/{action}"), body).await;
            expect_problem(&refused, 404, "short-url-not-found");
        }
        assert_eq!(get(api, "short-urls?deleted=true").await["shortUrls"]["data"], json!([]));
        let mut wish = next.clone();
        wish["customSlug"] = json!(slug);
        make(api, wish).await;
        // An `ETag` of the former link is none of the next one.
        let versions = [slug.to_owned(), format!("{slug}/old")].map(|name| format!("short-urls/{name}"));
        let [its, former] = &versions;
        assert_eq!(get(api, its).await["version"], get(api, former).await["version"], "{slug}");
        assert_eq!(visit(api, HOST, slug).await, leads_to("https://example.com/next"), "{slug}");
        let taken = expect_problem(&rename(api, &format!("{slug}/old"), slug).await, 400, "non-unique-slug");
        assert_eq!(taken["customSlug"], slug);
    }
    // The code of another link, whatever its name.
    for name in ["name/0", "name/1"] {
        for taken in [&minted, &picked] {
            let is_own = (name == "name/0") == (*taken == minted);
            if !is_own {
                expect_problem(&rename(api, name, taken).await, 400, "non-unique-slug");
            }
        }
        assert_eq!(visit(api, HOST, name).await, leads_to(URL), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renamed_link_is_moved_deleted_and_restored_under_its_name() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    for (slug, name) in [(Value::Null, "a/1"), (json!("abc123"), "a/2"), (json!("summer/2026"), "spring")] {
        let code = make(api, json!({ "customSlug": slug })).await;
        rename(api, &code, name).await.success().unwrap();
        let path = format!("short-urls/{name}");
        call(api, Method::DELETE, &path, None).await.success().unwrap();
        assert_eq!(visit(api, HOST, name).await, (404, None), "{name}");
        call(api, Method::POST, &format!("{path}/restore"), None).await.success().unwrap();
        assert_eq!(visit(api, HOST, name).await, leads_to(URL), "{name}");
        let to = Some(json!({ "domain": ONE }));
        call(api, Method::POST, &format!("{path}/move"), to).await.success().unwrap();
        assert_eq!(visit(api, ONE, name).await, leads_to(URL), "{name}");
        assert_eq!(visit(api, HOST, name).await, (404, None), "{name}");
        assert_eq!(visit(api, ONE, &code).await, (404, None), "{code}");
        let there = format!("{path}?domain={ONE}");
        let back = call(api, Method::PATCH, &there, Some(json!({ "customSlug": code }))).await;
        assert_eq!(back.success().unwrap().json().unwrap()["shortCode"], json!(code));
        assert_eq!(visit(api, ONE, &code).await, leads_to(URL), "{code}");
        assert_eq!(visit(api, ONE, name).await, (404, None), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_refused_with_its_reason_and_none_changes_nothing() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    make(api, json!({ "customSlug": "first" })).await;
    for slug in [json!(7), json!("rest/x"), json!("ads.txt"), json!("a?b"), json!("x".repeat(256))] {
        let edit = json!({ "customSlug": slug, "title": "new" });
        let refused = call(api, Method::PATCH, "short-urls/first", Some(edit)).await;
        let problem = expect_problem(&refused, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!(["customSlug"]), "{slug}");
    }
    let turn = format!("https://{ONE}/round/trip");
    make(api, json!({ "customSlug": "turn", "domain": ONE, "longUrl": turn })).await;
    let round = Some(json!({ "customSlug": "round/trip" }));
    let round = call(api, Method::PATCH, &format!("short-urls/turn?domain={ONE}"), round).await;
    assert_eq!(expect_problem(&round, 400, "invalid-data")["invalidElements"], json!(["longUrl"]));
    for slug in [Value::Null, json!(""), json!("first"), json!("/first/")] {
        let edit = Some(json!({ "customSlug": slug }));
        let same = call(api, Method::PATCH, "short-urls/first", edit).await.success().unwrap();
        let same = same.json().unwrap();
        assert_eq!((&same["shortCode"], &same["version"]), (&json!("first"), &json!(0)), "{same}");
    }
    let owner = alone.with_new_key("owner", &["--scopes", "create,read,edit", "--own-links-only"]).await;
    expect_problem(&rename(&owner, "first", "mine").await, 404, "short-url-not-found");
    let own = make(&owner, json!({})).await;
    expect_problem(&rename(&owner, &own, "first").await, 400, "non-unique-slug");
    rename(&owner, &own, "mine").await.success().unwrap();

    make(api, json!({ "customSlug": "second", "domain": ONE })).await;
    let quiet = Some(json!({ "ignoreCase": true }));
    call(api, Method::PATCH, &format!("domains/{ONE}"), quiet).await.success().unwrap();
    let there = format!("short-urls/second?domain={ONE}");
    let loud = call(api, Method::PATCH, &there, Some(json!({ "customSlug": "LOUD/Name" }))).await;
    assert_eq!(loud.success().unwrap().json().unwrap()["shortCode"], "loud/name");

    let reason = Some(json!({ "reason": "phishing" }));
    call(api, Method::POST, "short-urls/first/block", reason).await.success().unwrap();
    assert_eq!(rename(api, "first", "third").await.status, 409);
}
