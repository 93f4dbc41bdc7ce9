//! The rules of the resolver that keep its promises, one name each. The proof (`world`) takes them out one at a time, and each
//! has to be missed. Outside of unit tests every rule is in force, and asking costs nothing.

#[cfg(not(any(test, feature = "guards")))]
use std::time::Duration;

/// A rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// A block is released in the register before it is returned (`holder/src/core/returns.rs`).
    ReleaseFirst,
    /// A slug is acknowledged when no resolver denies it any more (`creator/shown.rs`).
    SlugWait,
    /// What a copy does not have is not absent (`lookup/reader.rs`).
    Complete,
    /// The database's mark is compared with what the ledger was told (`supply/src/history.rs`).
    Mark,
    /// A row under a number that was taken over may be its former holder's (`holder/src/doubt.rs`).
    Reclaimed,
    /// A row is one's own only while the number is (`holder/src/doubt.rs`).
    Holds,
    /// An insert in doubt is looked for before its link is acknowledged (`create.rs`).
    Doubt,
    /// That nobody has picked a code is believed for a moment only (`lookup/unminted_slugs.rs`).
    Trusted,
    /// What was changed lately is read from the primary (`lookup/invalidation.rs`).
    ChangedLately,
    /// No replica is asked before changes were heard of for as long as it may lag behind (`lookup/invalidation.rs`).
    ToldFor,
    /// What only a copy has said is believed for a moment, not until it is changed (`lookup/invalidation.rs`).
    Sure,
    /// A link that was changed while it was read does not stay in the cache (`lookup/reader.rs`).
    ChangedSince,
    /// Who joins a read that is under way shares no absence (`lookup/reader.rs`).
    Late,
    /// Who joins a read that is under way shares no link that was changed since it began (`lookup/reader.rs`).
    Joined,
    /// A deleted link is not kept in the cache (`lookup/reader.rs`).
    Deleted,
    /// While nobody tells of changes a link is believed for a moment only (`freshness.rs`).
    Away,
    /// What was read before changes were heard of again is read again (`freshness.rs`).
    Settled,
    /// That a code is nobody's on a domain is believed for a moment only (`lookup/slugs.rs`).
    Free,
    /// A ceiling is believed for less than the holder TTL (`holder/src/ceilings.rs`).
    Ceiling,
    /// No ceiling is below what the register has (`holder/src/ceilings.rs`).
    RegisteredEnd,
    /// A ceiling is believed for a tenth less than the holder TTL, because clocks run at different speeds (`holder/src/ceilings.rs`).
    Margin,
    /// A keyspace is not used before every resolver has heard of it (`prepare.rs`).
    KeyspaceWait,
    /// A picked code is not acknowledged before every resolver knows its keyspace
    /// (`creator/shown.rs`).
    KeyspaceShown,
    /// A reservation's keyspace that is not known is asked for (`reservation/reserver.rs`).
    KeyspaceKnown,
    /// A reserved code is filled once (`reservation/fill.rs`).
    FilledOnce,
    /// The numbers of an open reservation are not taken over (`store/src/postgres/blocks.rs`).
    OpenReservation,
    /// Whether the settings were fresh is asked before they are (`directory/question.rs`).
    FreshBefore,
    /// A version of the settings differs from the same number in an older copy of the database
    /// (`store/src/outcomes.rs`).
    SettingsCopy,
    /// After a restart of the server nothing is stored before the mark is compared (`store/src/postgres/admin.rs`).
    Compared,
    /// Nothing is stored in another history than the one that its number is of (`store/src/postgres/batch.rs`).
    History,
}

/// Whether a rule is in force.
#[cfg(not(any(test, feature = "guards")))]
pub const fn is_on(_: Guard) -> bool {
    true
}

/// How long a time takes by a clock that may be too slow.
#[cfg(not(any(test, feature = "guards")))]
pub const fn by_this_clock(time: Duration) -> Duration {
    time
}

/// The rules of the pure core that are in force.
#[cfg(not(any(test, feature = "guards")))]
#[must_use]
pub fn rules() -> holder::Rules {
    holder::Rules::default()
}

#[cfg(any(test, feature = "guards"))]
pub use switch::{by_this_clock, is_on, rules, with_slow_clocks, without};

#[cfg(any(test, feature = "guards"))]
mod switch {
    use std::{cell::Cell, time::Duration};

    use holder::{Rule, Rules};

    use super::Guard;

    thread_local! {
        /// The rule that this thread's world goes without.
        static OFF: Cell<Option<Guard>> = const { Cell::new(None) };
        /// By how many thousandths its resolvers' clocks are slower than the issuer's.
        static SLOWER: Cell<u32> = const { Cell::new(0) };
    }

    /// How long a time takes by a clock that may be too slow.
    #[must_use]
    pub fn by_this_clock(time: Duration) -> Duration {
        time * (1_000 + SLOWER.get()) / 1_000
    }

    /// Runs something while the resolvers' clocks are slower than the issuer's.
    pub fn with_slow_clocks<T>(thousandths: u32, run: impl FnOnce() -> T) -> T {
        let before = SLOWER.replace(thousandths);
        let done = run();
        SLOWER.set(before);
        done
    }

    /// Whether a rule is in force on this thread.
    #[must_use]
    pub fn is_on(guard: Guard) -> bool {
        OFF.get() != Some(guard)
    }

    /// The rules of the pure core that are in force on this thread.
    #[must_use]
    pub fn rules() -> Rules {
        Rules::without(OFF.get().and_then(|guard| match guard {
            Guard::ReleaseFirst => Some(Rule::ReleaseFirst),
            Guard::Reclaimed => Some(Rule::Reclaimed),
            Guard::Holds => Some(Rule::Holds),
            Guard::Ceiling => Some(Rule::Freshness),
            Guard::RegisteredEnd => Some(Rule::RegisteredEnd),
            Guard::Margin => Some(Rule::Margin),
            _ => None,
        }))
    }

    /// Runs something without a rule.
    pub fn without<T>(guard: Option<Guard>, run: impl FnOnce() -> T) -> T {
        let before = OFF.replace(guard);
        let done = run();
        OFF.set(before);
        done
    }
}
