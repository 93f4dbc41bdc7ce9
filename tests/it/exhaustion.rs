//! Exhaustion of a namespace: exactly as many links as numbers, then a clear refusal.

use std::time::Duration;

use harness::{Answer, Api, Cluster, History, checks, load, wait};
use tokio::task::JoinSet;

/// A keyspace of one-character codes. Its capacity of 62 is no multiple of the block size.
const KEYSPACE: &str = "tiny=1:0-9A-Za-z";
const CAPACITY: usize = 62;
const BLOCK: &str = "10";

/// The number of links created before the alarm is expected.
const EARLY: usize = 48;
/// A keyspace of two-character codes, with fewer numbers than the shortest block.
const SMALL_KEYSPACE: &str = "tiny=2:0-9";
const SMALL_CAPACITY: usize = 620;

/// The number of clients per resolver.
const CLIENTS: usize = 4;

const SOON: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn sixty_two_numbers_make_sixty_two_links_and_then_a_clear_507() {
    let cluster = Cluster::builder().resolvers(2).keyspaces(KEYSPACE);
    let cluster = cluster.resolver_args(["--default-keyspace", "tiny"]);
    let cluster = cluster.issuer_args(["--block-min", BLOCK, "--block-max", BLOCK]).start().await.unwrap();

    // The alarm is raised while there are still numbers for every resolver.
    let (mut clients, history) = (JoinSet::new(), History::default());
    for _ in 0..EARLY {
        history.create(&cluster.resolvers[0].api, 0).await.unwrap().unwrap();
    }
    let leader = &cluster.issuers[cluster.wait_leader(SOON).await.unwrap()];
    let alarm = wait::until(SOON, "the alarm is raised", async || {
        leader.metric("issuer_namespace_low").await == Some(1.0)
    });
    alarm.await.unwrap();
    assert!(leader.process.stderr().contains("running low"), "{}", leader.process.tail());
    assert!(leader.metric("issuer_namespace_remaining_ratio").await.is_some_and(|left| left < 0.1));

    for (created_on, resolver) in cluster.resolvers.iter().enumerate() {
        for _ in 0..CLIENTS {
            clients.spawn(create_until_refused(resolver.api.clone(), created_on, history.clone()));
        }
    }
    clients.join_all().await;
    let links = history.links();
    assert_eq!(links.len(), CAPACITY);
    assert!(links.iter().all(|link| link.code.len() == 1), "{links:?}");
    let report = history.check(&cluster).await.unwrap();
    let clients = cluster.resolvers.len() * CLIENTS;
    assert_eq!(
        (report.failed_count, report.unknown_count),
        (clients, 0),
        "each client ends with one refusal: {report}"
    );

    for resolver in &cluster.resolvers {
        for _ in 0..10 {
            expect_refused(&resolver.api.try_create(&load::next_long_url()).await.unwrap());
        }
    }
    let status = wait::until_some(SOON, "used-up blocks are closed", async || {
        let status = cluster.status().await.ok()?;
        (status.only_namespace().ok()?.open == 0).then_some(status)
    });
    let status = status.await.unwrap();
    checks::account_balances(&status).unwrap();
    checks::used_numbers_have_links(&status, &cluster.postgres).await.unwrap();
    let numbers = status.only_namespace().unwrap();
    assert_eq!((numbers.name.as_str(), numbers.capacity, numbers.high_watermark), ("tiny", 62, 62));
    assert_eq!((numbers.allocated, numbers.used), (62, 62), "{numbers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_resolvers_use_up_a_keyspace_smaller_than_the_shortest_block() {
    use_up_small_keyspace(2).await;
}

mod long {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn four_resolvers_use_up_a_keyspace_smaller_than_the_shortest_block() {
        use_up_small_keyspace(4).await;
    }
}

/// Uses up a small keyspace. All resolvers but the last create links until they answer 507, which
/// they may only after the last number is used. Then the last one has to answer 507 too.
async fn use_up_small_keyspace(resolvers: usize) {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(resolvers).alone();
    let cluster = cluster.keyspaces(SMALL_KEYSPACE).resolver_args(["--default-keyspace", "tiny"]);
    let cluster = cluster.start().await.unwrap();
    let history = History::default();
    for (created_on, resolver) in cluster.resolvers.iter().enumerate() {
        history.create(&resolver.api, created_on).await.unwrap().unwrap();
    }
    // The last resolver has numbers in hand and creates nothing. Its numbers have to reach the
    // others all the same.
    let mut clients = JoinSet::new();
    for (created_on, resolver) in cluster.resolvers.iter().enumerate().take(resolvers - 1) {
        for _ in 0..CLIENTS {
            clients.spawn(create_until_exhausted(resolver.api.clone(), created_on, history.clone()));
        }
    }
    clients.join_all().await;
    assert_eq!(history.links().len(), SMALL_CAPACITY);
    for resolver in &cluster.resolvers {
        let refused = wait::until(SOON, "every resolver says that the keyspace is exhausted", async || {
            resolver.api.try_create(&load::next_long_url()).await.unwrap().status == 507
        });
        refused.await.unwrap();
        expect_refused(&resolver.api.try_create(&load::next_long_url()).await.unwrap());
        assert_eq!(resolver.metric("resolver_supply_seconds").await, Some(0.0), "nothing is in hand");
    }
    history.check(&cluster).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// Creates links until 507. Until numbers return from the other resolvers, a create may be refused
/// with 503 and Retry-After.
async fn create_until_exhausted(api: Api, created_on: usize, history: History) {
    loop {
        if let Err(answer) = history.create(&api, created_on).await.unwrap() {
            if answer.status != 503 {
                return expect_refused(&answer);
            }
            assert!(answer.header("retry-after").is_some(), "{answer:?}");
        }
    }
}

/// Creates links until the first refusal, which must be 507.
async fn create_until_refused(api: Api, created_on: usize, history: History) {
    for _ in 0..=CAPACITY {
        if let Err(answer) = history.create(&api, created_on).await.unwrap() {
            return expect_refused(&answer);
        }
    }
    panic!("more links than numbers");
}

fn expect_refused(answer: &Answer) {
    assert_eq!(answer.status, 507, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    assert_eq!(answer.json().unwrap()["status"], 507, "{answer:?}");
}
