//! Which world finds which missing guard.

use issuer::core::Guard;

use super::{Bounds, Law};
use crate::Mutant;

/// The world that finds a guard's absence the soonest, and the law that it breaks.
#[must_use]
pub fn aimed_at(mutant: Mutant) -> (Bounds, Law) {
    match mutant {
        Mutant::EpochCompare => (Bounds::LEADER_CHANGE, Law::OnlyTheLeaderWrites),
        Mutant::HeadCompare => (Bounds::LEADER_CHANGE, Law::WatermarkForward),
        Mutant::RegisterConstraint => (Bounds::RESTORED, Law::RegisterDisjoint),
        Mutant::GenerationCompare => (Bounds::SLOW_HEIR, Law::RegisterForward),
        Mutant::Core(Guard::LostReply) => (Bounds::LEADER_CHANGE, Law::AnsweredWhenCommitted),
        Mutant::Core(Guard::Seq) => (Bounds::DOUBLED_REQUESTS, Law::OneBlockPerSeq),
        Mutant::Core(Guard::RegisterCommit) => (Bounds::DEPOSED_REGISTRAR, Law::HandsDisjoint),
        Mutant::Core(Guard::BeatCommit) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::Contested) => (Bounds::CONTESTED, Law::AcknowledgedOnce),
        // Two allocations are two journals only when `head` keeps none of them.
        Mutant::Core(Guard::Journal) => {
            (Bounds { journal_recent: 0, ..Bounds::LEADER_CHANGE }, Law::AccountBalances)
        }
        Mutant::Core(Guard::CeilingDelay) => (Bounds::CEILING, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::Capacity) => (Bounds::RAISED, Law::CapacityForward),
        Mutant::Core(Guard::RaisedCeiling) => (Bounds::RAISED, Law::NothingAllocatedAbove),
        Mutant::Core(Guard::InHand | Guard::FreshReport) => (Bounds::EXHAUSTED, Law::ExhaustedWhenUsed),
    }
}
