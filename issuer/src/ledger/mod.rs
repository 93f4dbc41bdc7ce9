//! The ledger, which persists the issuer's state: a few keys, and one kind of transaction on them.
//!
//! 1. Every transaction compares the leader key's `create_revision` with its epoch *and* the
//!    `mod_revision` of `head`, and writes `head` first. So at most one of two copies of a
//!    transaction applies, and a transaction of a deposed leader never applies.
//! 2. A refused transaction answers with the `head` that refused it, read at the same instant. That
//!    settles a lost reply without another round trip: either `head` carries the batch's own
//!    number, or it never will.
//!
//! Rejected: a separate read of `head` after a lost reply. It would be a second place for a stale
//! read.

pub mod embedded;
#[cfg(feature = "etcd")]
pub mod etcd;
pub mod record;

use async_trait::async_trait;

pub use crate::core::{HeadRead, Key, MAX_TXN_WRITES, Record, Snapshot, Txn, TxnOutcome, Write};

/// The reason why a ledger could not be opened or read, or etcd not be called.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A key or value is not one that this version writes.
    #[error("unexpected content in the ledger: {0}")]
    Record(String),
    /// The file could not be read or written.
    #[error("{action} {path}")]
    File {
        /// Attempted action.
        action: &'static str,
        /// Path of the file.
        path: String,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Another process has the file open.
    #[error("{0} is in use by another process")]
    InUse(String),
    /// The file's content is damaged.
    #[error("{0} is not a ledger")]
    Damaged(String, #[source] serde_json::Error),
    /// A call to etcd failed.
    #[cfg(feature = "etcd")]
    #[error("etcd")]
    Etcd(#[from] etcd_client::Error),
    /// etcd did not answer by the deadline.
    #[error("etcd did not answer in time")]
    TimedOut,
    /// An answer of etcd lacks a part.
    #[error("etcd answered without {0}")]
    Incomplete(&'static str),
}

/// A store for the issuer's state: etcd, or a file.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Reads the whole ledger at one instant.
    async fn load(&self) -> Result<Snapshot, LedgerError>;

    /// Runs one transaction. It is safe to send the same one again: see the module's documentation.
    async fn commit(&self, txn: &Txn) -> TxnOutcome;
}
