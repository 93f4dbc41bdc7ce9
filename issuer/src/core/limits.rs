//! The limits of the core.

use super::guard::Guard;

/// Limits of the core: sizes, timeouts and counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Minimum length of a block, in numbers. A block is shorter if fewer numbers are left.
    pub block_min: u64,
    /// Maximum length of a block, in numbers.
    pub block_max: u64,
    /// Silence after which a holder counts as gone, in milliseconds.
    pub holder_ttl_ms: u64,
    /// Time that a leaked block rests before another holder may get it, in milliseconds.
    pub reclaim_after_ms: u64,
    /// Maximum number of requests that wait for the next transaction.
    pub queue: usize,
    /// Maximum number of open blocks per holder.
    pub open_blocks: usize,
    /// Maximum number of namespaces. `head` lists them all, and every transaction writes `head`.
    pub namespaces: usize,
    /// Maximum number of holders.
    pub holders: usize,
    /// Divisor of a fair share: a block has at most the unallocated numbers divided by the live
    /// holders and by this. 2 means half of a fair share; 0 means no such limit.
    pub fair_shares: u64,
    /// Maximum number of allocations that `head` lists; more go to a journal.
    pub journal_recent: usize,
    /// Number of keys that journals are written to in rotation. With 0 there are no journals, and
    /// each allocation writes its holder's whole record.
    pub journal_slots: u64,
    /// Maximum number of holders per transaction that are written whole for their old entries.
    pub journal_saves: usize,
    /// Guard that a proof has switched off.
    #[cfg(feature = "mutations")]
    pub off: Option<Guard>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            block_min: 1_000,
            block_max: 1_000_000,
            holder_ttl_ms: 30_000,
            reclaim_after_ms: 600_000,
            queue: 4_096,
            open_blocks: 64,
            namespaces: 256,
            holders: 100_000,
            fair_shares: 2,
            journal_recent: 4,
            journal_slots: 128,
            journal_saves: 16,
            #[cfg(feature = "mutations")]
            off: None,
        }
    }
}

impl Limits {
    #[cfg(not(feature = "mutations"))]
    pub(super) fn guards(&self, _guard: Guard) -> bool {
        true
    }

    #[cfg(feature = "mutations")]
    pub(super) fn guards(&self, guard: Guard) -> bool {
        self.off != Some(guard)
    }
}
