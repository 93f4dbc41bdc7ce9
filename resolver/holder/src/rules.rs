//! The rules that keep numbers apart, and the switch that takes one out.
//!
//! A proof that cannot fail proves nothing: model, simulation and world each run without one rule
//! at a time, and have to notice. The switch exists only with the cargo feature `rules`, which no
//! daemon is built with.

/// A rule whose absence some schedule must punish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A block is in the database's register before a number of it is claimed.
    RegisterFirst,
    /// A block is taken over only from the generation that it was leaked under, or an earlier one.
    LeakedGeneration,
    /// A block is released in the register before it is returned.
    ReleaseFirst,
    /// A beat counts the numbers on their way back, until the issuer has them.
    OnTheWay,
    /// A beat covers an allocation only once its block is in the buffer.
    EnteredOnly,
    /// A row under a number that was taken over may be its former holder's.
    Reclaimed,
    /// A row is one's own only while the register has the number under one's own entry.
    Holds,
    /// A ceiling is believed for a tenth less than the holder TTL, because clocks run at different
    /// speeds.
    Margin,
    /// A ceiling is believed for a bounded time.
    Freshness,
    /// No ceiling is believed below the end of the register.
    RegisteredEnd,
}

/// Which rules are in force: all of them, unless a proof takes one out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    #[cfg(feature = "rules")]
    off: Option<Rule>,
}

impl Rules {
    /// Returns the rules without one of them, if any is named.
    #[cfg(feature = "rules")]
    #[must_use]
    pub fn without(off: Option<Rule>) -> Self {
        Self { off }
    }

    /// Returns whether a rule is in force.
    #[cfg(feature = "rules")]
    #[must_use]
    pub fn keep(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }

    /// Returns whether a rule is in force.
    #[cfg(not(feature = "rules"))]
    #[must_use]
    pub fn keep(self, _: Rule) -> bool {
        true
    }
}
