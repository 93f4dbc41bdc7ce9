//! The account of one namespace (I10): where each number ever allocated is now.

use serde::{Deserialize, Serialize};

/// Counts of numbers. Every term is kept by its own count and none is derived from the others, or the check
/// in [`Account::balances`] could not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// Ever allocated; each number counts once, however often it changed hands.
    pub allocated: u64,
    /// In closed blocks, with a link stored under them.
    pub used: u64,
    /// In blocks that a holder has now.
    pub open: u64,
    /// Given back unused.
    pub free: u64,
    /// In blocks whose holder is gone.
    pub leaked: u64,
    /// Given up for good.
    pub burned: u64,
}

impl Account {
    /// Whether `allocated = used + open + free + leaked + burned`.
    #[must_use]
    pub fn balances(&self) -> bool {
        self.allocated == self.accounted()
    }

    /// The sum of all terms but `allocated`.
    #[must_use]
    pub fn accounted(&self) -> u64 {
        self.used + self.open + self.free + self.leaked + self.burned
    }
}
