//! The ledger's content in memory. A leader rebuilds it at take-over and changes it batch by batch.

use std::collections::{BTreeMap, BTreeSet};

use numbers::{HolderId, Namespace};

use super::{
    txn::{Key, Record, Snapshot, Write},
    values::{Entry, Head, HolderRecord, Journal, LeakedBlock, NamespaceRecord, Part},
};

/// Map keyed by namespace and first number.
pub type ByStart<T> = BTreeMap<(Namespace, u64), T>;

/// The whole ledger in memory, and the keys that the open batch changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// Value of the `head` key.
    pub head: Head,
    /// Values of the `holder/…` keys.
    pub holders: BTreeMap<HolderId, HolderRecord>,
    /// Values of the `leaked/…` keys.
    pub leaked: ByStart<LeakedBlock>,
    /// Values of the `free/…` keys.
    pub free: ByStart<Part>,
    /// Whether the open batch changes `head`, or has to be committed for its answers to be true.
    pub(super) head_changed: bool,
    touched: BTreeSet<Key>,
}

impl State {
    /// Rebuilds the state from a consistent snapshot of the ledger.
    pub fn rebuild(snapshot: Snapshot) -> Self {
        let (mut state, mut journals) = (Self::default(), Vec::new());
        for record in snapshot.records {
            match record {
                Record::Head(head) => state.head = head,
                Record::Holder(id, holder) => {
                    state.holders.insert(id, holder);
                }
                Record::Leaked(namespace, block) => {
                    state.leaked.insert((namespace, block.span.start()), block);
                }
                Record::Free(namespace, part) => {
                    state.free.insert((namespace, part.span.start()), part);
                }
                Record::Journal(_, journal) => journals.push(journal),
            }
        }
        state.replay(journals);
        state
    }

    pub(super) fn touch(&mut self, key: Key) {
        self.touched.insert(key);
    }

    /// Returns how many keys the open batch writes, without `head`.
    pub(super) fn touched(&self) -> usize {
        self.touched.len()
    }

    pub(super) fn namespace_mut(&mut self, namespace: &Namespace) -> Option<&mut NamespaceRecord> {
        self.head.namespaces.get_mut(namespace)
    }

    /// Closes the open batch and returns its writes, `head` first, each key once as etcd requires.
    pub(super) fn take_writes(&mut self) -> Vec<Write> {
        self.head_changed = false;
        let mut writes = vec![Write::Put(Record::Head(self.head.clone()))];
        for key in std::mem::take(&mut self.touched) {
            if let Key::Holder(holder) = &key
                && let Some(record) = self.holders.get_mut(holder)
            {
                record.as_of = self.head.batch;
            }
            writes.push(match self.record(&key) {
                Some(record) => Write::Put(record),
                None => Write::Delete(key),
            });
        }
        writes
    }

    fn record(&self, key: &Key) -> Option<Record> {
        match key {
            Key::Head => Some(Record::Head(self.head.clone())),
            // An issuer of the release before has written them.
            Key::Journal(_) => None,
            Key::Holder(id) => self.holders.get(id).map(|holder| Record::Holder(id.clone(), holder.clone())),
            Key::Leaked(namespace, start) => {
                let block = self.leaked.get(&(namespace.clone(), *start));
                block.map(|block| Record::Leaked(namespace.clone(), block.clone()))
            }
            Key::Free(namespace, start) => {
                let part = self.free.get(&(namespace.clone(), *start));
                part.map(|part| Record::Free(namespace.clone(), part.clone()))
            }
        }
    }

    /// Applies an allocation to its holder.
    pub(super) fn allocate(&mut self, entry: Entry) {
        self.touch(Key::Holder(entry.holder.clone()));
        if let Some(record) = self.holders.get_mut(&entry.holder) {
            record.allocated(entry);
        }
    }

    /// Applies what an issuer of the release before has journalled, which wrote few holders whole.
    /// The entries of a journal are for records that are older than it: batches are numbered across
    /// all leaders, so a holder that was forgotten and came back is not mistaken for its former
    /// self. Those of `head` are for all; the next transaction empties that list, so it writes their
    /// holders.
    fn replay(&mut self, mut journals: Vec<Journal>) {
        journals.sort_by_key(|journal| journal.batch);
        for Journal { batch, entries } in journals {
            for entry in entries {
                let record = self.holders.get_mut(&entry.holder).filter(|record| record.as_of < batch);
                if let Some(record) = record {
                    record.allocated(entry);
                }
            }
        }
        std::mem::take(&mut self.head.recent).into_iter().for_each(|entry| self.allocate(entry));
    }
}
