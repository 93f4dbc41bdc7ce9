//! The ledger's content in memory. A leader rebuilds it at take-over and changes it batch by batch.

use std::collections::{BTreeMap, BTreeSet};

use numbers::{Batch, HolderId, Namespace};

use super::{
    journal::Unsaved,
    limits::Limits,
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
    /// Allocations of the open batch.
    pub(super) entries: Vec<Entry>,
    pub(super) unsaved: Unsaved,
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

    /// Adds a key to the writes of the open batch.
    pub(super) fn touch(&mut self, key: Key) {
        self.touched.insert(key);
    }

    /// Returns how many keys the open batch writes, without `head`.
    pub(super) fn touched(&self) -> usize {
        self.touched.len() + usize::from(!self.entries.is_empty())
    }

    pub(super) fn namespace_mut(&mut self, namespace: &Namespace) -> Option<&mut NamespaceRecord> {
        self.head.namespaces.get_mut(namespace)
    }

    /// Closes the open batch and returns its writes, `head` first, each key once as etcd requires.
    pub(super) fn take_writes(&mut self, limits: &Limits) -> Vec<Write> {
        self.head_changed = false;
        let (touched, batch) = (std::mem::take(&mut self.touched), self.head.batch);
        let journal = self.close_journal(limits, &touched);
        let mut writes = vec![Write::Put(Record::Head(self.head.clone()))];
        writes.extend(journal);
        for key in &touched {
            if let Key::Holder(holder) = key
                && let Some(record) = self.holders.get_mut(holder)
            {
                self.unsaved.saved(holder, record, batch);
            }
        }
        writes.extend(touched.into_iter().map(|key| match self.record(&key) {
            Some(record) => Write::Put(record),
            None => Write::Delete(key),
        }));
        writes
    }

    fn record(&self, key: &Key) -> Option<Record> {
        match key {
            Key::Head => Some(Record::Head(self.head.clone())),
            // `close_journal` builds journals from entries.
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

    /// Applies an allocation to its holder, to be stored as an entry or with the whole record.
    pub(super) fn allocate(&mut self, limits: &Limits, entry: Entry) {
        let journalled = self.unsaved.leaves_room(limits, self.head.batch.next());
        let Some(record) = self.holders.get_mut(&entry.holder) else { return };
        record.allocated(entry.clone());
        if journalled {
            self.entries.push(entry);
        } else {
            self.touch(Key::Holder(entry.holder));
        }
    }

    /// Adds the open batch's entries to those that `head` lists, except those of holders that it
    /// writes whole. If there are too many for `head`, returns a journal of all of them.
    pub(super) fn close_journal(&mut self, limits: &Limits, whole: &BTreeSet<Key>) -> Option<Write> {
        let batch = self.head.batch;
        let recent = &mut self.head.recent;
        let anything_new = !self.entries.is_empty();
        recent.append(&mut self.entries);
        recent.retain(|entry| !whole.contains(&Key::Holder(entry.holder.clone())));
        // `allocate` has checked that the slot may be overwritten.
        if recent.len() <= limits.journal_recent || !anything_new {
            return None;
        }
        let entries = std::mem::take(recent);
        for entry in &entries {
            if let Some(record) = self.holders.get_mut(&entry.holder) {
                self.unsaved.note(&entry.holder, record, batch);
            }
        }
        Some(Write::Put(Record::Journal(batch.0 % limits.journal_slots, Journal { batch, entries })))
    }

    /// Schedules a few holders with old entries to be written whole.
    pub(super) fn save_some(&mut self, limits: &Limits, room: usize) {
        for holder in self.unsaved.due(limits, self.head.batch, room) {
            self.touch(Key::Holder(holder));
        }
    }

    /// Applies the entries of journals, and then those of `head`, to the records that lack them. An
    /// earlier leader may have had another number of slots, so the slot of an entry is not used:
    /// every holder counts as the oldest, and no journal is overwritten before it is saved.
    pub(super) fn replay(&mut self, mut journals: Vec<Journal>) {
        journals.sort_by_key(|journal| journal.batch);
        for Journal { batch, entries } in journals {
            for entry in entries {
                let record = self.holders.get_mut(&entry.holder).filter(|record| record.as_of < batch);
                let Some(record) = record else { continue };
                self.unsaved.note(&entry.holder, record, Batch(0));
                record.allocated(entry);
            }
        }
        for entry in &self.head.recent {
            if let Some(record) = self.holders.get_mut(&entry.holder) {
                record.allocated(entry.clone());
            }
        }
    }
}
