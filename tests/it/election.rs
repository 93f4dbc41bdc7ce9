//! Leadership changes and etcd faults: creates and redirects continue, and the platform recovers by
//! itself.

use std::time::Duration;

use harness::{Cluster, History, Issuer, Load, checks, load, wait};
use tokio::time::sleep;

const SOON: Duration = Duration::from_secs(60);
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// The leader key. Its lease holds the leadership.
const LEADER_KEY: &str = "/shortmint/default/leader";

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_stopped_resigns_and_no_create_fails() {
    // With a lease this long, only a resignation explains a new leader within the test's time
    // limit.
    let cluster = Cluster::builder().issuers(3).resolvers(2).lease_ttl("60s");
    let mut cluster =
        cluster.issuer_args(["--block-min", "200", "--block-max", "200"]).start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let epoch = cluster.status().await.unwrap().epoch;
    let history = History::default();
    let mut load = Load::on(&cluster.resolvers).clients(32).creates(3_000).recorded(&history).start();
    load.reaches(500, SOON).await.unwrap();
    cluster.issuers[leader].stop(STOP_WITHIN).await.unwrap();

    let successor = cluster.wait_leader(STOP_WITHIN).await.unwrap();
    assert_ne!(successor, leader);
    load.finish().await.unwrap();
    let status = cluster.status().await.unwrap();
    assert!(status.epoch > epoch, "epoch {} after epoch {epoch}", status.epoch);
    history.check(&cluster).await.unwrap();

    cluster.issuers[leader].restart().await.unwrap();
    assert_eq!(cluster.wait_leader(SOON).await.unwrap(), successor, "who comes back must not take over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_lease_ends_the_leaders_epoch_and_no_create_fails() {
    let cluster = Cluster::builder().issuers(2).resolvers(2);
    let mut cluster =
        cluster.issuer_args(["--block-min", "200", "--block-max", "200"]).start().await.unwrap();
    cluster.wait_leader(SOON).await.unwrap();
    let epoch = cluster.status().await.unwrap().epoch;
    let history = History::default();
    let mut load = Load::on(&cluster.resolvers).creates(3_000).recorded(&history).start();
    load.reaches(500, SOON).await.unwrap();
    let lease = cluster.etcd.lease_of(LEADER_KEY).await.unwrap().expect("the leader has a lease");
    cluster.etcd.revoke_lease(lease).await.unwrap();

    wait::until(SOON, "a new epoch begins", async || {
        cluster.status().await.is_ok_and(|status| status.epoch > epoch)
    })
    .await
    .unwrap();
    load.finish().await.unwrap();
    // More creates than there are numbers in hand, so the new epoch has to allocate.
    Load::on(&cluster.resolvers).creates(2_000).recorded(&history).run().await.unwrap();
    assert!(cluster.issuers.iter_mut().all(|issuer| issuer.process.is_running()));
    history.check(&cluster).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_loss_of_one_etcd_member_in_three_fails_no_create() {
    // The lease TTL of a deployment: while etcd elects its leader, the leading issuer keeps its
    // lease, and blocks last.
    let cluster = Cluster::builder().etcd(3).issuers(2).resolvers(2).lease_ttl("5s");
    let mut cluster =
        cluster.issuer_args(["--block-min", "1000", "--block-max", "1000"]).start().await.unwrap();
    let allocations = allocations(&cluster.issuers).await;
    let history = History::default();
    let mut load = Load::on(&cluster.resolvers).creates(8_000).recorded(&history).start();
    load.reaches(1_000, SOON).await.unwrap();
    let member = cluster.etcd.leader_index().await.unwrap();
    cluster.etcd.members_mut()[member].kill_now().unwrap();

    load.finish().await.unwrap();
    assert!(self::allocations(&cluster.issuers).await > allocations);
    history.check(&cluster).await.unwrap();
}

/// The shortest lease that etcd allows leaves the least time to find another member.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_etcd_that_stands_still_ends_no_term_and_holds_up_no_allocation() {
    let cluster = Cluster::builder().etcd(3).issuers(1).resolvers(2).lease_ttl("2s").alone();
    let mut cluster =
        cluster.issuer_args(["--block-min", "500", "--block-max", "500"]).start().await.unwrap();
    let epoch = cluster.status().await.unwrap().epoch;
    let history = History::default();
    let etcd_leader = cluster.etcd.leader_index().await.unwrap();
    for member in (0..3).filter(|member| *member != etcd_leader) {
        let mut load = Load::on(&cluster.resolvers).creates(5_000).recorded(&history).start();
        load.reaches(500, SOON).await.unwrap();
        cluster.etcd.members_mut()[member].pause().await.unwrap();
        load.finish().await.unwrap();
        // Long enough for a lease to run out twice.
        sleep(Duration::from_secs(4)).await;
        Load::on(&cluster.resolvers).creates(2_000).recorded(&history).run().await.unwrap();
        cluster.etcd.members_mut()[member].resume().unwrap();
        cluster.etcd.wait_ready().await.unwrap();
        assert_eq!(cluster.status().await.unwrap().epoch, epoch, "member {member} cost the term");
    }
    history.check(&cluster).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_etcds_quorum_blocks_in_hand_last_redirects_go_on_and_all_recovers_by_itself() {
    let cluster = Cluster::builder().etcd(3).issuers(2).resolvers(2);
    let mut cluster =
        cluster.issuer_args(["--block-min", "100", "--block-max", "100"]).start().await.unwrap();
    let history = History::default();
    let load = Load::on(&cluster.resolvers).clients(2).creates(20).recorded(&history);
    let before = load.run().await.unwrap();
    for member in [0, 1] {
        cluster.etcd.members_mut()[member].kill_now().unwrap();
    }
    wait::until(SOON, "nobody leads", async || !anybody_leads(&cluster.issuers).await).await.unwrap();

    // Of the 100 numbers in each resolver's hands 10 are used, so 40 more need no allocation.
    let load = Load::on(&cluster.resolvers).clients(2).creates(80).recorded(&history);
    let during = load.run().await.unwrap();
    checks::all_resolve(&before, &cluster.resolvers).await.unwrap();
    checks::all_resolve(&during, &cluster.resolvers).await.unwrap();
    tokio::join!(
        create_until_unavailable(&cluster, 0, &history),
        create_until_unavailable(&cluster, 1, &history)
    );
    checks::all_resolve(&before, &cluster.resolvers).await.unwrap();

    for member in [0, 1] {
        cluster.etcd.members_mut()[member].restart().unwrap();
    }
    cluster.etcd.wait_ready().await.unwrap();
    for resolver in &cluster.resolvers {
        wait::until(SOON, "creates work again", async || {
            resolver.api.try_create(&load::next_long_url()).await.is_ok_and(|answer| answer.status == 200)
        })
        .await
        .unwrap();
    }
    Load::on(&cluster.resolvers).creates(1_000).recorded(&history).run().await.unwrap();
    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.failed_count, report.unknown_count), (2, 0), "one refusal at each resolver: {report}");
    assert!(cluster.issuers.iter_mut().all(|issuer| issuer.process.is_running()));
    assert!(cluster.resolvers.iter_mut().all(|resolver| resolver.process.is_running()));
}

/// Uses up the resolver's numbers in hand. The refusal after the last one must have a Retry-After.
async fn create_until_unavailable(cluster: &Cluster, resolver: usize, history: &History) {
    let api = &cluster.resolvers[resolver].api;
    // A resolver holds at most two blocks of 100.
    for _ in 0..=200 {
        if let Err(answer) = history.create(api, resolver).await.unwrap() {
            assert!(load::is_unavailable(&answer), "{answer:?}");
            return;
        }
    }
    panic!("more creates than numbers in hand");
}

async fn anybody_leads(issuers: &[Issuer]) -> bool {
    for issuer in issuers {
        if issuer.says_it_leads().await {
            return true;
        }
    }
    false
}

/// Returns the number of allocations that all issuers together have answered.
async fn allocations(issuers: &[Issuer]) -> f64 {
    let mut sum = 0.0;
    for issuer in issuers {
        sum += issuer.metric("issuer_allocations_total").await.unwrap();
    }
    sum
}
