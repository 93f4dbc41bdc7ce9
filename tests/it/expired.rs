//! Where visitors are led once a link has expired or its visits are used up.

use harness::Api;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{Alone, call, done, expect_invalid, get, leads_to, visit},
};

const URL: &str = "https://example.com/page";
const OVER: &str = "https://over.example/sorry?a=1";
const OF_DOMAIN: &str = "https://domain.example/over";
const TWO: &str = "two.test";

/// Creates a link on [`TWO`] under a custom slug.
async fn pick(api: &Api, slug: &str, mut wish: Value) {
    (wish["longUrl"], wish["customSlug"], wish["domain"]) = (json!(URL), json!(slug), json!(TWO));
    api.create_with(&wish).await.unwrap();
}

async fn set_of_domain(api: &Api, url: Option<&str>) -> Value {
    done(api, Method::PATCH, "domains/two.test", Some(json!({ "expiredUrl": url }))).await
}

/// Lets the target rules allow a host or not.
async fn judge(api: &Api, host: &str, allowed: bool) {
    done(api, Method::PUT, "targets", Some(json!({ "pattern": host, "allowed": allowed }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_has_ended_leads_to_its_url_for_that_or_else_to_its_domains() {
    let flags = ["--tell-gone", "--redirect-status", "308", "--fallback"];
    let alone = Alone::start(&[&flags[..], &["invalid-short-url=https://lost.example/"]].concat()).await;
    let api = alone.api();
    let past = "2020-01-01";
    for (slug, wish) in [
        ("over", json!({ "validUntil": past, "expiredUrl": OVER })),
        ("locked", json!({ "validUntil": past, "expiredUrl": OVER, "password": "hush" })),
        ("plain", json!({ "validUntil": past })),
        ("once", json!({ "maxVisits": 1, "expiredUrl": OVER, "redirectStatus": 301 })),
        ("live", json!({ "validUntil": "2090-01-01", "expiredUrl": OVER })),
        ("early", json!({ "validSince": "2090-01-01", "expiredUrl": OVER })),
        ("off", json!({ "validUntil": past, "expiredUrl": OVER, "enabled": false })),
        ("gone", json!({ "validUntil": past, "expiredUrl": OVER })),
        ("taken", json!({ "validUntil": past, "expiredUrl": OVER })),
    ] {
        pick(api, slug, wish).await;
    }
    let reason = Some(json!({ "reason": "phishing" }));
    done(api, Method::POST, "short-urls/taken/block?domain=two.test", reason).await;
    assert_eq!(call(api, Method::DELETE, "short-urls/gone?domain=two.test", None).await.status, 204);
    let to = |status: u16, url: &str| (status, Some(url.to_owned()));
    let lost = to(308, "https://lost.example/");
    assert_eq!(visit(api, TWO, "once").await, to(301, URL));
    for (path, of_domain, answer) in [
        ("over?x=1", None, leads_to(OVER)),
        ("over", Some(OF_DOMAIN), leads_to(OVER)),
        ("locked", None, leads_to(OVER)),
        ("once", None, leads_to(OVER)),
        ("plain", None, (410, None)),
        ("plain", Some(OF_DOMAIN), leads_to(OF_DOMAIN)),
        ("live", Some(OF_DOMAIN), to(308, URL)),
        ("early", Some(OF_DOMAIN), lost.clone()),
        ("off", Some(OF_DOMAIN), (410, None)),
        ("gone", Some(OF_DOMAIN), lost.clone()),
        ("taken", Some(OF_DOMAIN), (410, None)),
        ("nothing", Some(OF_DOMAIN), lost),
    ] {
        assert_eq!(set_of_domain(api, of_domain).await["expiredUrl"], json!(of_domain));
        assert_eq!(visit(api, TWO, path).await, answer, "{path} {of_domain:?}");
    }

    // Target rules that are newer than the URLs.
    judge(api, "example.com", false).await;
    assert_eq!(visit(api, TWO, "over").await, (410, None), "a denied link is as if taken down");
    judge(api, "example.com", true).await;
    judge(api, "over.example", false).await;
    assert_eq!(visit(api, TWO, "over").await, leads_to(OF_DOMAIN));
    judge(api, "domain.example", false).await;
    assert_eq!(visit(api, TWO, "over").await, (410, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_long_url_may_not_be_is_refused_here_too() {
    let alone = Alone::start_at("https://s.test").await;
    let api = alone.api();
    pick(api, "sale", json!({})).await;
    judge(api, "denied.example", false).await;
    let edit = async |path: &str, url: &str| {
        call(api, Method::PATCH, path, Some(json!({ "expiredUrl": url }))).await
    };
    for url in ["", "/over", "javascript:alert(1)", "https://denied.example/", "https://s.test/other"] {
        let wish = json!({ "longUrl": URL, "expiredUrl": url });
        expect_invalid(&api.try_create_with(&wish).await.unwrap(), "expiredUrl");
        for path in ["short-urls/sale?domain=two.test", "domains/two.test", "domains/DEFAULT"] {
            expect_invalid(&edit(path, url).await, "expiredUrl");
        }
    }
    // A link must not lead to itself, nor the expired links of a domain to one of them.
    let itself = "https://two.test/sale";
    let wish = json!({ "longUrl": URL, "customSlug": "spring", "domain": TWO });
    let with = |url: &str| {
        let mut wish = wish.clone();
        wish["expiredUrl"] = json!(url);
        wish
    };
    let refused = api.try_create_with(&with("https://two.test/spring")).await.unwrap();
    expect_invalid(&refused, "expiredUrl");
    expect_invalid(&edit("short-urls/sale?domain=two.test", itself).await, "expiredUrl");
    expect_invalid(&edit("domains/two.test", itself).await, "expiredUrl");
    api.create_with(&with(itself)).await.unwrap();
    edit("domains/two.test", "https://two.test/").await.success().unwrap();
    edit("domains/DEFAULT", itself).await.success().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_is_shown_found_by_logged_and_cleared() {
    let alone = Alone::start(&[]).await;
    let api = alone.api();
    let find = async |url: Value| {
        let wish = json!({ "longUrl": URL, "expiredUrl": url, "findIfExists": true });
        api.create_with(&wish).await.unwrap()
    };
    let (plain, with_url) = (find(Value::Null).await, find(json!(OVER)).await);
    assert_ne!(plain.code, with_url.code);
    assert_eq!(find(json!(OVER)).await.code, with_url.code);
    let path = format!("short-urls/{}", with_url.code);
    assert_eq!(get(api, &path).await["expiredUrl"], OVER);
    let edited = done(api, Method::PATCH, &path, Some(json!({ "title": "T" }))).await;
    assert_eq!(edited["expiredUrl"], OVER, "what is not named stays");
    let edited = done(api, Method::PATCH, &path, Some(json!({ "expiredUrl": null }))).await;
    assert_eq!(edited["expiredUrl"], Value::Null);
    let changed = get(api, "audit").await["audit"]["data"][0]["details"]["changed"].clone();
    assert_eq!(changed["expiredUrl"], json!({ "from": OVER, "to": null }), "{changed}");

    // A key of its own links does not learn where the links of others lead.
    pick(api, "theirs", json!({})).await;
    let own = alone.with_new_key("own", &["--own-links-only"]).await;
    pick(&own, "mine", json!({})).await;
    set_of_domain(api, Some(OF_DOMAIN)).await;
    for (api, url) in [(api, json!(OF_DOMAIN)), (&own, Value::Null)] {
        let domains = get(api, "domains").await["domains"]["data"].clone();
        let two = domains.as_array().unwrap().iter().find(|domain| domain["domain"] == TWO).unwrap();
        assert_eq!(two["expiredUrl"], url, "{domains}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_sets_shows_and_clears_the_url() {
    let alone = Alone::start_at("https://s.test").await;
    let person = Person::at(&alone.resolver);
    person.read(&["link", "create", URL, "--slug", "promo", "--expired-url", OVER]).await;
    let table = person.read(&["link", "get", "promo"]).await;
    assert_eq!(row(&table, "expired URL"), Some(OVER), "{table}");
    let table = person.read(&["link", "edit", "promo", "--no-expired-url"]).await;
    assert_eq!(row(&table, "expired URL"), None, "{table}");
    let table = person.read(&["domain", "edit", "s.test", "--expired-url", OF_DOMAIN]).await;
    assert_eq!(row(&table, "expired URL"), Some(OF_DOMAIN), "{table}");
    let table = person.read(&["domain", "edit", "DEFAULT", "--no-expired-url"]).await;
    assert_eq!(row(&table, "expired URL"), None, "{table}");
}
