//! The database's clock decides when links begin and end, whatever the clock of a resolver's
//! machine shows (fault 16).

use harness::{Cluster, Resolver};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// Starts a resolver whose clock is `hours` behind the database's: a function in a schema of its
/// own shadows `clock_timestamp()` and adds the hours.
async fn behind(cluster: &Cluster, hours: i32) -> Resolver {
    let schema = format!("clock{}", hours.unsigned_abs());
    let sql = format!(
        "CREATE SCHEMA {schema};
         CREATE FUNCTION {schema}.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
         AS $$ SELECT pg_catalog.clock_timestamp() + {hours} * interval '1 hour' $$"
    );
    cluster.postgres.client().await.unwrap().batch_execute(&sql).await.unwrap();
    let url = format!("{}?options=-csearch_path%3D{schema}%2Cpublic%2Cpg_catalog", cluster.database_url());
    cluster.resolver(&schema).unwrap().database(&url).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_begin_and_end_by_the_databases_clock() {
    let cluster = Cluster::builder().etcd(1).issuers(1).resolvers(1).start().await.unwrap();
    let api = &cluster.resolvers[0].api;
    let in_minutes = |minutes: i64| (Timestamp::now() + SignedDuration::from_mins(minutes)).to_string();
    let create = async |field: &str, minutes: i64| {
        let wish = json!({ "longUrl": "https://example.com/", field: in_minutes(minutes) });
        api.create_with(&wish).await.unwrap().code
    };
    let (begun, not_begun) = (create("validSince", 30).await, create("validSince", 90).await);
    let (ended, not_ended) = (create("validUntil", 30).await, create("validUntil", 90).await);
    let hour_behind = behind(&cluster, 1).await;
    for (code, status) in [(begun, 302), (not_begun, 404), (ended, 404), (not_ended, 302)] {
        assert_eq!(hour_behind.api.follow(&code).await.unwrap().0, status, "{code}");
    }
}
