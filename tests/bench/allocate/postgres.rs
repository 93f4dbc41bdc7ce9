//! Leaf's approach: one Postgres row per namespace, whose maximum is raised by a segment's length.

use std::sync::Arc;

use anyhow::Context;
use harness::Postgres;
use tokio_postgres::{Client, Statement};

use crate::load;

/// The largest number of connections. More of them slow the row's lock down further, and Postgres
/// allows 100 by default.
const CONNECTIONS_MAX: usize = 64;
const RAISE: &str = "UPDATE segment SET max = max + step WHERE tag = $1 RETURNING max";
const TAG: &str = "bench";

/// A client, which may share its connection. Then its statement is pipelined behind another
/// client's.
pub(super) struct Segment {
    connection: Arc<Connection>,
}

struct Connection {
    client: Client,
    raise: Statement,
}

impl load::Client for Segment {
    async fn operate(&mut self) -> anyhow::Result<()> {
        let Connection { client, raise } = &*self.connection;
        client.query_one(raise, &[&TAG]).await.context("raise a segment")?;
        Ok(())
    }
}

/// Creates the table and its only row.
pub(super) async fn prepare(postgres: &Postgres, step: i64) -> anyhow::Result<()> {
    let client = postgres.client().await?;
    let table = "CREATE TABLE segment (tag text PRIMARY KEY, max bigint NOT NULL, step bigint NOT NULL)";
    client.batch_execute(table).await.context("make the table of segments")?;
    client.execute("INSERT INTO segment VALUES ($1, 0, $2)", &[&TAG, &step]).await.context("make the row")?;
    Ok(())
}

/// Returns that many clients, with a connection each up to [`CONNECTIONS_MAX`].
pub(super) async fn clients(postgres: &Postgres, count: usize) -> anyhow::Result<Vec<Segment>> {
    let mut pool = Vec::new();
    for _ in 0..count.min(CONNECTIONS_MAX) {
        let client = postgres.client().await?;
        let raise = client.prepare(RAISE).await.context("prepare the statement")?;
        pool.push(Arc::new(Connection { client, raise }));
    }
    Ok(pool
        .iter()
        .cycle()
        .take(count)
        .map(|connection| Segment { connection: Arc::clone(connection) })
        .collect())
}
