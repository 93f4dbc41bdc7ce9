//! The keys of the ledger with their values, its transactions, their outcomes, and its snapshots.

use std::sync::Arc;

use numbers::{Batch, Epoch, HolderId, Namespace, Revision};

use super::values::{Head, HolderRecord, Journal, LeakedBlock, Part};

/// A key, relative to the cluster's prefix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `head`
    Head,
    /// `holder/<id>`
    Holder(HolderId),
    /// `leaked/<namespace>/<start>`
    Leaked(Namespace, u64),
    /// `free/<namespace>/<start>`
    Free(Namespace, u64),
    /// `journal/<slot>`
    Journal(u64),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// Value of `head`.
    Head(Head),
    /// A holder.
    Holder(HolderId, HolderRecord),
    /// A leaked block.
    Leaked(Namespace, LeakedBlock),
    /// A range of free numbers.
    Free(Namespace, Part),
    /// A journal, in its slot.
    Journal(u64, Journal),
}

impl Record {
    /// Returns the key of this record.
    pub fn key(&self) -> Key {
        match self {
            Self::Head(_) => Key::Head,
            Self::Holder(id, _) => Key::Holder(id.clone()),
            Self::Leaked(namespace, block) => Key::Leaked(namespace.clone(), block.span.start()),
            Self::Free(namespace, part) => Key::Free(namespace.clone(), part.span.start()),
            Self::Journal(slot, _) => Key::Journal(*slot),
        }
    }
}

/// One change of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Creates or replaces a key.
    Put(Record),
    /// Removes a key.
    Delete(Key),
}

/// A guarded group of changes. All of them apply, or none does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Txn {
    /// Epoch of the leader. The transaction applies only while that leader leads.
    pub epoch: Epoch,
    /// Revision of `head`. The transaction applies only if `head` still has it.
    pub head: Revision,
    /// Batch number that the transaction writes into `head`.
    pub batch: Batch,
    /// Changes. The first one writes `head`, and each key occurs once. Shared, because the core
    /// keeps a copy until the outcome is known.
    pub writes: Arc<[Write]>,
}

/// Maximum number of keys that a transaction writes: etcd's default `--max-txn-ops`.
pub const MAX_TXN_WRITES: usize = 128;

/// The outcome of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TxnOutcome {
    /// Applied; `head` now has this revision.
    Applied(Revision),
    /// A compare failed. Holds `head` as of that instant, if it exists.
    Refused(Option<HeadRead>),
    /// Unknown: the reply was lost or late, or the store had an error.
    Unknown,
}

/// The value and revision of `head`, as read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadRead {
    /// Value of `head`.
    pub head: Head,
    /// Revision of `head`.
    pub revision: Revision,
}

/// The whole ledger at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// Revision of `head`; 0 if it does not exist yet.
    pub head: Revision,
    /// All keys with their values.
    pub records: Vec<Record>,
}
