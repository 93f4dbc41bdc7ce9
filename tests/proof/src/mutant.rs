//! The guards that keep numbers unique, each of which can be switched off to see whether a proof
//! detects it.

use holder::{Rule, Rules};
use issuer::core::{Guard, Limits};

/// A guard that is switched off in a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// etcd does not compare the leader key's `create_revision`.
    EpochCompare,
    /// etcd does not compare the `mod_revision` of `head`.
    HeadCompare,
    /// The block register does not refuse an overlapping block.
    RegisterConstraint,
    /// The block register does not compare generations at a take-over.
    GenerationCompare,
    /// A guard of the issuer's core is off.
    Core(Guard),
    /// A rule of the holder's core is off.
    Holder(Rule),
}

impl Mutant {
    /// All mutants except [`Rule::RegisteredEnd`]. A ledger restored from a backup breaks promises
    /// in these proofs anyway. So only the resolver's `world` tests detect the absence of that
    /// rule.
    pub const ALL: [Self; 28] = [
        Self::EpochCompare,
        Self::HeadCompare,
        Self::RegisterConstraint,
        Self::GenerationCompare,
        Self::Core(Guard::LostReply),
        Self::Core(Guard::Seq),
        Self::Core(Guard::RegisterCommit),
        Self::Core(Guard::BeatCommit),
        Self::Core(Guard::Contested),
        Self::Core(Guard::Journal),
        Self::Core(Guard::CeilingDelay),
        Self::Core(Guard::InHand),
        Self::Core(Guard::FreshReport),
        Self::Core(Guard::Capacity),
        Self::Core(Guard::RaisedCeiling),
        Self::Core(Guard::Reserved),
        Self::Core(Guard::ReservedUnused),
        Self::Core(Guard::ReservedLen),
        Self::Core(Guard::ReservedApart),
        Self::Holder(Rule::RegisterFirst),
        Self::Holder(Rule::LeakedGeneration),
        Self::Holder(Rule::ReleaseFirst),
        Self::Holder(Rule::OnTheWay),
        Self::Holder(Rule::EnteredOnly),
        Self::Holder(Rule::Reclaimed),
        Self::Holder(Rule::Holds),
        Self::Holder(Rule::Margin),
        Self::Holder(Rule::Freshness),
    ];

    /// Returns the limits of the issuer's core with the mutant's guard off.
    #[must_use]
    pub fn limits(mutant: Option<Self>, limits: Limits) -> Limits {
        let off = match mutant {
            Some(Self::Core(guard)) => Some(guard),
            _ => None,
        };
        Limits { off, ..limits }
    }

    /// Returns the rules of the holder's core with the mutant's rule off.
    #[must_use]
    pub fn rules(mutant: Option<Self>) -> Rules {
        Rules::without(match mutant {
            Some(Self::Holder(rule)) => Some(rule),
            _ => None,
        })
    }
}
