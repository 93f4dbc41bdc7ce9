//! The core's calls to the issuer and to the store, and the answers.
//!
//! Numbers and names are typed; their encoding is left to the shell.

use std::sync::Arc;

use codes::KeyspaceIndex;
use numbers::{Block, Generation, Incarnation, Mark, Namespace, Seq, Span, StoreEpoch};

use crate::buffer::{Closed, EntryId};

/// A call to the issuer. Each may be repeated until it has a definite answer (I5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Registers this start of the holder, for namespaces with their capacities.
    Register(Vec<(Namespace, u64)>),
    /// Asks for a block. The shell adds the wanted length.
    Allocate {
        /// The position of the keyspace among those of this holder.
        keyspace: usize,
        /// The incarnation of the registration.
        incarnation: Incarnation,
        /// The next seq, or that of a call with an unknown outcome.
        seq: Seq,
        /// The history of the database that links with these numbers would be stored in.
        store: StoreEpoch,
    },
    /// Returns a block.
    Return {
        /// The incarnation of the registration.
        incarnation: Incarnation,
        /// The block with its account.
        closed: Closed,
        /// The end of the registered numbers, if the register refused the block.
        registered_end: Option<u64>,
    },
}

/// The issuer's answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// The answer to `Register`.
    Registered(Registered),
    /// The answer to `Allocate`.
    Allocated {
        /// The allocated block.
        block: Block,
        /// The generation that the block was leaked under; `None` if its numbers are unused for
        /// certain.
        leaked: Option<Generation>,
        /// The history that the block was allocated for; `None` from an issuer of an earlier
        /// release.
        store: Option<StoreEpoch>,
    },
    /// The answer to `Return`.
    Returned,
}

/// A registration with the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registered {
    /// The incarnation of this start of the holder.
    pub incarnation: Incarnation,
    /// The last seq that was answered under this incarnation.
    pub last_seq: Seq,
    /// The holder TTL in milliseconds: how long the holder counts as alive after a beat.
    pub holder_ttl_ms: u64,
    /// The id of the ledger; `None` from an issuer of an earlier release.
    pub ledger: Option<String>,
    /// The highest mark of the database that was reported to the ledger.
    pub mark: Mark,
}

/// A definite refusal by the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Every number of the namespace is used.
    #[error("the keyspace is exhausted")]
    Exhausted,
    /// No number is free now, but other holders may return some.
    #[error("no number is free: others may give some back")]
    InOtherHands,
    /// A later start of a holder with this name has registered. Carries the issuer's message.
    #[error("another process has registered with this holder id: {0}")]
    Superseded(String),
    /// The ledger does not know this holder or namespace, or not any more. Carries the issuer's
    /// message.
    #[error("not registered: {0}")]
    NotRegistered(String),
    /// The answer is invalid. Carries a description of the expected one.
    #[error("invalid answer of the issuer: expected {0}")]
    Malformed(&'static str),
    /// Any other refusal, which a repeated call would not change. Carries its code and message.
    #[error("the issuer refused {0}")]
    Other(String),
}

/// An entry of the database's block register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterEntry {
    /// The index of the keyspace.
    pub index: KeyspaceIndex,
    /// The range of numbers and its generation.
    pub block: Block,
    /// The registration that the block was allocated to.
    pub incarnation: Incarnation,
    /// The number of the entry, unique within one start of the holder.
    pub entry: EntryId,
}

/// A call to the store. Every call except `Release` is repeated until the store answers, because
/// without the store no link could be stored anyway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCall {
    /// Adopts this ledger as the source of the database's numbers, unless the database has one
    /// already.
    AdoptLedger(String),
    /// Raises the database's mark above this one.
    RaiseMark(Mark),
    /// Reads the current history of the database.
    Epoch,
    /// Enters a block into the register.
    Register(RegisterEntry),
    /// Enters a block in place of register entries of this generation or an earlier one.
    TakeOver(RegisterEntry, Generation),
    /// Reads which numbers of a range have no link.
    Unused(KeyspaceIndex, Span),
    /// Reads the first number past all registered ones.
    RegisteredEnd(KeyspaceIndex),
    /// Removes an entry's numbers from the register, except these ranges.
    Release(RegisterEntry, Vec<Span>),
}

/// The store's answer to a [`StoreCall`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreAnswer {
    /// The answer to `AdoptLedger`: the id of the adopted ledger.
    Ledger(String),
    /// The answer to `RaiseMark`; false if the database server has restarted since the ledger was
    /// asked.
    Raised(bool),
    /// The answer to `Epoch`.
    Epoch(StoreEpoch),
    /// The answer to `Register` and `TakeOver`: the block is in the register.
    Entered,
    /// The answer to `Register`, `TakeOver` and `Release`: another entry has some of the numbers.
    Overlaps,
    /// The answer to `Unused`.
    Unused(Vec<Span>),
    /// The answer to `RegisteredEnd`.
    End(u64),
    /// The answer to `Release`.
    Released,
}

/// An input of [`SupplyCore::step`](crate::SupplyCore::step).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A wait has ended, or numbers run low.
    Woken,
    /// The issuer has answered the call under way.
    Answered(Result<Answer, Refused>),
    /// The store has answered; `None` if it failed, so that the outcome is unknown.
    Stored(Option<StoreAnswer>),
    /// The process shuts down: no further claim will come.
    Stop,
}

/// A block on its way back: released in the register first, then returned to the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Returning {
    /// The position of the block's keyspace.
    pub(crate) keyspace: usize,
    pub(crate) closed: Closed,
    /// Whether the register has released the unused numbers, or has none to release.
    pub(crate) released: bool,
    /// The end of the registered numbers, if the register refused the block.
    pub(crate) registered_end: Option<u64>,
}

/// A history of the database, shared by blocks and claims.
pub(crate) type History = Arc<StoreEpoch>;
