//! Witnesses: events that must occur in some schedule, or the proof would be void (the "sometimes"
//! properties).
//!
//! A witness belongs to a step and not to a state. In the state it would double the number of
//! states, so witnesses are recorded outside the model.

use std::sync::atomic::{AtomicU32, Ordering};

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

/// The set of witnesses seen so far, with a bit for each.
#[derive(Debug, Default)]
pub struct Seen(AtomicU32);

impl Seen {
    /// Records a witness.
    pub fn note(&self, witness: Witness) {
        if !self.has(witness) {
            self.0.fetch_or(bit(witness), Ordering::Relaxed);
        }
    }

    /// Returns whether a witness was recorded.
    #[must_use]
    pub fn has(&self, witness: Witness) -> bool {
        self.0.load(Ordering::Relaxed) & bit(witness) != 0
    }
}

fn bit(witness: Witness) -> u32 {
    1 << witness as u32
}
