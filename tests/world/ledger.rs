//! The issuer's ledger in memory: compare-and-set as in etcd, with answers that get lost.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard},
};

use async_trait::async_trait;
use issuer::ledger::{HeadRead, Key, Ledger, LedgerError, Record, Snapshot, Txn, TxnOutcome, Write};
use numbers::{Epoch, Mark, Revision};
use tokio::time::sleep;

use super::rng::Rng;

#[derive(Clone, Default)]
struct Content {
    head: Revision,
    records: BTreeMap<Key, Record>,
}

struct State {
    epoch: Epoch,
    revision: Revision,
    content: Content,
    copy: Option<Content>,
    rng: Rng,
    /// Transactions with unknown outcome, per thousand.
    doubts: u64,
}

/// A ledger, with an older copy of it.
pub(super) struct MemoryLedger(Mutex<State>);

impl MemoryLedger {
    pub(super) fn new(rng: Rng, doubts: u64) -> Self {
        let content = Content::default();
        Self(Mutex::new(State { epoch: Epoch(0), revision: Revision(0), content, copy: None, rng, doubts }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no code panics while it holds this lock")
    }

    /// Elects a leader, and returns its epoch.
    pub(super) fn elect(&self) -> Epoch {
        let mut state = self.state();
        state.epoch = state.epoch.next();
        state.epoch
    }

    pub(super) fn calm(&self) {
        self.state().doubts = 0;
    }

    pub(super) fn keep_copy(&self) {
        let mut state = self.state();
        state.copy = Some(state.content.clone());
    }

    /// Replaces the ledger by its copy, and returns whether there was one.
    pub(super) fn put_back(&self) -> bool {
        let mut state = self.state();
        let Some(copy) = state.copy.take() else { return false };
        state.content = copy;
        // Revisions continue, so no earlier transaction applies.
        state.revision = state.revision.next();
        state.content.head = state.revision;
        true
    }

    /// Returns the highest mark of the database that was reported to the ledger.
    pub(super) fn mark(&self) -> Mark {
        match self.state().content.records.get(&Key::Head) {
            Some(Record::Head(head)) => head.mark,
            _ => Mark(0),
        }
    }
}

impl State {
    fn apply(&mut self, txn: &Txn) -> TxnOutcome {
        if self.epoch != txn.epoch || self.content.head != txn.head {
            let read = match self.content.records.get(&Key::Head) {
                Some(Record::Head(head)) => {
                    Some(HeadRead { head: head.clone(), revision: self.content.head })
                }
                _ => None,
            };
            return TxnOutcome::Refused(read);
        }
        self.revision = self.revision.next();
        self.content.head = self.revision;
        for write in txn.writes.iter() {
            match write {
                Write::Put(record) => self.content.records.insert(record.key(), record.clone()),
                Write::Delete(key) => self.content.records.remove(key),
            };
        }
        TxnOutcome::Applied(self.revision)
    }
}

#[async_trait]
impl Ledger for MemoryLedger {
    async fn load(&self) -> Result<Snapshot, LedgerError> {
        let state = self.state();
        Ok(Snapshot { head: state.content.head, records: state.content.records.values().cloned().collect() })
    }

    async fn commit(&self, txn: &Txn) -> TxnOutcome {
        let (before, after, fate) = {
            let mut state = self.state();
            let doubts = state.doubts;
            let in_doubt = state.rng.permille(doubts);
            (state.rng.millis(1, 4), state.rng.millis(1, 4), in_doubt.then(|| state.rng.permille(500)))
        };
        sleep(before).await;
        let outcome = match fate {
            None => self.state().apply(txn),
            Some(applies) => {
                if applies {
                    self.state().apply(txn);
                }
                TxnOutcome::Unknown
            }
        };
        sleep(after).await;
        outcome
    }
}
