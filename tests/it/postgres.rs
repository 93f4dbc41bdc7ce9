//! Postgres dies under load and comes back.

use std::time::Duration;

use harness::{Acknowledged, Cluster, Load, checks};
use tokio::task::JoinSet;

const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_postgres_loses_no_acknowledged_link_and_hot_redirects_go_on() {
    let mut cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let hot = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    let cold = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    // From here on these are in the caches of the resolvers that they are asked of below.
    checks::all_resolve(&hot, &cluster.resolvers).await.unwrap();

    let mut load = Load::on(&cluster.resolvers).creates(3_000).retries_unavailable().start();
    load.reaches(500, SOON).await.unwrap();
    cluster.postgres.kill_now().await.unwrap();
    for _ in 0..3 {
        checks::all_resolve(&hot, &cluster.resolvers).await.unwrap();
    }
    let mut followers: JoinSet<()> =
        cold.iter().map(|link| follow_in_outage(&cluster, link.clone())).collect();
    while let Some(follower) = followers.join_next().await {
        follower.unwrap();
    }
    assert!(load.acknowledged() < 3_000, "the load must still run when Postgres comes back");
    cluster.postgres.restart().await.unwrap();

    let under_load = load.finish().await.unwrap();
    let links = [hot, cold, under_load].concat();
    assert_eq!(links.len(), 3_040);
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::registered_blocks_are_disjoint(&cluster.postgres).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// Follows a link on a resolver that does not have it in its cache. I8: an error is never an absence.
fn follow_in_outage(cluster: &Cluster, link: Acknowledged) -> impl Future<Output = ()> + Send + 'static {
    let api = cluster.resolvers[(link.created_on + 1) % 2].api.clone();
    async move {
        let (status, location) = api.follow(&link.code).await.unwrap();
        let is_right = status == 503 || (status == 302 && location.as_ref() == Some(&link.long_url));
        assert!(is_right, "{link:?} answered {status} {location:?} while Postgres was away");
    }
}
