//! A name that is picked again: the next link has nothing of the former one's, on every resolver.

use harness::{Api, Cluster, Postgres, wait};
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_calls::{Alone, SOON, call, done, get};

const SLUG: &str = "promo1";
const TENANT: &[&str] = &["--scopes", "create,read,edit,delete,visits", "--own-links-only"];

async fn visit(api: &Api, query: &str) {
    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0";
    let url = format!("{}/{SLUG}?{query}", api.url());
    api.http().get(url).header("User-Agent", agent).send().await.unwrap();
}

async fn visits(api: &Api) -> Vec<Value> {
    get(api, &format!("short-urls/{SLUG}/visits")).await["visits"]["data"].as_array().unwrap().clone()
}

/// Has one key pick the name, visit and delete its link, and another pick it again at once, while
/// visits are still on their way.
async fn pick_twice(one: &Api, next: &Api) {
    let wish = |url: &str| json!({ "longUrl": url, "customSlug": SLUG, "maxVisits": 3 });
    one.create_with(&wish("https://one.example/?secret=one")).await.unwrap();
    for _ in 0..2 {
        visit(one, "secret=former").await;
    }
    done(one, Method::PATCH, &format!("short-urls/{SLUG}"), Some(json!({ "title": "former" }))).await;
    assert_eq!(call(one, Method::DELETE, &format!("short-urls/{SLUG}"), None).await.status, 204);
    let made = next.create_with(&wish("https://next.example/")).await.unwrap().json;
    assert_eq!((&made["version"], &made["editedAt"]), (&json!(3), &Value::Null), "{made}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_under_a_name_that_was_left_begins_without_visits() {
    let alone = Alone::start(&[]).await;
    let (one, next) = (alone.with_new_key("one", TENANT).await, alone.with_new_key("next", TENANT).await);
    pick_twice(&one, &next).await;
    for count in 1..=3 {
        visit(&next, &format!("own={count}")).await;
    }
    let all = async || visits(&next).await.len() >= 3;
    wait::until(SOON, "the visits are stored", all).await.unwrap();
    let own = visits(&next).await;
    assert_eq!(own.len(), 3, "its own limit, and its own visits: {own:?}");
    assert!(own.iter().all(|visit| visit["visitedUrl"].as_str().unwrap().contains("own=")), "{own:?}");
    let stats = get(&next, &format!("stats?shortCode={SLUG}")).await;
    assert!(!stats.to_string().contains("former"), "{stats}");

    // The former owner has its own link in the trash, and gets it back once the name is free.
    let restore = format!("short-urls/{SLUG}/restore");
    assert_eq!(call(&one, Method::POST, &restore, None).await.status, 400);
    assert_eq!(call(&next, Method::DELETE, &format!("short-urls/{SLUG}"), None).await.status, 204);
    let back = done(&one, Method::POST, &restore, None).await;
    assert_eq!(back["title"], "former");
    let own = visits(&one).await;
    assert_eq!(own.len(), 2, "{own:?}");
    assert_eq!(call(&next, Method::POST, &restore, None).await.status, 400, "it is the other one's again");
}

/// Waits until a resolver has heard of all changes so far: notifications come in the order of
/// COMMIT, and a cached link is read again once its own has come.
async fn heard(by: &Api, there: &Api) {
    let code = by.create("https://example.com/before").await.unwrap().code;
    assert_eq!(there.follow(&code).await.unwrap().0, 302);
    let after = "https://example.com/after";
    done(by, Method::PATCH, &format!("short-urls/{code}"), Some(json!({ "longUrl": after }))).await;
    let is_heard = async || there.follow(&code).await.unwrap() == (302, Some(after.to_owned()));
    wait::until(SOON, "the change is heard of", is_heard).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resolver_serves_the_next_link_of_a_name() {
    let mut cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let [one, other] = [&cluster.resolvers[0].api, &cluster.resolvers[1].api];
    for round in 0..6 {
        let url = format!("https://example.com/{round}");
        let wish = json!({ "longUrl": url, "customSlug": SLUG });
        let (by, there) = if round % 2 == 0 { (one, other) } else { (other, one) };
        if round > 0 {
            assert_eq!(call(by, Method::DELETE, &format!("short-urls/{SLUG}"), None).await.status, 204);
        }
        by.create_with(&wish).await.unwrap();
        assert_eq!(by.follow(SLUG).await.unwrap(), (302, Some(url.clone())), "round {round}");
        let is_shown = async || there.follow(SLUG).await.unwrap() == (302, Some(url.clone()));
        wait::until(SOON, "the other resolver shows the next link", is_shown).await.unwrap();
    }
    heard(one, other).await;
    heard(other, one).await;
    for api in [one, other] {
        assert_eq!(api.follow(SLUG).await.unwrap().0, 302);
    }
    // It is cached as any other link is.
    cluster.postgres.stop_fast().await.unwrap();
    for api in [one, other] {
        let last = "https://example.com/5".to_owned();
        assert_eq!(api.follow(SLUG).await.unwrap(), (302, Some(last)), "the database is away");
    }
}

/// Takes a link from Postgres as a fail-over loses it: without a row, a notification, or a number
/// of the sequence that it used.
async fn lose(postgres: &Postgres, slug: &str) -> i64 {
    let client = postgres.client().await.unwrap();
    let find = "SELECT id FROM link WHERE details->>'slug' = $1";
    let id: i64 = client.query_one(find, &[&slug]).await.unwrap().get(0);
    for table in ["slug WHERE link_id", "picked WHERE id", "link WHERE id"] {
        client.execute(&format!("DELETE FROM {table} = $1"), &[&id]).await.unwrap();
    }
    let unused = "SELECT setval('slug_link_id', last_value, false) FROM slug_link_id";
    client.query_one(unused, &[]).await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_that_a_fail_over_lost_is_not_served_in_place_of_the_next_one_with_its_id() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).start().await.unwrap();
    let [one, other] = [&cluster.resolvers[0].api, &cluster.resolvers[1].api];
    // A code, whose id is its number, and a longer slug, whose id comes from the sequence.
    for slug in ["promo1", "spring-sale"] {
        let wish = |url: &str| json!({ "longUrl": url, "customSlug": slug });
        one.create_with(&wish("https://example.com/lost")).await.unwrap();
        heard(one, other).await;
        let lost = (302, Some("https://example.com/lost".to_owned()));
        assert_eq!(other.follow(slug).await.unwrap(), lost);
        let id = lose(&cluster.postgres, slug).await;
        assert_eq!(other.follow(slug).await.unwrap(), lost, "{slug}: it is cached");

        let next = "https://example.com/next";
        one.create_with(&wish(next)).await.unwrap();
        let client = cluster.postgres.client().await.unwrap();
        let find = "SELECT id FROM link WHERE details->>'slug' = $1";
        let row = client.query_one(find, &[&slug]).await.unwrap();
        assert_eq!(row.get::<_, i64>(0), id, "{slug}: the id is given again");
        let is_shown = async || other.follow(slug).await.unwrap() == (302, Some(next.to_owned()));
        wait::until(SOON, "the other resolver shows the next link", is_shown).await.unwrap();
    }
}
