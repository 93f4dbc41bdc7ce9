//! What Citus says of its nodes, for a Postgres that stands in for them: Citus is in no registry.

use std::net::SocketAddr;

use anyhow::Context;
use tokio_postgres::Client;

/// Divides the links of a database into so many buckets, which two nodes have in turn.
///
/// # Errors
/// Returns an error if the database has no links, or has nodes already.
pub async fn pretend(sql: &Client, nodes: [SocketAddr; 2], buckets: i64) -> anyhow::Result<()> {
    let [even, odd] = nodes.map(|addr| format!("'{}', {}", addr.ip(), addr.port()));
    let catalogs = format!(
        "CREATE TABLE pg_dist_node (groupid int, nodename text, nodeport int, noderole text, isactive boolean);
         INSERT INTO pg_dist_node VALUES (0, {even}, 'primary', true), (1, {odd}, 'primary', true);
         CREATE TABLE pg_dist_shard (logicalrelid regclass, shardid bigint, shardminvalue text);
         CREATE TABLE pg_dist_placement (shardid bigint, groupid int);
         INSERT INTO pg_dist_shard
             SELECT 'link', bucket, -2147483648 + bucket * (4294967296 / {buckets}) FROM generate_series(0, {buckets} - 1) bucket;
         INSERT INTO pg_dist_placement SELECT shardid, shardid % 2 FROM pg_dist_shard"
    );
    sql.batch_execute(&catalogs).await.context("pretend that the database has nodes")
}
