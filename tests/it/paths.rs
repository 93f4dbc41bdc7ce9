//! Paths that differ from a link's name: what a path behind it does, and which differences a domain
//! ignores.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{Alone, call, done, expect_invalid, expect_problem, get},
};

const URL: &str = "https://example.com/page";
const TEMPLATE: &str = "https://example.com/{1}?q={rest}";

// The fields of links and domains.

/// Returns what the latest entry of the audit log says that the write changed.
async fn last_change(alone: &Alone) -> Value {
    get(alone.api(), "audit").await["audit"]["data"][0]["details"]["changed"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_path_behind_a_name_does_is_set_shown_cleared_and_logged() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for what in ["refuse", "ignore", "append", "fill"] {
        let wish = json!({ "longUrl": TEMPLATE, "customSlug": what, "extraPath": what });
        assert_eq!(api.create_with(&wish).await.unwrap().json["extraPath"], what);
        assert_eq!(get(api, &format!("short-urls/{what}")).await["extraPath"], what);
    }
    let edited = done(api, Method::PATCH, "short-urls/append", Some(json!({ "extraPath": null }))).await;
    assert_eq!(edited["extraPath"], Value::Null);
    assert_eq!(last_change(&alone).await["extraPath"], json!({ "from": "append", "to": null }));
    let edited = done(api, Method::PATCH, "short-urls/append", Some(json!({ "extraPath": "ignore" }))).await;
    assert_eq!(edited["extraPath"], "ignore");
    let edited = done(api, Method::PATCH, "short-urls/append", Some(json!({ "title": "T" }))).await;
    assert_eq!(edited["extraPath"], "ignore", "what is not named stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_is_found_for_its_url_only_if_a_path_does_what_the_request_says() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let find = async |what: Value| {
        let wish = json!({ "longUrl": URL, "extraPath": what, "findIfExists": true });
        api.create_with(&wish).await.unwrap().code
    };
    let plain = find(Value::Null).await;
    let appends = find(json!("append")).await;
    assert_ne!(plain, appends);
    assert_eq!((find(Value::Null).await, find(json!("append")).await), (plain, appends));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_url_without_room_for_a_path_is_refused_however_it_comes() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    for long_url in [URL, "mailto:{1}@example.com"] {
        let wish = json!({ "longUrl": long_url, "extraPath": "fill" });
        expect_invalid(&api.try_create_with(&wish).await.unwrap(), "extraPath");
    }
    for slug in ["plain", "filled"] {
        api.create_with(&json!({ "longUrl": URL, "customSlug": slug })).await.unwrap();
    }
    let edit = async |slug: &str, change: Value| {
        call(api, Method::PATCH, &format!("short-urls/{slug}"), Some(change)).await
    };
    let set_rule = async |slug: &str, long_url: &str| {
        let rules = json!({ "redirectRules": [{ "longUrl": long_url, "conditions": [] }] });
        call(api, Method::POST, &format!("short-urls/{slug}/redirect-rules"), Some(rules)).await
    };
    expect_invalid(&edit("filled", json!({ "extraPath": "fill" })).await, "extraPath");
    edit("filled", json!({ "longUrl": TEMPLATE, "extraPath": "fill" })).await.success().unwrap();
    expect_invalid(&edit("filled", json!({ "longUrl": URL })).await, "extraPath");
    expect_invalid(&set_rule("filled", URL).await, "extraPath");
    set_rule("filled", TEMPLATE).await.success().unwrap();
    edit("filled", json!({ "title": "T" })).await.success().unwrap();
    let shown = get(api, "short-urls/filled").await;
    assert_eq!((&shown["longUrl"], &shown["extraPath"]), (&json!(TEMPLATE), &json!("fill")));
    edit("filled", json!({ "longUrl": URL, "extraPath": null })).await.success().unwrap();

    set_rule("plain", URL).await.success().unwrap();
    expect_invalid(&edit("plain", json!({ "longUrl": TEMPLATE, "extraPath": "fill" })).await, "extraPath");
    assert_eq!(get(api, "short-urls/plain").await["longUrl"], URL);

    let items = [URL, TEMPLATE].map(|long_url| json!({ "longUrl": long_url, "extraPath": "fill" }));
    let results = done(api, Method::POST, "short-urls/bulk", Some(json!(items))).await["results"].clone();
    let expected = results[0]["expected"]["extraPath"].as_str();
    assert!(expected.is_some_and(|text| text.contains("{rest}")), "{results}");
    assert_eq!(results[1]["result"], "created", "{results}");
}

fn settings_of(domain: &Value) -> [Value; 3] {
    ["ignoreCase", "ignoreTrailing", "extraPath"].map(|name| domain[name].clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_says_what_it_ignores_and_the_log_has_it() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let listed = async || settings_of(&get(api, "domains").await["domains"]["data"][0]);
    assert_eq!(listed().await, [json!(false), json!(false), Value::Null]);
    for (change, expected) in [
        (json!({ "ignoreCase": true, "extraPath": "append" }), [json!(true), json!(false), json!("append")]),
        (json!({ "ignoreTrailing": true }), [json!(true), json!(true), json!("append")]),
        (json!({ "ignoreCase": false, "extraPath": null }), [json!(false), json!(true), Value::Null]),
    ] {
        let edited = done(api, Method::PATCH, "domains/s.test", Some(change)).await;
        assert_eq!(settings_of(&edited), expected);
        assert_eq!(listed().await, expected);
    }
    let expected = json!({
        "ignoreCase": { "from": true, "to": false }, "extraPath": { "from": "append", "to": null },
    });
    assert_eq!(last_change(&alone).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_sets_and_shows_what_paths_do() {
    let alone = Alone::start_at("https://s.test").await;
    let person = Person::at(&alone.resolver);
    person.read(&["link", "create", TEMPLATE, "--slug", "promo", "--extra-path", "fill"]).await;
    let table = person.read(&["link", "get", "promo"]).await;
    assert_eq!(row(&table, "extra path"), Some("fill"), "{table}");
    let table = person.read(&["link", "edit", "promo", "--no-extra-path"]).await;
    assert_eq!(row(&table, "extra path"), None, "{table}");

    let rows = |table: &str| {
        ["ignores case", "ignores trailing", "extra path"].map(|name| row(table, name).map(str::to_owned))
    };
    let shown = |values: [&str; 3]| values.map(|value| Some(value.to_owned()));
    let set = ["--ignore-case", "--ignore-trailing", "--extra-path", "append"];
    let table = person.read(&[&["domain", "edit", "s.test"][..], &set].concat()).await;
    assert_eq!(rows(&table), shown(["yes", "yes", "append"]), "{table}");
    let set = ["--no-ignore-case", "--no-ignore-trailing", "--extra-path", "refuse"];
    let table = person.read(&[&["domain", "edit", "DEFAULT"][..], &set].concat()).await;
    assert_eq!(rows(&table), shown(["no", "no", "refuse"]), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_slugs_are_kept_in_small_letters_where_case_is_ignored() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let wish =
        |slug: &str, domain: Option<&str>| json!({ "longUrl": URL, "customSlug": slug, "domain": domain });
    api.create_with(&wish("Older", None)).await.unwrap();
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "ignoreCase": true }))).await;

    let made = api.create_with(&wish("Summer/SALE-Über", None)).await.unwrap();
    assert_eq!(made.code, "summer/sale-über");
    let again = wish("SUMMER/sale-ÜBER", None);
    expect_problem(&api.try_create_with(&again).await.unwrap(), 400, "non-unique-slug");
    let mut found = again;
    found["findIfExists"] = json!(true);
    assert_eq!(api.create_with(&found).await.unwrap().code, made.code);

    let prefixed = json!({ "longUrl": URL, "pathPrefix": "SAL", "shortCodeLength": 6 });
    assert!(api.create_with(&prefixed).await.unwrap().code.starts_with("sal"));

    // In small letters it would hide a call of the API.
    expect_invalid(&api.try_create_with(&wish("promo/Visits", None)).await.unwrap(), "customSlug");
    for slug in ["Promo", "promo/Visits"] {
        let other = api.create_with(&wish(slug, Some("one.example"))).await.unwrap();
        assert_eq!(other.code, slug, "this domain tells capitals apart");
    }
    assert_eq!(get(api, "short-urls/Older").await["shortCode"], "Older", "what was there stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_leads_to_a_link_already_is_taken_for_others_and_below_one_that_was_taken_down() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let scopes = ["--scopes", "create,read,edit,domains", "--own-links-only"];
    let (first, second) =
        (alone.with_new_key("first", &scopes).await, alone.with_new_key("second", &scopes).await);
    let create = async |api: &Api, slug: &str, domain: Option<&str>| {
        let wish = json!({ "longUrl": URL, "customSlug": slug, "domain": domain, "findIfExists": true });
        api.try_create_with(&wish).await.unwrap()
    };
    let expect_taken = |answer: &Answer| expect_problem(answer, 400, "non-unique-slug");
    let docs = json!({ "longUrl": URL, "customSlug": "docs", "extraPath": "append" });
    second.create_with(&json!({ "longUrl": URL, "customSlug": "docs/earlier" })).await.unwrap();
    first.create_with(&docs).await.unwrap();

    // All paths behind the name are the first tenant's, but those of links that were there.
    for slug in ["docs/login", "docs/a/b"] {
        expect_taken(&create(&second, slug, None).await);
    }
    for (api, slug, domain) in [
        (&first, "docs/intro", None),
        (&second, "docs/earlier", None),
        (&second, "docs-2/login", None),
        (&second, "docs/login", Some("two.test")),
        (api, "docs/help", None),
    ] {
        assert_eq!(create(api, slug, domain).await.status, 200, "{slug}");
    }
    // The caller chooses the long URL, and so can choose a short code from its digest.
    let below = |prefix: &str| json!({ "longUrl": URL, "pathPrefix": prefix, "shortCodeLength": 1 });
    expect_invalid(&second.try_create_with(&below("docs/")).await.unwrap(), "pathPrefix");
    assert_eq!(second.try_create_with(&below("docs-")).await.unwrap().status, 200);
    assert_eq!(first.try_create_with(&below("docs/")).await.unwrap().status, 200);
    let path = "short-urls/docs/login/move?domain=two.test";
    expect_taken(&call(&second, Method::POST, path, Some(json!({ "domain": "DEFAULT" }))).await);

    // A domain's own names come before those of the default one.
    assert_eq!(create(&second, "docs/other", Some("two.test")).await.status, 200);

    let reason = Some(json!({ "reason": "phishing" }));
    done(api, Method::POST, "short-urls/docs/block", reason).await;
    for api in [&first, &second, api] {
        expect_taken(&create(api, "docs/again", None).await);
    }

    // The same goes for the other ways in which a name is meant.
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "ignoreTrailing": true }))).await;
    assert_eq!(create(&first, "sale", None).await.status, 200);
    expect_taken(&create(&second, "sale!", None).await);
    assert_eq!(create(&first, "sale!", None).await.status, 200);

    // A link that catches all paths is for those that are left. It would take the visitors of what
    // other tenants delete.
    let all = json!({ "longUrl": URL, "customSlug": "*", "extraPath": "append" });
    expect_problem(&first.try_create_with(&all).await.unwrap(), 403, "about:blank");
    let rename = Some(json!({ "customSlug": "*" }));
    let renamed = call(&first, Method::PATCH, "short-urls/sale", rename).await;
    expect_problem(&renamed, 403, "about:blank");
    api.create_with(&all).await.unwrap();
    done(api, Method::PATCH, "domains/DEFAULT", Some(json!({ "catchAll": true }))).await;
    for slug in ["new", "new/page"] {
        assert_eq!(create(&second, slug, None).await.status, 200, "{slug}");
    }
    assert_eq!(second.try_create_with(&below("new-")).await.unwrap().status, 200);
}
