//! Where the issuer's state lives: a few keys, and one kind of transaction on them.
//!
//! 1. Every transaction compares the leader key's `create_revision` with its epoch *and* the `mod_revision` of
//!    `head`; it writes `head` first. So of two copies of one transaction at most one applies, and a deposed
//!    leader's applies never.
//! 2. A refused transaction answers with the `head` that refused it, read in the same instant. That settles a
//!    lost reply without another round trip: `head` carries the batch's own number, or it never will.
//!
//! Rejected: a separate read of `head` after a lost reply. It is a second place for a stale read.

pub mod embedded;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod record;

use std::sync::Arc;

use async_trait::async_trait;
use numbers::{Batch, Epoch, Revision};

use crate::core::Head;
pub use record::{Key, Record, RecordError};

/// One change of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Write {
    /// Creates or replaces a key.
    Put(Record),
    /// Removes a key.
    Delete(Key),
}

/// A guarded group of changes: all or nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Txn {
    /// Applies only while this leader leads.
    pub epoch: Epoch,
    /// Applies only to this revision of `head`.
    pub head: Revision,
    /// The number it writes into `head`.
    pub batch: Batch,
    /// The changes; the first writes `head`, and no key comes twice. Shared: the core keeps a copy until the outcome is known.
    pub writes: Arc<[Write]>,
}

/// The most keys a transaction may write: etcd's default `--max-txn-ops`.
pub const MAX_TXN_WRITES: usize = 128;

/// What became of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TxnOutcome {
    /// Applied; `head` now has this revision.
    Applied(Revision),
    /// A compare failed; this is what `head` was at that instant.
    Refused(Option<HeadRead>),
    /// Nobody knows: the reply was lost, came too late, or the store had trouble.
    Unknown,
}

/// `head` as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HeadRead {
    /// Its value.
    pub head: Head,
    /// Its revision.
    pub revision: Revision,
}

/// Everything in the ledger at one instant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The revision of `head`; 0 when there is none yet.
    pub head: Revision,
    /// Every key.
    pub records: Vec<Record>,
}

/// Why a ledger could not be read or opened.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A key or value is not what this version writes.
    #[error("the ledger holds something unexpected")]
    Record(#[from] RecordError),
    /// The file could not be read or written.
    #[error("{action} {path}")]
    File {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Another process has the file open.
    #[error("{path} is in use by another process")]
    InUse {
        /// Which file.
        path: String,
    },
    /// The file's content is damaged.
    #[error("{path} is not a ledger")]
    Damaged {
        /// Which file.
        path: String,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// etcd could not be asked.
    #[cfg(feature = "etcd")]
    #[error("etcd did not answer")]
    Etcd(#[from] etcd_client::Error),
    /// etcd did not answer in time.
    #[error("the ledger did not answer in time")]
    TimedOut,
}

/// The seam between the issuer and its store: etcd, or a file.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Reads everything at one instant.
    async fn load(&self) -> Result<Snapshot, LedgerError>;

    /// Runs one transaction. Sending the same one again is safe: see the module's documentation.
    async fn commit(&self, txn: &Txn) -> TxnOutcome;
}
