//! The verdict on an insert with an unknown outcome (I4): its row is read, and then the register.
//!
//! The order matters. If the number belongs to this holder alone after the row was read, no other
//! process can have written the row.

use crate::{
    buffer::{Claim, Fate},
    safety_rule::{SafetyRule, SafetyRules},
};

/// The row that was read under the number of an insert in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// There is no row.
    Absent,
    /// The row equals the one that was sent.
    Same,
    /// There is another row.
    Different,
}

/// A verdict on an insert in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The row is this insert's: the link is acknowledged.
    Ours,
    /// The row belongs to another insert, so another number is tried.
    Another,
    /// There is no row, but the insert may still arrive. The number is burned, and another one is
    /// tried.
    Absent,
    /// The row may be this insert's. The register decides, by whether it still has the number under
    /// the claim's own entry: see [`Verdict::of_register`].
    AskRegister,
}

impl Verdict {
    /// Judges an insert by the row that was read.
    pub fn of_row(claim: &Claim, row: Row, rules: SafetyRules) -> Self {
        match row {
            Row::Absent => Self::Absent,
            Row::Different => Self::Another,
            Row::Same if claim.reclaimed && rules.keep(SafetyRule::Reclaimed) => Self::Another,
            Row::Same if rules.keep(SafetyRule::Holds) => Self::AskRegister,
            Row::Same => Self::Ours,
        }
    }

    /// Judges an insert whose row equals the one that was sent. `holds` is whether the register has
    /// the number under the claim's own entry.
    pub fn of_register(holds: bool) -> Self {
        if holds { Self::Ours } else { Self::Another }
    }

    /// Returns the fate of the claimed number. Without a verdict the number is burned, because its
    /// insert may still arrive.
    pub fn fate(verdict: Option<Self>) -> Fate {
        match verdict {
            Some(Self::Ours | Self::Another) => Fate::Used,
            Some(Self::Absent | Self::AskRegister) | None => Fate::Burned,
        }
    }
}
