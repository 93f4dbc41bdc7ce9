//! Bulk creation of links that no batch carries: with slugs, tags, domains, passwords and
//! deduplication. Every item has the result that a create of its own would have.

use std::time::Duration;

use harness::{Answer, Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, call, expect_problem, get, leads_to, visit};

/// A time limit for many links that are created one by one.
const LONG: Duration = Duration::from_secs(120);

fn target(number: usize) -> String {
    format!("https://example.com/{number}")
}

/// Adds the long URL of its place to each item that has none.
fn with_targets(items: Value) -> Vec<Value> {
    let Value::Array(mut items) = items else { panic!("expected an array: {items}") };
    for (number, item) in items.iter_mut().enumerate() {
        let fields = item.as_object_mut().unwrap();
        fields.entry("longUrl").or_insert_with(|| json!(target(number)));
    }
    items
}

async fn send(api: &Api, items: &[Value], key: Option<&str>) -> Answer {
    let request = api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url()));
    let request = request.header("X-Api-Key", api.key()).timeout(LONG);
    let request = key.into_iter().fold(request, |request, key| request.header("Idempotency-Key", key));
    Answer::to(request.json(items)).await.unwrap()
}

async fn results(api: &Api, items: &[Value], key: Option<&str>) -> Vec<Value> {
    let answer = send(api, items, key).await.success().unwrap().json().unwrap();
    let results = answer["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), items.len(), "each item has a result");
    results
}

fn words(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["result"].as_str().unwrap()).collect()
}

fn code(result: &Value) -> &str {
    result["shortCode"].as_str().unwrap_or_else(|| panic!("expected a link: {result}"))
}

async fn count(api: &Api) -> Value {
    get(api, "short-urls?itemsPerPage=1").await["shortUrls"]["pagination"]["totalItems"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_may_have_every_field_on_sqlite() {
    let alone = Alone::start(&[]).await;
    every_field(alone.api(), alone.api()).await;
    each_name_has_one_link(alone.api()).await;
    a_repeated_call_makes_the_same_links(alone.api()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_may_have_every_field_on_postgres() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let [api, other] = [0, 1].map(|index| cluster.resolvers[index].api.clone());
    every_field(&api, &other).await;
    each_name_has_one_link(&api).await;
    a_repeated_call_makes_the_same_links(&api).await;
}

/// Creates links with each field, among plain ones, and looks at them on another resolver.
async fn every_field(api: &Api, other: &Api) {
    let items = with_targets(json!([
        {},
        { "customSlug": "summer/2026", "tags": ["a", "b"], "title": "T", "maxVisits": 7 },
        { "customSlug": "Abc123" },
        {},
        { "customSlug": "promo", "domain": "one.example", "tags": ["b"] },
        { "tags": ["b", "c"] },
        { "password": "open sesame" },
        { "pathPrefix": "go/" },
        { "strategy": "hash" },
        { "shortCodeLength": 12 },
        { "keyspace": "default", "redirectStatus": 308 },
        { "domain": "one.example" },
        { "findIfExists": true },
        {},
    ]));
    let results = results(api, &items, None).await;
    for (number, (item, result)) in items.iter().zip(&results).enumerate() {
        assert_eq!(result["result"], "created", "{item}: {result}");
        let (code, domain) = (code(result), item["domain"].as_str());
        let query = domain.map_or(String::new(), |domain| format!("?domain={domain}"));
        let shown = get(api, &format!("short-urls/{code}{query}")).await;
        assert_eq!(shown["longUrl"], target(number), "{item}");
        assert_eq!((&shown["domain"], &shown["shortUrl"]), (&item["domain"], &result["shortUrl"]), "{item}");
        let tags = if item["tags"].is_array() { item["tags"].clone() } else { json!([]) };
        assert_eq!((&shown["tags"], &shown["title"]), (&tags, &item["title"]), "{item}");
        assert_eq!(shown["meta"]["maxVisits"], item["maxVisits"], "{item}");
        assert_eq!(shown["hasPassword"], item["password"].is_string(), "{item}");
        let status = item["redirectStatus"].as_u64().unwrap_or(302);
        let (led, to) = visit(other, domain.unwrap_or("s.test"), code).await;
        if item["password"].is_string() {
            assert_eq!((led, to), (200, None), "{item}");
        } else {
            assert_eq!((u64::from(led), to), (status, Some(target(number))), "{item}");
        }
    }
    assert_eq!([1, 2, 4].map(|at| code(&results[at])), ["summer/2026", "Abc123", "promo"]);
    assert!(code(&results[7]).starts_with("go/"), "{}", results[7]);
    assert_eq!([8, 9].map(|at| code(&results[at]).len()), [8, 12]);
}

/// A slug that is taken fails its own item only, and one that comes twice is created once.
async fn each_name_has_one_link(api: &Api) {
    api.create_with(&json!({ "longUrl": target(99), "customSlug": "mine" })).await.unwrap();
    let items = with_targets(json!([
        {},
        { "customSlug": "mine" },
        { "customSlug": "twice" },
        { "customSlug": "Abc999" },
        {},
        { "customSlug": "Abc999" },
        { "customSlug": "twice" },
        { "customSlug": "ads.txt" },
        { "tags": 4, "maxVisits": 0 },
        { "customSlug": "mine", "domain": "two.example" },
    ]));
    let results = results(api, &items, None).await;
    let words = words(&results);
    assert_eq!([0, 4, 9].map(|at| words[at]), ["created"; 3], "{results:?}");
    assert_eq!([1, 7, 8].map(|at| words[at]), ["taken", "invalid", "invalid"], "{results:?}");
    assert!(results[7]["expected"]["customSlug"].is_string(), "{}", results[7]);
    let wrong = results[8]["expected"].as_object().unwrap();
    assert_eq!(wrong.keys().collect::<Vec<_>>(), ["maxVisits", "tags"]);
    for [first, second] in [[2, 6], [3, 5]] {
        let mut both = [words[first], words[second]];
        let made = if both[0] == "created" { first } else { second };
        both.sort_unstable();
        assert_eq!(both, ["created", "taken"], "{results:?}");
        let slug = code(&results[made]);
        assert_eq!(api.follow(slug).await.unwrap(), leads_to(&target(made)), "{slug}");
    }
    assert_eq!(api.follow("mine").await.unwrap(), leads_to(&target(99)));
}

/// With an idempotency key, and with `findIfExists`, the same call makes the same links.
async fn a_repeated_call_makes_the_same_links(api: &Api) {
    let mut items = with_targets(json!([
        {},
        { "tags": ["again"] },
        { "customSlug": "again" },
        { "domain": "one.example", "customSlug": "again" },
        { "longUrl": target(0) },
        { "tags": 4 },
    ]));
    let first = results(api, &items, Some("again")).await;
    assert_eq!(words(&first)[..5], ["created"; 5], "{first:?}");
    assert_ne!(code(&first[0]), code(&first[4]), "each place is a create of its own");
    let links = count(api).await;
    assert_eq!(results(api, &items, Some("again")).await, first);
    assert_eq!(count(api).await, links, "nothing new");
    // A longer call with the same beginning goes on where the first one ended.
    items.push(json!({ "longUrl": target(6) }));
    items[1]["title"] = json!("another");
    let longer = results(api, &items, Some("again")).await;
    assert_eq!((&longer[0], &longer[2..6]), (&first[0], &first[2..6]));
    assert!(longer[1]["expected"]["Idempotency-Key"].is_string(), "{}", longer[1]);
    assert_eq!(longer[6]["result"], "created");
    let other = results(api, &items[..1], Some("another")).await;
    assert_ne!(code(&other[0]), code(&first[0]));
    for key in ["", &"k".repeat(256)] {
        let problem = expect_problem(&send(api, &items, Some(key)).await, 400, "invalid-data");
        assert_eq!(problem["invalidElements"], json!(["Idempotency-Key"]));
    }

    let items = with_targets(json!([
        { "longUrl": "https://example.com/found", "findIfExists": true },
        { "customSlug": "found", "findIfExists": true, "tags": ["found"] },
        { "longUrl": "https://example.com/found", "findIfExists": true },
    ]));
    let found = results(api, &items, None).await;
    assert_eq!(words(&found), ["created"; 3]);
    assert_eq!(code(&found[0]), code(&found[2]));
    assert_eq!(results(api, &items, None).await, found);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_may_do_what_its_key_may() {
    let alone = Alone::start(&[]).await;
    let (admin, url) = (alone.api(), "https://example.com/page");
    let known = json!({ "longUrl": url, "domain": "known.example", "tags": ["t"] });
    let foreign = admin.create_with(&known).await.unwrap().code;
    let key = alone.with_new_key("own", &["--scopes", "create,read", "--own-links-only"]).await;
    let items = with_targets(json!([
        {},
        { "domain": "new.example" },
        { "domain": "known.example", "longUrl": url, "tags": ["t"], "findIfExists": true },
        { "domain": "a b" },
        { "findIfExists": true, "password": "x" },
    ]));
    let made = results(&key, &items, None).await;
    assert_eq!(words(&made), ["created", "invalid", "created", "invalid", "invalid"], "{made:?}");
    assert!(made[1]["expected"]["domain"].as_str().unwrap().contains("domains"), "{}", made[1]);
    assert_ne!(code(&made[2]), foreign, "it finds links of its own only");
    assert!(made[3]["expected"]["domain"].is_string() && made[4]["expected"]["password"].is_string());
    let domains = get(admin, "domains").await.to_string();
    assert!(domains.contains("known.example") && !domains.contains("new.example"), "{domains}");

    let new = results(admin, &items[..2], None).await;
    assert_eq!(words(&new), ["created"; 2], "an admin's key adds the domain");
    assert_eq!(visit(admin, "new.example", code(&new[1])).await, leads_to(&target(1)));
}

/// Each costs tens of milliseconds of a core.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_has_a_hundred_passwords_and_not_one_more() {
    let alone = Alone::start(&[]).await;
    let items: Vec<Value> =
        (0..102).map(|number| json!({ "longUrl": target(number), "password": "open" })).collect();
    let made = results(alone.api(), &items, None).await;
    assert_eq!(words(&made[..100]), ["created"; 100]);
    for refused in &made[100..] {
        assert!(refused["expected"]["password"].as_str().unwrap().contains("100"), "{refused}");
    }
    assert_eq!(alone.api().get(code(&made[99])).await.unwrap().status, 200, "it asks for the password");
}

#[tokio::test(flavor = "multi_thread")]
async fn links_that_are_created_one_by_one_end_with_their_key() {
    /// More than are under way at a time.
    const ITEMS: usize = 400;
    let cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let database = cluster.postgres.url();
    let run = async |args: &[&str]| {
        let args = [&["api-key"], args, &["--database", &database]].concat();
        cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap().stdout.trim().to_owned()
    };
    let key = run(&["create", "--name", "bulk", "--scopes", "create"]).await;
    let key = cluster.resolvers[0].api.with_key(&key);
    let mut sql = cluster.postgres.client().await.unwrap();
    let lock = sql.transaction().await.unwrap();
    lock.execute("LOCK TABLE tag IN ACCESS EXCLUSIVE MODE", &[]).await.unwrap();
    let other = cluster.postgres.client().await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'tag'::regclass";
    let meanwhile = async {
        let waits = async || other.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0;
        wait::until(SOON, "the first links wait for their tags", waits).await.unwrap();
        run(&["revoke", "--name", "bulk"]).await;
        let is_refused = async || call(&key, Method::POST, "short-urls", Some(json!({}))).await.status == 401;
        wait::until(SOON, "the key is refused", is_refused).await.unwrap();
        lock.rollback().await.unwrap();
    };
    let items: Vec<Value> =
        (0..ITEMS).map(|number| json!({ "longUrl": target(number), "tags": ["t"] })).collect();
    let (results, ()) = tokio::join!(results(&key, &items, None), meanwhile);
    let last = &results[ITEMS - 1]["expected"]["(the item)"];
    assert!(last.as_str().is_some_and(|reason| reason.contains("revoked")), "{last}");
    let of = |word: &str| words(&results).into_iter().filter(|one| *one == word).count();
    let (stored, created) = (count(&cluster.resolvers[0].api).await, of("created"));
    let stored = usize::try_from(stored.as_u64().unwrap()).unwrap();
    assert!((created..=created + of("unavailable")).contains(&stored), "{stored} links, {created} created");
}
