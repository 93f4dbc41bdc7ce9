//! Restore of etcd from an old backup: the ledger lacks blocks that are in use (fault 7).

use std::time::Duration;

use harness::{Cluster, History, Load};

const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_a_restored_ledger_has_forgotten_are_not_given_again() {
    let cluster = Cluster::builder().etcd(1).issuers(2).resolvers(2).alone().lease_ttl("2s");
    let cluster = cluster.issuer_args(["--block-min", "100", "--block-max", "100"]);
    let mut cluster = cluster.start().await.unwrap();
    let history = History::default();
    Load::on(&cluster.resolvers).creates(500).recorded(&history).run().await.unwrap();
    let backup = cluster.etcd.save_snapshot().await.unwrap();
    Load::on(&cluster.resolvers).creates(3_000).recorded(&history).run().await.unwrap();
    let forgotten = cluster.status().await.unwrap();

    cluster.etcd.restore_snapshot(&backup).await.unwrap();
    let load = Load::on(&cluster.resolvers).creates(3_000).retries_unavailable().recorded(&history);
    load.run().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();

    history.check(&cluster).await.unwrap();
    let status = cluster.status().await.unwrap();
    let (numbers, before) = (status.only_namespace().unwrap(), forgotten.only_namespace().unwrap());
    assert!(numbers.high_watermark > before.high_watermark, "{numbers:?} after {before:?}");
    assert!(numbers.burned > 0, "what the ledger has forgotten is given up: {numbers:?}");
    let mut refused = 0.0;
    for resolver in &cluster.resolvers {
        refused += resolver.metric("resolver_blocks_overlapping_total").await.unwrap_or_default();
    }
    assert!(refused > 0.0, "the register refused no block: the backup was not old enough to show anything");
}
