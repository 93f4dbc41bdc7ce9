//! A start with links in the cache: those of before, or the most visited ones, as they are now.

use std::time::Duration;

use harness::{Cluster, Resolver, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::call;

const END_WITHIN: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(20);

/// Follows links that must redirect, and returns how many of them were read from the database.
async fn read_of(resolver: &Resolver, names: &[&str]) -> f64 {
    let asked = async || resolver.metric("resolver_links_asked_total").await.unwrap();
    let before = asked().await;
    for name in names {
        assert_eq!(resolver.api.follow(name).await.unwrap().0, 302, "{name}");
    }
    asked().await - before
}

async fn change(resolver: &Resolver, method: Method, name: &str, body: Option<Value>) {
    call(&resolver.api, method, &format!("short-urls/{name}"), body).await.success().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_starts_with_the_links_that_it_had_cached_as_they_are_now() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let other = &cluster.resolvers[0];
    let spool = cluster.scratch.folder("spool").unwrap();
    let spool = ["--visits-spool", spool.to_str().unwrap()];
    let builder = cluster.resolver("warm").unwrap().args(spool).args(["--limit", "warm-links=100"]);
    let mut warm = builder.start().await.unwrap();
    let mut codes = Vec::new();
    for number in 0..4 {
        codes.push(warm.api.create(&format!("https://example.com/{number}")).await.unwrap().code);
    }
    let named = json!({ "longUrl": "https://example.com/named", "customSlug": "a-name-of-its-own" });
    let named = warm.api.create_with(&named).await.unwrap().code;
    let [first, deleted, edited, unasked] = codes.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        panic!("four links")
    };
    let wanted = [first, deleted, edited, &named];
    read_of(&warm, &wanted).await;
    // It is among the most visited links, and not in the list of this process.
    read_of(other, &[unasked, unasked, unasked]).await;
    let sql = cluster.postgres.client().await.unwrap();
    let counted = async || {
        let visited = "SELECT count(*) FROM link_seen WHERE total > 0";
        sql.query_one(visited, &[]).await.is_ok_and(|row| row.get::<_, i64>(0) == 5)
    };
    wait::until(SOON, "the visits are counted", counted).await.unwrap();

    warm.stop(END_WITHIN).await.unwrap();
    change(other, Method::DELETE, deleted, None).await;
    let elsewhere = "https://example.com/elsewhere";
    change(other, Method::PATCH, edited, Some(json!({ "longUrl": elsewhere }))).await;
    warm.restart().await.unwrap();
    assert!(
        warm.process.stderr().contains("cached links before the start links=3"),
        "{}",
        warm.process.tail()
    );
    assert_eq!(read_of(&warm, &[first, edited, &named]).await, 0.0, "they are cached");
    let (_, location) = warm.api.follow(edited).await.unwrap();
    assert_eq!(location.as_deref(), Some(elsewhere));
    assert_eq!(warm.api.follow(deleted).await.unwrap().0, 404);
    assert_eq!(read_of(&warm, &[unasked]).await, 1.0, "nobody had asked this process for it");

    // A change is told of as that of any cached link.
    change(other, Method::DELETE, first, None).await;
    let is_gone = async || warm.api.follow(first).await.is_ok_and(|(status, _)| status == 404);
    wait::until(SOON, "the deletion is known", is_gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_without_a_list_starts_with_the_most_visited_links() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let first = &cluster.resolvers[0];
    let mut codes = Vec::new();
    for number in 0..3 {
        codes.push(first.api.create(&format!("https://example.com/{number}")).await.unwrap().code);
    }
    let [seldom, often, never] = codes.iter().map(String::as_str).collect::<Vec<_>>()[..] else {
        panic!("three links")
    };
    for code in [often, often, often, seldom] {
        assert_eq!(first.api.follow(code).await.unwrap().0, 302);
    }
    let sql = cluster.postgres.client().await.unwrap();
    let counted = async || {
        let row = sql.query_one("SELECT coalesce(sum(total), 0)::bigint FROM link_seen", &[]).await;
        row.is_ok_and(|row| row.get::<_, i64>(0) == 4)
    };
    wait::until(SOON, "the visits are counted", counted).await.unwrap();
    let start = async |name: &str, most: &str| {
        let builder = cluster.resolver(name).unwrap();
        builder.args(["--limit", most]).start().await.unwrap()
    };
    // Both before the first of them is asked for links, which it reports as visits.
    let (one, more) = (start("one", "warm-links=1").await, start("more", "warm-links=10").await);
    assert_eq!(read_of(&one, &[often]).await, 0.0);
    assert_eq!(read_of(&one, &[seldom, never]).await, 2.0);
    assert_eq!(read_of(&more, &[often, seldom]).await, 0.0);
    assert_eq!(read_of(&more, &[never]).await, 1.0, "it has no visit");
}
