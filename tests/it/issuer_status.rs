//! `issuer status` with several issuers, of which some are dead.

use std::time::Duration;

use harness::{Cluster, net::free_addr};
use serde_json::Value;
use tokio::net::TcpListener;

const SOON: Duration = Duration::from_secs(60);
const RUN_WITHIN: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_issuer_hides_no_leader_and_without_one_each_issuer_says_what_it_knows() {
    // With a lease this long nobody leads for a while after the leader was killed.
    let mut cluster = Cluster::builder().issuers(2).resolvers(1).lease_ttl("60s").start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let urls = cluster.issuer_urls();
    // It accepts connections and never answers.
    let silent = TcpListener::bind(free_addr().unwrap()).await.unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let dead = format!("http://{}", free_addr().unwrap());

    let all = [silent.clone(), dead.clone(), urls[0].clone(), urls[1].clone()].join(",");
    let asked = cluster.run_issuer(&["status", "--issuer", &all, "--json"], RUN_WITHIN).await.unwrap();
    let status: Value = serde_json::from_str(&asked.success().unwrap().stdout).unwrap();
    assert_eq!(status["leader"], urls[leader].as_str());

    cluster.issuers[leader].process.kill_now().unwrap();
    let (gone, other) = (&urls[leader], &urls[1 - leader]);
    let asked = cluster.run_issuer(&["status", "--issuer", &all], RUN_WITHIN).await.unwrap();
    assert_eq!(asked.code(), Some(69), "{asked:?}");
    for said in [
        "no issuer leads".to_owned(),
        format!("{silent} is unreachable"),
        format!("{dead} is unreachable"),
        format!("{gone} is unreachable"),
        format!("{other} follows {gone}"),
    ] {
        assert!(asked.stderr.contains(&said), "{said:?}: {asked:?}");
    }
    let pair = format!("{gone},{other}");
    let asked = cluster.run_issuer(&["status", "--issuer", &pair, "--json"], RUN_WITHIN).await.unwrap();
    assert_eq!(asked.code(), Some(69), "{asked:?}");
    let said: Value = serde_json::from_str(&asked.stdout).unwrap();
    assert_eq!(said["leader"], Value::Null);
    let issuers = said["issuers"].as_array().unwrap();
    let of = |url: &str| issuers.iter().find(|issuer| issuer["url"] == url).unwrap();
    assert_eq!((&of(gone)["state"], &of(other)["state"]), (&"unreachable".into(), &"follower".into()));
    assert_eq!(of(other)["leader"], gone.as_str());
}
