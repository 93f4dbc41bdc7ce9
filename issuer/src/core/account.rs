//! The account of one namespace (I10): the state of every number ever allocated.

use serde::{Deserialize, Serialize};

/// Counts of numbers, by state.
///
/// Each term is counted by itself and none is derived from the others. Otherwise the check in
/// [`Account::balances`] could not fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Account {
    /// Numbers ever allocated; each counts once, however often it changes hands.
    pub allocated: u64,
    /// Numbers of closed blocks that have a link.
    pub used: u64,
    /// Numbers of blocks that a holder has open.
    pub open: u64,
    /// Numbers that were returned unused.
    pub free: u64,
    /// Numbers of blocks whose holder is gone.
    pub leaked: u64,
    /// Numbers given up for good.
    pub burned: u64,
}

impl Account {
    /// Returns whether `allocated = used + open + free + leaked + burned`.
    pub fn balances(&self) -> bool {
        self.allocated == self.accounted()
    }

    /// Returns the sum of all terms except `allocated`.
    pub fn accounted(&self) -> u64 {
        self.used + self.open + self.free + self.leaked + self.burned
    }
}
