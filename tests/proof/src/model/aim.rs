//! The mapping from each mutant to the world that detects it.

use holder::Rule;
use issuer::core::Guard;

use super::{Bounds, Law};
use crate::Mutant;

/// Returns the world that detects a mutant the soonest, and the law that the mutant breaks. Returns
/// `None` if only the simulation detects it.
#[must_use]
pub fn aimed_at(mutant: Mutant) -> Option<(Bounds, Law)> {
    let aimed = match mutant {
        Mutant::EpochCompare => (Bounds::LEADER_CHANGE, Law::OnlyTheLeaderWrites),
        Mutant::HeadCompare => (Bounds::LEADER_CHANGE, Law::WatermarkForward),
        Mutant::RegisterConstraint => (Bounds::RESTORED, Law::RegisterDisjoint),
        Mutant::GenerationCompare => (Bounds::SLOW_HEIR, Law::RegisterForward),
        Mutant::Holder(Rule::Margin) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::LostReply) => (Bounds::LEADER_CHANGE, Law::AnsweredWhenCommitted),
        Mutant::Core(Guard::Seq) => (Bounds::DOUBLED_REQUESTS, Law::OneBlockPerSeq),
        Mutant::Core(Guard::RegisterCommit) => (Bounds::DEPOSED_REGISTRAR, Law::HandsDisjoint),
        Mutant::Core(Guard::BeatCommit) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::Contested) => (Bounds::CONTESTED, Law::AcknowledgedOnce),
        // Two allocations use two journals only if `head` keeps none of them.
        Mutant::Core(Guard::Journal) => {
            (Bounds { journal_recent: 0, ..Bounds::LEADER_CHANGE }, Law::AccountBalances)
        }
        Mutant::Core(Guard::CeilingDelay) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::Capacity) => (Bounds::RAISED, Law::CapacityForward),
        Mutant::Core(Guard::RaisedCeiling) => (Bounds::RAISED, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::InHand | Guard::FreshReport) => (Bounds::EXHAUSTED, Law::ExhaustedWhenUsed),
        Mutant::Core(Guard::Reserved) => (Bounds::RESERVED, Law::ReservationKept),
        Mutant::Core(Guard::ReservedUnused) => (Bounds::RESERVED, Law::ReservationUnused),
        Mutant::Core(Guard::ReservedLen) => (Bounds::RESERVED, Law::ReservationLen),
        // A holder that never hears of exhaustion waits without end, and no law of the model covers
        // that.
        Mutant::Core(Guard::ReservedApart) => return None,
        Mutant::Holder(Rule::LeakedGeneration) => (Bounds::SLOW_HEIR, Law::RegisterForward),
        Mutant::Holder(Rule::Freshness) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Holder(_) => return None,
    };
    Some(aimed)
}
