//! The mapping from each mutant to the world that detects it.

use holder::SafetyRule;
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
        Mutant::ReleaseCompare => (Bounds::CONTESTED, Law::ClaimedWhenRegistered),
        Mutant::EntryOwner => (Bounds::RESTORED, Law::AcknowledgedOnce),
        Mutant::EntryCount => (Bounds { holders: 1, ..Bounds::RESTORED }, Law::AcknowledgedOnce),
        Mutant::RegisterRefusal => (Bounds::RESTORED, Law::RefusedBlockUnused),
        Mutant::DoubtRead => (Bounds::IN_DOUBT, Law::AcknowledgedWhenStored),
        Mutant::DoubtBurned => (Bounds::IN_DOUBT, Law::ReservationUnused),
        Mutant::ReturnCompare => (Bounds::LATE_RETURN, Law::HandsDisjoint),
        Mutant::Superseded => (Bounds::ONE_NAME, Law::SupersededStops),
        Mutant::Core(guard) => return aimed_at_core(guard),
        Mutant::Holder(rule) => aimed_at_holder(rule),
    };
    Some(aimed)
}

fn aimed_at_core(guard: Guard) -> Option<(Bounds, Law)> {
    let aimed = match guard {
        Guard::LostReply => (Bounds::LEADER_CHANGE, Law::AnsweredWhenCommitted),
        Guard::Seq => (Bounds::DOUBLED_REQUESTS, Law::OneBlockPerSeq),
        Guard::RegisterCommit => (Bounds::DEPOSED_REGISTRAR, Law::HandsDisjoint),
        Guard::Contested => (Bounds::CONTESTED, Law::AcknowledgedOnce),
        // Two allocations use two journals only if `head` keeps none of them.
        Guard::Journal => (Bounds { journal_recent: 0, ..Bounds::LEADER_CHANGE }, Law::AccountBalances),
        Guard::Capacity => (Bounds::RAISED, Law::CapacityForward),
        Guard::InHand | Guard::FreshReport => (Bounds::EXHAUSTED, Law::ExhaustedWhenUsed),
        Guard::Reserved => (Bounds::RESERVED, Law::ReservationKept),
        Guard::ReservedUnused => (Bounds::RESERVED, Law::ReservationUnused),
        Guard::ReservedLen => (Bounds::RESERVED, Law::ReservationLen),
        // A holder that never hears of exhaustion waits without end, and no law of the model covers
        // that.
        Guard::ReservedApart => return None,
    };
    Some(aimed)
}

fn aimed_at_holder(rule: SafetyRule) -> (Bounds, Law) {
    match rule {
        SafetyRule::RegisterFirst => (Bounds::CONTESTED, Law::ClaimedWhenRegistered),
        SafetyRule::LeakedGeneration => (Bounds::SLOW_HEIR, Law::RegisterForward),
        SafetyRule::ReleaseFirst => (Bounds::RETURN, Law::NewBlockAccepted),
        SafetyRule::OnTheWay | SafetyRule::EnteredOnly => (Bounds::EXHAUSTED, Law::ExhaustedWhenUsed),
        SafetyRule::Reclaimed | SafetyRule::Holds => (Bounds::CONTESTED, Law::AcknowledgedOnce),
        rule => panic!("{rule:?} is no rule of the holder's core"),
    }
}
