//! The verdict on an insert whose outcome is unknown (I4): its row is read, and then the register.
//!
//! The order matters. If the number belongs to this holder alone after the row was read, nobody
//! else can have written what was read.

use crate::{
    buffer::{Claim, Fate},
    rules::{Rule, Rules},
};

/// What was read under the number of an insert in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// No row.
    Absent,
    /// A row that equals the one that was sent.
    Same,
    /// Any other row.
    Different,
}

/// What is known about the insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row is this insert's: the link is acknowledged.
    Ours,
    /// The row is another's: another number is tried.
    Another,
    /// There is no row, but the insert may still arrive: the number is burned, another one is tried.
    Absent,
    /// The row may be this insert's. Whether the register still has the number under the claim's
    /// own entry decides: see [`Verdict::of_register`].
    AskRegister,
}

impl Verdict {
    /// Judges the row that was read.
    #[must_use]
    pub fn of_row(claim: &Claim, row: Row, rules: Rules) -> Self {
        match row {
            Row::Absent => Self::Absent,
            Row::Different => Self::Another,
            Row::Same if claim.reclaimed && rules.keep(Rule::Reclaimed) => Self::Another,
            Row::Same if rules.keep(Rule::Holds) => Self::AskRegister,
            Row::Same => Self::Ours,
        }
    }

    /// Judges a row that equals the one that was sent, by whether the register has the number under
    /// the claim's own entry.
    #[must_use]
    pub fn of_register(holds: bool) -> Self {
        if holds { Self::Ours } else { Self::Another }
    }

    /// Returns the fate of the claimed number. One without a verdict is burned: its insert may
    /// still arrive.
    #[must_use]
    pub fn fate(verdict: Option<Self>) -> Fate {
        match verdict {
            Some(Self::Ours | Self::Another) => Fate::Used,
            Some(Self::Absent | Self::AskRegister) | None => Fate::Burned,
        }
    }
}
