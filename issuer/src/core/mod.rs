//! The issuer's decisions as a pure function: [`Core::step`] takes an event and returns effects.
//!
//! The core has no clock, no tasks and no store: time comes in as a value, and a shell runs the
//! effects. The model checker and the simulation run this same code.
//!
//! 1. I1, I2: a block is a whole leaked block, the front of a free part, or the front of the
//!    numbers at the high watermark. The watermark moves forward by the length of the block and
//!    never back.
//! 2. I3: the answers of a batch leave after its transaction is known to have applied. Building a
//!    batch changes the state in place. If the transaction turns out not to have applied, the whole
//!    term is dropped with its state, so nothing computed from it can be answered or reused.
//! 3. I4: a transaction with an unknown outcome is followed by the identical transaction, and by
//!    nothing else.
//! 4. I5: the transaction that makes an allocation also records its seq, as an entry of its
//!    [`journal`].
//! 5. A leaked block goes to the next start of its own holder at once, and to other holders after
//!    `reclaim_after_ms`. The new holder is told the generation that the block was leaked under. It
//!    takes the block over from that generation in the database, and asks there which numbers are
//!    unused.
//! 6. A number at or above the ceiling that an issuer of the release before told its holders is
//!    allocated to no holder while they may trust it: see [`ceiling`].
//! 7. Near its end a namespace is shared out in smaller blocks. No holder is told "exhausted" while
//!    another holder's block may have an unused number: see [`scarcity`].
//! 8. I10: every change of a number's state moves a count from one term of the account to another.
//!
//! Rejected: a copy of the state per batch, changed and swapped in after the commit. It costs a
//! copy of every holder, and needs the same rule on failure anyway: the term ends.

mod allocate;
mod ceiling;
mod event;
mod guard;
mod journal;
mod leader_state;
mod leak;
mod limits;
mod machine;
mod register;
mod request;
mod return_blocks;
mod scarcity;
mod state;
mod status;
mod term;
mod txn;
mod values;

pub use event::{Effect, Event};
pub use guard::Guard;
pub use limits::Limits;
pub use machine::Core;
pub use request::{Answer, HolderReport, Leader, NamespaceReport, Refusal, Request, Returned, StatusReport};
pub use scarcity::scarce_beat_ms;
pub use state::{ByStart, State};
pub use txn::{HeadRead, Key, MAX_TXN_WRITES, Record, Snapshot, Txn, TxnOutcome, Write};
pub use values::{
    Account, Entry, Head, HolderRecord, Journal, LeakedBlock, NamespaceRecord, OpenBlock, Part, Reply,
};

#[cfg(test)]
mod tests;
