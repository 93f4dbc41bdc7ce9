//! The fake etcd: the guard's rule, as every ledger keeps it, with a switch for each of its two compares.

use std::collections::BTreeMap;

use issuer::{
    core::Head,
    ledger::{HeadRead, Key, Record, Snapshot, Txn, TxnOutcome, Write},
    tokens::{Epoch, Revision},
};

use super::shared::Shared;

/// Which compares the store makes. Switching one off must be noticed, or it guards nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guards {
    pub(super) epoch: bool,
    pub(super) head: bool,
}

pub(super) type Records = BTreeMap<Key, Record>;

/// What etcd holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Etcd {
    /// The epoch of the leader key; none when there is no such key.
    pub(super) leader: Option<Epoch>,
    /// How many leader keys there have been.
    pub(super) epochs: u64,
    pub(super) head: Revision,
    pub(super) records: Shared<Records>,
    /// What it held before the last transaction; an out-of-date reader still sees that.
    before: Option<(Revision, Shared<Records>)>,
}

impl Etcd {
    pub(super) fn empty() -> Self {
        let records = Shared::new(Records::new());
        Self { leader: None, epochs: 0, head: Revision(0), records, before: None }
    }

    pub(super) fn apply(&mut self, txn: &Txn, guards: Guards) -> TxnOutcome {
        let deposed = guards.epoch && self.leader != Some(txn.epoch);
        let outrun = guards.head && self.head != txn.head;
        if deposed || outrun {
            let read = self.head_record().map(|head| HeadRead { head: head.clone(), revision: self.head });
            return TxnOutcome::Refused(read);
        }
        let mut records = self.records.to_value();
        for write in &txn.writes {
            match write {
                Write::Put(record) => records.insert(record.key(), record.clone()),
                Write::Delete(key) => records.remove(key),
            };
        }
        let before = std::mem::replace(&mut self.records, Shared::new(records));
        self.before = Some((self.head, before));
        self.head = self.head.next();
        TxnOutcome::Applied(self.head)
    }

    /// Creates the leader key; its epoch.
    pub(super) fn elect(&mut self) -> Epoch {
        self.epochs += 1;
        self.leader = Some(Epoch(self.epochs));
        Epoch(self.epochs)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.head, records: self.records.values().cloned().collect() }
    }

    /// What a reader gets that is one transaction behind; none when there is nothing older.
    pub(super) fn stale_snapshot(&self) -> Option<Snapshot> {
        let (head, records) = self.before.as_ref()?;
        Some(Snapshot { head: *head, records: records.values().cloned().collect() })
    }

    /// For a run without out-of-date readers: states that differ only in the past are one.
    pub(super) fn forget_the_past(&mut self) {
        self.before = None;
    }

    pub(super) fn head_record(&self) -> Option<&Head> {
        head_of(&self.records)
    }
}

pub(super) fn head_of(records: &Records) -> Option<&Head> {
    match records.get(&Key::Head) {
        Some(Record::Head(head)) => Some(head),
        _ => None,
    }
}
