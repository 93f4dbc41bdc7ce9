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

use numbers::{Batch, HolderId};

use super::{guard::Guard, limits::Limits, values::HolderRecord};

/// Maximum number of entries in one batch. A slot's value stays far below etcd's 1.5 MB.
pub(super) const ENTRIES_MAX: usize = 128;

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

    pub(super) fn forgotten(&mut self, holder: &HolderId) {
        self.0.retain(|(_, unsaved)| unsaved != holder);
    }

    /// Returns whether this batch may overwrite its slot.
    pub(super) fn leaves_room(&self, limits: &Limits, batch: Batch) -> bool {
        let overwritten = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots;
        let named = self.0.first().is_some_and(|(oldest, _)| overwritten(oldest));
        limits.journal_slots > 0 && !(named && limits.guards(Guard::Journal))
    }

    /// Returns the holders with entries half as old as the rotation, the oldest first.
    pub(super) fn due(&self, limits: &Limits, batch: Batch, room: usize) -> Vec<HolderId> {
        let old = |oldest: &Batch| batch.0 - oldest.0 >= limits.journal_slots.div_ceil(2);
        let due = self.0.iter().take_while(|(oldest, _)| old(oldest)).take(room.min(limits.journal_saves));
        due.map(|(_, holder)| holder.clone()).collect()
    }
}
