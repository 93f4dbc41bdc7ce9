//! Pools of connections: each shows how many it may open, and gives out none that is closed.

use futures_util::future::join_all;
use harness::Cluster;
use reqwest::Method;
use serde_json::json;

use crate::{rest_calls::call, visit_faults::Database};

const POOLS: [&str; 5] = ["general", "lists", "keys", "visits", "writers"];
/// Connections that are in no pool.
const SINGLE: f64 = 9.0;

#[tokio::test(flavor = "multi_thread")]
async fn the_maxima_of_all_pools_and_single_connections_are_what_a_process_may_open() {
    let database = Database::start(&[]).await;
    let spool = database.scratch.folder("spool").unwrap();
    let resolver = database.resolver("one", &spool, &database.postgres.url()).await;
    let mut sum = SINGLE;
    for pool in POOLS {
        let label = format!("pool=\"{pool}\"");
        sum += resolver.metric_where("resolver_database_connections_max", &label).await.unwrap();
        let busy = format!("{label},state=\"busy\"");
        assert!(resolver.metric_where("resolver_database_connections", &busy).await.is_some(), "{pool}");
    }
    assert_eq!(sum, 34.0, "the default of database-connections");
}

/// While the resolver has nothing to do, the database restarts. Its connections are closed then.
#[tokio::test(flavor = "multi_thread")]
async fn edits_after_a_restart_of_the_database_meet_no_closed_connection() {
    let mut cluster = Cluster::builder().resolvers(1).on_one_postgres().start().await.unwrap();
    let api = cluster.resolvers[0].api.clone();
    let link = api.create("https://example.com/").await.unwrap();
    let path = format!("short-urls/{}", link.code);
    let edits = async |title: &str| {
        let edit = async |_| call(&api, Method::PATCH, &path, Some(json!({ "title": title }))).await.status;
        join_all((0..20).map(edit)).await
    };
    assert_eq!(edits("before").await, [200; 20]);
    cluster.postgres.kill_a_backend().await.unwrap();
    assert_eq!(edits("after").await, [200; 20]);
}
