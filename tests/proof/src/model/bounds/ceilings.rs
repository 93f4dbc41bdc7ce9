//! The worlds in which a ceiling moves.

use super::{Bounds, Budget};

impl Bounds {
    /// The ceiling moves while the leader changes and beats are late.
    pub const CEILING: Self = Self {
        name: "a ceiling that moves",
        slower: 100,
        prompt_commits: true,
        ticks: false,
        capacity: 128,
        headroom_blocks: 1,
        budget: Budget {
            elections: 1,
            allocations: 3,
            inserts: 1,
            beats: 1,
            time_steps: 2,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// The ceiling moves while transactions take their time, so that beats and allocations share
    /// one.
    pub const CEILING_IN_BATCHES: Self = Self {
        name: "a ceiling that moves in batches",
        issuers: 1,
        prompt_commits: false,
        in_hand: 2,
        budget: Budget { elections: 0, ..Self::CEILING.budget },
        ..Self::CEILING
    };

    /// The ceiling moves while answers to beats are late, so that time passes before a holder hears
    /// of a ceiling.
    pub const CEILING_HEARD_LATE: Self = Self {
        name: "a ceiling that is heard of late",
        issuers: 1,
        prompt_answers: false,
        budget: Budget { elections: 0, ..Self::CEILING.budget },
        ..Self::CEILING
    };
}
