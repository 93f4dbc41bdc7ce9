//! Allocations as short entries: a transaction of a hundred allocations writes one key, and not a hundred holders' records.
//!
//! The ledger keeps a holder in two places: its record, whole, as of the batch that wrote it; and in the journals of later batches
//! what was allocated to it since. Everything else that changes a holder writes its record whole.
//!
//! 1. `head`, which every transaction writes, lists the latest allocations itself. Only when they are more than a few do they go to a
//!    key of their own: on an idle issuer most allocations are a transaction of one put.
//! 2. That key is slot `batch mod slots`, so there are few keys and each is overwritten in place.
//! 3. A slot is overwritten only when every holder that it names has been written whole since. Holders whose oldest entry grows
//!    old are written a few at a time with each batch. Where that is not enough, as after a burst of more holders than the slots
//!    can see to, a batch keeps no journal and writes its holders whole: slower, and always right.
//! 4. An entry counts for a record that is older than the entry's batch, and for no other; `head` lists none that a record contains. Batches are numbered over all leaders, so a
//!    holder that was forgotten and came back is not taken for its former self.
//!
//! Why: with one put per allocation etcd took a quarter of the processor time of an allocation, and encoding and sending the records
//! another tenth (`perf` under `bench allocate`, 256 holders, 2026-11-21); and each further put of a transaction makes etcd's answer later.

use std::collections::BTreeSet;

use numbers::{Batch, Epoch, Generation, HolderId, Seq};
use serde::{Deserialize, Serialize};

use crate::{
    core::{Limits, OpenBlock, Reply, State, guard::Guard, state::HolderRecord},
    ledger::{Key, Record, Write},
};

/// The most entries of one batch; it keeps a slot's value far below etcd's limit of 1.5 MB.
pub(super) const ENTRIES_MAX: usize = 128;

/// One allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// Who got the block.
    pub holder: HolderId,
    /// For which request of its incarnation.
    pub seq: Seq,
    /// The leader that allocated it.
    pub epoch: Epoch,
    /// The generation that the numbers were leaked under; none when they are surely unused.
    pub leaked: Option<Generation>,
    /// The block.
    pub open: OpenBlock,
}

/// The allocations of one batch, and those that `head` listed before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal {
    /// Which batch.
    pub batch: Batch,
    /// What was allocated to holders that it did not write whole, in order.
    pub entries: Vec<Entry>,
}

impl HolderRecord {
    /// What an allocation changes in its holder's record.
    pub fn allocated(&mut self, entry: Entry) {
        let Entry { seq, epoch, leaked, open, .. } = entry;
        self.last_seq = seq;
        self.last_reply = Some(Reply { block: open.block.clone(), epoch, leaked });
        self.last_len.insert(open.block.namespace.clone(), open.block.span.len());
        self.open.push(open);
    }
}

/// Holders with entries that their records do not contain, each with the batch of the oldest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Unsaved(BTreeSet<(Batch, HolderId)>);

impl Unsaved {
    /// Notes that a holder has an entry in this batch's journal.
    pub(super) fn note(&mut self, holder: &HolderId, record: &mut HolderRecord, batch: Batch) {
        if record.unsaved.is_none() {
            record.unsaved = Some(batch);
            self.0.insert((batch, holder.clone()));
        }
    }

    /// Notes that a holder's record is written whole.
    pub(super) fn saved(&mut self, holder: &HolderId, record: &mut HolderRecord, batch: Batch) {
        record.as_of = batch;
        if let Some(oldest) = record.unsaved.take() {
            self.0.remove(&(oldest, holder.clone()));
        }
    }

    /// Notes that a holder is forgotten.
    pub(super) fn forgotten(&mut self, holder: &HolderId) {
        self.0.retain(|(_, unsaved)| unsaved != holder);
    }

    /// Whether this batch may overwrite its slot.
    pub(super) fn leaves_room(&self, limits: &Limits, batch: Batch) -> bool {
        let overwritten = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots;
        let named = self.0.first().is_some_and(|(oldest, _)| overwritten(oldest));
        limits.journal_slots > 0 && !(named && limits.guards(Guard::Journal))
    }

    /// Holders whose slot comes round half-way soon: the oldest first, and no more than `room`.
    fn due(&self, limits: &Limits, batch: Batch, room: usize) -> Vec<HolderId> {
        let old = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots.div_ceil(2);
        let due = self.0.iter().take_while(|(oldest, _)| old(oldest)).take(room.min(limits.journal_saves));
        due.map(|(_, holder)| holder.clone()).collect()
    }
}

impl State {
    /// Books an allocation with its holder: as an entry of the open batch, or in its record, whole.
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

    /// Adds the open batch's entries to those that `head` lists, without those of holders that it writes whole; or makes a journal
    /// of them all, when they are too many for `head`.
    pub(super) fn close_journal(&mut self, limits: &Limits, whole: &BTreeSet<Key>) -> Option<Write> {
        let batch = self.head.batch;
        let recent = &mut self.head.recent;
        let anything_new = !self.entries.is_empty();
        recent.append(&mut self.entries);
        recent.retain(|entry| !whole.contains(&Key::Holder(entry.holder.clone())));
        // Whether the slot may be overwritten was asked when the batch's own entries were made.
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

    /// Has a few holders written whole whose entries grow old.
    pub(super) fn save_some(&mut self, limits: &Limits, room: usize) {
        for holder in self.unsaved.due(limits, self.head.batch, room) {
            self.touch(Key::Holder(holder));
        }
    }

    /// Reads what journals, and then `head`, say that records do not. Where an earlier leader put an entry is not asked, since it may have had another
    /// number of slots: every holder counts as the oldest there is, so none of the journals is overwritten before it is saved.
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
