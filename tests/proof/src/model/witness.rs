//! What must happen in some schedule, or the proof would prove nothing: the "sometimes" properties.
//!
//! A witness belongs to a step and not to a state. Kept in the state it would double the number of states; so it is kept
//! beside the model.

use std::sync::atomic::{AtomicBool, Ordering};

/// Something that some schedule must bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A block from a transaction whose leader fell before it could answer was answered by a later leader.
    DoubtOutlivedItsLeader,
    /// A lost reply was settled: the copy was refused, and `head` said that the first one had applied.
    LostReplySettled,
    /// A transaction of a deposed leader was refused.
    DeposedRefused,
    /// A copy that nobody waited for any more executed and was refused.
    LateCopyRefused,
    /// A leader that had read the ledger before it won was refused.
    EarlyReadRefused,
    /// A repeated seq was answered with the same block.
    SeqRepeated,
    /// A leaked block was taken over and no number of it was used.
    ReclaimedUnused,
    /// A leaked block was taken over and some numbers of it were used.
    ReclaimedPartly,
    /// A take-over was refused, because somebody had taken the block since.
    TakeOverRefused,
    /// The register refused a new block, because it knew its numbers already.
    RegisterRefused,
    /// The watermark was moved past what the register knows.
    WatermarkRepaired,
    /// Numbers that came back were allocated again.
    TailAllocatedAgain,
    /// An insert found a row of somebody else.
    NumberTaken,
    /// An insert in doubt was found to be the holder's own.
    DoubtResolved,
    /// An announced ceiling came into use.
    CeilingUsed,
    /// A holder trusted a ceiling while another number was acknowledged.
    CeilingTrusted,
    /// A holder heard that every number is used.
    ExhaustedHeard,
    /// Numbers past the first capacity were allocated.
    RaisedUsed,
    /// A holder with the old capacity was refused.
    LoweringRefused,
    /// A link was stored under a reserved number.
    ReservationFilled,
    /// A reservation was silent for longer than a holder may be.
    ReservationSilent,
    /// What a reservation had not filled was taken over after it was given up.
    ReservationReclaimed,
    /// A holder heard that every number is used while a reservation held some.
    ExhaustedBesideReservation,
}

impl Witness {
    /// All of them, in their order.
    pub const ALL: [Self; 23] = [
        Self::DoubtOutlivedItsLeader,
        Self::LostReplySettled,
        Self::DeposedRefused,
        Self::LateCopyRefused,
        Self::EarlyReadRefused,
        Self::SeqRepeated,
        Self::ReclaimedUnused,
        Self::ReclaimedPartly,
        Self::TakeOverRefused,
        Self::RegisterRefused,
        Self::WatermarkRepaired,
        Self::TailAllocatedAgain,
        Self::NumberTaken,
        Self::DoubtResolved,
        Self::CeilingUsed,
        Self::CeilingTrusted,
        Self::ExhaustedHeard,
        Self::RaisedUsed,
        Self::LoweringRefused,
        Self::ReservationFilled,
        Self::ReservationSilent,
        Self::ReservationReclaimed,
        Self::ExhaustedBesideReservation,
    ];
}

/// Which witnesses have been seen.
#[derive(Debug, Default)]
pub struct Seen([AtomicBool; Witness::ALL.len()]);

impl Seen {
    /// Notes one.
    pub fn note(&self, witness: Witness) {
        self.0[witness as usize].store(true, Ordering::Relaxed);
    }

    /// Those that were noted.
    #[must_use]
    pub fn list(&self) -> Vec<Witness> {
        let seen = |witness: &Witness| self.0[*witness as usize].load(Ordering::Relaxed);
        Witness::ALL.into_iter().filter(seen).collect()
    }
}
