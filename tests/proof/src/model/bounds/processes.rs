//! The worlds whose hazard is in the process of one holder: its inserts in doubt, its late calls,
//! and a second process with its name.

use super::{Bounds, Budget};

impl Bounds {
    /// An insert arrives after its holder has read that there is no row. Meanwhile the rest of the
    /// block is returned, and a reservation gets it.
    pub const IN_DOUBT: Self = Self {
        name: "an insert that arrives after its row was read",
        issuers: 1,
        reservations: 1,
        prompt_commits: true,
        ticks: false,
        capacity: 2,
        budget: Budget { allocations: 3, returns: 1, inserts: 1, absent_inserts: 1, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// A second copy of a return arrives after its numbers were allocated to the same holder again.
    pub const LATE_RETURN: Self = Self {
        name: "a return that arrives twice",
        issuers: 1,
        prompt_commits: true,
        ticks: false,
        capacity: 2,
        budget: Budget { resends: 1, allocations: 3, returns: 1, inserts: 1, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Two processes have the name of one holder. The later start takes over the blocks of the
    /// earlier one, which learns of it from a refused call or beat.
    pub const ONE_NAME: Self = Self {
        name: "two processes of one holder",
        issuers: 1,
        one_name: true,
        prompt_commits: true,
        ticks: false,
        capacity: 4,
        budget: Budget { starts: 1, allocations: 3, returns: 1, beats: 1, inserts: 2, ..Self::STILL.budget },
        ..Self::STILL
    };
}
