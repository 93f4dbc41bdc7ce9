//! The ledger in etcd, below `/shortmint/<cluster>/`.

use std::time::Duration;

use async_trait::async_trait;
use etcd_client::{Client, Compare, CompareOp, GetOptions, KeyValue, TxnOp, TxnOpResponse};
use numbers::Revision;
use tokio::time::timeout;

use super::{HeadRead, Ledger, LedgerError, Record, Snapshot, Txn, TxnOutcome, Write, record::HEAD};

/// Keys per page when the ledger is read. A page stays far below gRPC's message limit.
const PAGE: i64 = 500;

/// The keys of one cluster in etcd.
#[derive(Clone)]
pub struct EtcdLedger {
    client: Client,
    prefix: String,
    /// The key whose `create_revision` is the epoch.
    pub(crate) leader_key: String,
    /// Each call to etcd ends within it.
    pub(crate) deadline: Duration,
}

impl EtcdLedger {
    /// Creates the ledger of `cluster`. Each call to etcd ends by `deadline`.
    pub fn new(client: Client, cluster: &str, deadline: Duration) -> Self {
        let prefix = format!("/shortmint/{cluster}/");
        let leader_key = leader_key(cluster);
        Self { client, prefix, leader_key, deadline }
    }

    fn key(&self, below: &str) -> String {
        format!("{}{below}", self.prefix)
    }

    /// Reads one page of keys from `from` on, at revision `at`; 0 means the latest revision.
    async fn page(&self, from: Vec<u8>, at: i64) -> Result<etcd_client::GetResponse, LedgerError> {
        let mut end = self.prefix.clone().into_bytes();
        if let Some(last) = end.last_mut() {
            // The prefix ends in '/', and '0' is the byte after it.
            *last += 1;
        }
        let options = GetOptions::new().with_range(end).with_limit(PAGE).with_revision(at);
        let answer = timeout(self.deadline, self.client.kv_client().get(from, Some(options))).await;
        Ok(answer.map_err(|_| LedgerError::TimedOut)??)
    }

    fn transaction(&self, txn: &Txn) -> Option<etcd_client::Txn> {
        let epoch = i64::try_from(txn.epoch.0).ok()?;
        let head = i64::try_from(txn.head.0).ok()?;
        let write = |write: &Write| match write {
            Write::Put(record) => TxnOp::put(self.key(&record.key().encode()), record.encode(), None),
            Write::Delete(key) => TxnOp::delete(self.key(&key.encode()), None),
        };
        Some(
            etcd_client::Txn::new()
                .when([
                    Compare::create_revision(self.leader_key.as_str(), CompareOp::Equal, epoch),
                    Compare::mod_revision(self.key(HEAD), CompareOp::Equal, head),
                ])
                .and_then(txn.writes.iter().map(write).collect::<Vec<_>>())
                .or_else([TxnOp::get(self.key(HEAD), None)]),
        )
    }
}

/// Returns the key whose `create_revision` is the epoch.
pub fn leader_key(cluster: &str) -> String {
    format!("/shortmint/{cluster}/leader")
}

#[async_trait]
impl Ledger for EtcdLedger {
    /// Reads all pages at the revision of the first, so that the snapshot is of one instant.
    async fn load(&self) -> Result<Snapshot, LedgerError> {
        let mut snapshot = Snapshot::default();
        let (mut from, mut at) = (self.prefix.clone().into_bytes(), 0);
        loop {
            let page = self.page(from, at).await?;
            if at == 0 {
                at = page.header().map_or(0, etcd_client::ResponseHeader::revision);
            }
            for kv in page.kvs() {
                let key = String::from_utf8_lossy(kv.key());
                if key == self.leader_key {
                    continue;
                }
                let below = key.strip_prefix(&self.prefix).unwrap_or(&key);
                if below == HEAD {
                    snapshot.head = revision_of(kv.mod_revision());
                }
                snapshot.records.push(Record::decode(below, kv.value())?);
            }
            match page.kvs().last() {
                Some(last) if page.more() => {
                    from = last.key().to_vec();
                    from.push(0);
                }
                _ => return Ok(snapshot),
            }
        }
    }

    async fn commit(&self, txn: &Txn) -> TxnOutcome {
        let Some(transaction) = self.transaction(txn) else { return TxnOutcome::Unknown };
        match timeout(self.deadline, self.client.kv_client().txn(transaction)).await {
            Ok(Ok(answer)) => outcome(&answer),
            Ok(Err(error)) => {
                // Some of these errors mean that it surely did not apply. The distinction gains
                // nothing: the identical transaction is sent again either way, and the guard lets
                // one copy apply.
                tracing::warn!(batch = %txn.batch, %error, "commit to etcd");
                TxnOutcome::Unknown
            }
            Err(_) => {
                tracing::warn!(batch = %txn.batch, deadline = ?self.deadline, "commit to etcd: no answer in time");
                TxnOutcome::Unknown
            }
        }
    }
}

fn outcome(answer: &etcd_client::TxnResponse) -> TxnOutcome {
    if answer.succeeded() {
        let revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
        return TxnOutcome::Applied(revision_of(revision));
    }
    let head = answer.op_responses().into_iter().find_map(|response| match response {
        TxnOpResponse::Get(get) => get.kvs().first().and_then(read_head),
        _ => None,
    });
    TxnOutcome::Refused(head)
}

fn read_head(kv: &KeyValue) -> Option<HeadRead> {
    let head = serde_json::from_slice(kv.value()).ok()?;
    Some(HeadRead { head, revision: revision_of(kv.mod_revision()) })
}

/// Converts a revision of etcd, which counts from 1 and never decreases.
fn revision_of(revision: i64) -> Revision {
    Revision(u64::try_from(revision).unwrap_or(0))
}
