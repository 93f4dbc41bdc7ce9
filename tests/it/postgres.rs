//! Postgres dies under load and restarts, stops answering, answers late, refuses writes, or has no
//! connection left; and clients that leave their creates to themselves.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{Acknowledged, Cluster, Flow, Load, checks, clients_that_go_away, wait};
use tokio::task::JoinSet;

/// How long a lock is watched: longer than a caller waits, and the server looks for it.
const LOCKED: Duration = Duration::from_secs(10);
const SOON: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_postgres_loses_no_acknowledged_link_and_hot_redirects_go_on() {
    let mut cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let hot = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    let cold = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    // From here on these links are in the caches of the resolvers that are asked for them below.
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
    wait_for_reads(&cluster, &cold).await;
    let links = [hot, cold, under_load].concat();
    assert_eq!(links.len(), 3_040);
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::registered_blocks_are_disjoint(&cluster.postgres).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// A stalled Postgres (fault 12): nothing is answered and nothing refused, so only deadlines end a
/// call.
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_answers_nothing_is_a_503_within_the_deadline_and_never_a_404() {
    let cluster = Cluster::builder().resolvers(2).behind_proxies().start().await.unwrap();
    let hot = Load::on(&cluster.resolvers).creates(10).run().await.unwrap();
    let cold = Load::on(&cluster.resolvers).creates(10).run().await.unwrap();
    checks::all_resolve(&hot, &cluster.resolvers).await.unwrap();

    let proxy = cluster.postgres_proxy.as_ref().unwrap();
    proxy.set_both(Flow::Stall);
    let mut creators: JoinSet<_> = (0..64).map(|_| create_in_outage(&cluster)).collect();
    let mut followers: JoinSet<()> =
        cold.iter().map(|link| follow_in_outage(&cluster, link.clone())).collect();
    checks::all_resolve(&hot, &cluster.resolvers).await.unwrap();
    while let Some(follower) = followers.join_next().await {
        follower.unwrap();
    }
    while let Some(creator) = creators.join_next().await {
        creator.unwrap();
    }
    proxy.set_both(Flow::Pass);

    let after = Load::on(&cluster.resolvers).creates(200).retries_unavailable().run().await.unwrap();
    wait_for_reads(&cluster, &cold).await;
    let links = [hot, cold, after].concat();
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// A lock on the table of links, as an operator's `VACUUM FULL` holds. Callers give up; the server
/// has to give up with them, or their statements would use up its connections.
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_lock_no_statement_outlives_its_caller() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    let mut holder = cluster.postgres.client().await.unwrap();
    let lock = holder.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE link IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut callers = JoinSet::new();
    for _ in 0..8 {
        let api = cluster.resolvers[0].api.clone();
        let list = api.http().get(format!("{}/rest/v3/short-urls", api.url()));
        callers.spawn(async move { drop(list.header("X-Api-Key", api.key()).send().await.unwrap()) });
    }
    callers.extend(links.iter().map(|link| follow_in_outage(&cluster, link.clone())));
    callers.join_all().await;
    let waiting = "SELECT string_agg(query, '; ') FROM pg_stat_activity WHERE application_name = 'shortmint-resolver' \
                   AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '8 s'";
    let observer = cluster.postgres.client().await.unwrap();
    let since = tokio::time::Instant::now();
    while since.elapsed() < LOCKED {
        let waiting: Option<String> = observer.query_one(waiting, &[]).await.unwrap().get(0);
        assert_eq!(waiting, None, "these statements wait longer than any caller");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    lock.rollback().await.unwrap();
    works_again(&cluster, links).await;
}

/// A primary that has become a standby (fault 9).
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_becomes_read_only_refuses_creates_and_redirects_on() {
    let cluster = Cluster::builder().resolvers(2).start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    cluster.postgres.set_read_only(true).await.unwrap();
    let refuses = async || {
        cluster.resolvers[0].api.try_create("https://example.com/outage").await.is_ok_and(|a| a.status == 503)
    };
    wait::until(SOON, "the setting has arrived", refuses).await.unwrap();
    create_in_outage(&cluster).await;
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    cluster.postgres.set_read_only(false).await.unwrap();
    works_again(&cluster, links).await;
}

/// Other programs use up the connections of the server (fault 10).
#[tokio::test(flavor = "multi_thread")]
async fn without_a_connection_calls_wait_a_bounded_time_and_then_are_told_to_come_back() {
    let cluster = Cluster::builder().resolvers(2).postgres_setting("max_connections", "100");
    let cluster = cluster.start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    let taking = tokio::spawn(cluster.postgres.use_up_connections());
    let refuses = async || {
        cluster.resolvers[0].api.try_create("https://example.com/outage").await.is_ok_and(|a| a.status == 503)
    };
    wait::until(SOON, "there is no connection", refuses).await.unwrap();
    // More than any pool has, so that most of them wait. A connection that is won in the race is
    // used.
    let mut creators: JoinSet<_> = (0..200).map(|_| create_in_trouble(&cluster)).collect();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    while let Some(creator) = creators.join_next().await {
        creator.unwrap();
    }
    assert!(!taking.is_finished(), "the connections were taken all the time");
    taking.abort();
    works_again(&cluster, links).await;
}

/// Every answer of the database comes late (fault 13): deadlines hold, and what is not done within
/// them is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_answers_late_delays_calls_and_refuses_some() {
    let cluster = Cluster::builder().resolvers(2).behind_proxies().start().await.unwrap();
    let links = Load::on(&cluster.resolvers).creates(20).run().await.unwrap();
    let proxy = cluster.postgres_proxy.as_ref().unwrap();
    proxy.set_both(Flow::Delay(Duration::from_millis(400)));
    let mut creators: JoinSet<_> = (0..200).map(|_| create_in_trouble(&cluster)).collect();
    while let Some(creator) = creators.join_next().await {
        creator.unwrap();
    }
    let mut followers: JoinSet<()> =
        links.iter().map(|link| follow_in_outage(&cluster, link.clone())).collect();
    while let Some(follower) = followers.join_next().await {
        follower.unwrap();
    }
    proxy.set_both(Flow::Pass);
    works_again(&cluster, links).await;
}

/// A database far away: creates with one key share the lookups of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_postgres_that_answers_late_is_not_asked_for_a_key_by_each_create() {
    let cluster = Cluster::builder().behind_proxies().start().await.unwrap();
    let resolver = &cluster.resolvers[0];
    let asked = async || {
        let waits = "resolver_database_wait_seconds_count";
        resolver.metric_where(waits, "pool=\"keys\"").await.unwrap_or_default()
    };
    cluster.postgres_proxy.as_ref().unwrap().set_both(Flow::Delay(Duration::from_millis(75)));
    let before = asked().await;
    let creates = (0..100).map(|_| resolver.api.try_create("https://example.com/far"));
    for answer in join_all(creates).await {
        answer.unwrap();
    }
    let asked = asked().await - before;
    assert!((1.0..50.0).contains(&asked), "{asked} lookups for 100 creates");
}

/// Clients close their connections in the middle of a create (fault 26): what they sent whole is
/// stored or not, and nothing of theirs is held.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_go_away_leave_nothing_behind_and_keep_no_other_waiting() {
    // No block has more gaps than a return may list.
    let cluster = Cluster::builder().issuer_args(["--block-min", "64", "--block-max", "64"]);
    let mut cluster = cluster.start().await.unwrap();
    let leaving = tokio::spawn(clients_that_go_away(&cluster.resolvers[0]));
    let links = Load::on(&cluster.resolvers).creates(2_000).run().await.unwrap();
    assert!(!leaving.is_finished(), "clients went away all the time");
    leaving.abort();
    works_again(&cluster, links).await;
    cluster.resolvers[0].stop(SOON).await.unwrap();
    checks::used_numbers_have_links(&cluster.status().await.unwrap(), &cluster.postgres).await.unwrap();
}

/// Asserts that creates work, and that nothing was lost or given twice.
async fn works_again(cluster: &Cluster, links: Vec<Acknowledged>) {
    let after = Load::on(&cluster.resolvers).creates(200).retries_unavailable().run().await.unwrap();
    let links = [links, after].concat();
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &cluster.resolvers).await.unwrap();
    checks::account_balances(&cluster.status().await.unwrap()).unwrap();
}

/// Creates a link and asserts a 503 with Retry-After. The client's own time limit is longer than
/// every deadline of the resolver, so a response must come.
fn create_in_outage(cluster: &Cluster) -> impl Future<Output = ()> + Send + 'static {
    let api = cluster.resolvers[0].api.clone();
    async move {
        let answer = api.try_create("https://example.com/outage").await.unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
}

/// Waits until the resolvers read links that are in no cache. One whose last read failed asks the
/// primary again a second later.
async fn wait_for_reads(cluster: &Cluster, cold: &[Acknowledged]) {
    let asks_again = async || checks::all_resolve(cold, &cluster.resolvers).await.is_ok();
    wait::until(SOON, "each resolver reads from the primary", asks_again).await.unwrap();
}

/// Creates a link, and asserts that the answer is the link or a 503 with Retry-After. The client's
/// own time limit is longer than every deadline of the resolver, so a response must come.
fn create_in_trouble(cluster: &Cluster) -> impl Future<Output = ()> + Send + 'static {
    let api = cluster.resolvers[0].api.clone();
    async move {
        let answer = api.try_create("https://example.com/trouble").await.unwrap();
        let is_refused = answer.status == 503 && answer.header("retry-after").is_some();
        assert!(answer.status == 200 || is_refused, "{answer:?}");
    }
}

/// Follows a link on a resolver that does not have it in its cache. I8: an error is never reported
/// as an absence.
fn follow_in_outage(cluster: &Cluster, link: Acknowledged) -> impl Future<Output = ()> + Send + 'static {
    let api = cluster.resolvers[(link.created_on + 1) % 2].api.clone();
    async move {
        let (status, location) = api.follow(&link.code).await.unwrap();
        let is_right = status == 503 || (status == 302 && location.as_ref() == Some(&link.long_url));
        assert!(is_right, "{link:?} answered {status} {location:?} while Postgres was away");
    }
}
