//! The owner of blocks, as named in the database's block register.

use holder::{EntryId, calls::RegisterEntry};
use store::BlockEntry;

/// A start of a holder.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The stable name of the holder.
    pub holder: String,
    /// The random id of this start.
    pub instance: String,
}

impl Owner {
    /// Returns the name of an entry in the register. It differs for each entry, although a ledger
    /// that was lost may allocate the same numbers with the same generation again.
    pub fn entry_name(&self, entry: EntryId) -> String {
        format!("{}/{}", self.instance, entry.0)
    }

    pub(super) fn entry(&self, entry: &RegisterEntry) -> BlockEntry {
        BlockEntry {
            keyspace: entry.index,
            span: entry.block.span,
            generation: entry.block.generation.0,
            holder: self.holder.clone(),
            incarnation: entry.incarnation.0,
            instance: self.entry_name(entry.entry),
        }
    }
}
