//! What the core asks of the issuer and of the store, and what they answer.
//!
//! Numbers and names are typed; how they travel is the shell's business.

use std::sync::Arc;

use codes::KeyspaceIndex;
use numbers::{Block, Generation, Incarnation, Mark, Namespace, Seq, Span, StoreEpoch};

use crate::buffer::{Closed, EntryId};

/// A call on the issuer. Each may be sent again until it has a definite answer (I5).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    /// Registers this start of the holder, with the capacity of each namespace.
    Register {
        /// The namespaces that it mints in.
        namespaces: Vec<(Namespace, u64)>,
    },
    /// Asks for a block. The shell adds how long it should be.
    Allocate {
        /// The position of the keyspace among those of this holder.
        keyspace: usize,
        /// The registration.
        incarnation: Incarnation,
        /// The next seq, or that of a call in doubt.
        seq: Seq,
        /// The history of the database that its links would be stored in.
        store: StoreEpoch,
    },
    /// Gives a block back.
    Return {
        /// The registration.
        incarnation: Incarnation,
        /// The block with its account.
        closed: Closed,
        /// The end of the register, if the register refused the block.
        registered_end: Option<u64>,
    },
}

/// The issuer's answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To `Register`.
    Registered(Registered),
    /// To `Allocate`.
    Allocated {
        /// The block.
        block: Block,
        /// The generation it was leaked under; `None` if its numbers are surely unused.
        leaked: Option<Generation>,
        /// The history that it was allocated for; `None` if the issuer does not say.
        store: Option<StoreEpoch>,
    },
    /// To `Return`.
    Returned,
}

/// A registration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registered {
    /// Which start of the holder this is.
    pub incarnation: Incarnation,
    /// The last seq that was answered to it.
    pub last_seq: Seq,
    /// How long the holder counts as alive after a beat, in milliseconds.
    pub holder_ttl_ms: u64,
    /// The ledger's name; `None` from an issuer of an earlier release.
    pub ledger: Option<String>,
    /// The highest mark of the database that was reported.
    pub mark: Mark,
}

/// A definite refusal by the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refused {
    /// Every number of the namespace is used.
    #[error("the keyspace is exhausted")]
    Exhausted,
    /// No number is free now, but other holders may give some back.
    #[error("no number is free: others may give some back")]
    InOtherHands,
    /// A later start of a holder with this name has registered.
    #[error("another process has registered with this holder id: {0}")]
    Superseded(String),
    /// The ledger does not know this holder or namespace (any more).
    #[error("not registered: {0}")]
    NotRegistered(String),
    /// An answer that no issuer gives.
    #[error("the issuer's answer makes no sense: expected {0}")]
    Malformed(&'static str),
    /// Any other refusal, which repeating the call would not change.
    #[error("the issuer refused ({code}): {message}")]
    Other {
        /// The name of its status code.
        code: String,
        /// Its message.
        message: String,
    },
}

/// An entry of the database's block register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterEntry {
    /// The keyspace.
    pub index: KeyspaceIndex,
    /// The numbers and their generation.
    pub block: Block,
    /// The registration that the block was allocated to.
    pub incarnation: Incarnation,
    /// Tells apart the entries of one start.
    pub entry: EntryId,
}

/// A call on the store. All but `Release` are asked again until the store answers: without it no
/// link could be stored anyway.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreCall {
    /// Names the ledger that the database's numbers come from, unless it has one.
    AdoptLedger(String),
    /// Raises the database's mark above this one.
    RaiseMark(Mark),
    /// Asks which history of the database this is.
    Epoch,
    /// Enters a block into the register.
    Register(RegisterEntry),
    /// Enters a block in place of entries of this generation or an earlier one.
    TakeOver(RegisterEntry, Generation),
    /// Asks which numbers of a range have no link.
    Unused(KeyspaceIndex, Span),
    /// Asks for the first number past all that are registered.
    RegisteredEnd(KeyspaceIndex),
    /// Keeps only these ranges of an entry.
    Release(RegisterEntry, Vec<Span>),
}

/// The store's answer to a [`StoreCall`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StoreAnswer {
    /// To `AdoptLedger`: the ledger that the database has.
    Ledger(String),
    /// To `RaiseMark`; false if the database's server was started meanwhile.
    Raised(bool),
    /// To `Epoch`.
    Epoch(StoreEpoch),
    /// To `Register` and `TakeOver`: the block is in the register.
    Entered,
    /// To `Register`, `TakeOver` and `Release`: another entry has some of the numbers.
    Overlaps,
    /// To `Unused`.
    Unused(Vec<Span>),
    /// To `RegisteredEnd`.
    End(u64),
    /// To `Release`.
    Released,
}

/// Why the core is stepped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// A wait is over, or numbers run low.
    Woken,
    /// The issuer's answer to the call that is under way.
    Answered(Result<Answer, Refused>),
    /// The store's answer; `None` if it failed, so that the outcome is unknown.
    Stored(Option<StoreAnswer>),
    /// The process ends: no claim will come any more.
    Stop,
}

/// A block on its way back: released in the register first, then returned to the issuer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Returning {
    /// The position of its keyspace.
    pub keyspace: usize,
    /// The block with its account.
    pub closed: Closed,
    /// Whether the register has let go of its unused numbers, or need not.
    pub released: bool,
    /// The end of the register, if the register refused the block.
    pub registered_end: Option<u64>,
}

impl Returning {
    /// A block that was minted from.
    #[must_use]
    pub fn closed(keyspace: usize, closed: Closed) -> Self {
        let released = closed.unused.is_empty();
        Self { keyspace, closed, released, registered_end: None }
    }

    /// A block that never came into the register: it goes back whole.
    #[must_use]
    pub fn untouched(keyspace: usize, block: Block) -> Self {
        let closed = Closed { unused: vec![block.span], block, entry: EntryId(0), used: 0, burned: 0 };
        Self { keyspace, closed, released: true, registered_end: None }
    }

    /// A block that the register refused: none of its numbers is ever used.
    #[must_use]
    pub fn refused(keyspace: usize, block: Block, entry: EntryId, registered_end: u64) -> Self {
        let burned = block.span.len();
        let closed = Closed { block, entry, used: 0, burned, unused: Vec::new() };
        let registered_end = (registered_end > 0).then_some(registered_end);
        Self { keyspace, closed, released: true, registered_end }
    }

    /// Returns how many of its numbers are not used.
    #[must_use]
    pub fn unsettled(&self) -> u64 {
        self.closed.unsettled()
    }
}

/// A history that blocks and claims share.
pub(crate) type History = Arc<StoreEpoch>;
