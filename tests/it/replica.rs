//! Reads from a standby. Its rows are used only while it can prove how old they are.

use std::time::Duration;

use harness::{Answer, Cluster, Postgres, Resolver, wait};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

/// Creates links with one bulk call, so that no cache has them. Returns their codes.
async fn create(resolver: &Resolver, count: usize) -> Vec<String> {
    let api = &resolver.api;
    let bulk =
        api.http().post(format!("{}/rest/v3/short-urls/bulk", api.url())).header("X-Api-Key", api.key());
    let lines = "{\"longUrl\":\"https://example.com/old\"}\n".repeat(count);
    let answer = Answer::to(bulk.body(lines)).await.unwrap();
    let code =
        |line: &str| serde_json::from_str::<Value>(line).unwrap()["shortCode"].as_str().unwrap().to_owned();
    answer.body.lines().map(code).collect()
}

/// Returns the number of index scans for links on the standby.
async fn asked(standby: &Postgres) -> i64 {
    let scans = "SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'link'";
    standby.client().await.unwrap().query_one(scans, &[]).await.unwrap().get(0)
}

/// Calls a function that pauses or resumes the standby's replay.
pub(crate) async fn replay(standby: &Postgres, function: &str) {
    let sql = format!("SELECT {function}()");
    standby.client().await.unwrap().execute(&sql, &[]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_takes_reads_off_the_primary_and_says_nothing_of_what_is_not_there() {
    let mut cluster =
        Cluster::builder().on_one_postgres().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let standby = cluster.postgres.standby(&cluster.scratch).await.unwrap();
    let reader = cluster.resolver("reader").unwrap();
    let args = ["--read-database", &standby.url(), "--tune", "replica-lag=2s"];
    let reader = reader.args(args).start().await.unwrap();
    let codes = create(&cluster.resolvers[0], 400).await;
    let before = asked(&standby).await;
    let mut codes = codes.iter();
    let is_asked = async || {
        let code = codes.next().expect("there are more links than polls");
        assert_eq!(reader.api.follow(code).await.unwrap().0, 302);
        asked(&standby).await > before
    };
    wait::until(SOON, "the standby is asked once changes have been told for a while", is_asked)
        .await
        .unwrap();
    assert_eq!(reader.api.follow("zzzzzz").await.unwrap().0, 404, "the primary says so");

    replay(&standby, "pg_wal_replay_pause").await;
    let new = cluster.resolvers[0].api.create("https://example.com/new").await.unwrap().code;
    assert_eq!(reader.api.follow(&new).await.unwrap().0, 302, "the primary has it");
    cluster.postgres.stop_fast().await.unwrap();
    let other = codes.next().unwrap();
    assert_eq!(reader.api.follow(other).await.unwrap().0, 503, "nobody can say how old the standby's row is");
}

/// A standby whose replay has stopped for longer than `replica-lag` allows (fault 31).
#[tokio::test(flavor = "multi_thread")]
async fn what_a_standby_that_stands_still_says_is_not_believed() {
    let cluster =
        Cluster::builder().on_one_postgres().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let standby = cluster.postgres.standby(&cluster.scratch).await.unwrap();
    let api = &cluster.resolvers[0].api;
    let codes = create(&cluster.resolvers[0], 20).await;
    let edited = &codes[0];
    let caught_up = async || {
        let links = "SELECT count(*) FROM link";
        standby.client().await.unwrap().query_one(links, &[]).await.unwrap().get::<_, i64>(0) == 20
    };
    wait::until(SOON, "the standby has the links", caught_up).await.unwrap();
    replay(&standby, "pg_wal_replay_pause").await;
    let edit = api.http().patch(format!("{}/rest/v3/short-urls/{edited}", api.url()));
    let edit = edit.header("X-Api-Key", api.key()).json(&json!({ "longUrl": "https://example.com/new" }));
    assert_eq!(Answer::to(edit).await.unwrap().status, 200);

    // The reader starts after the edit, so it receives no notification of it.
    let reader = cluster.resolver("reader").unwrap();
    let args = ["--read-database", &standby.url(), "--tune", "replica-lag=1s"];
    let reader = reader.args(args).start().await.unwrap();
    let has_listened = tokio::time::Instant::now() + Duration::from_secs(4);
    wait::until(SOON, "changes were told for longer than the lag", async || {
        tokio::time::Instant::now() > has_listened
    })
    .await
    .unwrap();
    let new = (302, Some("https://example.com/new".to_owned()));
    assert_eq!(reader.api.follow(edited).await.unwrap(), new);
    assert_eq!(reader.api.follow(edited).await.unwrap(), new, "and from the cache");
    // Each read counts, not only the one a second that asks the standby.
    for code in &codes[1..] {
        assert_eq!(reader.api.follow(code).await.unwrap().0, 302);
    }
    let reads = |result| reader.metric_where("resolver_replica_reads_total", result);
    assert_eq!(reads("result=\"behind\"").await, Some(20.0));
    assert_eq!(reads("result=\"answered\"").await, Some(0.0));
    let age = reader.metric_where("resolver_last_success_age_seconds", "server=\"replica\"");
    assert!(age.await < Some(8.0), "it answers, however late it is");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_cannot_be_reached_or_is_no_standby_takes_no_part() {
    let mut cluster =
        Cluster::builder().on_one_postgres().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let code = cluster.resolvers[0].api.create("https://example.com/").await.unwrap().code;
    for (holder, url) in [
        ("unreachable", "postgres://nobody@127.0.0.1:9/none".to_owned()),
        ("primary", cluster.postgres.url()),
    ] {
        let reader = cluster.resolver(holder).unwrap();
        let reader = reader.args(["--read-database", &url]).start().await.unwrap();
        assert_eq!(reader.api.follow(&code).await.unwrap().0, 302, "{holder}");
    }
    let reader = cluster.resolver("late").unwrap();
    let args = ["--read-database", "postgres://nobody@127.0.0.1:9/none"];
    let reader = reader.args(args).start().await.unwrap();
    // Nobody asks for a link, and the lost replica is seen, apart from the primary.
    let age = |server| reader.metric_where("resolver_last_success_age_seconds", server);
    wait::until(SOON, "the replica's age is seen", async || age("server=\"replica\"").await > Some(6.0))
        .await
        .unwrap();
    assert!(age("server=\"database\"").await < Some(6.0));
    let lost = |server| reader.metric_where("resolver_database_errors_total", server);
    assert!(lost("server=\"replica\",sqlstate=\"lost\"").await > Some(0.0));
    assert_eq!(lost("server=\"database\"").await, Some(0.0));
    cluster.postgres.stop_fast().await.unwrap();
    assert_eq!(reader.api.follow(&code).await.unwrap().0, 503);
}
