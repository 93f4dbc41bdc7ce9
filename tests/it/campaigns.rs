//! Campaigns: parameters that the redirects of a domain add to where they lead.

use harness::{Api, Cluster};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{Alone, done, get, leads_to, visit},
};

const TEMPLATE: &str = "utm_source={domain}&utm_medium=link&utm_campaign={code}";
const TWO: &str = "two.test";

async fn pick(api: &Api, slug: &str, long_url: &str, fields: Value) {
    let mut wish = json!({ "customSlug": slug, "longUrl": long_url });
    wish.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    api.create_with(&wish).await.unwrap();
}

async fn set_template(api: &Api, domain: &str, template: Option<&str>) -> Value {
    done(api, Method::PATCH, &format!("domains/{domain}"), Some(json!({ "queryTemplate": template }))).await
}

/// Returns the host of the default domain.
async fn default_host(api: &Api) -> String {
    get(api, "domains").await["domains"]["data"][0]["domain"].as_str().unwrap().to_owned()
}

/// Visits a path twice, so that the second visit is of a link that is known.
async fn follow_twice(api: &Api, host: &str, path: &str, expected: &str) {
    for time in 1..=2 {
        assert_eq!(visit(api, host, path).await, leads_to(expected), "{host}/{path}, time {time}");
    }
}

async fn make_links(api: &Api) {
    let over = json!({ "validUntil": "2020-01-01", "expiredUrl": "https://over.test/" });
    for (slug, long_url, fields) in [
        ("plain", "https://example.com/p#top", json!({})),
        ("own", "https://example.com/?utm_source=mine&b=%20+&%75tm_source=too", json!({})),
        ("kept", "https://example.com/kept", json!({ "forwardQuery": false })),
        ("a&b=c", "https://example.com/?q=why?", json!({})),
        ("summer/2026", "https://b\u{fc}cher.example/[x]", json!({})),
        ("\u{77ed}\u{3044}", "https://example.com", json!({})),
        ("phone", "tel:+4930123", json!({})),
        ("ruled", "https://example.com/", json!({})),
        ("over", "https://example.com/", over),
        ("there", "https://example.com/there", json!({ "domain": TWO })),
    ] {
        pick(api, slug, long_url, fields).await;
    }
    let condition = json!({ "type": "query-param", "matchKey": "to", "matchValue": "rule" });
    let rule = json!({ "longUrl": "https://rule.test/?utm_campaign=r", "conditions": [condition] });
    let rules = json!({ "redirectRules": [rule] });
    done(api, Method::POST, "short-urls/ruled/redirect-rules", Some(rules)).await;
}

/// Paths of the default domain with where they lead: without a template, and with [`TEMPLATE`],
/// where `{host}` stands for the host of the domain.
const LEADS: [(&str, &str, &str); 12] = [
    (
        "plain",
        "https://example.com/p#top",
        "https://example.com/p?utm_source={host}&utm_medium=link&utm_campaign=plain#top",
    ),
    (
        "plain?utm_medium=mail&x=1",
        "https://example.com/p?utm_medium=mail&x=1#top",
        "https://example.com/p?utm_medium=mail&x=1&utm_source={host}&utm_campaign=plain#top",
    ),
    (
        "own",
        "https://example.com/?utm_source=mine&b=%20+&%75tm_source=too",
        "https://example.com/?utm_source=mine&b=%20+&%75tm_source=too&utm_medium=link&utm_campaign=own",
    ),
    (
        "own?utm_source=visitor",
        "https://example.com/?utm_source=visitor&b=%20+",
        "https://example.com/?utm_source=visitor&b=%20+&utm_medium=link&utm_campaign=own",
    ),
    (
        "kept?utm_medium=mail",
        "https://example.com/kept",
        "https://example.com/kept?utm_source={host}&utm_medium=link&utm_campaign=kept",
    ),
    (
        "a&b=c",
        "https://example.com/?q=why?",
        "https://example.com/?q=why?&utm_source={host}&utm_medium=link&utm_campaign=a%26b%3Dc",
    ),
    (
        "summer/2026",
        "https://xn--bcher-kva.example/%5Bx%5D",
        "https://xn--bcher-kva.example/%5Bx%5D?utm_source={host}&utm_medium=link&utm_campaign=summer/2026",
    ),
    (
        "%E7%9F%AD%E3%81%84",
        "https://example.com",
        "https://example.com?utm_source={host}&utm_medium=link&utm_campaign=%E7%9F%AD%E3%81%84",
    ),
    ("phone", "tel:+4930123", "tel:+4930123"),
    (
        "ruled?to=rule",
        "https://rule.test/?utm_campaign=r&to=rule",
        "https://rule.test/?utm_campaign=r&to=rule&utm_source={host}&utm_medium=link",
    ),
    (
        "ruled",
        "https://example.com/",
        "https://example.com/?utm_source={host}&utm_medium=link&utm_campaign=ruled",
    ),
    ("over", "https://over.test/", "https://over.test/"),
];

/// The template of each domain acts on its visitors, and a domain without one is as before.
async fn redirects_add_what_is_not_there(api: &Api) {
    make_links(api).await;
    let minted = api.create("https://example.com/minted?a=1").await.unwrap().code;
    let host = &default_host(api).await;
    let escaped = host.replace(':', "%3A");
    let everywhere = async |template: Option<&str>| {
        for (path, without, with) in LEADS {
            let with = with.replace("{host}", &escaped);
            follow_twice(api, host, path, if template.is_some() { &with } else { without }).await;
        }
        let added = format!("&utm_source={escaped}&utm_medium=link&utm_campaign={minted}");
        let added = template.map_or("", |_| added.as_str());
        follow_twice(api, host, &minted, &format!("https://example.com/minted?a=1{added}")).await;
    };
    everywhere(None).await;
    assert_eq!(set_template(api, "DEFAULT", Some(TEMPLATE)).await["queryTemplate"], TEMPLATE);
    everywhere(Some(TEMPLATE)).await;
    assert_eq!(visit(api, host, "none").await.0, 404);
    follow_twice(api, TWO, "there", "https://example.com/there").await;

    set_template(api, TWO, Some(" ref={domain} ")).await;
    follow_twice(api, TWO, "there", "https://example.com/there?ref=two.test").await;
    // The domain that was visited counts, and not that of the link.
    follow_twice(api, TWO, &minted, "https://example.com/minted?a=1&ref=two.test").await;
    everywhere(Some(TEMPLATE)).await;
    assert_eq!(set_template(api, "DEFAULT", None).await["queryTemplate"], Value::Null);
    everywhere(None).await;
    follow_twice(api, TWO, "there", "https://example.com/there?ref=two.test").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_add_what_is_not_there_on_sqlite() {
    redirects_add_what_is_not_there(Alone::start(&[]).await.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_add_what_is_not_there_without_the_fast_path() {
    redirects_add_what_is_not_there(Alone::start(&["--tune", "fast-path=off"]).await.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_add_what_is_not_there_on_postgres() {
    let cluster = Cluster::builder().start().await.unwrap();
    redirects_add_what_is_not_there(&cluster.resolvers[0].api).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_is_explained_logged_and_set_from_the_command_line() {
    let alone = Alone::start_at("https://s.test").await;
    let (api, person) = (alone.api(), Person::at(&alone.resolver));
    pick(api, "plain", "https://example.com/?b", json!({})).await;
    let table = person.read(&["domain", "edit", "DEFAULT", "--query-template", "a={code}&b=1"]).await;
    assert_eq!(row(&table, "query template"), Some("a={code}&b=1"), "{table}");
    let explained = get(api, "explain?url=plain").await;
    let steps = explained["steps"].as_array().unwrap();
    let step = json!({ "step": "query", "outcome": "added", "detail": "a=plain&b=1" });
    assert!(steps.contains(&step), "{explained}");
    assert_eq!(explained["answer"]["location"], "https://example.com/?b&a=plain");
    assert_eq!(visit(api, "s.test", "plain").await, leads_to("https://example.com/?b&a=plain"));
    let table = person.read(&["domain", "edit", "s.test", "--no-query-template"]).await;
    assert_eq!(row(&table, "query template"), None, "{table}");
    let log = get(api, "audit").await["audit"]["data"].clone();
    let changed = |entry: usize| log[entry]["details"]["changed"]["queryTemplate"].clone();
    assert_eq!(changed(0), json!({ "from": "a={code}&b=1", "to": null }));
    assert_eq!(changed(1), json!({ "from": null, "to": "a={code}&b=1" }));
}
