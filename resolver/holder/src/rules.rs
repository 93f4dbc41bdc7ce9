//! The safety rules that keep numbers unique, and the switch that disables one of them.
//!
//! A proof that cannot fail proves nothing. So the model, the simulation and the `world` tests each
//! run without one rule at a time, and must detect its absence. The switch exists only with the
//! cargo feature `rules`, which no daemon is built with.

/// A rule whose absence some schedule must punish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
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
}

/// The rules in force: all of them, unless a proof disables one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rules {
    off: Option<Rule>,
}

impl Rules {
    /// Creates the rules without `off`, or all of them for `None`.
    #[cfg(feature = "rules")]
    pub fn without(off: Option<Rule>) -> Self {
        Self { off }
    }

    /// Returns whether a rule is in force.
    pub fn keep(self, rule: Rule) -> bool {
        self.off != Some(rule)
    }
}
