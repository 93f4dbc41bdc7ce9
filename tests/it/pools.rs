//! Pools of connections: each shows how many it may open.

use crate::visit_faults::Database;

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
