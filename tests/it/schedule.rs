//! Edits of links on schedule: each is made once, on every resolver, in the order of its link, and
//! as an edit of the key that scheduled it; or it is said why not.

use std::time::Duration;

use harness::{Answer, Api, Cluster, wait};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    cli::Person,
    pages::Browser,
    rest_calls::{
        Alone, Place, SOON, call, done, expect_problem, get, history, leads_to, on_either_store, plus,
    },
};

const ONE: &str = "https://example.com/one";
const TWO: &str = "https://example.com/two";
/// A moment after any run of these tests.
const LATER: &str = "2090-01-01T00:00:00+00:00";
/// Long enough for the call that schedules an edit, on a busy machine.
const A_MOMENT: SignedDuration = SignedDuration::from_secs(5);

/// Moves the schedule into the past, in its order. On SQLite no process runs meanwhile.
async fn pass_all_moments(place: &mut Place) {
    match place {
        Place::Sqlite(alone) => {
            alone.resolver.stop(SOON).await.unwrap();
            {
                let file = Connection::open(alone.file("data/shortmint.db")).unwrap();
                let century = Duration::from_secs(100 * 366 * 86_400).as_millis();
                let pass = format!("UPDATE scheduled_change SET due_at = due_at - {century}");
                file.execute(&pass, []).unwrap();
            }
            alone.resolver.restart().await.unwrap();
        }
        Place::Postgres(cluster) => {
            let client = cluster.postgres.client().await.unwrap();
            let pass = "UPDATE scheduled_change SET due_at = due_at - interval '100 years'";
            client.batch_execute(pass).await.unwrap();
        }
    }
}

async fn make(api: &Api, slug: &str) {
    api.create_with(&json!({ "longUrl": ONE, "customSlug": slug, "title": "One" })).await.unwrap();
}

async fn try_schedule(api: &Api, slug: &str, wish: Value) -> Answer {
    call(api, Method::POST, &format!("schedule?shortCode={slug}"), Some(wish)).await
}

async fn schedule(api: &Api, slug: &str, wish: Value) -> Value {
    try_schedule(api, slug, wish).await.success().unwrap().json().unwrap()
}

async fn scheduled(api: &Api, slug: &str) -> Vec<Value> {
    let list = get(api, &format!("schedule?shortCode={slug}")).await;
    list["scheduledEdits"]["data"].as_array().unwrap().clone()
}

async fn leads_everywhere(apis: &[Api], slug: &str, expected: (u16, Option<String>)) {
    for api in apis {
        let leads = async || api.follow(slug).await.unwrap() == expected;
        wait::until(SOON, "the edit is made", leads).await.unwrap();
    }
}

/// Waits until the only scheduled edit of a link has failed, and returns why.
async fn failure(api: &Api, slug: &str) -> String {
    let failed = async || {
        let edits = scheduled(api, slug).await;
        assert_eq!(edits.len(), 1, "{edits:?}");
        edits[0]["failure"].as_str().map(str::to_owned)
    };
    wait::until_some(SOON, "the edit has failed", failed).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_is_made_at_its_moment_on_every_resolver() {
    let place = Place::postgres().await;
    let apis = place.apis();
    make(&apis[0], "soon").await;
    leads_everywhere(&apis, "soon", leads_to(ONE)).await;
    let moment = Timestamp::now() + A_MOMENT;
    let wish = json!({ "scheduledFor": moment.to_string(), "longUrl": TWO });
    schedule(&apis[0], "soon", wish).await;
    leads_everywhere(&apis, "soon", leads_to(TWO)).await;
    let made = history(&apis[1], "soon").await[0]["date"].clone();
    let made: Timestamp = made.as_str().unwrap().parse().unwrap();
    assert!(made.as_second() >= moment.as_second(), "{made} is before {moment}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_whose_moments_passed_are_made_in_their_order_after_a_restart() {
    edits_are_made(Place::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_made_once_and_in_their_order_by_two_resolvers() {
    edits_are_made(Place::postgres().await).await;
}

async fn edits_are_made(mut place: Place) {
    let [api, other] = place.apis();
    make(&api, "many").await;
    let last = json!({ "scheduledFor": "2090-01-02", "title": "Last", "enabled": true });
    let last = schedule(&api, "many", last).await;
    let first = json!({ "scheduledFor": LATER, "title": "First", "enabled": false });
    let first = schedule(&other, "many", first).await;
    let never = schedule(&api, "many", json!({ "scheduledFor": LATER, "longUrl": TWO })).await;
    let mut listed = scheduled(&other, "many").await;
    assert_eq!(listed.remove(1), never);
    assert_eq!(listed, [first.clone(), last]);
    assert_eq!((&first["scheduledFor"], &first["failure"]), (&json!(LATER), &Value::Null));
    assert_eq!(first["fields"], json!({ "title": "First", "enabled": false }));
    assert!(first["apiKey"].is_string(), "{first}");
    let cancelled = call(&other, Method::DELETE, &format!("schedule/{}", never["id"]), None).await;
    assert_eq!(cancelled.status, 204);
    let again = call(&api, Method::DELETE, &format!("schedule/{}", never["id"]), None).await;
    expect_problem(&again, 404, "about:blank");
    assert_eq!(get(&api, "short-urls/many").await["version"], 0, "it is only scheduled");

    pass_all_moments(&mut place).await;
    let [api, other] = place.apis();
    wait::until(SOON, "all are made", async || scheduled(&api, "many").await.is_empty()).await.unwrap();
    let titles = |entries: &[Value]| -> Vec<Value> {
        entries.iter().map(|entry| entry["details"]["changed"]["title"]["to"].clone()).collect()
    };
    let entries = history(&api, "many").await;
    assert_eq!(titles(&entries), ["Last", "First"], "each once: {entries:?}");
    assert!(entries.iter().all(|entry| entry["apiKey"] == first["apiKey"] && entry["action"] == "edit-link"));
    leads_everywhere(&[api.clone(), other.clone()], "many", leads_to(ONE)).await;
    done(&other, Method::POST, "short-urls/many/undo", None).await;
    assert_eq!(get(&other, "short-urls/many").await["title"], "First", "an edit like any other");
    leads_everywhere(&[api, other], "many", (404, None)).await;
}

on_either_store!(an_edit_that_cannot_be_made_says_why);

async fn an_edit_that_cannot_be_made_says_why(mut place: Place) {
    let [api, _] = place.apis();
    let scopes = ["create", "--name", "ending", "--scopes", "create,read,edit"];
    let ending = api.with_key(&place.api_key(&scopes).await);
    for slug in ["revoked", "denied", "deleted", "swept", "locked"] {
        make(&api, slug).await;
    }
    let evil = json!({ "scheduledFor": LATER, "longUrl": "https://evil.example/" });
    for (api, slug) in [(&ending, "revoked"), (&api, "denied"), (&api, "deleted"), (&api, "swept")] {
        schedule(api, slug, evil.clone()).await;
    }
    let locked = schedule(&api, "locked", json!({ "scheduledFor": LATER, "password": "hush" })).await;
    assert_eq!(locked["fields"], json!({ "hasPassword": true }), "no answer has its hash");
    assert_eq!(call(&api, Method::DELETE, "short-urls/deleted", None).await.status, 204);
    let sweep = json!({ "shortUrls": [{ "shortCode": "swept" }], "delete": true });
    assert_eq!(done(&api, Method::POST, "short-urls/bulk-edit", Some(sweep)).await["changed"], 1);
    for slug in ["deleted", "swept"] {
        done(&api, Method::POST, &format!("short-urls/{slug}/restore"), None).await;
        assert_eq!(scheduled(&api, slug).await, Vec::<Value>::new(), "{slug}: it has ended with the link");
    }
    place.api_key(&["revoke", "--name", "ending"]).await;
    let rule = json!({ "pattern": "evil.example", "allowed": false });
    done(&api, Method::PUT, "targets", Some(rule)).await;

    pass_all_moments(&mut place).await;
    let [api, other] = place.apis();
    let told = failure(&api, "revoked").await;
    assert!(told.contains("revoked"), "{told}");
    let told = failure(&other, "denied").await;
    assert!(told.contains("target rules"), "{told}");
    let is_locked = async || get(&api, "short-urls/locked").await["hasPassword"] == true;
    wait::until(SOON, "the password is set", is_locked).await.unwrap();
    for slug in ["revoked", "denied"] {
        assert_eq!(get(&api, &format!("short-urls/{slug}")).await["version"], 0, "{slug}");
        assert_eq!(history(&api, slug).await, Vec::<Value>::new(), "{slug}");
        let id = scheduled(&api, slug).await[0]["id"].clone();
        assert_eq!(call(&api, Method::DELETE, &format!("schedule/{id}"), None).await.status, 204);
        assert_eq!(scheduled(&api, slug).await, Vec::<Value>::new(), "{slug}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_release_has_left_holds_up_no_other_edit() {
    let cluster = Cluster::builder().resolvers(1).start().await.unwrap();
    let (api, client) = (&cluster.resolvers[0].api, cluster.postgres.client().await.unwrap());
    // More than are looked at at once, and no links that could be edited are needed for them.
    let of_later_release = "INSERT INTO scheduled_change (link_id, due_at, fields, created_by)
         SELECT 1000000000 + number, now() - interval '1 day', '{\"colour\":\"red\"}', 1
         FROM generate_series(1, 250) AS number";
    client.batch_execute(of_later_release).await.unwrap();
    make(api, "behind").await;
    let moment = (Timestamp::now() + A_MOMENT).to_string();
    schedule(api, "behind", json!({ "scheduledFor": moment, "longUrl": TWO })).await;
    leads_everywhere(std::slice::from_ref(api), "behind", leads_to(TWO)).await;
    let waiting = "SELECT count(*) FROM scheduled_change WHERE failed_because IS NULL";
    let waiting: i64 = client.query_one(waiting, &[]).await.unwrap().get(0);
    assert_eq!(waiting, 250, "none has failed: a process of that release can make it");

    make(api, "left").await;
    assert_eq!(call(api, Method::DELETE, "short-urls/left", None).await.status, 204);
    let of_earlier_release = "INSERT INTO scheduled_change (link_id, due_at, fields, created_by)
         SELECT id, timestamptz '2090-01-01', '{\"title\":\"T\"}', created_by
         FROM link WHERE details ->> 'slug' = 'left'";
    assert_eq!(client.execute(of_earlier_release, &[]).await.unwrap(), 1);
    done(api, Method::POST, "short-urls/left/restore", None).await;
    assert_eq!(scheduled(api, "left").await, Vec::<Value>::new(), "it was scheduled for the deleted link");

    // An earlier release moves a link, and leaves the edits of keys that do not see it there.
    make(api, "not-seen").await;
    let database = cluster.postgres.url();
    let key = ["api-key", "create", "--name", "limited", "--own-links-only", "--database", &database];
    cluster.run_resolver(&key, SOON).await.unwrap().success().unwrap();
    let of_limited_key = "INSERT INTO scheduled_change (link_id, due_at, fields, created_by)
         SELECT link.id, now() - interval '1 day', '{\"title\":\"T\"}', api_key.id
         FROM link, api_key WHERE details ->> 'slug' = 'not-seen' AND api_key.name = 'limited'";
    assert_eq!(client.execute(of_limited_key, &[]).await.unwrap(), 1);
    let has_ended =
        async || scheduled(api, "not-seen").await.first().is_none_or(|edit| !edit["failure"].is_null());
    wait::until(SOON, "the edit of a key that does not see the link ends", has_ended).await.unwrap();
    assert_eq!(get(api, "short-urls/not-seen").await["title"], "One");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_schedules_sees_and_cancels_edits_of_links_that_it_sees() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let tenant = alone.with_new_key("tenant", &["--scopes", "create,read,edit", "--own-links-only"]).await;
    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    make(&tenant, "mine").await;
    make(admin, "theirs").await;
    let wish = json!({ "scheduledFor": LATER, "title": "Two" });
    let theirs = schedule(admin, "theirs", wish.clone()).await["id"].clone();
    let mine = schedule(&tenant, "mine", wish.clone()).await;
    expect_problem(&try_schedule(&tenant, "theirs", wish.clone()).await, 404, "short-url-not-found");
    let foreign = call(&tenant, Method::GET, "schedule?shortCode=theirs", None).await;
    expect_problem(&foreign, 404, "short-url-not-found");
    let foreign = call(&tenant, Method::DELETE, &format!("schedule/{theirs}"), None).await;
    expect_problem(&foreign, 404, "about:blank");
    assert_eq!(scheduled(admin, "theirs").await.len(), 1);
    expect_problem(&try_schedule(&reader, "mine", wish).await, 403, "about:blank");
    let cancel = format!("schedule/{}", mine["id"]);
    expect_problem(&call(&reader, Method::DELETE, &cancel, None).await, 403, "about:blank");
    assert_eq!(scheduled(admin, "mine").await, [mine]);
    assert_eq!(call(admin, Method::DELETE, &cancel, None).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_moves_leaves_the_edits_of_keys_that_do_not_see_it_there() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    let [former, next] = ["former.example", "next.example"];
    for domain in [former, next] {
        let wish = json!({ "longUrl": ONE, "customSlug": "x", "domain": domain });
        admin.create_with(&wish).await.unwrap();
    }
    admin.create_with(&json!({ "longUrl": ONE, "customSlug": "moving", "domain": former })).await.unwrap();
    let tenant = async |name: &str, domain: &str| {
        alone.with_new_key(name, &["--scopes", "read,edit", "--domain", domain]).await
    };
    let (one, other) = (tenant("one", former).await, tenant("other", next).await);
    let [here, there] = [former, next].map(|domain| format!("moving&domain={domain}"));
    let secret = json!({ "scheduledFor": LATER, "title": "Secret" });
    let secret = schedule(&one, &here, secret).await;
    let kept = schedule(admin, &here, json!({ "scheduledFor": LATER, "title": "Known" })).await;
    assert_eq!(scheduled(&one, &here).await, [secret, kept.clone()]);
    let to = json!({ "domain": next });
    done(admin, Method::POST, &format!("short-urls/moving/move?domain={former}"), Some(to)).await;
    assert_eq!(scheduled(&other, &there).await, [kept]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_scheduled_is_named_at_once() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    make(api, "busy").await;
    let with = |fields: Value| plus(json!({ "scheduledFor": LATER }), &fields);
    for (wish, wrong) in [
        (json!({ "title": "T" }), "scheduledFor"),
        (with(json!({ "scheduledFor": "2020-01-01", "title": "T" })), "scheduledFor"),
        (with(json!({ "scheduledFor": "soon", "title": "T" })), "scheduledFor"),
        (with(json!({ "longUrl": "ftp://example.com" })), "longUrl"),
        (with(json!({ "customSlug": "idle" })), "customSlug"),
        (with(json!({ "colour": "red" })), "colour"),
        (with(json!({})), "(the fields)"),
    ] {
        let refused = try_schedule(api, "busy", wish.clone()).await;
        let problem = expect_problem(&refused, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!([wrong]), "{wish}");
    }
    let past = try_schedule(api, "busy", with(json!({ "scheduledFor": "2020-01-01", "title": "T" }))).await;
    let problem = expect_problem(&past, 400, "invalid-data");
    assert_eq!(
        problem["expected"]["scheduledFor"],
        "expected a time in the future: 2020-01-01T00:00:00Z has passed"
    );
    for number in 0..10 {
        schedule(api, "busy", with(json!({ "title": number.to_string() }))).await;
    }
    let refused = try_schedule(api, "busy", with(json!({ "title": "T" }))).await;
    expect_problem(&refused, 409, "about:blank");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_of_a_link_says_when_an_edit_is_made_or_why_it_cannot_be() {
    const NO_ENDING: &str = "The ending cannot be changed at a later time, only now.";
    const PAST: &str = "The time of the changes has to be in the future.";
    let alone = Alone::start(&[]).await;
    make(alone.api(), "page").await;
    let (browser, path) = (Browser::open(alone.api()).await, "/manage/link/page");
    for (form, said) in [
        ("customSlug=other&scheduledFor=2090-01-01T00:00:00", [true, false]),
        ("title=Two&scheduledFor=2020-01-01T00:00:00", [false, true]),
    ] {
        let (status, _, page) = browser.send(path, form).await;
        assert_eq!((status.as_u16(), [NO_ENDING, PAST].map(|text| page.contains(text))), (400, said));
    }
    let (_, to, page) = browser.send(path, "title=Two&scheduledFor=2090-01-01T00:00:00").await;
    assert!(to.starts_with("/manage/link/page?scheduled="), "{to}: {page}");
    let page = browser.page(&to).await;
    assert!(page.contains("Scheduled for 2090-01-01 00:00"), "{page}");
    assert!(!page.contains("The changes are stored."), "{page}");
    let page = browser.page("/manage/link/page?scheduled=0").await;
    assert!(!page.contains("Scheduled for"), "an edit that is not on the schedule: {page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_are_scheduled_listed_and_cancelled_from_the_command_line() {
    let alone = Alone::start(&[]).await;
    let person = Person::at(&alone.resolver);
    make(alone.api(), "later").await;
    let add = ["link", "schedule", "add", "later", "--at", "2090-01-01", "--title", "Two", "--disable"];
    let printed = person.read(&add).await;
    let (id, rest) = printed.split_once(": ").unwrap();
    assert_eq!(rest, "scheduled for 2090-01-01T00:00:00+00:00\n");
    let list = person.read(&["link", "schedule", "list", "later"]).await;
    assert!(list.contains("title: Two, enabled: no") && list.lines().count() == 2, "{list}");
    let nothing = person.fail(&["link", "schedule", "add", "later", "--at", "2090-01-01"], 64).await;
    assert!(nothing.contains("nothing to change"), "{nothing}");
    let cancelled = person.read(&["link", "schedule", "cancel", id]).await;
    assert_eq!(cancelled, format!("{id}: cancelled\n"));
    assert_eq!(person.read(&["link", "schedule", "list", "later"]).await, "no scheduled edits\n");
}
