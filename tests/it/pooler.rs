//! A pooler between resolvers and Postgres. Prepared statements, notifications and the lock of
//! migrations belong to a session, so a pooler that gives a session to another client after each
//! transaction is refused at the start, and not noticed by an edit that does not arrive.

use std::time::Duration;

use harness::{Answer, Cluster, Load, PgBouncer, PoolMode, checks, wait};
use serde_json::json;

const SOON: Duration = Duration::from_secs(30);
const CHANGED_WITHIN: Duration = Duration::from_secs(1);
/// The exit code of a wrong configuration.
const CONFIG: i32 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_in_transaction_mode_nothing_starts_and_the_reason_is_told() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    let pooler = PgBouncer::start(&cluster.scratch, &cluster.postgres, PoolMode::Transaction).await.unwrap();
    let serve = cluster.resolver("resolver-0").unwrap().database(&pooler.url());
    let served = serve.run_to_its_end(SOON).await.unwrap();
    let migrate = ["migrate", "--database", &pooler.url()];
    let migrated = cluster.run_resolver(&migrate, SOON).await.unwrap();
    for ended in [served, migrated] {
        assert_eq!(ended.status.code(), Some(CONFIG), "{}", ended.stderr);
        let address = pooler.addr().to_string();
        for part in ["--database", &address, "expected a connection to the server itself"] {
            assert!(ended.stderr.contains(part), "{:?} lacks {part}", ended.stderr);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_in_session_mode_links_are_created_followed_and_edited() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(0).start().await.unwrap();
    let pooler = PgBouncer::start(&cluster.scratch, &cluster.postgres, PoolMode::Session).await.unwrap();
    let migrate = ["migrate", "--database", &pooler.url()];
    cluster.run_resolver(&migrate, SOON).await.unwrap().success().unwrap();
    let mut resolvers = Vec::new();
    for holder in ["resolver-0", "resolver-1"] {
        let resolver = cluster.resolver(holder).unwrap().database(&pooler.url());
        // With the pooler's 40 connections both have what they need.
        resolvers.push(resolver.args(["--limit", "database-connections=18"]).start().await.unwrap());
    }
    let links = Load::on(&resolvers).creates(2_000).run().await.unwrap();
    checks::all_distinct(&links).unwrap();
    checks::all_resolve(&links, &resolvers).await.unwrap();

    let (code, api) = (&links[0].code, &resolvers[0].api);
    let edit = json!({ "longUrl": "https://example.com/edited" });
    let request = api.http().patch(format!("{}/rest/v3/short-urls/{code}", api.url()));
    Answer::to(request.header("X-Api-Key", api.key()).json(&edit)).await.unwrap().success().unwrap();
    wait::until(CHANGED_WITHIN, "the other resolver knows of the edit", async || {
        let (_, location) = resolvers[1].api.follow(code).await.unwrap();
        location.as_deref() == Some("https://example.com/edited")
    })
    .await
    .unwrap();
}
