//! The guards that keep numbers apart, each of which can be taken out to see whether a proof notices.

use issuer::core::{Guard, Limits};

/// A system with one guard taken out.
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
    /// A holder believes a ceiling for a tenth less than the holder TTL, because clocks run at
    /// different speeds.
    CeilingMargin,
    /// A guard inside the core.
    Core(Guard),
}

impl Mutant {
    /// Every guard there is.
    pub const ALL: [Self; 20] = [
        Self::EpochCompare,
        Self::HeadCompare,
        Self::RegisterConstraint,
        Self::GenerationCompare,
        Self::CeilingMargin,
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
    ];

    /// The core's limits with this guard off.
    #[must_use]
    pub fn limits(mutant: Option<Self>, limits: Limits) -> Limits {
        let off = match mutant {
            Some(Self::Core(guard)) => Some(guard),
            _ => None,
        };
        Limits { off, ..limits }
    }

    /// How long a holder believes a ceiling, by its own clock, as `supply` does.
    #[must_use]
    pub fn trust_ms(mutant: Option<Self>, holder_ttl_ms: u64) -> u64 {
        let tenths = if mutant == Some(Self::CeilingMargin) { 10 } else { 9 };
        holder_ttl_ms * tenths / 10
    }
}
