//! The bounds of a world: its size, and how often each kind of event may happen in it.
//!
//! One large world would not be explored to its end. So there are several small ones, each aimed at
//! one hazard. Events that the hazard does not need happen there seldom or never.

use issuer::core::Limits;

/// A world and its bounds.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The name of the world, after its hazard.
    pub name: &'static str,
    /// The number of issuers.
    pub issuers: usize,
    /// The number of holders, including reservations.
    pub holders: usize,
    /// The number of reservations, which are the last of the holders.
    pub reservations: usize,
    /// Whether all holders have one name: they are processes of the same holder, and the first one
    /// registers last.
    pub one_name: bool,
    /// The length of the block that a reservation asks for.
    pub reserved_len: u64,
    /// The capacity of the only namespace.
    pub capacity: u64,
    /// The capacity of the namespace once it is raised.
    pub raised_capacity: u64,
    /// The length of every block.
    pub block: u64,
    /// See [`Limits::fair_shares`].
    pub fair_shares: u64,
    /// See [`Limits::journal_recent`].
    pub journal_recent: usize,
    /// The length of one step of the clock, in milliseconds.
    pub step_ms: u64,
    /// See [`Limits::holder_ttl_ms`].
    pub holder_ttl_ms: u64,
    /// See [`Limits::reclaim_after_ms`].
    pub reclaim_after_ms: u64,
    /// Whether issuers get ticks, at which they look for silent holders.
    pub ticks: bool,
    /// Whether a transaction is executed and its outcome delivered in the step that sends it. This
    /// suits hazards that are not between issuer and etcd.
    pub prompt_commits: bool,
    /// Whether an answer reaches its holder in the step that gives it.
    pub prompt_answers: bool,
    /// The maximum number of transactions under way that no issuer waits for any more.
    pub late_commits: usize,
    /// The number of blocks with unused numbers below which a reservation asks for another. With
    /// more than 1, a resolver fetches its next block early.
    pub in_hand: usize,
    /// How often each kind of event may happen.
    pub budget: Budget,
}

/// How often each kind of event may still happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Elections after the first. While any are left, the leader key may be vacated at any instant.
    pub elections: u8,
    /// Snapshots that are read before the election is won.
    pub early_reads: u8,
    /// Transactions whose outcome is reported as unknown.
    pub unknown: u8,
    /// Calls that are sent again without a report that they were not executed.
    pub resends: u8,
    /// Starts of holders after the first. A reservation's second start means that it is given up.
    pub starts: u8,
    /// Allocations that holders ask for.
    pub allocations: u8,
    /// Blocks that are returned.
    pub returns: u8,
    /// Beats (keep-alives).
    pub beats: u8,
    /// Links that are inserted.
    pub inserts: u8,
    /// Inserts that stay under way for a while.
    pub late_inserts: u8,
    /// Inserts whose reply is lost, and which are resolved by reading.
    pub doubtful_inserts: u8,
    /// Inserts that are still under way when their holder has lost patience and reads the row.
    pub absent_inserts: u8,
    /// Registrations with the raised capacity within the same start.
    pub raises: u8,
    /// Steps of the clock.
    pub time_steps: u8,
    /// Restorations of etcd from an earlier backup.
    pub restores: u8,
}

impl Bounds {
    /// Returns the limits of the issuer's core in this world.
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
            // The first allocation is journalled. Others are only if their holder's record was
            // written whole since.
            journal_recent: self.journal_recent,
            journal_slots: 1,
            journal_saves: 0,
            ..Limits::default()
        }
    }

    /// The bounds that all worlds start from: no event may happen.
    const STILL: Self = Self {
        name: "nothing happens",
        issuers: 2,
        holders: 2,
        reservations: 0,
        one_name: false,
        reserved_len: 1,
        capacity: 6,
        raised_capacity: 12,
        block: 2,
        // The length of every block is fixed, so that a world holds exactly the numbers that its
        // hazard needs.
        fair_shares: 0,
        journal_recent: 1,
        step_ms: 1_000,
        holder_ttl_ms: 1_000,
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
            absent_inserts: 0,
            raises: 0,
            time_steps: 0,
            restores: 0,
        },
    };
}

/// Defines worlds. Each is as the world that it is from, but for some bounds and events.
macro_rules! worlds {
    ($($(#[$about:meta])* $world:ident from $base:ident, $name:literal:
        { $($bound:ident: $value:expr),* } with { $($event:ident: $count:expr),* };)+) => {
        impl Bounds {
            $($(#[$about])*
            pub const $world: Self = Self {
                name: $name,
                $($bound: $value,)*
                budget: Budget { $($event: $count,)* ..Self::$base.budget },
                ..Self::$base
            };)+
        }
    };
}

worlds! {
    /// Leaders change while transactions are in doubt, and copies of them execute late.
    LEADER_CHANGE from STILL, "leader change with transactions in doubt":
        { late_commits: 1 } with { elections: 2, unknown: 1, allocations: 2 };

    /// Replies are lost repeatedly around one leader change, and callers lose patience.
    LOST_REPLIES from STILL, "lost replies":
        { late_commits: 1 } with { elections: 1, unknown: 2, resends: 1, allocations: 2 };

    /// Three issuers, one of which read the ledger before it won, with terms that end before they
    /// serve.
    THREE_ISSUERS from STILL, "three issuers":
        { issuers: 3, holders: 1, late_commits: 1 }
        with { elections: 2, early_reads: 1, unknown: 1, allocations: 2 };

    /// Requests are duplicated, answers are lost or late, and holders restart meanwhile.
    DOUBLED_REQUESTS from STILL, "doubled requests":
        { issuers: 1, prompt_answers: false, in_hand: 2 }
        with { resends: 2, starts: 1, allocations: 2, returns: 1 };

    /// Holders crash with inserts under way, or fall silent and continue to mint, and others
    /// reclaim their blocks.
    RECLAIM from STILL, "crash and reclaim":
        { issuers: 1, prompt_commits: true, capacity: 4 }
        with { starts: 1, allocations: 2, inserts: 2, late_inserts: 1, doubtful_inserts: 1, time_steps: 2 };

    /// A holder returns a leaked block unused while the previous holder still mints from it.
    CONTESTED from RECLAIM, "a leaked block that is given back":
        { capacity: 2 } with { starts: 0, allocations: 3, returns: 1, inserts: 1, late_inserts: 0 };

    /// A third holder: one that is slow to take over a leaked block is overtaken by the next.
    SLOW_HEIR from STILL, "an heir that is overtaken":
        { issuers: 1, holders: 3, prompt_commits: true, capacity: 2 }
        with { allocations: 3, inserts: 1, time_steps: 4 };

    /// Unused ends of blocks are returned and allocated again, while the leader changes and an
    /// insert is in doubt.
    RETURN from STILL, "return and allocate again":
        { prompt_commits: true, capacity: 4 }
        with { elections: 1, allocations: 3, returns: 2, inserts: 3, doubtful_inserts: 1 };

    /// A leader that does not know that it was deposed receives a registration.
    DEPOSED_REGISTRAR from STILL, "a deposed leader is asked where to go on":
        { holders: 1, prompt_commits: true, in_hand: 3 }
        with { elections: 1, allocations: 4, returns: 1, inserts: 1, doubtful_inserts: 1 };

    /// An insert arrives after its holder has read that there is no row. Meanwhile the rest of the
    /// block is returned, and a reservation gets it.
    IN_DOUBT from STILL, "an insert that arrives after its row was read":
        { issuers: 1, reservations: 1, prompt_commits: true, ticks: false, capacity: 2 }
        with { allocations: 3, returns: 1, inserts: 1, absent_inserts: 1 };

    /// A second copy of a return arrives after its numbers were allocated to the same holder again.
    LATE_RETURN from STILL, "a return that arrives twice":
        { issuers: 1, prompt_commits: true, ticks: false, capacity: 2 }
        with { resends: 1, allocations: 3, returns: 1, inserts: 1 };

    /// Two processes have the name of one holder. The later start takes over the blocks of the
    /// earlier one, which learns of it from a refused call or beat.
    ONE_NAME from STILL, "two processes of one holder":
        { issuers: 1, one_name: true, prompt_commits: true, ticks: false, capacity: 4 }
        with { starts: 1, allocations: 3, returns: 1, beats: 1, inserts: 2 };

    /// etcd is restored from an old backup, so numbers are allocated a second time.
    RESTORED from STILL, "etcd restored from a backup":
        { prompt_commits: true }
        with { elections: 1, allocations: 3, inserts: 2, doubtful_inserts: 1, restores: 1 };

    /// Two holders use up the last numbers and report the numbers in hand, while one of them may
    /// return its own.
    EXHAUSTED from STILL, "the last numbers":
        { issuers: 1, prompt_commits: true, prompt_answers: false, ticks: false, capacity: 2, block: 1 }
        with { allocations: 3, returns: 1, beats: 2, inserts: 2 };

    /// The same while the leader changes. A leader that does not know that it was deposed hears
    /// some of the beats, and answers from its own view that every number is used.
    BEATS_TO_DEPOSED from EXHAUSTED, "beats to a deposed leader":
        { issuers: 2, prompt_answers: true, prompt_commits: true, capacity: 1 }
        with { elections: 1, allocations: 2, inserts: 1, returns: 0 };

    /// One holder raises the capacity of a full namespace while the other one is configured with
    /// the old capacity.
    RAISED from STILL, "a raised capacity":
        { issuers: 1, prompt_commits: true, ticks: false, capacity: 2, raised_capacity: 4 }
        with { starts: 1, allocations: 2, inserts: 1, beats: 1, raises: 1, time_steps: 1 };

    /// A reservation is silent, is filled and is given up, while a holder crashes and reclaims
    /// leaked blocks.
    RESERVED from STILL, "a reservation":
        { issuers: 1, reservations: 1, prompt_commits: true }
        with { starts: 1, allocations: 3, inserts: 2, late_inserts: 1, time_steps: 2 };

    /// Every number is used or reserved.
    ALL_RESERVED from EXHAUSTED, "every number is reserved":
        { capacity: 1, block: 1, reservations: 1 } with { returns: 1, beats: 2 };
}
