//! The visits of one process that are not stored yet.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How much of a spool is not stored yet. Its storer writes it, and others show it.
#[derive(Debug, Default)]
pub struct Backlog {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Backlog {
    /// Sets the number of blocks that are not stored yet, and the size of the spool in bytes.
    pub fn set(&self, blocks: u64, bytes: u64) {
        self.blocks.store(blocks, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    /// Returns the number of blocks that are not stored yet.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.blocks.load(Relaxed)
    }

    /// Returns the size of the spool, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }
}
