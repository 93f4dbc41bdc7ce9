//! The keys of the ledger, each with its value.

use numbers::{HolderId, Namespace};

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
