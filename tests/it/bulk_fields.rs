//! Bulk creation of links with slugs, tags, domains, passwords and deduplication. Every item has
//! the result that a create of its own would have.

use std::time::Duration;

use harness::{Answer, Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{
    Alone, Place, SOON, call, count, expect_problem, get, leads_to, on_either_store, visit,
};

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

on_either_store!(an_item_may_have_every_field);

async fn an_item_may_have_every_field(place: Place) {
    let [api, other] = &place.apis();
    every_field(api, other).await;
    each_name_has_one_link(api).await;
    a_repeated_call_makes_the_same_links(api).await;
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
    // Links of a call with an idempotency key are in no batch.
    let (results, ()) = tokio::join!(results(&key, &items, Some("once")), meanwhile);
    let last = &results[ITEMS - 1]["expected"]["(the item)"];
    assert!(last.as_str().is_some_and(|reason| reason.contains("revoked")), "{last}");
    let of = |word: &str| words(&results).into_iter().filter(|one| *one == word).count();
    let (stored, created) = (count(&cluster.resolvers[0].api).await, of("created"));
    assert!((created..=created + of("unavailable")).contains(&stored), "{stored} links, {created} created");
}

/// Items of one call for each way to be in the way of others, by their number.
fn mixed(number: usize) -> Value {
    let domain = "mixed.example";
    let lost = [format!("lost-{number}")];
    match number % 8 {
        0 => json!({}),
        1 => json!({ "customSlug": format!("own-{number}"), "domain": domain, "tags": ["all", "x"] }),
        2 => json!({ "customSlug": format!("own-{number}"), "tags": ["all"], "title": "T" }),
        3 => json!({ "domain": domain, "tags": ["all"] }),
        4 => json!({ "customSlug": "taken", "domain": domain, "tags": lost }),
        5 => json!({ "customSlug": format!("docs/{number}"), "tags": lost }),
        6 => json!({ "customSlug": format!("twice-{}", number / 16), "domain": domain, "tags": ["all"] }),
        _ => json!({ "customSlug": format!("Zz{number:04}"), "tags": ["all"] }),
    }
}

/// Creates ten thousand links for a key that sees its own links only, in the way of which are names
/// of others and of one another.
async fn ten_thousand_items_are_told_apart(admin: &Api, tenant: &Api) {
    let taken = json!({ "longUrl": target(0), "customSlug": "taken", "domain": "mixed.example" });
    admin.create_with(&taken).await.unwrap();
    let docs = json!({ "longUrl": "https://example.org/", "customSlug": "docs", "extraPath": "append" });
    admin.create_with(&docs).await.unwrap();
    let before = count(admin).await;
    let items = with_targets((0..10_000).map(mixed).collect());
    let made = results(tenant, &items, None).await;
    let words = words(&made);
    for (number, word) in words.iter().enumerate() {
        let expected = match number % 8 {
            4 | 5 => "taken",
            // Within a batch the first one is created. In two batches either may be.
            6 => {
                let (first, second) = (number / 16 * 16 + 6, number / 16 * 16 + 14);
                assert_ne!(words[first], words[second], "{number}: {}", made[number]);
                let is_clear = first / 1_000 == second / 1_000;
                match is_clear {
                    true if number == first => "created",
                    true => "taken",
                    false => *word,
                }
            }
            _ => "created",
        };
        assert_eq!(*word, expected, "{number}: {}: {}", items[number], made[number]);
    }
    let created = words.iter().filter(|word| **word == "created").count();
    assert_eq!(created, 6_875, "five of eight, and half of one");
    assert_eq!(count(admin).await, before + 6_875);
    for number in (0..10_000).step_by(397).filter(|number| words[*number] == "created") {
        let (code, domain) = (code(&made[number]), items[number]["domain"].as_str());
        let query = domain.map_or(String::new(), |domain| format!("?domain={domain}"));
        let shown = get(tenant, &format!("short-urls/{code}{query}")).await;
        let tags = if items[number]["tags"].is_array() { items[number]["tags"].clone() } else { json!([]) };
        assert_eq!((&shown["longUrl"], &shown["tags"]), (&json!(target(number)), &tags), "{number}");
        assert_eq!(shown["title"], items[number]["title"], "{number}");
        assert_eq!(visit(admin, domain.unwrap_or("s.test"), code).await, leads_to(&target(number)));
    }
    let tags = get(admin, "tags").await.to_string();
    assert!(tags.contains("\"all\"") && !tags.contains("lost-"), "{tags}");
}

const TENANT: [&str; 5] = ["create", "--name", "tenant", "--scopes", "create,read"];

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_items_are_told_apart_on_sqlite() {
    let alone = Alone::start(&[]).await;
    let key = alone.api_key(&[&TENANT[..], &["--own-links-only"]].concat()).await;
    ten_thousand_items_are_told_apart(alone.api(), &alone.api().with_key(&key)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_items_are_told_apart_on_postgres() {
    let cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let database = cluster.postgres.url();
    let args = [&["api-key"], &TENANT[..], &["--own-links-only", "--database", &database]].concat();
    let key = cluster.run_resolver(&args, SOON).await.unwrap().success().unwrap().stdout;
    let api = &cluster.resolvers[0].api;
    ten_thousand_items_are_told_apart(api, &api.with_key(key.trim())).await;
}

/// Selects from the backends that have written to a table, and wait for a standby.
fn backends(what: &str, table: &str) -> String {
    format!(
        "SELECT {what} FROM pg_stat_activity JOIN pg_locks USING (pid)
         WHERE wait_event = 'SyncRep' AND relation = '{table}'::regclass AND mode = 'RowExclusiveLock'"
    )
}

/// So few that the numbers in hand suffice.
const HALVES: usize = 100;

/// Half of the items have a custom slug. All have a tag.
fn halves() -> Vec<Value> {
    let half = |number: usize| match number % 2 {
        0 => json!({ "customSlug": format!("half-{number}"), "tags": ["half"] }),
        _ => json!({ "tags": ["half"] }),
    };
    with_targets((0..HALVES).map(half).collect())
}

/// The server has committed, and waits for a standby that does not exist when it loses the
/// connection. So it never answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_commit_is_not_answered_is_found() {
    let cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let sql = cluster.postgres.client().await.unwrap();
    let run = async |statement: &str| sql.batch_execute(statement).await.unwrap();
    run("CREATE TABLE probe (number bigint)").await;
    let probing = cluster.postgres.client().await.unwrap();
    let probing =
        tokio::spawn(
            async move { while probing.batch_execute("INSERT INTO probe VALUES (1)").await.is_ok() {} },
        );
    run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'").await;
    run("SELECT pg_reload_conf()").await;
    let waits = async |table: &str| {
        let waits = backends("count(*)", table);
        let are_there = async || sql.query_one(&waits, &[]).await.unwrap().get::<_, i64>(0) > 0;
        wait::until(SOON, table, are_there).await
    };
    waits("probe").await.unwrap();
    let meanwhile = async {
        waits("slug").await.unwrap();
        sql.query(&backends("pg_terminate_backend(pid)", "slug"), &[]).await.unwrap();
        probing.abort();
        run("ALTER SYSTEM RESET synchronous_standby_names").await;
        run("SELECT pg_reload_conf()").await;
    };
    let items = halves();
    let (made, ()) = tokio::join!(results(api, &items, None), meanwhile);
    assert_eq!(words(&made), ["created"; HALVES], "{made:?}");
    assert_eq!(count(api).await, HALVES, "none was created again");
    for number in [0, 1, HALVES - 2, HALVES - 1] {
        assert_eq!(api.follow(code(&made[number])).await.unwrap(), leads_to(&target(number)));
    }
    let unknown = cluster.resolvers[0].metric("resolver_inserts_unknown_total").await;
    assert_eq!(unknown, Some(100.0), "each was in doubt");
}

/// The server loses the connection before it has committed. Slugs may not be tried again, since the
/// first try may still arrive; a minted link gets another number.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_whose_commit_was_cut_off_is_not_half_there() {
    let cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let sql = cluster.postgres.client().await.unwrap();
    let cut = "CREATE SEQUENCE cuts;
         CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('cuts') = 1 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON slug
             DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut()";
    sql.batch_execute(cut).await.unwrap();
    let items = halves();
    let made = results(api, &items, None).await;
    let words = words(&made);
    // A minted link may have been given the connection that was just cut.
    let is_right = |(number, word): (usize, &&str)| match number % 2 {
        0 => *word == "unavailable",
        _ => matches!(*word, "unavailable" | "created"),
    };
    assert!(words.iter().enumerate().all(is_right), "{words:?}");
    let created = words.iter().filter(|word| **word == "created").count();
    assert!(created > 0, "{words:?}");
    assert_eq!(count(api).await, created, "nothing of the others is there");
    let missing = items.into_iter().zip(&words).filter(|(_, word)| **word != "created");
    let again: Vec<Value> = missing.map(|(item, _)| item).collect();
    assert_eq!(self::words(&results(api, &again, None).await), vec!["created"; HALVES - created]);
    assert_eq!(count(api).await, HALVES);
}
