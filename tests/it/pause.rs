//! The leading issuer pauses for three times its lease TTL and then continues (fault 2; must show
//! 3).

use std::time::Duration;

use harness::{Cluster, History, Load, checks, wait};

const LEASE_TTL: Duration = Duration::from_secs(2);
const SOON: Duration = Duration::from_secs(60);

/// The number of pauses. The successor of the first pause is the leader that pauses in the second.
const ROUNDS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_stood_still_for_three_leases_overlaps_with_nobody_and_fails_no_create() {
    let cluster = Cluster::builder().etcd(3).issuers(3).resolvers(2).alone().lease_ttl("2s");
    let cluster = cluster.issuer_args(["--block-min", "400", "--block-max", "400"]);
    let (mut cluster, history) = (cluster.start().await.unwrap(), History::default());
    let mut load = Load::on(&cluster.resolvers).clients(32).creates(usize::MAX).per_second(300);
    load = load.recorded(&history);
    let mut load = load.start();
    for _ in 0..ROUNDS {
        let leader = cluster.wait_leader(SOON).await.unwrap();
        let epoch = cluster.status().await.unwrap().epoch;
        load.reaches(load.acknowledged() + 200, SOON).await.unwrap();
        let paused = tokio::time::Instant::now();
        cluster.issuers[leader].process.pause().await.unwrap();
        // The pause has this length by definition. Creates continue throughout.
        wait::until(SOON, "three leases have passed", async || paused.elapsed() >= 3 * LEASE_TTL)
            .await
            .unwrap();
        load.reaches(load.acknowledged() + 200, SOON).await.unwrap();
        cluster.issuers[leader].process.resume().unwrap();

        let successor = wait::until_some(SOON, "only the successor leads", async || {
            cluster.leader().await.filter(|found| *found != leader)
        });
        let successor = successor.await.unwrap();
        load.reaches(load.acknowledged() + 600, SOON).await.unwrap();
        // The deposed leader refers its callers to its successor.
        let status = cluster.status_from(&cluster.issuers[leader].url()).await.unwrap();
        assert_eq!(status.leader, cluster.issuers[successor].advertised());
        assert!(status.epoch > epoch, "epoch {} after epoch {epoch}", status.epoch);
        assert!(cluster.issuers[leader].process.is_running(), "the deposed leader must step down, not end");
    }
    load.wind_down();
    load.finish().await.unwrap();

    let report = history.check(&cluster).await.unwrap();
    assert_eq!((report.failed_count, report.unknown_count), (0, 0), "{report}");
    checks::all_allocated_gets_registered(&cluster, SOON).await.unwrap();
}
