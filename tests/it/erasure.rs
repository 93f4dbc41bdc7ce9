//! Deletion of visits: of a link, of those that no link redirected, and of a person who asks for
//! it. The audit log has each of them.

use harness::{Api, Cluster, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, call, done, expect_problem, get};

const FULL: [&str; 4] = ["--visits-privacy", "addresses=full", "--trusted-proxies", "127.0.0.0/8"];
const KEY_NAME: &str = "eraser";

async fn visit(api: &Api, path: &str, client: &str) {
    let request = api.http().get(format!("{}/{path}", api.url())).header("x-forwarded-for", client);
    request.send().await.unwrap();
}

/// Returns how many visits of a list have a row, and how many are counted.
async fn counted(api: &Api, list: &str, stats: &str) -> (u64, u64) {
    let (listed, total, counted) = listed_and_counted(api, list, stats).await;
    assert_eq!(listed, total, "{list}");
    (total, counted)
}

/// Returns how many visits a list shows, how many it says it has, and how many are counted. A visit
/// that is stored meanwhile may be in one and not in another.
async fn listed_and_counted(api: &Api, list: &str, stats: &str) -> (u64, u64, u64) {
    let listed = get(api, list).await["visits"].clone();
    let shown = listed["data"].as_array().unwrap().len() as u64;
    let total = listed["pagination"]["totalItems"].as_u64().unwrap();
    (shown, total, get(api, stats).await["visits"]["total"].as_u64().unwrap())
}

async fn wait_for(api: &Api, list: &str, stats: &str, expected: (u64, u64)) {
    let mut last = (0, 0, 0);
    let found = wait::until(SOON, "visits are as expected", async || {
        last = listed_and_counted(api, list, stats).await;
        last == (expected.0, expected.0, expected.1)
    });
    found.await.unwrap_or_else(|error| panic!("{list}: {last:?} instead of {expected:?}: {error}"));
}

/// Returns the actions, subjects and details of the latest entries of the audit log.
async fn log(api: &Api, most: usize) -> Vec<[Value; 3]> {
    let log = get(api, "audit").await["audit"]["data"].as_array().unwrap().clone();
    let entry = |entry: &Value| {
        assert_eq!(entry["apiKey"], KEY_NAME, "{entry}");
        ["action", "subject", "details"].map(|field| entry[field].clone())
    };
    log.iter().take(most).map(entry).collect()
}

async fn erase(api: &Api, address: &str) -> Value {
    done(api, Method::DELETE, &format!("visits?address={address}"), None).await
}

async fn erased_visits_are_gone_and_stay_counted(api: &Api) {
    let body = json!({ "longUrl": "https://example.com/", "tags": ["news"] });
    let code = api.create_with(&body).await.unwrap().code;
    for client in ["192.0.2.77", "192.0.2.78", "192.0.2.77", "2001:db8:1:2::3", "2001:db8:1:2::4"] {
        visit(api, &code, client).await;
        visit(api, "no/such-slug", client).await;
    }
    let link = (format!("short-urls/{code}/visits"), format!("stats?shortCode={code}"));
    let tag = ("tags/news/visits".to_owned(), "stats?tag=news".to_owned());
    let all = ("visits/non-orphan".to_owned(), "stats".to_owned());
    let orphans = ("visits/orphan".to_owned(), "stats?orphan=all".to_owned());
    let lists = [link, tag, all, orphans];
    for (list, stats) in &lists {
        wait_for(api, list, stats, (5, 5)).await;
    }
    assert_eq!(erase(api, "192.0.2.77").await, json!({ "deletedVisits": 4, "isComplete": true }));
    for (list, stats) in &lists {
        assert_eq!(counted(api, list, stats).await, (3, 5), "{list}");
        let page = get(api, &format!("{list}?itemsPerPage=2&page=2")).await;
        assert_eq!(page["visits"]["pagination"]["itemsInCurrentPage"], 1, "{list}");
    }
    assert_eq!(erase(api, "2001:db8:1:2:9::/64").await["deletedVisits"], 4);
    assert_eq!(erase(api, "192.0.2.77").await["deletedVisits"], 0);
    for (list, stats) in &lists {
        assert_eq!(counted(api, list, stats).await, (1, 5), "{list}");
    }
    // A later visit from there is kept again.
    visit(api, &code, "192.0.2.77").await;
    wait_for(api, &lists[0].0, &lists[0].1, (2, 6)).await;

    let entry = |subject: &str, deleted: u64| {
        let details = json!({ "deletedVisits": deleted, "isComplete": true });
        [json!("erase-visits"), json!(subject), details]
    };
    let whole = "the log keeps no whole address";
    let expected = [entry("192.0.2.0/24", 0), entry("2001:db8:1::/48", 4), entry("192.0.2.0/24", 4)];
    assert_eq!(log(api, 3).await, expected, "{whole}");

    let deleted = done(api, Method::DELETE, &lists[0].0, None).await;
    assert_eq!(deleted, json!({ "deletedVisits": 6 }));
    assert_eq!(done(api, Method::DELETE, "visits/orphan", None).await, json!({ "deletedVisits": 5 }));
    let details = |deleted: u64| json!({ "deletedVisits": deleted });
    let expected = [
        [json!("delete-orphan-visits"), json!("orphans"), details(5)],
        [json!("delete-link-visits"), json!(code), details(6)],
    ];
    assert_eq!(log(api, 2).await, expected);
    for (list, stats) in &lists {
        assert_eq!(counted(api, list, stats).await, (0, 0), "{list}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_visits_are_gone_and_stay_counted_on_sqlite() {
    let alone = Alone::start(&FULL).await;
    let api = alone.with_new_key(KEY_NAME, &["--scopes", "admin"]).await;
    erased_visits_are_gone_and_stay_counted(&api).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_visits_are_gone_and_stay_counted_on_postgres() {
    let mut cluster = Cluster::builder().start().await.unwrap();
    let resolver = cluster.resolver("eraser").unwrap().args(FULL).start().await.unwrap();
    cluster.resolvers.push(resolver);
    let api = &cluster.resolvers.last().unwrap().api;
    let client = cluster.postgres.client().await.unwrap();
    let rename = format!("UPDATE api_key SET name = '{KEY_NAME}'");
    client.batch_execute(&rename).await.unwrap();
    erased_visits_are_gone_and_stay_counted(api).await;
    let rows = client.query_one("SELECT count(*) FROM visit", &[]).await.unwrap();
    let erasures =
        client.query_one("SELECT count(*) FROM visit_erasure WHERE NOT has_rows", &[]).await.unwrap();
    assert_eq!((rows.get::<_, i64>(0) <= 12, erasures.get::<_, i64>(0)), (true, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn visits_that_are_still_in_a_spool_are_erased_too() {
    // Visits are written to the spool once in ten seconds, and stored after that.
    let alone = Alone::start(&[&FULL[..], &["--tune", "visits-flush=10s"]].concat()).await;
    let api = alone.api();
    let code = api.create("https://example.com/").await.unwrap().code;
    for client in ["192.0.2.77", "192.0.2.78"] {
        visit(api, &code, client).await;
    }
    let (list, stats) = (format!("short-urls/{code}/visits"), format!("stats?shortCode={code}"));
    assert_eq!(counted(api, &list, &stats).await, (0, 0), "none is stored yet");
    assert_eq!(erase(api, "192.0.2.77").await["deletedVisits"], 0);
    wait_for(api, &list, &stats, (1, 2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_was_cut_is_erased_with_its_network() {
    let alone = Alone::start(&FULL[2..]).await;
    let api = alone.api();
    let code = api.create("https://example.com/").await.unwrap().code;
    for client in ["192.0.2.77", "192.0.2.78", "192.0.3.77"] {
        visit(api, &code, client).await;
    }
    let (list, stats) = (format!("short-urls/{code}/visits"), format!("stats?shortCode={code}"));
    wait_for(api, &list, &stats, (3, 3)).await;
    assert_eq!(erase(api, "192.0.2.77").await["deletedVisits"], 2);
    assert_eq!(counted(api, &list, &stats).await, (1, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_erasures_are_refused_in_plain_words() {
    let alone = Alone::start(&["--visits-privacy", "addresses=none"]).await;
    for query in
        ["", "?address=", "?address=me", "?address=0.0.0.0/0", "?address=2001::/8", "?adress=192.0.2.1"]
    {
        let answer = call(alone.api(), Method::DELETE, &format!("visits{query}"), None).await;
        let problem = expect_problem(&answer, 400, "invalid-data");
        let field = if query.starts_with("?adress") { "adress" } else { "address" };
        assert_eq!(problem["invalidElements"], json!([field]), "{query}");
    }
    let answer = call(alone.api(), Method::DELETE, "visits?address=192.0.2.1", None).await;
    let problem = expect_problem(&answer, 409, "about:blank");
    assert!(problem["detail"].as_str().unwrap().contains("--visits-privacy addresses=none"), "{problem}");
    for args in [&["--scopes", "delete,visits"][..], &["--scopes", "admin", "--own-links-only"]] {
        let limited = alone.with_new_key(&format!("limited-{}", args.len()), args).await;
        let answer = call(&limited, Method::DELETE, "visits?address=192.0.2.1", None).await;
        assert_eq!(answer.status, 403, "{args:?}");
    }
}
