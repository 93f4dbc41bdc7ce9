//! The core's guards, and the switch that turns one off.
//!
//! A proof that cannot fail proves nothing: the mutation check runs the model and the simulation with each guard off in turn
//! and demands that they notice. The switch exists only with the cargo feature `mutations`, which no daemon is built with.

use crate::core::Limits;

/// A rule of the core whose absence some schedule must punish. The ledger's two compares and the database's two live outside
/// of the core, where the proofs have their own switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guard {
    /// After a lost reply, only a `head` with this very batch means "applied" (I4).
    LostReply,
    /// An allocation takes the next seq, and a repeated seq repeats the answer (I5).
    Seq,
    /// A repeated registration is answered only after a commit, so that no deposed leader tells an old seq.
    RegisterCommit,
    /// So is a beat, so that no deposed leader keeps an old ceiling fresh.
    BeatCommit,
    /// What comes back of a block that was leaked before goes out as leaked again.
    Contested,
    /// A journal is overwritten only when every holder that it names has been written whole since.
    Journal,
    /// A higher ceiling is used only when every holder has heard of it or has stopped trusting its copy.
    CeilingDelay,
    /// A number space is exhausted only when no holder, leaked block or returned part has an unused number.
    InHand,
    /// A holder's report of what it has in hand counts only when it covers the holder's last allocation.
    FreshReport,
    /// The capacity of a namespace is never lowered.
    Capacity,
    /// A raised capacity moves the ceiling by an announcement, like every other move.
    RaisedCeiling,
    /// A reservation's blocks are kept for it however long it is silent.
    Reserved,
    /// A reservation gets numbers that are surely unused.
    ReservedUnused,
    /// A reservation gets no more numbers than it asks for.
    ReservedLen,
    /// What a reservation holds does not count as being in other hands.
    ReservedApart,
}

impl Limits {
    /// Whether a guard is on.
    #[cfg(not(feature = "mutations"))]
    pub(super) fn guards(&self, _guard: Guard) -> bool {
        true
    }

    /// Whether a guard is on.
    #[cfg(feature = "mutations")]
    pub(super) fn guards(&self, guard: Guard) -> bool {
        self.off != Some(guard)
    }
}
