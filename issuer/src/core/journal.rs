//! The journal: allocations as short entries, so that a transaction of a hundred allocations writes
//! one key instead of a hundred holders' records.
//!
//! The ledger keeps a holder in two places: its record as of the batch that wrote it, and, in the
//! journals of later batches, what was allocated to it since. Any other change of a holder writes
//! its whole record.
//!
//! 1. `head`, which every transaction writes, lists the latest allocations itself. Only if there
//!    are more than a few do they go to a key of their own. On an idle issuer most allocations are
//!    a transaction of one put.
//! 2. That key is the slot `batch mod slots`, so there are few keys, and each is overwritten in
//!    place.
//! 3. A slot is overwritten only after every holder that it names has been written whole since.
//!    Each batch writes a few of the holders whose oldest entry grows old. Where that is not
//!    enough, as after a burst of more holders than the slots can hold, a batch keeps no journal
//!    and writes its holders whole. That is slower, and always correct.
//! 4. An entry applies to a record that is older than the entry's batch, and to no other. `head`
//!    lists no entry that a record contains. Batches are numbered across all leaders, so a holder
//!    that was forgotten and came back is not mistaken for its former self.
//!
//! Why: without it etcd does a put per allocation. With 256 holders that make unary calls the
//! journal doubles the rate (1.98 times; `bench allocate --beside`, 2026-11-24), and with one
//! holder it costs nothing (1.04).

use std::collections::BTreeSet;

use numbers::{Batch, Epoch, Generation, HolderId, Seq};
use serde::{Deserialize, Serialize};

use crate::{
    core::{Limits, OpenBlock, Reply, State, guard::Guard, state::HolderRecord},
    ledger::{Key, Record, Write},
};

/// Maximum number of entries in one batch. It keeps a slot's value far below etcd's limit of 1.5
/// MB.
pub(super) const ENTRIES_MAX: usize = 128;

/// An allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// The holder that got the block.
    pub holder: HolderId,
    /// The number of the holder's request within its incarnation.
    pub seq: Seq,
    /// The leader that allocated it.
    pub epoch: Epoch,
    /// The generation that the numbers were leaked under; `None` if they are surely unused.
    pub leaked: Option<Generation>,
    /// The block.
    pub open: OpenBlock,
}

/// The allocations of one batch, and those that `head` listed before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Journal {
    /// The batch that wrote it.
    pub batch: Batch,
    /// Allocations to holders whose records the batch did not write, in order.
    pub entries: Vec<Entry>,
}

impl HolderRecord {
    /// Applies an allocation to the holder's record.
    pub fn allocated(&mut self, entry: Entry) {
        let Entry { seq, epoch, leaked, open, .. } = entry;
        self.last_seq = seq;
        self.last_reply = Some(Reply { block: open.block.clone(), epoch, leaked });
        self.last_len.insert(open.block.namespace.clone(), open.block.span.len());
        self.open.push(open);
    }
}

/// Holders with entries that their stored records lack, each with the batch of its oldest entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Unsaved(BTreeSet<(Batch, HolderId)>);

impl Unsaved {
    /// Records that a holder has an entry in this batch's journal.
    pub(super) fn note(&mut self, holder: &HolderId, record: &mut HolderRecord, batch: Batch) {
        if record.unsaved.is_none() {
            record.unsaved = Some(batch);
            self.0.insert((batch, holder.clone()));
        }
    }

    /// Records that a holder's record is written whole.
    pub(super) fn saved(&mut self, holder: &HolderId, record: &mut HolderRecord, batch: Batch) {
        record.as_of = batch;
        if let Some(oldest) = record.unsaved.take() {
            self.0.remove(&(oldest, holder.clone()));
        }
    }

    /// Records that a holder is forgotten.
    pub(super) fn forgotten(&mut self, holder: &HolderId) {
        self.0.retain(|(_, unsaved)| unsaved != holder);
    }

    /// Returns whether this batch may overwrite its slot.
    pub(super) fn leaves_room(&self, limits: &Limits, batch: Batch) -> bool {
        let overwritten = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots;
        let named = self.0.first().is_some_and(|(oldest, _)| overwritten(oldest));
        limits.journal_slots > 0 && !(named && limits.guards(Guard::Journal))
    }

    /// Returns the holders whose entries are at least half as old as the rotation of slots, the
    /// oldest first, at most `room`.
    fn due(&self, limits: &Limits, batch: Batch, room: usize) -> Vec<HolderId> {
        let old = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots.div_ceil(2);
        let due = self.0.iter().take_while(|(oldest, _)| old(oldest)).take(room.min(limits.journal_saves));
        due.map(|(_, holder)| holder.clone()).collect()
    }
}

impl State {
    /// Applies an allocation to its holder, and stores it as an entry of the open batch or with the
    /// holder's whole record.
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
