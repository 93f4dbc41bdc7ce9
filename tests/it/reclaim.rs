//! Reclaim of the numbers of dead holders: they come back, and none is given twice meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use harness::{Cluster, ClusterBuilder, History, Load, Resolver, Status, checks, wait};

const SOON: Duration = Duration::from_secs(60);

/// The maximum number of database kills until an insert is in doubt.
const ROUNDS_MAX: usize = 10;
const STOP_WITHIN: Duration = Duration::from_secs(30);

/// The time after which a resolver that does not come back is taken for dead.
const DEAD_SOON: &str = "2s";
/// Longer than a resolver stands still on a busy machine. Its numbers would be leaked at the end.
const NEVER_DEAD: &str = "60s";

/// Builds a platform with small blocks and short times, so that much is leaked and reclaimed soon.
/// No block has more gaps than a call may list, whatever its order of use.
fn platform(holder_ttl: &str) -> ClusterBuilder {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(2).alone().holder_ttl(holder_ttl);
    cluster.issuer_args(["--block-min", "64", "--block-max", "64", "--reclaim-after", "1s"])
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_kills_of_every_resolver_lose_no_number_and_no_acknowledged_link() {
    let (mut cluster, history) = (platform(NEVER_DEAD).start().await.unwrap(), History::default());
    for _ in 0..10 {
        let load = Load::on(&cluster.resolvers).clients(32).creates(1_000_000);
        let mut load = load.recorded(&history).start();
        load.reaches(450, SOON).await.unwrap();
        for resolver in &mut cluster.resolvers {
            resolver.process.kill_now().unwrap();
        }
        load.end().await.unwrap();
        for resolver in &mut cluster.resolvers {
            resolver.restart().await.unwrap();
        }
    }
    mint_until_nothing_is_leaked(&cluster, &history).await;
    let mut reclaimed = 0.0;
    for resolver in &cluster.resolvers {
        reclaimed += resolver.metric("resolver_numbers_reclaimed_total").await.unwrap_or_default();
    }
    assert!(reclaimed > 0.0, "the last start found no unused number in what its predecessor held");
    let report = history.check(&cluster).await.unwrap();
    assert!(report.unknown_count > 0, "no create was on its way when its resolver was killed: {report}");

    let (status, given_up) = stop_all_resolvers(&mut cluster).await;
    println!("lost for good: {given_up:?}");
    checks::used_numbers_have_links(&status, &cluster.postgres).await.unwrap();
    let numbers = status.only_namespace().unwrap();
    assert_eq!((numbers.open, numbers.leaked, numbers.burned), (0, 0, 0), "{status:?}");
    assert_eq!(numbers.allocated, numbers.used + numbers.free, "not one number is lost: {status:?}");
    assert_eq!(given_up, BTreeSet::new(), "a number was listed as lost, and none is");
}

/// Here the database dies instead, so inserts are in doubt while their resolver lives. It lists the
/// numbers that it gives up, and no other number is lost.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_given_up_over_inserts_in_doubt_are_listed_and_no_other_is_lost() {
    let (mut cluster, history) = (platform(NEVER_DEAD).start().await.unwrap(), History::default());
    let is_distributed = !cluster.postgres.nodes().is_empty();
    for _ in 0..ROUNDS_MAX {
        let load = Load::on(&cluster.resolvers).clients(64).creates(1_500).retries_unavailable();
        let mut load = load.recorded(&history).start();
        load.reaches(300, SOON).await.unwrap();
        let database = cluster.postgres.with_links();
        if is_distributed {
            // A node that has restarted begins a history, which gives up numbers without a list.
            database.kill_a_backend().await.unwrap();
            // It is asked once a second whether it is back.
            tokio::time::sleep(Duration::from_secs(2)).await;
        } else {
            database.kill_now().await.unwrap();
            database.restart().await.unwrap();
        }
        load.finish().await.unwrap();
        if burned(&cluster).await > 0.0 {
            break;
        }
    }
    history.check(&cluster).await.unwrap();

    let (status, given_up) = stop_all_resolvers(&mut cluster).await;
    println!("lost for good: {given_up:?}");
    let numbers = status.only_namespace().unwrap();
    assert!(numbers.burned > 0, "no insert was in doubt in {ROUNDS_MAX} rounds: {status:?}");
    // Numbers of a node that is away are counted, and not listed.
    let unlisted = numbers.burned - given_up.len() as u64;
    assert!(unlisted == 0 || is_distributed, "{} of {unlisted}: {given_up:?}", numbers.burned);
    assert_eq!((numbers.open, numbers.leaked), (0, 0), "{status:?}");
    let stored = stored_numbers(&cluster).await;
    let late = given_up.iter().filter(|(_, number)| stored.contains(number)).count();
    assert_eq!(
        numbers.used,
        (stored.len() - late) as u64,
        "a link lies under a number that is not used: {status:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_a_resolver_that_never_comes_back_is_used_up_by_another() {
    let mut cluster = platform(DEAD_SOON).start().await.unwrap();
    let mut links = Load::on(&cluster.resolvers).creates(300).run().await.unwrap();
    cluster.resolvers[1].process.kill_now().unwrap();
    wait_for_numbers(&cluster, "the dead resolver's blocks are leaked", |numbers| numbers.leaked > 0).await;
    let survivor = &cluster.resolvers[..1];
    let deadline = wait::until(SOON, "the leaked numbers are in the survivor's hands", async || {
        links.extend(Load::on(survivor).creates(100).run().await.unwrap());
        leaked(&cluster).await == 0
    });
    deadline.await.unwrap();

    assert!(
        cluster.resolvers[0]
            .metric("resolver_numbers_reclaimed_total")
            .await
            .is_some_and(|count| count > 0.0)
    );
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, survivor).await.unwrap();
    checks::registered_blocks_are_disjoint(&cluster.postgres).await.unwrap();
    let status = cluster.status().await.unwrap();
    checks::account_balances(&status).unwrap();
    assert!(!status.holder(cluster.resolvers[1].holder_id()).unwrap().alive);
}

/// The hard case: the holder was not dead. It continues to mint from a block that another holder
/// has taken over, and only the primary key keeps their codes distinct.
#[tokio::test(flavor = "multi_thread")]
async fn a_resolver_that_stood_still_and_its_heir_never_give_the_same_code() {
    let mut cluster = platform(DEAD_SOON).start().await.unwrap();
    let mut links = Load::on(&cluster.resolvers).creates(200).run().await.unwrap();
    cluster.resolvers[1].process.pause().await.unwrap();
    wait_for_numbers(&cluster, "the paused resolver's blocks are leaked", |numbers| numbers.leaked > 0).await;
    let taken = wait::until(SOON, "the paused resolver's blocks are taken over", async || {
        links.extend(Load::on(&cluster.resolvers[..1]).creates(100).run().await.unwrap());
        leaked(&cluster).await == 0
    });
    taken.await.unwrap();
    cluster.resolvers[1].process.resume().unwrap();
    links.extend(Load::on(&cluster.resolvers).clients(32).creates(4_000).run().await.unwrap());

    let mut conflicts = 0.0;
    for resolver in &cluster.resolvers {
        conflicts += resolver.metric("resolver_conflicts_total").await.unwrap_or_default();
    }
    assert!(conflicts > 0.0, "the two never met at a number");
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::registered_blocks_are_disjoint(&cluster.postgres).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// Runs small loads until every leaked block is taken over.
async fn mint_until_nothing_is_leaked(cluster: &Cluster, history: &History) {
    let minted = wait::until(SOON, "no number is leaked", async || {
        Load::on(&cluster.resolvers).creates(400).recorded(history).run().await.unwrap();
        leaked(cluster).await == 0
    });
    minted.await.unwrap();
}

/// Stops all resolvers with SIGTERM. Returns the account after that, and the numbers that the
/// resolvers listed as given up.
async fn stop_all_resolvers(cluster: &mut Cluster) -> (Status, BTreeSet<(String, u64)>) {
    for resolver in &mut cluster.resolvers {
        resolver.stop(STOP_WITHIN).await.unwrap();
    }
    let status = cluster.status().await.unwrap();
    checks::account_balances(&status).unwrap();
    let given_up: Vec<_> = cluster.resolvers.iter().flat_map(Resolver::numbers_given_up).collect();
    let distinct: BTreeSet<_> = given_up.iter().cloned().collect();
    assert_eq!(distinct.len(), given_up.len(), "a number was given up twice");
    (status, distinct)
}

async fn burned(cluster: &Cluster) -> f64 {
    let mut burned = 0.0;
    for resolver in &cluster.resolvers {
        burned += resolver.metric("resolver_numbers_burned_total").await.unwrap_or_default();
    }
    burned
}

/// Returns the numbers that have a link. There is only one keyspace.
async fn stored_numbers(cluster: &Cluster) -> BTreeSet<u64> {
    let client = cluster.postgres.client().await.unwrap();
    let rows = client.query("SELECT id & ((1::bigint << 48) - 1) FROM link", &[]).await.unwrap();
    rows.iter().map(|row| row.get::<_, i64>(0).try_into().unwrap()).collect()
}

async fn leaked(cluster: &Cluster) -> u64 {
    cluster.status().await.unwrap().only_namespace().unwrap().leaked
}

async fn wait_for_numbers(
    cluster: &Cluster,
    what: &str,
    is_so: impl Fn(&harness::status::Namespace) -> bool,
) {
    let waited = wait::until(SOON, what, async || {
        let status: Status = cluster.status().await.unwrap();
        is_so(status.only_namespace().unwrap())
    });
    waited.await.unwrap();
}
