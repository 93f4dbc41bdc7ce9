//! Partitions between resolvers and issuers (fault 11). Blocks in hand last through them, and
//! keep-alive pings detect connections that are left half open.

use std::time::Duration;

use harness::{Cluster, Direction, Flow, History, Load, checks, wait};

/// The time limit for a new block. It is generous: the resolver sends a ping every two seconds and
/// waits two more for its response.
const RECOVERS_WITHIN: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(60);

/// The numbers left in each resolver's hands during a partition.
const REST: u64 = 50;

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_both_ways_or_one_way_fails_no_create_and_no_allocation_gets_lost() {
    let (cluster, history) = (platform().await, History::default());
    for (to_server, to_client) in [(Flow::Cut, Flow::Cut), (Flow::Cut, Flow::Pass), (Flow::Pass, Flow::Cut)] {
        checks::all_allocated_gets_registered(&cluster, SOON).await.unwrap();
        for proxy in &cluster.issuer_proxies {
            proxy.set(Direction::ToServer, to_server);
            proxy.set(Direction::ToClient, to_client);
        }
        use_up_what_is_in_hand(&cluster, &history).await;
        checks::all_resolve(&history.links(), &cluster.resolvers).await.unwrap();
        for in_hand in numbers_in_hand(&cluster).await {
            assert_eq!(in_hand, REST, "a block came through the partition");
        }
        cluster.issuer_proxies.iter().for_each(|proxy| proxy.set_both(Flow::Pass));
        all_have_a_new_block(&cluster).await;
    }
    all_is_well(&cluster, &history).await;
}

/// The partition does not heal for the old connections, so only new ones help.
#[tokio::test(flavor = "multi_thread")]
async fn half_open_connections_to_the_issuers_are_found_out_and_replaced() {
    let (cluster, history) = (platform().await, History::default());
    for _ in 0..2 {
        cluster.issuer_proxies.iter().for_each(harness::Proxy::strand_all);
        use_up_what_is_in_hand(&cluster, &history).await;
        all_have_a_new_block(&cluster).await;
    }
    all_is_well(&cluster, &history).await;
}

async fn platform() -> Cluster {
    let cluster = Cluster::builder().issuers(2).resolvers(2).behind_proxies();
    let cluster = cluster.issuer_args(["--block-min", "1000", "--block-max", "1000"]).start().await.unwrap();
    // A resolver is ready before it has its first block.
    all_have_a_new_block(&cluster).await;
    cluster
}

/// Creates links until `REST` numbers are left in each resolver's hands, far past the point where
/// it requests its next block. Only the blocks in hand can serve these creates.
async fn use_up_what_is_in_hand(cluster: &Cluster, history: &History) {
    let in_hand = numbers_in_hand(cluster).await;
    for (resolver, in_hand) in cluster.resolvers.iter().zip(in_hand) {
        let creates = usize::try_from(in_hand - REST).unwrap();
        Load::on([resolver]).creates(creates).recorded(history).run().await.unwrap();
    }
}

async fn all_have_a_new_block(cluster: &Cluster) {
    wait::until(RECOVERS_WITHIN, "every resolver has a new block", async || {
        numbers_in_hand(cluster).await.into_iter().all(|in_hand| in_hand > REST)
    })
    .await
    .unwrap();
}

async fn all_is_well(cluster: &Cluster, history: &History) {
    Load::on(&cluster.resolvers).creates(500).recorded(history).run().await.unwrap();
    checks::all_allocated_gets_registered(cluster, SOON).await.unwrap();
    let report = history.check(cluster).await.unwrap();
    assert_eq!((report.failed_count, report.unknown_count), (0, 0), "{report}");
    wait::until(SOON, "both resolvers are heard of", async || {
        cluster.status().await.unwrap().holders.iter().all(|holder| holder.alive)
    })
    .await
    .unwrap();
}

async fn numbers_in_hand(cluster: &Cluster) -> Vec<u64> {
    let mut all = Vec::new();
    for resolver in &cluster.resolvers {
        all.push(resolver.numbers_in_hand().await.unwrap());
    }
    all
}
