//! Many clients create links while the leading issuer dies.

use std::time::Duration;

use harness::{Cluster, History, Issuer, Load, wait};

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
    let cluster = Cluster::builder().etcd(3).issuers(3).resolvers(2).alone();
    let cluster = cluster.lease_ttl(&format!("{}s", LEASE_TTL.as_secs()));
    let cluster = cluster.issuer_args(["--block-min", BLOCK, "--block-max", BLOCK]);
    let mut cluster = cluster.start().await.unwrap();
    let leader = cluster.wait_leader(SOON).await.unwrap();
    let history = History::default();
    let load = Load::on(&cluster.resolvers).clients(64).creates(10_000).recorded(&history);
    let mut load = load.start();
    load.reaches(3_000, SOON).await.unwrap();
    cluster.issuers[leader].process.kill_now().unwrap();
    let successor = wait_allocating_successor(&cluster.issuers, leader).await;

    load.finish().await.unwrap();
    assert_eq!(cluster.wait_leader(SOON).await.unwrap(), successor);
    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.attempted_count, report.acknowledged_count), (10_000, 10_000), "{report}");
    assert_eq!(cluster.status().await.unwrap().leader, cluster.issuers[successor].advertised());
}

/// Waits until another issuer leads and has allocated a block, and returns its index. Only the
/// leader ever allocated before, so the others' counts start at zero.
async fn wait_allocating_successor(issuers: &[Issuer], leader: usize) -> usize {
    let successor = wait::until_some(ALLOCATES_WITHIN, "another issuer leads and allocates", async || {
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
