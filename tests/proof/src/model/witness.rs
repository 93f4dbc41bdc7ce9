//! Witnesses: events that must occur in some schedule, or the proof would be void (the "sometimes"
//! properties).
//!
//! A witness belongs to a step and not to a state. In the state it would double the number of
//! states, so witnesses are recorded outside the model.

use std::sync::atomic::{AtomicBool, Ordering};

/// An event that some schedule must cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A block from a transaction whose leader fell before it could answer was answered by a later
    /// leader.
    DoubtOutlivedItsLeader,
    /// A lost reply was settled: the copy was refused, and `head` showed that the first one had
    /// been applied.
    LostReplySettled,
    /// A transaction of a deposed leader was refused.
    DeposedRefused,
    /// A copy of a transaction executed after its issuer had stopped waiting for it, and was
    /// refused.
    LateCopyRefused,
    /// A leader that had read the ledger before it won was refused.
    EarlyReadRefused,
    /// A repeated seq was answered with the same block.
    SeqRepeated,
    /// A leaked block without used numbers was taken over.
    ReclaimedUnused,
    /// A leaked block with some used numbers was taken over.
    ReclaimedPartly,
    /// A take-over was refused, because another holder had taken the block over since.
    TakeOverRefused,
    /// The register refused a new block, because it already had some of its numbers.
    RegisterRefused,
    /// The high watermark was below the end of the register, which was then reported to the issuer.
    WatermarkRepaired,
    /// Returned numbers were allocated again.
    TailAllocatedAgain,
    /// An insert found another link under its number.
    NumberTaken,
    /// An insert in doubt was found to be the holder's own.
    DoubtResolved,
    /// A leader that was deposed and did not know it answered a beat.
    BeatAnsweredByDeposed,
    /// A holder heard that every number is used.
    ExhaustedHeard,
    /// Numbers past the first capacity were allocated.
    RaisedUsed,
    /// A holder with the old capacity was refused.
    LoweringRefused,
    /// A link was stored under a reserved number.
    ReservationFilled,
    /// A reservation was silent for longer than the holder TTL.
    ReservationSilent,
    /// The unfilled numbers of a reservation were taken over after it was given up.
    ReservationReclaimed,
    /// A holder heard that every number is used while a reservation held some.
    ExhaustedBesideReservation,
    /// An insert arrived after its number was burned.
    BurnedThenStored,
    /// A return of a block that was no longer open closed nothing.
    LateReturn,
    /// A process was told of a later start of its holder.
    Superseded,
}

impl Witness {
    /// All witnesses, in the order of their declaration.
    pub const ALL: [Self; 25] = [
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
        Self::BeatAnsweredByDeposed,
        Self::ExhaustedHeard,
        Self::RaisedUsed,
        Self::LoweringRefused,
        Self::ReservationFilled,
        Self::ReservationSilent,
        Self::ReservationReclaimed,
        Self::ExhaustedBesideReservation,
        Self::BurnedThenStored,
        Self::LateReturn,
        Self::Superseded,
    ];
}

/// The set of witnesses seen so far.
#[derive(Debug, Default)]
pub struct Seen([AtomicBool; Witness::ALL.len()]);

impl Seen {
    /// Records a witness.
    pub fn note(&self, witness: Witness) {
        self.0[witness as usize].store(true, Ordering::Relaxed);
    }

    /// Returns the recorded witnesses.
    #[must_use]
    pub fn list(&self) -> Vec<Witness> {
        let seen = |witness: &Witness| self.0[*witness as usize].load(Ordering::Relaxed);
        Witness::ALL.into_iter().filter(seen).collect()
    }
}
