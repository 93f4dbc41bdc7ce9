//! The core's guards, and the switch that turns one off.
//!
//! A proof that cannot fail proves nothing. The mutation check runs the model and the simulation
//! with each guard off in turn, and requires that they notice. The switch exists only with the
//! cargo feature `mutations`, which no daemon is built with.

/// A rule of the core whose absence must make some schedule fail.
///
/// The two compares of the ledger and the two of the database are outside the core; the proofs have
/// their own switches for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guard {
    /// After a lost reply, only a `head` with this very batch means "applied" (I4).
    LostReply,
    /// An allocation takes the next seq, and a repeated seq repeats the answer (I5).
    Seq,
    /// A repeated registration is answered after a commit, so no deposed leader reports an old seq.
    RegisterCommit,
    /// Numbers returned from a block that was leaked before are handed out as leaked again.
    Contested,
    /// A journal is overwritten only after every holder that it names has been written whole since.
    Journal,
    /// A namespace is exhausted only if no holder, leaked block or part has an unused number.
    InHand,
    /// A report of numbers in hand counts only if it covers the holder's last allocation.
    FreshReport,
    /// The capacity of a namespace is never lowered.
    Capacity,
    /// A reservation keeps its blocks however long it is silent.
    Reserved,
    /// A reservation gets only numbers that are surely unused.
    ReservedUnused,
    /// A reservation gets no more numbers than it asks for.
    ReservedLen,
    /// Numbers of a reservation do not count as being in other hands.
    ReservedApart,
}
