//! A resolver that is cut off from the database, while the others are not (fault 40). It serves
//! what it knows for as long as `--serve-stale-for` says, and then answers 503.

use std::time::Duration;

use harness::{Cluster, Flow, Proxy, wait};
use reqwest::{Method, redirect::Policy};
use serde_json::json;
use tokio::time::Instant;

use crate::rest_calls::{done, leads_to};

const SOON: Duration = Duration::from_secs(30);
const URL: &str = "https://example.com/";
/// The value of `--serve-stale-for`.
const STALE: Duration = Duration::from_secs(4);
/// How much later the last answer from the cache may come: a request lasts that long.
const MARGIN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_is_cut_off_serves_cached_links_for_as_long_as_it_may() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let proxy = Proxy::start(cluster.postgres.addr()).await.unwrap();
    let alone = cluster.resolver("alone").unwrap().database(&cluster.postgres.url_via(&proxy));
    let alone = alone.args(["--serve-stale-for", "4s"]).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let blocked = api.create("https://example.com/blocked").await.unwrap().code;
    let denied = api.create("https://denied.example/").await.unwrap().code;
    let kept = api.create(URL).await.unwrap().code;
    for link in [&blocked, &denied, &kept] {
        assert_eq!(alone.api.follow(link).await.unwrap().0, 302);
    }

    proxy.set_both(Flow::Cut);
    let cut = Instant::now();
    let reason = json!({ "reason": "phishing" });
    done(api, Method::POST, &format!("short-urls/{blocked}/block"), Some(reason)).await;
    let rule = json!({ "pattern": "denied.example", "allowed": false });
    done(api, Method::PUT, "targets", Some(rule)).await;
    assert_eq!(alone.api.follow(&kept).await.unwrap(), leads_to(URL), "redirects go on");
    wait::until(SOON, "it serves no longer", async || alone.api.follow(&kept).await.unwrap().0 == 503)
        .await
        .unwrap();
    assert!(cut.elapsed() > STALE - MARGIN, "it may serve for longer");
    while cut.elapsed() < STALE + MARGIN {
        alone.api.follow(&kept).await.unwrap();
    }
    let client = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    for link in [&blocked, &denied, &kept] {
        let answer = client.get(format!("{}/{link}", alone.api.url())).send().await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.headers().contains_key("retry-after")), (503, true));
    }

    proxy.reset_all();
    proxy.set_both(Flow::Pass);
    let back = async || alone.api.follow(&kept).await.unwrap() == leads_to(URL);
    wait::until(SOON, "it serves again", back).await.unwrap();
    for link in [&blocked, &denied] {
        assert_eq!(alone.api.follow(link).await.unwrap().0, 410, "{link}");
    }
}
