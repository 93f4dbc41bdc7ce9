//! Guarded puts directly on etcd: transactions with one guard and one put, each client on its own
//! key.

use anyhow::Context;
use etcd_client::{Client, Compare, CompareOp, KvClient, Txn, TxnOp};

use crate::load;

const LEADER: &str = "/bench/leader";
/// A value about as long as the record of an allocation.
const VALUE: &str =
    r#"{"incarnation":1,"seq":1000000,"block":{"namespace":"bench","span":[1000000000,1000]}}"#;

/// A client with a prepared transaction.
pub(super) struct GuardedPut {
    kv: KvClient,
    txn: Txn,
}

impl load::Client for GuardedPut {
    async fn operate(&mut self) -> anyhow::Result<()> {
        let answer = self.kv.txn(self.txn.clone()).await.context("a guarded put")?;
        anyhow::ensure!(answer.succeeded(), "the guard of a put did not hold");
        Ok(())
    }
}

/// Returns that many clients, spread over the connections.
pub(super) async fn clients(
    endpoint: &str,
    count: usize,
    connections: usize,
) -> anyhow::Result<Vec<GuardedPut>> {
    let mut pool = Vec::new();
    for _ in 0..connections.min(count) {
        pool.push(Client::connect([endpoint], None).await.context("connect to etcd")?);
    }
    let first = pool.first().context("at least one connection")?;
    first.kv_client().put(LEADER, "", None).await.context("write the leader's key")?;
    let found = first.kv_client().get(LEADER, None).await.context("read the leader's key")?;
    let epoch = found.kvs().first().context("the leader's key is there")?.create_revision();
    let guarded = |(index, client): (usize, &Client)| GuardedPut {
        kv: client.kv_client(),
        txn: Txn::new()
            .when([Compare::create_revision(LEADER, CompareOp::Equal, epoch)])
            .and_then([TxnOp::put(format!("/bench/client/{index:03}"), VALUE, None)]),
    };
    Ok(pool.iter().cycle().take(count).enumerate().map(guarded).collect())
}

/// Compacts etcd to its current revision, so that one round's history does not slow down the next.
/// By default etcd keeps all history and stops at a quota.
pub(super) async fn compact(endpoint: &str) -> anyhow::Result<()> {
    let client = Client::connect([endpoint], None).await.context("connect to etcd")?;
    let mut kv = client.kv_client();
    let found = kv.get(LEADER, None).await.context("ask for etcd's revision")?;
    let revision = found.header().context("etcd's answer has a header")?.revision();
    let physical = etcd_client::CompactionOptions::new().with_physical();
    kv.compact(revision, Some(physical)).await.context("compact etcd")?;
    Ok(())
}
