//! History and undo of edits: every field comes back, no later change gets lost, and a key undoes
//! only what it may edit.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{
        Alone, Place, call, done, expect_invalid, expect_problem, get, history, leads_to, on_either_store,
    },
};

pub(crate) const URL: &str = "https://example.com/page";

fn preview(title: &str) -> Value {
    json!({ "title": title, "description": null, "image": "https://example.com/a.png" })
}

/// Every field that an edit sets, with two values and whether null clears it.
fn fields() -> [(&'static str, [Value; 2], bool); 15] {
    [
        ("longUrl", [json!("https://example.com/one"), json!("https://example.com/two")], false),
        ("title", [json!("One"), json!("Two")], true),
        ("description", [json!("The first"), json!("The second")], true),
        ("tags", [json!(["b", "a"]), json!(["c", "a"])], false),
        ("validSince", [json!("2020-01-01T00:00:00+00:00"), json!("2020-06-01T00:00:00+00:00")], true),
        ("validUntil", [json!("2090-01-01T00:00:00+00:00"), json!("2090-06-01T00:00:00+00:00")], true),
        ("maxVisits", [json!(1_000), json!(2_000)], true),
        ("crawlable", [json!(false), json!(true)], false),
        ("forwardQuery", [json!(true), json!(false)], false),
        ("enabled", [json!(true), json!(false)], false),
        ("redirectStatus", [json!(301), json!(308)], true),
        ("extraPath", [json!("append"), json!("ignore")], true),
        ("expiredUrl", [json!("https://example.com/over"), json!("https://example.com/ended")], true),
        ("preview", [preview("One"), preview("Two")], true),
        ("password", [json!("one"), json!("two")], true),
    ]
}

/// Returns what a link has, without what tells of its edits, or of the resolver that shows it.
pub(crate) async fn shown(api: &Api, slug: &str) -> Value {
    let mut link = get(api, &format!("short-urls/{slug}")).await;
    for name in ["version", "editedAt", "editedBy", "shortUrl"] {
        link.as_object_mut().unwrap().remove(name);
    }
    link
}

pub(crate) async fn make(api: &Api, mut wish: Value, slug: &str) {
    wish["customSlug"] = json!(slug);
    if wish["longUrl"].is_null() {
        wish["longUrl"] = json!(URL);
    }
    api.create_with(&wish).await.unwrap();
}

pub(crate) async fn edit(api: &Api, slug: &str, change: Value) {
    done(api, Method::PATCH, &format!("short-urls/{slug}"), Some(change)).await;
}

async fn try_undo(api: &Api, slug: &str, entry: Option<i64>) -> Answer {
    let body = entry.map(|entry| json!({ "entry": entry }));
    call(api, Method::POST, &format!("short-urls/{slug}/undo"), body).await
}

async fn undo(api: &Api, slug: &str) {
    try_undo(api, slug, None).await.success().unwrap();
}

async fn last_entry(api: &Api, slug: &str) -> i64 {
    history(api, slug).await[0]["id"].as_i64().unwrap()
}

/// Expects that nothing was undone, and that the reason names this.
fn expect_kept(answer: &Answer, named: &str) {
    let problem = expect_problem(answer, 409, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains(named), "{problem}");
}

on_either_store!(every_field_of_an_edit_comes_back);

/// Edits on one resolver, and undoes on another, which knows what is stored at once.
async fn every_field_of_an_edit_comes_back(place: Place) {
    let [api, other] = &place.apis();
    let document = api.get("rest/v3/openapi.json").await.unwrap().json().unwrap();
    let described = document["components"]["schemas"]["ShortUrlEdit"]["properties"].as_object().unwrap();
    for (name, schema) in described {
        // A name that was left may be another link's.
        let is_tested = name == "customSlug" || fields().iter().any(|(field, ..)| *field == name.as_str());
        assert!(is_tested || schema["deprecated"] == true, "add values of {name} to this test");
    }
    let state = |place: usize| -> Value {
        fields().into_iter().map(|(name, values, _)| (name, values[place].clone())).collect()
    };
    make(api, state(0), "all").await;
    let first = shown(api, "all").await;
    edit(api, "all", state(1)).await;
    let second = shown(api, "all").await;
    undo(other, "all").await;
    assert_eq!(shown(other, "all").await, first, "all fields in one edit");
    undo(other, "all").await;
    assert_eq!(shown(other, "all").await, second, "the undo is undone");
    undo(other, "all").await;

    for (field, [_, value], is_cleared) in fields() {
        for change in [Some(value), is_cleared.then_some(Value::Null)].into_iter().flatten() {
            // On the resolver that undid the last one, which has the link as it is.
            edit(other, "all", json!({ field: change })).await;
            let edited = shown(other, "all").await;
            assert!(edited != first || field == "password", "{field}: {change}");
            undo(other, "all").await;
            assert_eq!(shown(other, "all").await, first, "{field}: {change}");
            undo(other, "all").await;
            assert_eq!(shown(other, "all").await, edited, "{field}: {change}");
            undo(other, "all").await;
        }
    }

    let rules = async || get(other, "short-urls/all/redirect-rules").await["redirectRules"].clone();
    let android = json!([{ "type": "device", "matchKey": null, "matchValue": "android" }]);
    let wish = json!({ "redirectRules": [{ "longUrl": URL, "conditions": android }] });
    done(other, Method::POST, "short-urls/all/redirect-rules", Some(wish)).await;
    let set = rules().await;
    undo(other, "all").await;
    assert_eq!(rules().await, json!([]));
    undo(other, "all").await;
    assert_eq!(rules().await, set);
    assert_eq!(set[0]["conditions"], android);
}

/// Submits the password form of a link.
async fn unlock(api: &Api, slug: &str, password: &str) -> u16 {
    let request = api.http().post(format!("{}/{slug}", api.url()));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    Answer::to(request.body(format!("password={password}"))).await.unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_comes_back_and_nobody_is_shown_its_hash() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({ "password": "one" }), "locked").await;
    edit(api, "locked", json!({ "password": "two" })).await;
    undo(api, "locked").await;
    assert_eq!([unlock(api, "locked", "one").await, unlock(api, "locked", "two").await], [303, 403]);
    edit(api, "locked", json!({ "password": null })).await;
    assert_eq!(api.follow("locked").await.unwrap(), leads_to(URL));
    undo(api, "locked").await;
    assert_eq!([unlock(api, "locked", "one").await, unlock(api, "locked", "two").await], [303, 403]);
    for path in ["history?shortCode=locked", "audit"] {
        let text = get(api, path).await.to_string();
        assert!(text.contains("hasPassword") && !text.contains("argon2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_again_since_is_named_and_stays() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({ "title": "One" }), "often").await;
    expect_kept(&try_undo(api, "often", None).await, "no such change");
    edit(api, "often", json!({ "title": "Two", "tags": ["two"] })).await;
    let both = last_entry(api, "often").await;
    edit(api, "often", json!({ "description": "By another" })).await;
    edit(api, "often", json!({ "title": "Three" })).await;
    let before = get(api, "short-urls/often").await;
    let refused = try_undo(api, "often", Some(both)).await;
    expect_kept(&refused, "title");
    assert!(!refused.body.contains("tags"), "{}", refused.body);
    assert_eq!(get(api, "short-urls/often").await, before);

    edit(api, "often", json!({ "customSlug": "oftener" })).await;
    expect_kept(&try_undo(api, "oftener", None).await, "shortCode. Move or rename");
    edit(api, "oftener", json!({ "customSlug": "often" })).await;

    let late = api.http().post(format!("{}/rest/v3/short-urls/often/undo", api.url()));
    let late = late.header("X-Api-Key", api.key()).header("If-Match", "\"1\"");
    expect_problem(&Answer::to(late).await.unwrap(), 412, "about:blank");

    let edits = history(api, "often").await;
    let third = edits.iter().find(|entry| entry["details"]["changed"]["title"]["to"] == "Three").unwrap();
    try_undo(api, "often", third["id"].as_i64()).await.success().unwrap();
    try_undo(api, "often", Some(both)).await.success().unwrap();
    let after = get(api, "short-urls/often").await;
    assert_eq!((&after["title"], &after["tags"]), (&json!("One"), &json!([])));
    assert_eq!(after["description"], "By another", "what the edit did not change");
    let changed = history(api, "often").await[0]["details"]["changed"].clone();
    assert_eq!(changed["title"], json!({ "from": "Two", "to": "One" }));

    make(api, json!({}), "other").await;
    edit(api, "other", json!({ "title": "Its own" })).await;
    let foreign = last_entry(api, "other").await;
    for entry in [foreign, i64::MAX, 0] {
        expect_kept(&try_undo(api, "often", Some(entry)).await, "no such change");
    }
    assert_eq!(get(api, "short-urls/other").await["title"], "Its own");
    let wrong = json!({ "entry": "the last" });
    let refused = call(api, Method::POST, "short-urls/often/undo", Some(wrong)).await;
    expect_invalid(&refused, "entry");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_does_no_more_than_an_edit_may_do_now() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, json!({ "longUrl": "https://evil.example/" }), "tamed").await;
    edit(api, "tamed", json!({ "longUrl": URL })).await;
    let rule = json!({ "pattern": "evil.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(rule)).await;
    expect_invalid(&try_undo(api, "tamed", None).await, "longUrl");

    make(api, json!({ "title": "One" }), "deleted").await;
    edit(api, "deleted", json!({ "title": "Two" })).await;
    assert_eq!(call(api, Method::DELETE, "short-urls/deleted", None).await.status, 204);
    expect_problem(&try_undo(api, "deleted", None).await, 404, "short-url-not-found");
    let unknown = call(api, Method::GET, "history?shortCode=deleted", None).await;
    expect_problem(&unknown, 404, "short-url-not-found");
    done(api, Method::POST, "short-urls/deleted/restore", None).await;
    undo(api, "deleted").await;
    assert_eq!(get(api, "short-urls/deleted").await["title"], "One");
    let actions: Vec<Value> =
        history(api, "deleted").await.into_iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["edit-link", "restore-link", "delete-link", "edit-link"]);
    let older = history(api, "deleted").await[1]["id"].clone();
    let page = get(api, &format!("history?shortCode=deleted&before={older}")).await;
    assert_eq!(page["audit"]["data"].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_sees_and_undoes_changes_of_its_own_links_only_and_no_takedown() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let tenant = alone.with_new_key("tenant", &["--scopes", "create,read,edit", "--own-links-only"]).await;
    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    let editor = alone.with_new_key("editor", &["--scopes", "edit"]).await;
    for (api, slug) in [(&tenant, "mine"), (admin, "theirs")] {
        make(api, json!({ "title": "One" }), slug).await;
        edit(api, slug, json!({ "title": "Two" })).await;
    }
    let theirs = last_entry(admin, "theirs").await;
    let foreign = call(&tenant, Method::GET, "history?shortCode=theirs", None).await;
    expect_problem(&foreign, 404, "short-url-not-found");
    expect_problem(&try_undo(&tenant, "theirs", None).await, 404, "short-url-not-found");
    expect_kept(&try_undo(&tenant, "mine", Some(theirs)).await, "no such change");
    expect_problem(&try_undo(&reader, "mine", None).await, 403, "about:blank");
    let unread = call(&editor, Method::GET, "history?shortCode=mine", None).await;
    expect_problem(&unread, 403, "about:blank");

    let reason = Some(json!({ "reason": "phishing" }));
    done(admin, Method::POST, "short-urls/mine/block", reason).await;
    let entries = history(&tenant, "mine").await;
    let [block, own] = &entries[..] else { panic!("{entries:?}") };
    assert_eq!((&block["action"], &block["apiKey"]), (&json!("block-link"), &Value::Null));
    assert_eq!(own["apiKey"], "tenant");
    assert!(history(admin, "mine").await[0]["apiKey"].is_string(), "operators see who it was");
    for api in [&tenant, admin] {
        expect_kept(&try_undo(api, "mine", block["id"].as_i64()).await, "Only edits");
    }
    undo(&tenant, "mine").await;
    let undone = get(&tenant, "short-urls/mine").await;
    assert_eq!((&undone["title"], undone["blocked"].is_object()), (&json!("One"), true));
    let told = try_undo(&editor, "mine", None).await.success().unwrap().json().unwrap();
    assert!(told["shortCode"] == "mine" && told["title"].is_null(), "{told}");
    assert_eq!(get(admin, "short-urls/mine").await["title"], "Two");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_no_part_of_an_undo_and_of_the_history_for_a_key_of_one_domain() {
    let alone = Alone::start_at("https://s.test").await;
    let admin = alone.api();
    make(admin, json!({ "title": "One" }), "moving").await;
    edit(admin, "moving", json!({ "title": "Two" })).await;
    let there = Some(json!({ "domain": "one.example" }));
    done(admin, Method::POST, "short-urls/moving/move", there).await;
    let scopes = ["--scopes", "read,edit", "--domain", "one.example"];
    let tenant = alone.with_new_key("tenant", &scopes).await;
    let (path, named) = ("moving?domain=one.example", "moving&domain=one.example");
    edit(admin, path, json!({ "title": "Three" })).await;

    let entries = history(admin, named).await;
    assert_eq!(entries.len(), 3);
    assert_eq!(history(&tenant, named).await, entries[..1]);
    let undo_there = async |api: &Api, entry: &Value| {
        let body = Some(json!({ "entry": entry["id"] }));
        call(api, Method::POST, "short-urls/moving/undo?domain=one.example", body).await
    };
    expect_kept(&undo_there(admin, &entries[1]).await, "domain");
    expect_kept(&undo_there(&tenant, &entries[1]).await, "no such change");
    undo_there(&tenant, &entries[0]).await.success().unwrap();
    expect_kept(&undo_there(&tenant, &entries[2]).await, "no such change");
    undo_there(admin, &entries[2]).await.success().unwrap();
    assert_eq!(get(admin, &format!("short-urls/{path}")).await["title"], "One");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_shows_the_history_of_a_link_and_undoes_edits() {
    let alone = Alone::start_at("https://s.test").await;
    let person = Person::at(&alone.resolver);
    person.read(&["link", "create", URL, "--slug", "promo", "--title", "One"]).await;
    assert_eq!(person.read(&["link", "history", "promo"]).await, "no entries\n");
    person.read(&["link", "edit", "promo", "--title", "Two"]).await;
    person.read(&["link", "edit", "promo", "--tag", "late"]).await;
    let entries = person.read_json(&["link", "history", "promo", "--json"]).await["audit"]["data"].clone();
    let first = entries[1]["id"].to_string();
    let table = person.read(&["link", "history", "promo", "--width", "200"]).await;
    let line = table.lines().last().unwrap();
    assert!(line.starts_with(&first) && line.ends_with("title: One → Two"), "{table}");
    let shown = person.read(&["link", "undo", "promo"]).await;
    assert_eq!((row(&shown, "title"), row(&shown, "tags")), (Some("Two"), None), "{shown}");
    let shown = person.read(&["link", "undo", "promo", "--entry", &first]).await;
    assert_eq!(row(&shown, "title"), Some("One"), "{shown}");
    let refused = person.fail(&["link", "undo", "promo", "--entry", &first], 64).await;
    assert!(refused.contains("409") && refused.contains("title"), "{refused}");
}
