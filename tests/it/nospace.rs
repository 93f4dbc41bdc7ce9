//! etcd runs out of space and raises its alarm (fault 6). Allocation fails visibly and creates
//! continue. Once an operator has freed space, everything recovers by itself.

use std::time::Duration;

use harness::{Cluster, History, Load, checks, wait};

const SOON: Duration = Duration::from_secs(60);

/// The etcd quota, small so that it fills quickly; the ledger needs a few kilobytes.
const QUOTA: &str = "--quota-backend-bytes=16777216";

/// The numbers left in the resolver's hands while nothing can be allocated.
const REST: u64 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_out_of_space_stops_allocation_loudly_and_nothing_else_until_there_is_room_again() {
    let cluster = Cluster::builder().issuers(2).etcd_arg(QUOTA);
    let cluster = cluster.issuer_args(["--block-min", "600", "--block-max", "600"]);
    let (mut cluster, history) = (cluster.start().await.unwrap(), History::default());
    let leader = cluster.wait_leader(SOON).await.unwrap();
    assert!(cluster.etcd.fill(64).await.unwrap(), "etcd took 64 MiB within {QUOTA}");
    assert!(!cluster.etcd.alarms().await.unwrap().is_empty());

    // Past the point where the resolver requests its next block: these creates use the numbers in
    // hand.
    let in_hand = cluster.resolvers[0].numbers_in_hand().await.unwrap();
    let creates = usize::try_from(in_hand - REST).unwrap();
    Load::on(&cluster.resolvers).creates(creates).recorded(&history).run().await.unwrap();
    let issuer = &cluster.issuers[leader];
    wait::until(SOON, "the leader counts transactions that etcd did not take", async || {
        let failed = issuer.metric_where("issuer_transactions_total", "result=\"unknown\"").await;
        failed.is_some_and(|count| count >= 3.0)
    })
    .await
    .unwrap();
    assert_eq!(
        cluster.resolvers[0].numbers_in_hand().await,
        Some(REST),
        "a block was allocated without space"
    );
    checks::all_resolve(&history.links(), &cluster.resolvers).await.unwrap();

    cluster.etcd.make_room().await.unwrap();
    assert!(cluster.etcd.alarms().await.unwrap().is_empty());
    wait::until(SOON, "a block is allocated again", async || {
        cluster.resolvers[0].numbers_in_hand().await.is_some_and(|in_hand| in_hand > REST)
    })
    .await
    .unwrap();
    Load::on(&cluster.resolvers).creates(2_000).recorded(&history).run().await.unwrap();
    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.failed_count, report.unknown_count), (0, 0), "{report}");
    checks::all_allocated_gets_registered(&cluster, SOON).await.unwrap();
    assert!(cluster.issuers.iter_mut().all(|issuer| issuer.process.is_running()));
}
