//! How large a world is, and how often each thing may happen in it.
//!
//! One large world would not be explored to its end. So there are several small ones, each aimed at one hazard: what that hazard
//! does not need happens there seldom or never.

use issuer::core::Limits;

/// A world and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// What it is aimed at.
    pub name: &'static str,
    /// How many issuers there are.
    pub issuers: usize,
    /// How many holders there are.
    pub holders: usize,
    /// How many of them, the last ones, are reservations.
    pub reservations: usize,
    /// How many numbers a reservation asks for at a time.
    pub reserved_len: u64,
    /// Numbers of the one namespace.
    pub capacity: u64,
    /// Numbers of it once its capacity is raised.
    pub raised_capacity: u64,
    /// The length of every block.
    pub block: u64,
    /// See [`Limits::fair_shares`].
    pub fair_shares: u64,
    /// See [`Limits::headroom_blocks`].
    pub headroom_blocks: u64,
    /// See [`Limits::journal_recent`].
    pub journal_recent: usize,
    /// One step of the clock, in milliseconds.
    pub step_ms: u64,
    /// See [`Limits::holder_ttl_ms`].
    pub holder_ttl_ms: u64,
    /// By how many thousandths holders' clocks are slower than the issuers'.
    pub slower: u64,
    /// See [`Limits::reclaim_after_ms`].
    pub reclaim_after_ms: u64,
    /// Whether issuers look for silent holders.
    pub ticks: bool,
    /// Whether a transaction is executed, and its outcome heard of, in the step in which it is sent: for hazards that do not lie
    /// between issuer and etcd.
    pub prompt_commits: bool,
    /// Whether a holder gets an answer in the step in which it is given.
    pub prompt_answers: bool,
    /// Copies of transactions that may still be under way when nobody waits for them any more.
    pub late_commits: usize,
    /// Blocks with numbers left that a holder may have before it asks for another.
    pub in_hand: usize,
    /// How often each thing may happen.
    pub budget: Budget,
}

/// How often each thing may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Elections after the first. The leader key is vacated at any instant while one is left.
    pub elections: u8,
    /// Snapshots that are read before the election is won.
    pub early_reads: u8,
    /// Transactions whose outcome is reported as unknown.
    pub unknown: u8,
    /// Calls that are sent again although nobody said that they were not executed.
    pub resends: u8,
    /// Starts of holders after the first; of a reservation, that it is given up.
    pub starts: u8,
    /// Allocations that holders ask for.
    pub allocations: u8,
    /// Blocks that are given back.
    pub returns: u8,
    /// Beats of keep-alive.
    pub beats: u8,
    /// Links that are inserted.
    pub inserts: u8,
    /// Inserts that are under way for a while.
    pub late_inserts: u8,
    /// Inserts whose reply is lost, and which are resolved by reading.
    pub doubtful_inserts: u8,
    /// Registrations with the raised capacity, in the same start.
    pub raises: u8,
    /// Steps of the clock.
    pub time_steps: u8,
    /// Restorations of etcd from a backup that was taken earlier.
    pub restores: u8,
}

impl Bounds {
    /// The core's limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits {
            block_min: self.block,
            block_max: self.block,
            holder_ttl_ms: self.holder_ttl_ms,
            reclaim_after_ms: self.reclaim_after_ms,
            queue: 4,
            open_blocks: 4,
            namespaces: 1,
            holders: 3,
            fair_shares: self.fair_shares,
            headroom_blocks: self.headroom_blocks,
            // The first allocation is journalled, and others only when its holder was written whole since.
            journal_recent: self.journal_recent,
            journal_slots: 1,
            journal_saves: 0,
            ..Limits::default()
        }
    }

    /// What all worlds have in common: nothing happens in it.
    const STILL: Self = Self {
        name: "nothing happens",
        issuers: 2,
        holders: 2,
        reservations: 0,
        reserved_len: 1,
        capacity: 6,
        raised_capacity: 12,
        block: 2,
        // The length of every block is fixed, so that a world holds what its hazard needs.
        fair_shares: 0,
        headroom_blocks: 100,
        journal_recent: 1,
        step_ms: 1_000,
        holder_ttl_ms: 1_000,
        slower: 0,
        reclaim_after_ms: 1_000,
        ticks: true,
        prompt_commits: false,
        prompt_answers: true,
        late_commits: 0,
        in_hand: 1,
        budget: Budget {
            elections: 0,
            early_reads: 0,
            unknown: 0,
            resends: 0,
            starts: 0,
            allocations: 0,
            returns: 0,
            beats: 0,
            inserts: 0,
            late_inserts: 0,
            doubtful_inserts: 0,
            raises: 0,
            time_steps: 0,
            restores: 0,
        },
    };

    /// Leaders change while transactions are in doubt, and copies of them execute late.
    pub const LEADER_CHANGE: Self = Self {
        name: "leader change with transactions in doubt",
        late_commits: 1,
        budget: Budget { elections: 2, unknown: 1, allocations: 2, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Replies are lost again and again around one leader change, and callers lose patience.
    pub const LOST_REPLIES: Self = Self {
        name: "lost replies",
        late_commits: 1,
        budget: Budget { elections: 1, unknown: 2, resends: 1, allocations: 2, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Three issuers, one of which read the ledger before it won: terms that end before they serve.
    pub const THREE_ISSUERS: Self = Self {
        name: "three issuers",
        issuers: 3,
        holders: 1,
        late_commits: 1,
        budget: Budget { elections: 2, early_reads: 1, unknown: 1, allocations: 2, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Requests are doubled, answers are lost or come late, and holders start again meanwhile.
    pub const DOUBLED_REQUESTS: Self = Self {
        name: "doubled requests",
        issuers: 1,
        prompt_answers: false,
        in_hand: 2,
        budget: Budget { resends: 2, starts: 1, allocations: 2, returns: 1, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Holders crash with inserts under way, or fall silent and go on minting; others reclaim their blocks.
    pub const RECLAIM: Self = Self {
        name: "crash and reclaim",
        issuers: 1,
        prompt_commits: true,
        capacity: 4,
        budget: Budget {
            starts: 1,
            allocations: 2,
            inserts: 2,
            late_inserts: 1,
            doubtful_inserts: 1,
            time_steps: 2,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// An heir gives a leaked block back unused while the one who lost it still mints from it.
    pub const CONTESTED: Self = Self {
        name: "a leaked block that is given back",
        capacity: 2,
        budget: Budget {
            starts: 0,
            allocations: 3,
            returns: 1,
            inserts: 1,
            late_inserts: 0,
            ..Self::RECLAIM.budget
        },
        ..Self::RECLAIM
    };

    /// A third holder: an heir that is slow to take over is overtaken by the next.
    pub const SLOW_HEIR: Self = Self {
        name: "an heir that is overtaken",
        issuers: 1,
        holders: 3,
        prompt_commits: true,
        capacity: 2,
        budget: Budget { allocations: 3, inserts: 1, time_steps: 4, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// Tails come back and are allocated again, while the leader changes and an insert is in doubt.
    pub const RETURN: Self = Self {
        name: "return and allocate again",
        prompt_commits: true,
        capacity: 4,
        budget: Budget {
            elections: 1,
            allocations: 3,
            returns: 2,
            inserts: 3,
            doubtful_inserts: 1,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// A leader that was deposed and does not know it is asked where to go on.
    pub const DEPOSED_REGISTRAR: Self = Self {
        name: "a deposed leader is asked where to go on",
        holders: 1,
        prompt_commits: true,
        in_hand: 3,
        budget: Budget {
            elections: 1,
            allocations: 4,
            returns: 1,
            inserts: 1,
            doubtful_inserts: 1,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

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

    /// The ceiling moves while transactions take their time, so that beats and allocations share one.
    pub const CEILING_IN_BATCHES: Self = Self {
        name: "a ceiling that moves in batches",
        issuers: 1,
        prompt_commits: false,
        in_hand: 2,
        budget: Budget { elections: 0, ..Self::CEILING.budget },
        ..Self::CEILING
    };

    /// etcd is restored from an old backup: what is allocated then was allocated before.
    pub const RESTORED: Self = Self {
        name: "etcd restored from a backup",
        prompt_commits: true,
        budget: Budget {
            elections: 1,
            allocations: 3,
            inserts: 2,
            doubtful_inserts: 1,
            restores: 1,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// Two holders use the last numbers up, and report what they have, while one of them may give its own back.
    pub const EXHAUSTED: Self = Self {
        name: "the last numbers",
        issuers: 1,
        prompt_commits: true,
        prompt_answers: false,
        ticks: false,
        capacity: 2,
        block: 1,
        budget: Budget { allocations: 3, returns: 1, beats: 2, inserts: 2, ..Self::STILL.budget },
        ..Self::STILL
    };

    /// One holder raises the capacity of a full namespace while the other one is configured with
    /// the old capacity.
    pub const RAISED: Self = Self {
        name: "a raised capacity",
        issuers: 1,
        prompt_commits: true,
        ticks: false,
        capacity: 2,
        raised_capacity: 4,
        headroom_blocks: 1,
        budget: Budget {
            starts: 1,
            allocations: 2,
            inserts: 1,
            beats: 1,
            raises: 1,
            time_steps: 1,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// A reservation is silent, is filled and given up, while a holder crashes and reclaims what
    /// leaks.
    pub const RESERVED: Self = Self {
        name: "a reservation",
        issuers: 1,
        reservations: 1,
        prompt_commits: true,
        budget: Budget {
            starts: 1,
            allocations: 3,
            inserts: 2,
            late_inserts: 1,
            time_steps: 2,
            ..Self::STILL.budget
        },
        ..Self::STILL
    };

    /// Every number is used or reserved.
    pub const ALL_RESERVED: Self = Self {
        name: "every number is reserved",
        capacity: 1,
        block: 1,
        reservations: 1,
        budget: Budget { returns: 1, beats: 2, ..Self::EXHAUSTED.budget },
        ..Self::EXHAUSTED
    };

    /// Every world that is explored.
    pub const ALL: [Self; 16] = [
        Self::LEADER_CHANGE,
        Self::LOST_REPLIES,
        Self::THREE_ISSUERS,
        Self::DOUBLED_REQUESTS,
        Self::RECLAIM,
        Self::CONTESTED,
        Self::SLOW_HEIR,
        Self::RETURN,
        Self::DEPOSED_REGISTRAR,
        Self::CEILING,
        Self::CEILING_IN_BATCHES,
        Self::RESTORED,
        Self::EXHAUSTED,
        Self::RAISED,
        Self::RESERVED,
        Self::ALL_RESERVED,
    ];
}
