//! The safety rules of holder and resolver, and the switch that disables one of them.
//!
//! A proof that cannot fail proves nothing. So the model, the simulation and the `world` tests each
//! run without one rule at a time, and must detect its absence. The switch exists only with the
//! cargo feature `rules`, which no daemon is built with. A rule is checked where its name is passed
//! to [`SafetyRules::keep`].

/// A rule whose absence some schedule must punish. The first seven are those of the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SafetyRule {
    /// A block is entered into the database's register before a number of it is claimed.
    RegisterFirst,
    /// A block is taken over only from the generation that it was leaked under, or an earlier one.
    LeakedGeneration,
    /// A block is released in the register before it is returned to the issuer.
    ReleaseFirst,
    /// A beat counts the numbers on their way back until the issuer has them.
    OnTheWay,
    /// A beat covers an allocation only once its block is in the buffer.
    EnteredOnly,
    /// The row under a number that was taken over may be its former holder's.
    Reclaimed,
    /// A row counts as this holder's own only while the register has the number under the claim's
    /// own entry.
    Holds,
    /// A copy of the database that may lag behind does not prove absence.
    Complete,
    /// The database's mark is compared with the marks reported to the ledger.
    Mark,
    /// After an insert with an unknown outcome the row is read before the link is acknowledged.
    Doubt,
    /// A link that was changed lately is read from the primary.
    ChangedLately,
    /// No replica is read before change events have arrived for as long as it may lag behind.
    ToldFor,
    /// A row of a copy is not used if the link is known to have changed since.
    Outdated,
    /// A row of a copy does not replace a newer one in the cache.
    Newer,
    /// The primary's answer is remembered, if no notification may tell of it.
    Shown,
    /// A link that was changed while it was read does not stay in the cache.
    ChangedSince,
    /// A caller that joins a read under way does not share an absence.
    Late,
    /// A caller that joins a read under way does not share a link that was changed since the read
    /// began.
    Joined,
    /// A deleted link is not kept in the cache.
    Deleted,
    /// A cached link that is not on the domain asked for is read again, since it may have moved
    /// there.
    Moved,
    /// While no change listener is connected a link is trusted for a short time only.
    Away,
    /// A link that was read before the change listener connected again is read again.
    Settled,
    /// A keyspace is not used before every resolver has heard of it.
    KeyspaceWait,
    /// A custom slug that is a code is not acknowledged before every resolver knows its keyspace.
    KeyspaceShown,
    /// An unknown keyspace of a reservation is read from the settings first.
    KeyspaceKnown,
    /// A reserved code is filled once.
    FilledOnce,
    /// The freshness of the settings is determined before they are read.
    FreshBefore,
}

/// The rules in force: all of them, unless a proof disables one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SafetyRules {
    off: Option<SafetyRule>,
}

impl SafetyRules {
    /// Creates the rules without `off`, or all of them for `None`.
    #[cfg(feature = "rules")]
    pub fn without(off: Option<SafetyRule>) -> Self {
        Self { off }
    }

    /// Returns whether a rule is in force.
    pub fn keep(self, rule: SafetyRule) -> bool {
        self.off != Some(rule)
    }
}
