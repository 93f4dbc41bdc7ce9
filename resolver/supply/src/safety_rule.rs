//! The safety rules of the resolver, each with a name. The proof (`tests/world`) disables them one
//! at a time, and must detect each absence. Without the cargo feature `guards`, which no daemon is
//! built with, every rule is in force.
//!
//! Paths are relative to `resolver/`.

/// A safety rule of the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SafetyRule {
    /// A block is released in the register before it is returned to the issuer
    /// (`holder/src/core/returns.rs`).
    ReleaseFirst,
    /// A copy of the database that may lag behind does not prove absence
    /// (`app/src/lookup/reader.rs`).
    Complete,
    /// The database's mark is compared with the marks reported to the ledger
    /// (`supply/src/history.rs`).
    Mark,
    /// The row under a number that was taken over may be its former holder's
    /// (`holder/src/doubt.rs`).
    Reclaimed,
    /// A row counts as this holder's own only while the register has the number under the claim's
    /// own entry (`holder/src/doubt.rs`).
    Holds,
    /// After an insert with an unknown outcome the row is read before the link is acknowledged
    /// (`app/src/creator.rs`).
    Doubt,
    /// A link that was changed lately is read from the primary (`app/src/lookup/invalidation.rs`).
    ChangedLately,
    /// No replica is read before change events have arrived for as long as it may lag behind
    /// (`app/src/lookup/invalidation.rs`).
    ToldFor,
    /// A row of a copy is not used if the link is known to have changed since
    /// (`app/src/lookup/invalidation.rs`).
    Outdated,
    /// A row of a copy does not replace a newer one in the cache (`app/src/lookup/reader.rs`).
    Newer,
    /// What the primary has shown is remembered, if no notification may tell of it
    /// (`app/src/lookup/invalidation.rs`).
    Shown,
    /// A link that was changed while it was read does not stay in the cache
    /// (`app/src/lookup/reader.rs`).
    ChangedSince,
    /// A caller that joins a read under way does not share an absence (`app/src/lookup/reader.rs`).
    Late,
    /// A caller that joins a read under way does not share a link that was changed since the read
    /// began (`app/src/lookup/reader.rs`).
    Joined,
    /// A deleted link is not kept in the cache (`app/src/lookup/reader.rs`).
    Deleted,
    /// A cached link that is not on the domain asked for is read again, since it may have moved
    /// there (`app/src/lookup/by_slug.rs`).
    Moved,
    /// While no change listener is connected a link is trusted for a short time only
    /// (`app/src/freshness.rs`).
    Away,
    /// A link that was read before the change listener connected again is read again
    /// (`app/src/freshness.rs`).
    Settled,
    /// A keyspace is not used before every resolver has heard of it (`app/src/keyspaces.rs`).
    KeyspaceWait,
    /// A custom slug that is a code is not acknowledged before every resolver knows its keyspace
    /// (`app/src/lookup.rs`).
    KeyspaceShown,
    /// An unknown keyspace of a reservation is read from the settings first
    /// (`app/src/links/reservation/reserver.rs`).
    KeyspaceKnown,
    /// A reserved code is filled once (`app/src/links/reservation/fill.rs`).
    FilledOnce,
    /// The freshness of the settings is determined before they are read
    /// (`app/src/domain_cache/question.rs`).
    FreshBefore,
}

/// The safety rules in force: all of them, unless a proof disables one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SafetyRules {
    off: Option<SafetyRule>,
}

impl SafetyRules {
    /// Creates the rules without `off`, or all of them for `None`.
    #[cfg(feature = "guards")]
    pub fn without(off: Option<SafetyRule>) -> Self {
        Self { off }
    }

    /// Returns whether a rule is in force.
    pub fn keep(self, rule: SafetyRule) -> bool {
        self.off != Some(rule)
    }

    /// Returns the rules of the pure core that are in force.
    #[cfg(feature = "guards")]
    pub fn of_holder(self) -> holder::Rules {
        holder::Rules::without(self.off.and_then(|rule| match rule {
            SafetyRule::ReleaseFirst => Some(holder::Rule::ReleaseFirst),
            SafetyRule::Reclaimed => Some(holder::Rule::Reclaimed),
            SafetyRule::Holds => Some(holder::Rule::Holds),
            _ => None,
        }))
    }

    /// Returns the rules of the pure core, all of which are in force.
    #[cfg(not(feature = "guards"))]
    pub fn of_holder(self) -> holder::Rules {
        holder::Rules::default()
    }
}
