//! Two processes with one holder id: the younger keeps it, and the elder exits.

use std::time::Duration;

use harness::{Cluster, wait};

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn the_elder_of_two_processes_with_one_holder_id_stops_minting_and_ends_with_a_clear_line() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().holder_ttl("9s");
    let mut cluster = cluster.drain_delay("1s").start().await.unwrap();
    let holder_id = cluster.resolvers[0].holder_id().to_owned();
    let code = cluster.resolvers[0].api.create("https://example.com/elder").await.unwrap().code;

    // As on another machine, it has a spool of its own.
    let spool = tempfile::tempdir().unwrap();
    let younger = cluster.resolver(&holder_id).unwrap();
    let younger = younger.args(["--visits-spool", spool.path().to_str().unwrap()]).start().await.unwrap();
    younger.api.create("https://example.com/younger").await.unwrap();
    let elder = &mut cluster.resolvers[0];
    let not_ready = wait::until(SOON, "the elder is not ready any more", async || !elder.is_ready().await);
    not_ready.await.unwrap();
    let exit = elder.process.wait_exit(SOON).await.unwrap();
    assert_eq!(exit.code(), Some(64), "{}", elder.process.tail());
    let log = elder.process.logs();
    let line = log.lines().find(|line| line.contains("another process has started under this name"));
    assert!(line.is_some_and(|line| line.contains(&holder_id)), "{}", elder.process.tail());

    // The younger process takes over the elder's numbers and redirects its links.
    assert!(younger.is_ready().await);
    assert_eq!(younger.api.follow(&code).await.unwrap().0, 302);
    for number in 0..50 {
        younger.api.create(&format!("https://example.com/after/{number}")).await.unwrap();
    }
    let status = cluster.status().await.unwrap();
    assert_eq!(status.only_namespace().unwrap().leaked, 0, "{status:?}");
}
