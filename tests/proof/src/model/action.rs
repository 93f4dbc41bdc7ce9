//! The steps of the system.

use super::world::CallId;

/// A step of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the function that takes each step documents it")]
pub enum Action {
    /// The leader's lease ends: etcd revokes it, or it expires.
    Vacate,
    Elect {
        server: usize,
        early: bool,
    },
    /// A follower reads the ledger before it wins.
    ReadEarly(usize),
    Depose(usize),
    Execute(usize),
    Reply(usize),
    TimeOut(usize),
    ExecuteLate(usize),
    Tick(usize),
    /// The clock advances by one step.
    Pass,
    Deliver {
        call: CallId,
        server: usize,
    },
    Resend(CallId),
    Take {
        call: CallId,
        answer: usize,
    },
    /// A holder's core is woken: at once, or after every back-off has ended.
    Wake {
        holder: usize,
        late: bool,
    },
    /// The database executes a holder's store call.
    Store(usize),
    Beat(usize),
    Insert(usize),
    InsertLate(usize),
    InsertInDoubt(usize),
    InsertAbsent(usize),
    Land(usize),
    GiveBack(usize),
    /// A reservation registers.
    Register(usize),
    /// A reservation asks for a block.
    Allocate(usize),
    /// A reservation's block is entered into the register.
    Enter(usize),
    Crash(usize),
    /// A holder registers again, with the raised capacity.
    Raise(usize),
    /// A backup of etcd is taken.
    BackUp,
    Restore,
}
