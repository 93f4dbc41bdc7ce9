//! Links that move to another domain: they keep their names and what they have, and lead from the
//! new address as soon as the move is acknowledged.

use harness::{Answer, Api};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, Place, call, expect_problem, get, leads_to, on_either_store, plus, visit};

const URL: &str = "https://example.com/page";
const ONE: &str = "one.example";
const TWO: &str = "two.example";

async fn make(api: &Api, wish: Value) -> String {
    let whole = plus(json!({ "longUrl": URL, "tags": ["a"], "title": "T", "findIfExists": false }), &wish);
    api.create_with(&whole).await.unwrap().code
}

/// The query that names a domain; the default domain has none.
fn on(domain: &str) -> String {
    if domain == "DEFAULT" { String::new() } else { format!("?domain={domain}") }
}

/// The host under which visitors reach a domain.
fn host(domain: &str) -> &str {
    if domain == "DEFAULT" { "s.test" } else { domain }
}

async fn relocate(api: &Api, name: &str, from: &str, to: &str) -> Answer {
    let path = format!("short-urls/{name}/move{}", on(from));
    call(api, Method::POST, &path, Some(json!({ "domain": to }))).await
}

on_either_store!(a_link_moves_with_what_it_has);

/// Moves a minted link, a mintable slug and another slug over three domains and back.
/// `other` is a resolver that has each address in its cache, and is asked as soon as the move is
/// acknowledged.
async fn a_link_moves_with_what_it_has(place: Place) {
    let [api, other] = &place.apis();
    let names = [
        make(api, json!({})).await,
        make(api, json!({ "customSlug": "abc123" })).await,
        make(api, json!({ "customSlug": "summer/2026" })).await,
    ];
    for name in &names {
        let before = get(api, &format!("short-urls/{name}")).await;
        let mut from = "DEFAULT";
        for (version, to) in (1..).zip([ONE, TWO, "DEFAULT", TWO, ONE, "DEFAULT"]) {
            assert_eq!(visit(other, host(from), name).await, leads_to(URL), "{name} on {from}");
            let moved = relocate(api, name, from, to).await.success().unwrap().json().unwrap();
            assert_eq!(visit(other, host(to), name).await, leads_to(URL), "{name} from {from} to {to}");
            assert_eq!(visit(api, host(to), name).await, leads_to(URL), "{name} from {from} to {to}");
            // The default domain's links lead there from every domain.
            let left = if to == "DEFAULT" { leads_to(URL) } else { (404, None) };
            assert_eq!(visit(api, host(from), name).await, left, "{name} from {from} to {to}");
            let domain = Some(to).filter(|to| *to != "DEFAULT");
            assert_eq!(moved["domain"], json!(domain));
            let short_host = moved["shortUrl"].as_str().unwrap().split('/').nth(2).unwrap();
            assert!(domain.is_none_or(|domain| short_host == domain), "{moved}");
            assert_eq!(moved["version"], version);
            assert_eq!((&moved["tags"], &moved["title"]), (&before["tags"], &before["title"]));
            let mut shown = get(api, &format!("short-urls/{name}{}", on(to))).await;
            for counted in ["visitsSummary", "lastVisit"] {
                shown[counted] = moved[counted].clone();
            }
            assert_eq!(shown, moved);
            from = to;
        }
    }
    let log = get(api, "audit").await;
    let last = &log["audit"]["data"][0];
    assert_eq!((&last["action"], &last["subject"]), (&json!("edit-link"), &json!("summer/2026")));
    assert_eq!(last["details"]["changed"]["domain"], json!({ "from": ONE, "to": "DEFAULT" }), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_moved_link_is_deleted_and_restored_where_it_is() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let slugs = ["abc123", "summer/2026"];
    let names = [make(api, json!({})).await, slugs[0].to_owned(), slugs[1].to_owned()];
    for slug in slugs {
        make(api, json!({ "customSlug": slug })).await;
    }
    for name in &names {
        relocate(api, name, "DEFAULT", ONE).await.success().unwrap();
        let path = format!("short-urls/{name}{}", on(ONE));
        call(api, Method::DELETE, &path, None).await.success().unwrap();
        assert_eq!(visit(api, ONE, name).await, (404, None), "{name}");
        let restore = format!("short-urls/{name}/restore{}", on(ONE));
        call(api, Method::POST, &restore, None).await.success().unwrap();
        assert_eq!(visit(api, ONE, name).await, leads_to(URL), "{name}");
        assert_eq!(visit(api, "s.test", name).await, (404, None), "{name}");
    }
    // A slug that is no code is free again where it was. A code is its number's, wherever it was.
    relocate(api, &names[0], ONE, TWO).await.success().unwrap();
    let squat = json!({ "customSlug": names[0], "domain": ONE, "longUrl": "https://example.com/other" });
    assert!(api.create_with(&squat).await.is_err(), "a code that may be in print there");
    assert_eq!(visit(api, ONE, &names[0]).await, (404, None));
    let list = get(api, "domains").await;
    let named =
        |name: &str| list["domains"]["data"].as_array().unwrap().iter().any(|one| one["domain"] == name);
    assert!(named(TWO) && named(ONE), "{list}");
    make(api, json!({ "customSlug": slugs[1], "longUrl": "https://example.com/other" })).await;
    let taken = api.create_with(&json!({ "customSlug": slugs[0], "longUrl": URL })).await;
    assert!(taken.is_err(), "the code of a link that is elsewhere");
    assert_eq!(visit(api, ONE, slugs[1]).await, leads_to(URL));
    expect_problem(&relocate(api, slugs[1], ONE, "DEFAULT").await, 400, "non-unique-slug");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_takes_no_name_of_another_link() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let minted = make(api, json!({})).await;
    // The same code as a slug of another domain, and a slug there that is a code here.
    make(api, json!({ "customSlug": minted, "domain": ONE, "longUrl": "https://example.com/other" })).await;
    make(api, json!({ "customSlug": "xyz789", "domain": ONE })).await;
    for (name, from, to) in
        [(&*minted, "DEFAULT", ONE), (&*minted, ONE, "DEFAULT"), ("xyz789", ONE, "DEFAULT")]
    {
        let refused = relocate(api, name, from, to).await;
        expect_problem(&refused, 400, "non-unique-slug");
    }
    assert_eq!(visit(api, "s.test", &minted).await, leads_to(URL));
    assert_eq!(visit(api, ONE, &minted).await, leads_to("https://example.com/other"));
    assert_eq!(visit(api, ONE, "xyz789").await, leads_to(URL));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_that_is_sent_again_is_answered_like_the_first() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let name = make(api, json!({})).await;
    let first = relocate(api, &name, "DEFAULT", ONE).await.success().unwrap().json().unwrap();
    let again = relocate(api, &name, "DEFAULT", ONE).await.success().unwrap().json().unwrap();
    assert_eq!((&again["shortUrl"], &again["version"]), (&first["shortUrl"], &first["version"]));
    let there = relocate(api, &name, ONE, ONE).await.success().unwrap().json().unwrap();
    assert_eq!(there["version"], first["version"], "it is there already");
    // Another link may have the slug there.
    let slug = make(api, json!({ "customSlug": "summer/2026" })).await;
    relocate(api, &slug, "DEFAULT", ONE).await.success().unwrap();
    expect_problem(&relocate(api, &slug, "DEFAULT", ONE).await, 404, "short-url-not-found");
    // A domain that links have left can be removed.
    relocate(api, &name, ONE, TWO).await.success().unwrap();
    relocate(api, &slug, ONE, TWO).await.success().unwrap();
    call(api, Method::DELETE, &format!("domains/{ONE}"), None).await.success().unwrap();
    assert_eq!(visit(api, TWO, &name).await, leads_to(URL));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_is_refused_with_its_reason() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    let name = make(api, json!({})).await;
    let path = format!("short-urls/{name}/move");
    for body in [json!({}), json!({ "domain": "no domain" }), json!({ "domain": 1 })] {
        let problem =
            expect_problem(&call(api, Method::POST, &path, Some(body.clone())).await, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!(["domain"]), "{body}");
    }
    let circle = make(api, json!({ "longUrl": format!("https://{ONE}/round"), "customSlug": "round" })).await;
    call(api, Method::POST, &format!("short-urls/{circle}/move"), Some(json!({ "domain": TWO })))
        .await
        .success()
        .unwrap();
    let problem = relocate(api, &circle, TWO, ONE).await;
    assert_eq!(expect_problem(&problem, 400, "invalid-data")["invalidElements"], json!(["longUrl"]));

    let reader = alone.with_new_key("reader", &["--scopes", "read"]).await;
    assert_eq!(relocate(&reader, &name, "DEFAULT", ONE).await.status, 403);
    let tenant = alone.with_new_key("tenant", &["--scopes", "read,edit", "--domain", ONE]).await;
    expect_problem(&relocate(&tenant, &name, "DEFAULT", ONE).await, 404, "short-url-not-found");
    let own = make(api, json!({ "domain": ONE })).await;
    assert_eq!(relocate(&tenant, &own, ONE, TWO).await.status, 403);
    let adder = ["--scopes", "read,edit,domains", "--domain", ONE];
    let adder = alone.with_new_key("adder", &adder).await;
    for domain in ["new.example", TWO, "DEFAULT"] {
        assert_eq!(relocate(&adder, &own, ONE, domain).await.status, 403, "{domain}");
    }
    let all = get(api, "domains?all=true").await;
    assert!(!all.to_string().contains("new.example"), "a refused move adds no domain: {all}");
    let editor = alone.with_new_key("editor", &["--scopes", "read,edit"]).await;
    assert_eq!(relocate(&editor, &own, ONE, "new.example").await.status, 403, "it may not add a domain");
    assert_eq!(relocate(&editor, "none", "DEFAULT", "new.example").await.status, 404);

    let reason = json!({ "reason": "phishing" });
    call(api, Method::POST, &format!("short-urls/{name}/block"), Some(reason)).await.success().unwrap();
    let blocked = relocate(api, &name, "DEFAULT", ONE).await;
    assert_eq!(blocked.status, 409, "{blocked:?}");
}
