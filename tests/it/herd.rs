//! Many concurrent clients on a code that no cache holds.

use std::time::Duration;

use harness::{Cluster, Connection, Direction, Flow};
use tokio::task::JoinSet;

const CONNECTIONS: usize = 200;
const REQUESTS_EACH: usize = 5;

/// The delay of a database read, so long that all connections have sent a request before the first
/// read is answered.
const READ_TAKES: Duration = Duration::from_millis(300);

const READS: &str = "resolver_link_reads_total";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_requests_for_one_cold_code_cost_one_database_read() {
    let cluster = Cluster::builder().behind_proxies().start().await.unwrap();
    let long_url = "https://example.com/popular";
    let code = cluster.resolvers[0].api.create(long_url).await.unwrap().code;
    let resolver = &cluster.resolvers[0];
    let before = resolver.metric(READS).await.expect("the page shows a zero rather than nothing");

    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(resolver.addr()).await.unwrap());
    }
    let proxy = cluster.postgres_proxy.as_ref().unwrap();
    proxy.set(Direction::ToClient, Flow::Delay(READ_TAKES));
    let mut clients = JoinSet::new();
    for connection in connections {
        clients.spawn(follow_repeatedly(connection, format!("/{code}")));
    }
    for locations in clients.join_all().await {
        assert_eq!(locations, vec![Some(long_url.to_owned()); REQUESTS_EACH]);
    }
    let reads = resolver.metric(READS).await.unwrap() - before;
    assert!((reads - 1.0).abs() < f64::EPSILON, "{reads} reads");
}

async fn follow_repeatedly(mut connection: Connection, path: String) -> Vec<Option<String>> {
    let mut locations = Vec::new();
    for _ in 0..REQUESTS_EACH {
        let answer = connection.get(&path).await.unwrap();
        assert_eq!(answer.status, 302, "{answer:?}");
        locations.push(answer.header("location").map(str::to_owned));
    }
    locations
}
