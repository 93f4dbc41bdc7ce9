//! Visits, from the redirect to the counts that the API tells: none lost and none counted twice
//! while Postgres and the resolver are killed.

use std::time::Duration;

use harness::{Postgres, Resolver, Scratch, resolver, secret, wait};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::visit_faults::Database;

pub(crate) const SOON: Duration = Duration::from_secs(60);
pub(crate) const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";

/// Sends a visit of a link, and returns whether it was redirected.
pub(crate) async fn visit(client: &reqwest::Client, resolver: &Resolver, code: &str) -> bool {
    let url = format!("http://{}/{code}", resolver.addr());
    let answer = client.get(url).header("User-Agent", FIREFOX).send().await;
    answer.is_ok_and(|answer| answer.status().is_redirection())
}

pub(crate) fn client() -> reqwest::Client {
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Returns an answer of the API.
pub(crate) async fn get(resolver: &Resolver, key: &str, path: &str) -> Value {
    let url = format!("http://{}/rest/v3/{path}", resolver.addr());
    let answer = reqwest::Client::new().get(url).header("X-Api-Key", key).send().await;
    match answer {
        Ok(answer) => answer.json().await.unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

pub(crate) async fn create(resolver: &Resolver, key: &str) -> String {
    let url = format!("http://{}/rest/v3/short-urls", resolver.addr());
    let body = json!({ "longUrl": "https://example.com/visited", "tags": ["news"] });
    let answer = reqwest::Client::new().post(url).header("X-Api-Key", key).json(&body).send().await.unwrap();
    let link: Value = answer.json().await.unwrap();
    link["shortCode"].as_str().unwrap().to_owned()
}

/// Waits until the counters of a link, its list, its tag and everything tell the same number.
pub(crate) async fn must_count(resolver: &Resolver, key: &str, code: &str, expected: u64) {
    let paths =
        [format!("short-urls/{code}/visits?itemsPerPage=1"), "tags/news/visits?itemsPerPage=1".to_owned()];
    wait::until(SOON, "all visits are counted", async || {
        for path in &paths {
            let page = get(resolver, key, path).await;
            if page["visits"]["pagination"]["totalItems"] != expected {
                return false;
            }
        }
        let overview = get(resolver, key, "visits").await;
        let stats = get(resolver, key, &format!("stats?shortCode={code}")).await;
        let link = get(resolver, key, &format!("short-urls/{code}")).await;
        overview["visits"]["nonOrphanVisits"]["nonBots"] == expected
            && stats["visits"]["total"] == expected
            && link["visitsSummary"]["total"] == expected
    })
    .await
    .unwrap();
}

/// Returns the number of stored rows, and of visits in counters, of a link.
pub(crate) async fn stored(postgres: &Postgres) -> (i64, i64) {
    let client = postgres.client().await.unwrap();
    let rows = client.query_one("SELECT count(*) FROM visit WHERE link_id <> 0", &[]).await.unwrap();
    let counted = "SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE kind = 0";
    let counted = client.query_one(counted, &[]).await.unwrap();
    (rows.get(0), counted.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn redirects_go_on_and_every_visit_counts_once_while_postgres_is_killed() {
    let scratch = Scratch::new().unwrap();
    let mut postgres = Postgres::builder().scratch(&scratch).start().await.unwrap();
    resolver::migrate(&scratch, &postgres.url()).await.unwrap().success().unwrap();
    let key = secret::random_hex().unwrap();
    let resolver = Resolver::builder(&scratch, "resolver", &key).unwrap().database(&postgres.url());
    let resolver = resolver.start().await.unwrap();
    let (code, client) = (create(&resolver, &key).await, client());
    let mut redirected = 0;
    for down_for in [1, 30].map(Duration::from_secs) {
        for _ in 0..300 {
            redirected += u64::from(visit(&client, &resolver, &code).await);
        }
        postgres.kill_now().await.unwrap();
        let down = Instant::now();
        while down.elapsed() < down_for {
            for _ in 0..100 {
                let is_redirected = visit(&client, &resolver, &code).await;
                assert!(is_redirected, "a cached link redirects without a database");
                redirected += 1;
            }
            sleep(Duration::from_millis(100)).await;
        }
        postgres.restart().await.unwrap();
    }
    must_count(&resolver, &key, &code, redirected).await;
    let count = i64::try_from(redirected).unwrap();
    assert_eq!(stored(&postgres).await, (count, count), "rows and counters tell what was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_resolver_loses_no_visit_that_was_written_before_its_answer() {
    let database = Database::start(&[]).await;
    let (postgres, key) = (&database.postgres, &database.key);
    let spool = database.scratch.folder("spool").unwrap();
    let start = async || database.resolver("resolver", &spool, &postgres.url()).await;
    let mut resolver = start().await;
    let (code, client) = (create(&resolver, key).await, client());
    let mut redirected = 0;
    for _ in 0..3 {
        for _ in 0..200 {
            redirected += u64::from(visit(&client, &resolver, &code).await);
        }
        resolver.process.kill_now().unwrap();
        drop(resolver);
        resolver = start().await;
    }
    must_count(&resolver, key, &code, redirected).await;
    let count = i64::try_from(redirected).unwrap();
    assert_eq!(stored(postgres).await, (count, count));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_visits_are_gone_everywhere_and_later_ones_count() {
    let key = secret::random_hex().unwrap();
    let scratch = Scratch::new().unwrap();
    let resolver = Resolver::builder(&scratch, "resolver", &key).unwrap().start().await.unwrap();
    let (code, client) = (create(&resolver, &key).await, client());
    for _ in 0..5 {
        assert!(visit(&client, &resolver, &code).await);
    }
    must_count(&resolver, &key, &code, 5).await;
    let url = format!("http://{}/rest/v3/short-urls/{code}/visits", resolver.addr());
    let deleted: Value = reqwest::Client::new()
        .delete(url)
        .header("X-Api-Key", &key)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(deleted, json!({ "deletedVisits": 5 }));
    must_count(&resolver, &key, &code, 0).await;
    assert!(visit(&client, &resolver, &code).await);
    must_count(&resolver, &key, &code, 1).await;
}
