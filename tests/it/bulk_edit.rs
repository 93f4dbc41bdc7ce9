//! Edits and deletions of many links, by a filter or by names: which links they change, what a dry
//! run says before, and that each link is as if it had been changed by itself.

use harness::{Answer, Api, Resolver, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::Person,
    pages::Browser,
    rest_calls::{
        Alone, Place, SOON, call, done, expect_problem, get, history, leads_to, listed, on_either_store,
        visit,
    },
};

const PATH: &str = "short-urls/bulk-edit";
const COUNTS: [&str; 3] = ["matched", "changed", "unchanged"];

fn target(name: &str) -> String {
    format!("https://example.com/{name}")
}

/// Creates a link with a slug, which is also its target, and these tags.
async fn make(api: &Api, slug: &str, tags: &[&str]) {
    make_with(api, slug, json!({ "tags": tags })).await;
}

async fn make_with(api: &Api, slug: &str, mut fields: Value) {
    (fields["longUrl"], fields["customSlug"]) = (json!(target(slug)), json!(slug));
    api.create_with(&fields).await.unwrap();
}

async fn send(api: &Api, body: Value) -> Answer {
    call(api, Method::POST, PATH, Some(body)).await
}

async fn change(api: &Api, body: Value) -> Value {
    send(api, body).await.success().unwrap().json().unwrap()
}

fn counts(page: &Value) -> [u64; 3] {
    COUNTS.map(|name| page[name].as_u64().unwrap())
}

/// Makes a change page by page, and returns the counts of all pages and how many there were.
async fn change_all(api: &Api, mut body: Value) -> ([u64; 3], usize) {
    let (mut sum, mut pages) = ([0; 3], 0);
    loop {
        let page = change(api, body.clone()).await;
        assert!(page["failed"].as_array().unwrap().is_empty(), "{page}");
        pages += 1;
        for (sum, count) in sum.iter_mut().zip(counts(&page)) {
            *sum += count;
        }
        match &page["next"] {
            Value::Null => return (sum, pages),
            next => body["after"] = next.clone(),
        }
    }
}

async fn link(api: &Api, slug: &str) -> Value {
    get(api, &format!("short-urls/{slug}")).await
}

on_either_store!(many_links_are_changed);

async fn many_links_are_changed(place: Place) {
    let [api, other] = &place.apis();
    a_filter_chooses_links_as_that_of_a_list_does(api).await;
    a_dry_run_stores_nothing_and_says_what_the_call_does(api).await;
    each_link_has_a_version_and_a_history_of_its_own(api, other).await;
    a_change_that_was_left_goes_on_at_its_cursor(api).await;
    links_are_changed_by_their_names(api).await;
    a_link_that_must_not_be_changed_stops_no_other(api).await;
    links_are_deleted_and_can_be_restored(api, other).await;
}

async fn a_filter_chooses_links_as_that_of_a_list_does(api: &Api) {
    for (slug, tags) in [("f-1", &["spring"][..]), ("f-2", &["spring", "blue"]), ("f-3", &["blue"])] {
        make(api, slug, tags).await;
    }
    make_with(api, "f-4", json!({ "title": "A Needle", "domain": "one.example" })).await;
    for (filter, matched) in [
        (json!({ "tags": ["spring"] }), 2),
        (json!({ "tags": ["spring", "blue"] }), 3),
        (json!({ "tags": ["spring", "blue"], "tagsMode": "all" }), 1),
        (json!({ "tags": ["spring"], "excludeTags": ["blue"] }), 1),
        (json!({ "tags": ["no-such"] }), 0),
        (json!({ "domain": "one.example" }), 1),
        (json!({ "domain": "two.example" }), 0),
        (json!({ "searchTerm": "needle" }), 1),
        (json!({ "longUrl": target("f-3") }), 1),
        (json!({ "tags": ["blue"], "startDate": "2020-01-01" }), 2),
        (json!({ "tags": ["blue"], "endDate": "2020-01-01" }), 0),
        (json!({ "apiKeyName": "no such key" }), 0),
    ] {
        let dry = json!({ "filter": filter, "addTags": ["dry"], "dryRun": true });
        assert_eq!(change_all(api, dry).await.0, [matched, matched, 0], "{filter}");
    }
    assert!(listed(api, "tags[]=dry").await.is_empty());
    let all = json!({ "all": true, "addTags": ["dry"], "dryRun": true });
    assert_eq!(change_all(api, all).await.0, [4, 4, 0]);
    for (body, field) in [
        (json!({ "addTags": ["x"] }), "filter"),
        (json!({ "filter": {}, "addTags": ["x"] }), "filter"),
        (json!({ "filter": { "tagsMode": "all", "searchTerm": " " }, "addTags": ["x"] }), "filter"),
        (json!({ "filter": ["spring"], "addTags": ["x"] }), "filter"),
        (json!({ "filter": { "serchTerm": "x" }, "addTags": ["x"] }), "filter.serchTerm"),
        (json!({ "filter": { "tags": "spring", "domain": "x" }, "addTags": ["x"] }), "filter.tags"),
        (json!({ "filter": { "searchTerm": "x", "startDate": true }, "addTags": ["x"] }), "filter.startDate"),
        (json!({ "filter": { "startDate": "soon" }, "addTags": ["x"] }), "filter.startDate"),
        (json!({ "filter": { "tags": ["x"] } }), "changes"),
        (json!({ "all": true, "delete": true, "addTags": ["x"] }), "delete"),
        (json!({ "all": true, "shortUrls": [{ "shortCode": "f-1" }], "addTags": ["x"] }), "shortUrls"),
        (json!({ "all": true, "changes": { "customSlug": "x" } }), "changes.customSlug"),
        (json!({ "all": true, "changes": { "domain": "x.test", "title": "x" } }), "changes.domain"),
        (json!({ "all": true, "changes": { "password": "x" } }), "changes.password"),
        (json!({ "all": true, "changes": { "maxVisits": 0 } }), "changes.maxVisits"),
        (json!({ "all": true, "changes": { "tags": ["x"] }, "addTags": ["y"] }), "addTags"),
        (json!({ "all": true, "addTags": ["x"], "removeTags": ["X"] }), "removeTags"),
        (json!({ "all": true, "addTags": ["x"], "limit": 10_001 }), "limit"),
        (json!({ "all": true, "addTags": ["x"], "after": "x" }), "after"),
    ] {
        let problem = expect_problem(&send(api, body.clone()).await, 400, "invalid-data");
        assert!(problem["expected"][field].is_string(), "{body}: {problem}");
    }
}

async fn a_dry_run_stores_nothing_and_says_what_the_call_does(api: &Api) {
    for number in 0..30 {
        make(api, &format!("d-{number}"), if number < 5 { &["dried", "new"] } else { &["dried"] }).await;
    }
    let wish = json!({ "filter": { "tags": ["dried"] }, "addTags": ["new"], "dryRun": true });
    let said = change(api, wish.clone()).await;
    assert_eq!((counts(&said), &said["next"]), ([30, 25, 5], &Value::Null));
    let sample = said["sample"].as_array().unwrap();
    assert_eq!((sample.len(), &sample[0]["shortCode"]), (20, &json!("d-5")), "{said}");
    assert_eq!(listed(api, "tags[]=new").await.len(), 5);
    assert_eq!((&link(api, "d-9").await["version"], history(api, "d-9").await.len()), (&json!(0), 0));

    let wish = json!({ "filter": { "tags": ["dried"] }, "addTags": ["new"] });
    let done = change(api, wish.clone()).await;
    assert_eq!((counts(&done), &done["sample"]), ([30, 25, 5], &json!([])));
    assert_eq!(counts(&change(api, wish).await), [30, 0, 30], "it is repeated");
    for (slug, version) in [("d-0", 0), ("d-9", 1)] {
        let link = link(api, slug).await;
        assert_eq!((&link["version"], &link["tags"]), (&json!(version), &json!(["dried", "new"])), "{slug}");
    }
}

async fn each_link_has_a_version_and_a_history_of_its_own(api: &Api, other: &Api) {
    for slug in ["h-1", "h-2"] {
        make_with(api, slug, json!({ "tags": ["a", "Own"], "title": slug })).await;
        assert_eq!(visit(other, "s.test", slug).await, leads_to(&target(slug)), "it is in the cache");
    }
    let over = target("over");
    let wish = json!({
        "filter": { "tags": ["own"] }, "addTags": ["b"], "removeTags": ["A", "no-such"],
        "changes": { "longUrl": over, "title": null, "redirectStatus": 302, "validUntil": "2090-01-01" },
    });
    assert_eq!(counts(&change(api, wish).await), [2, 2, 0]);
    for slug in ["h-1", "h-2"] {
        let now = link(api, slug).await;
        assert_eq!((&now["longUrl"], &now["title"]), (&json!(over), &Value::Null), "{now}");
        assert_eq!((&now["tags"], &now["version"]), (&json!(["b", "own"]), &json!(1)), "{now}");
        let entries = history(api, slug).await;
        assert_eq!(entries.len(), 1, "{entries:?}");
        wait::until(SOON, "the other resolver knows", async || {
            visit(other, "s.test", slug).await == leads_to(&over)
        })
        .await
        .unwrap();
    }
    assert_eq!(listed(api, &format!("longUrl={over}")).await.len(), 2, "they are in the index");
    done(api, Method::POST, "short-urls/h-1/undo", None).await;
    let [undone, kept] = [link(api, "h-1").await, link(api, "h-2").await];
    assert_eq!((&undone["title"], &undone["tags"]), (&json!("h-1"), &json!(["a", "own"])), "{undone}");
    assert_eq!((&undone["longUrl"], &kept["longUrl"]), (&json!(target("h-1")), &json!(over)));
}

/// A client is killed after some pages, and its last answer is lost: it repeats that page.
async fn a_change_that_was_left_goes_on_at_its_cursor(api: &Api) {
    for number in 0..25 {
        make(api, &format!("r-{number}"), &["left"]).await;
    }
    let wish = |after: &Value| {
        let change = json!({ "title": "T" });
        json!({
            "filter": { "tags": ["left"] }, "changes": change, "removeTags": ["left"],
            "addTags": ["right"], "limit": 10, "after": after,
        })
    };
    let first = change(api, wish(&Value::Null)).await;
    let second = change(api, wish(&first["next"])).await;
    assert_eq!([counts(&first), counts(&second)], [[10, 10, 0]; 2]);
    // Links that were changed no longer meet the filter.
    let (rest, pages) = change_all(api, wish(&first["next"])).await;
    assert_eq!((rest, pages), ([5, 5, 0], 1));
    assert!(listed(api, "tags[]=left").await.is_empty());
    for number in 0..25 {
        let link = link(api, &format!("r-{number}")).await;
        assert_eq!((&link["version"], &link["tags"]), (&json!(1), &json!(["right"])), "{link}");
        assert_eq!(link["title"], "T");
    }
}

async fn links_are_changed_by_their_names(api: &Api) {
    make(api, "n-1", &[]).await;
    make_with(api, "n-2", json!({ "domain": "one.example" })).await;
    let code = api.create(&target("n-3")).await.unwrap().code;
    let names = json!([
        { "shortCode": "n-1" },
        { "shortCode": "n-2", "domain": "one.example" },
        { "shortCode": code },
        { "shortCode": "n-1", "domain": null },
        { "shortCode": "no-such" },
    ]);
    let page = change(api, json!({ "shortUrls": names, "changes": { "enabled": false } })).await;
    assert_eq!((counts(&page), &page["next"]), ([3, 3, 0], &Value::Null), "{page}");
    let failed = page["failed"].as_array().unwrap();
    assert_eq!((failed.len(), &failed[0]["shortCode"]), (1, &json!("no-such")), "{page}");
    assert!(failed[0]["problem"].as_str().unwrap().contains("No URL found"), "{page}");
    for slug in ["n-1", &code] {
        assert_eq!(link(api, slug).await["enabled"], false, "{slug}");
    }
    let many: Vec<Value> = (0..1_001).map(|number| json!({ "shortCode": format!("x{number}") })).collect();
    let problem = send(api, json!({ "shortUrls": many, "addTags": ["x"] })).await;
    assert!(expect_problem(&problem, 400, "invalid-data")["expected"]["shortUrls"].is_string());
}

async fn a_link_that_must_not_be_changed_stops_no_other(api: &Api) {
    for slug in ["t-1", "t-2", "t-3"] {
        make(api, slug, &["denied"]).await;
    }
    let elsewhere = json!({ "longUrl": "https://denied.example/", "enabled": false });
    done(api, Method::PATCH, "short-urls/t-2", Some(elsewhere)).await;
    let rule = |allowed: bool| json!({ "pattern": "denied.example", "allowed": allowed });
    done(api, Method::PUT, "targets", Some(rule(false))).await;
    let enable = json!({ "filter": { "tags": ["denied"] }, "changes": { "enabled": true, "title": "On" } });
    let mut dry = enable.clone();
    dry["dryRun"] = json!(true);
    let [said, page] = [change(api, dry).await, change(api, enable).await];
    for page in [&said, &page] {
        assert_eq!(counts(page), [3, 2, 0], "{page}");
        let failed = page["failed"].as_array().unwrap();
        assert_eq!((failed.len(), &failed[0]["shortCode"]), (1, &json!("t-2")), "{page}");
        assert!(failed[0]["problem"].as_str().unwrap().contains("enabled"), "{page}");
    }
    assert_eq!(link(api, "t-2").await["title"], Value::Null);
    let denied = json!({ "longUrl": "https://denied.example/" });
    let to_denied = json!({ "filter": { "tags": ["denied"] }, "changes": denied });
    expect_problem(&send(api, to_denied).await, 400, "invalid-data");
    done(api, Method::PUT, "targets", Some(rule(true))).await;
    // A window that ends before it begins is one for each link.
    done(api, Method::PATCH, "short-urls/t-3", Some(json!({ "validSince": "2080-01-01" }))).await;
    let until = json!({ "filter": { "tags": ["denied"] }, "changes": { "validUntil": "2070-01-01" } });
    let page = change(api, until).await;
    assert_eq!((counts(&page), &page["failed"][0]["shortCode"]), ([3, 2, 0], &json!("t-3")), "{page}");
}

async fn links_are_deleted_and_can_be_restored(api: &Api, other: &Api) {
    let code = api.create_with(&json!({ "longUrl": target("g"), "tags": ["gone"] })).await.unwrap().code;
    for slug in ["g-1", "g-2"] {
        make(api, slug, &["gone", "kept"]).await;
    }
    assert_eq!(visit(other, "s.test", "g-1").await, leads_to(&target("g-1")));
    take_down(api, "g-2").await;
    let page = change(api, json!({ "filter": { "tags": ["gone"] }, "delete": true })).await;
    assert_eq!((counts(&page), &page["failed"][0]["shortCode"]), ([3, 2, 0], &json!("g-2")), "{page}");
    for gone in ["g-1", &code] {
        wait::until(SOON, "the link is gone", async || visit(other, "s.test", gone).await.0 == 404)
            .await
            .unwrap();
    }
    assert_eq!(listed(api, "tags[]=gone").await, ["g-2"]);
    let back = done(api, Method::POST, "short-urls/g-1/restore", None).await;
    assert_eq!((&back["tags"], &back["version"]), (&json!(["gone", "kept"]), &json!(2)), "{back}");
    // Its slug was free in between.
    let again = json!({ "shortUrls": [{ "shortCode": "g-1" }], "delete": true });
    assert_eq!(counts(&change(api, again).await), [1, 1, 0]);
    make(api, "g-1", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_changes_only_what_it_may_change() {
    let alone = Alone::start(&[]).await;
    let admin = alone.api();
    make(admin, "theirs", &["shared"]).await;
    let scopes = "create,read,edit,delete";
    let key = alone.with_new_key("own", &["--scopes", scopes, "--own-links-only"]).await;
    make(&key, "mine", &["shared"]).await;
    for (wish, expected) in [
        (json!({ "filter": { "tags": ["shared"] }, "addTags": ["x"], "dryRun": true }), [1, 1, 0]),
        (json!({ "all": true, "addTags": ["x"] }), [1, 1, 0]),
        (json!({ "shortUrls": [{ "shortCode": "theirs" }], "addTags": ["x"] }), [0, 0, 0]),
        (json!({ "filter": { "searchTerm": "theirs" }, "delete": true }), [0, 0, 0]),
    ] {
        assert_eq!(counts(&change(&key, wish.clone()).await), expected, "{wish}");
    }
    assert_eq!(link(admin, "theirs").await["tags"], json!(["shared"]));
    assert_eq!(link(admin, "mine").await["tags"], json!(["shared", "x"]));

    let editor = alone.with_new_key("editor", &["--scopes", "edit"]).await;
    for wish in [
        json!({ "all": true, "addTags": ["y"] }),
        json!({ "shortUrls": [{ "shortCode": "mine" }], "delete": true }),
        json!({ "shortUrls": [{ "shortCode": "mine" }], "addTags": ["shared"], "dryRun": true }),
    ] {
        assert_eq!(send(&editor, wish.clone()).await.status, 403, "{wish}");
    }
    let named = json!({ "shortUrls": [{ "shortCode": "mine" }], "addTags": ["y"] });
    assert_eq!(counts(&change(&editor, named).await), [1, 1, 0], "names tell nothing");
}

/// A list of such a key disregards the name of another key. A deletion would take all links.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_with_limits_finds_no_links_by_the_name_of_another_key() {
    let alone = Alone::start(&[]).await;
    make_with(alone.api(), "theirs", json!({ "domain": "one.example" })).await;
    let scopes = ["--scopes", "create,read,edit,delete"];
    for (name, limits) in [("owner", &["--own-links-only"][..]), ("tenant", &["--domain", "one.example"])] {
        let key = alone.with_new_key(name, &[&scopes[..], limits].concat()).await;
        make(&key, &format!("of-{name}"), &[]).await;
        for (of, expected) in [("initial", [0, 0, 0]), ("no-such", [0, 0, 0]), (name, [1, 1, 0])] {
            let wish = json!({ "filter": { "apiKeyName": of }, "delete": true });
            assert_eq!(counts(&change(&key, wish).await), expected, "{name}: {of}");
        }
    }
    let wish = json!({ "filter": { "apiKeyName": "initial" }, "addTags": ["x"], "dryRun": true });
    assert_eq!(counts(&change(alone.api(), wish).await), [1, 1, 0], "an operator finds them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_changed_as_a_whole_on_its_page() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for number in 0..12 {
        make(api, &format!("p-{number}"), &["paged"]).await;
    }
    make(api, "p-other", &[]).await;
    let browser = Browser::open(api).await;
    let post = async |fields: &str| {
        let form = format!("every=on&{fields}");
        let (status, _, page) = browser.send("/manage?tag=paged&count=10", &form).await;
        (status.as_u16(), page)
    };
    let (status, asked) = post("do=add-tag&newTag=whole").await;
    for text in ["12 links would get the tag “whole”.", ">Add the tag to 12 links<", "name=\"confirmed\""]
    {
        assert!(asked.contains(text), "{text}: {asked}");
    }
    assert_eq!((status, listed(api, "tags[]=whole").await.len()), (200, 0));
    let (_, done) = post("do=add-tag&newTag=whole&confirmed=on").await;
    assert!(done.contains("Changed 12 links") && !done.contains("name=\"confirmed\""), "{done}");
    assert_eq!(listed(api, "tags[]=whole&itemsPerPage=100").await.len(), 12);
    assert_eq!(post("do=move&to=one.example").await.0, 400, "each would need its name there");
    let (_, done) = post("do=delete&confirmed=on").await;
    assert!(done.contains("Changed 12 links"), "{done}");
    assert_eq!(listed(api, "").await, ["p-other"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_changes_all_pages() {
    let resolver = Resolver::embedded().unwrap().start().await.unwrap();
    let (api, person) = (&resolver.api, Person::at(&resolver));
    for number in 0..3 {
        make(api, &format!("c-{number}"), &["old"]).await;
    }
    let edit = ["link", "edit-many", "--with-tag", "old", "--add-tag", "new", "--no-title"];
    let said = person.read(&edit).await;
    assert!(said.starts_with("3 links: 3 would be changed") && said.contains("add --yes"), "{said}");
    assert!(said.contains("The change: {") && said.contains("\"addTags\":[\"new\"]"), "{said}");
    let done = person.read_json(&[&edit[..], &["--yes", "--json"]].concat()).await;
    assert_eq!((counts(&done), &done["failed"]), ([3, 3, 0], &json!(0)));
    assert_eq!(listed(api, "tags[]=new").await.len(), 3);
    let problem = person.fail(&["link", "edit-many", "--all"], 64).await;
    assert!(problem.contains("nothing to change"), "{problem}");

    take_down(api, "c-1").await;
    let gone = person.run(&["link", "delete-many", "--with-tag", "new", "--yes"]).await;
    assert_eq!(gone.status.code(), Some(65), "one was not deleted: {gone:?}");
    assert!(gone.stdout.contains("2 deleted") && gone.stdout.contains("c-1: "), "{gone:?}");
    assert_eq!(listed(api, "").await, ["c-1"]);
}

/// An operator takes a link down, so that it cannot be deleted.
async fn take_down(api: &Api, slug: &str) {
    done(api, Method::POST, &format!("short-urls/{slug}/block"), Some(json!({ "reason": "spam" }))).await;
}
