//! Events and effects of the core.

use numbers::{Epoch, Ticket};

use super::{
    request::{Answer, Leader, Refusal, Request},
    txn::{Snapshot, Txn, TxnOutcome},
};

/// An input of the core.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// This issuer won an election, and has read the ledger since then.
    Elected {
        /// Epoch of the new term.
        epoch: Epoch,
        /// Consistent snapshot of the ledger, read after the election.
        snapshot: Snapshot,
    },
    /// This issuer does not lead. Another one may lead, and is named if it is known.
    Following(Option<Leader>),
    /// A call arrived. Its answer carries the same ticket.
    Arrived(Ticket, Request),
    /// The transaction in flight has ended, or its outcome is unknown.
    Committed(TxnOutcome),
    /// Time has passed, so holders may have been silent for longer than the holder TTL.
    Tick,
    /// The process was suspended for a while. Its record of when holders were last heard is void,
    /// so every holder gets a full TTL again.
    Woke,
    /// The process will stop: refuse new requests, finish the transaction in flight, abdicate.
    Retire,
}

/// An action for the shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send the answer to a caller.
    Answer(Ticket, Result<Answer, Refusal>),
    /// Run a transaction and report its outcome with [`Event::Committed`].
    Commit {
        /// Transaction to run.
        txn: Txn,
        /// Whether this repeats a transaction with an unknown outcome. The shell backs off before
        /// it sends one again.
        again: bool,
    },
    /// Give up leadership: another leader has written the ledger, or this issuer is retiring.
    Abdicate,
}
