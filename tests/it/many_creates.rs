//! Many clients create links while the leading issuer dies or pauses.

use std::time::Duration;

use harness::{Cluster, ClusterBuilder, History, Issuer, Load, wait};

/// The shortest lease TTL that etcd does not raise.
const LEASE_TTL: Duration = Duration::from_secs(2);

/// The promised bound on the time to the first allocation after a kill: lease TTL + 1 s.
const ALLOCATES_WITHIN: Duration = Duration::from_secs(LEASE_TTL.as_secs() + 1);

const SOON: Duration = Duration::from_secs(60);

/// The block size, so small that without a leader the numbers in hand are soon used up, and creates
/// depend on the next block.
const BLOCK: &str = "500";

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_creates_outlive_the_leading_issuer_and_every_code_leads_to_its_own_url() {
    let mut cluster = platform().start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let history = History::default();
    let load = Load::on(&cluster.resolvers).clients(64).creates(10_000).recorded(&history);
    let mut load = load.start();
    load.reaches(3_000, SOON).await.unwrap();
    cluster.issuers[leader].process.kill_now().unwrap();
    let successor = wait_allocating_successor(&cluster.issuers, leader, ALLOCATES_WITHIN).await;

    load.finish().await.unwrap();
    assert_eq!(cluster.wait_leader(SOON).await.unwrap(), successor);
    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.attempted_count, report.acknowledged_count), (10_000, 10_000), "{report}");
    assert_eq!(cluster.status().await.unwrap().leader, cluster.issuers[successor].advertised());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stood_still_past_its_lease_steps_down_and_no_create_fails() {
    let mut cluster = platform().start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let epoch = cluster.status().await.unwrap().epoch;
    let history = History::default();
    let mut load = Load::on(&cluster.resolvers).clients(64).creates(6_000).recorded(&history).start();
    load.reaches(500, SOON).await.unwrap();
    cluster.issuers[leader].process.pause().await.unwrap();
    // No bound is promised here: callers of a paused issuer notice only by their time-outs.
    let successor = wait_allocating_successor(&cluster.issuers, leader, SOON).await;
    cluster.issuers[leader].process.resume().unwrap();

    load.finish().await.unwrap();
    assert_eq!(cluster.wait_leader(SOON).await.unwrap(), successor, "only the successor leads");
    assert!(cluster.issuers[leader].process.is_running(), "the deposed leader must step down, not end");
    // The deposed leader refers its callers to its successor.
    let status = cluster.status_from(&cluster.issuers[leader].url()).await.unwrap();
    assert_eq!(status.leader, cluster.issuers[successor].advertised());
    assert!(status.epoch > epoch, "epoch {} after epoch {epoch}", status.epoch);
    let report = history.check(&cluster).await.unwrap();
    assert_eq!(report.acknowledged_count, 6_000, "{report}");
}

fn platform() -> ClusterBuilder {
    let cluster = Cluster::builder().etcd(3).issuers(3).resolvers(2).alone();
    let cluster = cluster.lease_ttl(&format!("{}s", LEASE_TTL.as_secs()));
    cluster.issuer_args(["--block-min", BLOCK, "--block-max", BLOCK])
}

/// Waits until another issuer leads and has allocated a block, and returns its index. Only the
/// leader ever allocated before, so the others' counts start at zero.
async fn wait_allocating_successor(issuers: &[Issuer], leader: usize, within: Duration) -> usize {
    let successor = wait::until_some(within, "another issuer leads and allocates", async || {
        for (index, issuer) in issuers.iter().enumerate().filter(|(index, _)| *index != leader) {
            if issuer.says_it_leads().await && has_allocated(issuer).await {
                return Some(index);
            }
        }
        None
    });
    successor.await.unwrap()
}

async fn has_allocated(issuer: &Issuer) -> bool {
    issuer.metric("issuer_allocations_total").await.is_some_and(|count| count > 0.0)
}
