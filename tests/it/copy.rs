//! A read-only copy of the database that lags behind: it answers for links that it has and never
//! reports an absence.

use std::time::Duration;

use harness::{Cluster, Postgres, wait};

const SOON: Duration = Duration::from_secs(30);

/// Starts a read-only database, as a standby is one, that has only one of the primary's links.
async fn start_copy(cluster: &Cluster, link: i64) -> Postgres {
    let copy = Postgres::builder().scratch(&cluster.scratch).start().await.unwrap();
    let migrated = cluster.run_resolver(&["migrate", "--database", &copy.url()], SOON).await.unwrap();
    assert!(migrated.status.success(), "{migrated:?}");
    let row = "SELECT id, long_url, crawlable, forward_query, created_by FROM link WHERE id = $1";
    let row = cluster.postgres.client().await.unwrap().query_one(row, &[&link]).await.unwrap();
    let (url, crawlable, forward): (String, bool, bool) = (row.get(1), row.get(2), row.get(3));
    let key: i64 = row.get(4);
    let client = copy.client().await.unwrap();
    let insert =
        "INSERT INTO link (id, long_url, crawlable, forward_query, created_by) VALUES ($1, $2, $3, $4, $5)";
    client.execute(insert, &[&link, &url, &crawlable, &forward, &key]).await.unwrap();
    client.batch_execute("ALTER SYSTEM SET default_transaction_read_only = on").await.unwrap();
    client.execute("SELECT pg_reload_conf()", &[]).await.unwrap();
    let shown = wait::until(SOON, "the copy takes no writes", async || {
        let asked = copy.client().await.unwrap().query_one("SHOW transaction_read_only", &[]).await;
        asked.is_ok_and(|row| row.get::<_, String>(0) == "on")
    });
    shown.await.unwrap();
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_primary_is_away_a_copy_redirects_what_it_has_and_denies_nothing() {
    let mut cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).alone().start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let [old, new] = [
        api.create("https://example.com/old").await.unwrap().code,
        api.create("https://example.com/new").await.unwrap().code,
    ];
    let first = "SELECT id FROM link WHERE long_url = 'https://example.com/old'";
    let first: i64 = cluster.postgres.client().await.unwrap().query_one(first, &[]).await.unwrap().get(0);
    let copy = start_copy(&cluster, first).await;

    // The copy is first in the list of hosts: it accepts connections sooner than the primary does.
    let both = cluster.postgres.url().replace('@', &format!("@{},", copy.addr()));
    let reader = cluster.resolver("reader").unwrap().database(&both).start().await.unwrap();
    cluster.postgres.stop_fast().await.unwrap();
    let follow = async |code: &str| reader.api.follow(code).await.unwrap();
    assert_eq!(follow(&old).await, (302, Some("https://example.com/old".to_owned())));
    assert_eq!(follow(&new).await.0, 503, "it was acknowledged, and the copy does not have it yet");
    let refused = reader.api.try_create("https://example.com/never").await.unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");

    cluster.postgres.restart().await.unwrap();
    let back = wait::until(SOON, "the primary is asked again", async || follow(&new).await.0 == 302);
    back.await.unwrap();
    assert_eq!(reader.api.follow("zzzzzz").await.unwrap().0, 404);
}
