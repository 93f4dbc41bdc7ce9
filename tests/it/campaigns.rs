//! Campaigns: parameters that the redirects of a domain add to where they lead, and links that are
//! sent again under the caller's own ids.

use futures_util::future::join_all;
use harness::{Api, Cluster};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    cli::{Person, row},
    rest_calls::{
        Alone, Place, call, count, done, expect_invalid, expect_problem, get, leads_to, listed,
        on_either_store, plus, visit,
    },
};

const TEMPLATE: &str = "utm_source={domain}&utm_medium=link&utm_campaign={code}";
const TWO: &str = "two.test";

async fn pick(api: &Api, slug: &str, long_url: &str, fields: Value) {
    api.create_with(&plus(json!({ "customSlug": slug, "longUrl": long_url }), &fields)).await.unwrap();
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

/// The number of requests for one id at once, and of items of a bulk call.
const MANY: usize = 48;

/// Sends a link under an id, with further fields.
async fn send(api: &Api, id: &str, long_url: &str, fields: Value) -> Value {
    let wish = plus(json!({ "externalId": id, "longUrl": long_url }), &fields);
    done(api, Method::POST, "short-urls", Some(wish)).await
}

fn code(link: &Value) -> &str {
    link["shortCode"].as_str().unwrap()
}

/// Sends items to a bulk call, and returns the codes of their links.
async fn send_many(api: &Api, items: &[Value]) -> Vec<String> {
    let answer = done(api, Method::POST, "short-urls/bulk", Some(json!(items))).await;
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), items.len(), "{answer}");
    results.iter().map(|result| code(result).to_owned()).collect()
}

/// Returns how many links there are.
/// An id has one link, which gets what is sent last, until it is deleted.
async fn an_id_has_one_link(api: &Api, other: &Api) {
    let (one, two) = ("https://example.com/1", "https://example.com/2");
    let first = send(api, "sku 1", one, json!({ "title": "T", "tags": ["a"] })).await;
    assert_eq!((&first["externalId"], &first["version"]), (&json!("sku 1"), &json!(0)));
    let again = send(other, "sku 1", one, json!({ "title": "T", "tags": ["a"] })).await;
    assert_eq!(code(&again), code(&first));
    assert_eq!((&again["version"], &again["editedAt"]), (&json!(0), &Value::Null), "nothing has changed");
    let changed = send(other, "sku 1", two, json!({ "tags": ["b", "c"] })).await;
    assert_eq!(code(&changed), code(&first));
    assert_eq!((&changed["longUrl"], &changed["tags"]), (&json!(two), &json!(["b", "c"])));
    assert_eq!((&changed["title"], &changed["version"]), (&json!("T"), &json!(1)), "what is not sent stays");
    assert_eq!(api.follow(code(&first)).await.unwrap(), leads_to(two));
    let tags = send(api, "sku 1", two, json!({ "tags": [] })).await;
    assert_eq!((&tags["tags"], &tags["version"]), (&json!([]), &json!(2)));
    for same in ["sku%201", "%20sku%201%20"] {
        assert_eq!(listed(other, &format!("externalId={same}")).await, [code(&first)], "{same:?}");
    }
    let spaced = send(api, " sku 1 ", two, json!({})).await;
    assert_eq!((code(&spaced), &spaced["externalId"]), (code(&first), &json!("sku 1")));
    for none in ["sku%202", "sku%20%201", &"x".repeat(256)] {
        assert!(listed(api, &format!("externalId={none}")).await.is_empty(), "{none:?}");
    }
    assert_ne!(code(&send(api, "SKU 1", two, json!({})).await), code(&first));

    let deleted = call(api, Method::DELETE, &format!("short-urls/{}", code(&first)), None).await;
    assert_eq!(deleted.status, 204);
    assert!(listed(api, "externalId=sku%201").await.is_empty());
    let next = send(other, "sku 1", one, json!({})).await;
    assert_ne!(code(&next), code(&first));
    assert_eq!(listed(api, "externalId=sku%201").await, [code(&next)]);
}

/// The fields of the code and the domain are for the first request.
async fn a_link_with_an_id_keeps_its_name(api: &Api) {
    let url = "https://example.com/named";
    for (id, fields) in [
        ("slug", json!({ "customSlug": "named" })),
        ("code", json!({ "customSlug": "Abc987" })),
        ("domain", json!({ "customSlug": "named", "domain": TWO })),
        ("digest", json!({ "strategy": "hash" })),
        ("prefix", json!({ "pathPrefix": "go/" })),
        ("random", json!({ "shortCodeLength": 12 })),
    ] {
        let first = send(api, id, url, fields.clone()).await;
        let again = send(api, id, "https://example.com/again", fields).await;
        assert_eq!((code(&again), &again["domain"]), (code(&first), &first["domain"]), "{id}");
        let elsewhere = json!({ "customSlug": "elsewhere", "domain": "three.test" });
        let again = send(api, id, url, elsewhere).await;
        assert_eq!((code(&again), &again["domain"]), (code(&first), &first["domain"]), "{id}");
        assert_eq!((&again["longUrl"], &again["version"]), (&json!(url), &json!(2)), "{id}");
    }
    let taken = json!({ "externalId": "late", "longUrl": url, "customSlug": "named" });
    expect_problem(&api.try_create_with(&taken).await.unwrap(), 400, "non-unique-slug");
    assert_eq!(send(api, "late", url, json!({ "customSlug": "late" })).await["shortCode"], "late");
}

/// Requests for one id at once, on several resolvers, and calls with many of them make one link.
async fn requests_at_once_make_one_link(api: &Api, other: &Api) {
    let before = count(api).await;
    let target = |number: usize| format!("https://example.com/race/{number}");
    let sent = (0..MANY).map(|number| {
        let (api, target) = (if number % 2 == 0 { api } else { other }, target(number));
        async move { send(api, "race", &target, json!({ "tags": ["race"] })).await }
    });
    let sent = join_all(sent).await;
    assert!(sent.iter().all(|link| code(link) == code(&sent[0])), "{sent:?}");
    let kept = get(api, &format!("short-urls/{}", code(&sent[0]))).await["longUrl"].clone();
    assert!((0..MANY).any(|number| kept == target(number)), "{kept}");

    let items = |path: &str| -> Vec<Value> {
        let item = |number: usize| {
            let url = format!("https://example.com/{path}/{number}");
            json!({ "externalId": format!("item {}", number / 2), "longUrl": url })
        };
        (0..MANY).map(item).collect()
    };
    let (first, second) = (items("first"), items("second"));
    let (one, two) = tokio::join!(send_many(api, &first), send_many(other, &first));
    assert_eq!(one, two);
    assert!(one.chunks(2).all(|pair| pair[0] == pair[1]), "{one:?}");
    assert_eq!(send_many(api, &second).await, one);
    let led = api.follow(&one[0]).await.unwrap();
    assert!([0, 1].iter().any(|item| led == leads_to(second[*item]["longUrl"].as_str().unwrap())), "{led:?}");
    assert_eq!(count(api).await, before + 1 + MANY / 2);
}

on_either_store!(external_ids_stand_for_links);

async fn external_ids_stand_for_links(place: Place) {
    let [api, other] = &place.apis();
    an_id_has_one_link(api, other).await;
    a_link_with_an_id_keeps_its_name(api).await;
    requests_at_once_make_one_link(api, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_belong_to_their_key_which_has_to_be_able_to_edit() {
    let alone = Alone::start(&[]).await;
    let url = "https://example.com/";
    let own = alone.with_new_key("own", &["--own-links-only"]).await;
    let first = send(alone.api(), "1", url, json!({})).await;
    let second = send(&own, "1", url, json!({})).await;
    assert_ne!(code(&first), code(&second));
    for (api, link) in [(alone.api(), &first), (&own, &second)] {
        assert_eq!(listed(api, "externalId=1").await, [code(link)]);
        assert_eq!(code(&send(api, "1", "https://example.com/new", json!({})).await), code(link));
    }
    let create_only = alone.with_new_key("create", &["--scopes", "create"]).await;
    let wish = json!({ "externalId": "1", "longUrl": url });
    assert_eq!(create_only.try_create_with(&wish).await.unwrap().status, 403);
    let blind = alone.with_new_key("blind", &["--scopes", "create,edit"]).await;
    let name = send(&blind, "1", url, json!({})).await;
    assert_eq!(name["longUrl"], Value::Null, "it learns the name only");
    assert_eq!(send(&blind, "1", url, json!({ "title": "T" })).await, name);

    for (field, value) in [("findIfExists", json!(true)), ("password", json!("hush"))] {
        let mut wish = wish.clone();
        wish[field] = value;
        expect_invalid(&own.try_create_with(&wish).await.unwrap(), field);
    }
    let edit = Some(json!({ "externalId": "2" }));
    let refused = call(&own, Method::PATCH, &format!("short-urls/{}", code(&second)), edit).await;
    expect_problem(&refused, 400, "invalid-data");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_sends_a_link_again() {
    let alone = Alone::start(&[]).await;
    let person = Person::at(&alone.resolver);
    let create = async |url: &str| person.read(&["link", "create", url, "--external-id", "sku 1"]).await;
    let short_url = create("https://example.com/1").await;
    assert_eq!(create("https://example.com/2").await, short_url);
    let code = short_url.trim().rsplit_once('/').unwrap().1;
    let table = person.read(&["link", "get", code]).await;
    assert_eq!(row(&table, "external id"), Some("sku 1"), "{table}");
    assert_eq!(row(&table, "long URL"), Some("https://example.com/2"), "{table}");
}
