//! What callers ask of the core and what it answers.

use numbers::{
    Block, Epoch, Generation, HolderId, Incarnation, Instance, LedgerId, Mark, Namespace, Seq, Span,
    StoreEpoch,
};

use crate::core::account::Account;

/// A call, already checked for form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// A holder starts.
    Register {
        /// Who.
        holder: HolderId,
        /// Which start of it.
        instance: Instance,
        /// The namespaces it needs, with their capacities.
        namespaces: Vec<(Namespace, u64)>,
        /// Whether it is a reservation: its blocks are kept for it however long it is silent, until it registers without this.
        reserved: bool,
    },
    /// A holder wants a block.
    Allocate {
        /// Who.
        holder: HolderId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// Which request of this incarnation.
        seq: Seq,
        /// Where from.
        namespace: Namespace,
        /// How many numbers would be welcome.
        wanted_len: u64,
        /// The history of the database that links will go to.
        store: StoreEpoch,
    },
    /// A holder is alive.
    KeepAlive {
        /// Who.
        holder: HolderId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// The last seq whose block is contained in the progress; 0 when the holder does not say.
        last_seq: Seq,
        /// Numbers in hand that it has not used yet, for each namespace that it wants to hear of.
        progress: Vec<(Namespace, u64)>,
        /// How far its database has come.
        mark: Mark,
    },
    /// A holder gives blocks back.
    Return {
        /// Who.
        holder: HolderId,
        /// Its incarnation.
        incarnation: Incarnation,
        /// The blocks with the account of each.
        blocks: Vec<Returned>,
    },
    /// Somebody wants to see the committed state.
    Status,
}

/// A block that comes back, with what became of its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Returned {
    /// The block as it was allocated.
    pub block: Block,
    /// Numbers with a link under them.
    pub used: u64,
    /// Numbers given up.
    pub burned: u64,
    /// Numbers nobody used.
    pub unused: Vec<Span>,
    /// The first number past everything that the database's register knows of the namespace, when the register refused the
    /// block: the ledger has lost history, as after a restored backup.
    pub registered_end: Option<u64>,
}

/// The account of a returned block is wrong in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReturnedError {
    /// The parts do not add up to the block.
    #[error("blocks.used: expected used + burned + unused = len ({len}), got {sum}")]
    Sum {
        /// The block's length.
        len: u64,
        /// What the parts add up to; `u64::MAX` when they overflow.
        sum: u64,
    },
    /// No number lies there.
    #[error("blocks.registered_end: expected at most 2^48, got {0}")]
    RegisteredEnd(u64),
    /// An unused range is outside the block, or not after the one before it.
    #[error("blocks.unused: expected ascending, disjoint ranges inside the block")]
    Ranges,
}

impl Returned {
    /// Checks that the account covers the block exactly, before any of it is believed.
    ///
    /// # Errors
    /// When it does not.
    pub fn check(&self) -> Result<(), ReturnedError> {
        if let Some(end) = self.registered_end.filter(|end| *end > Span::LIMIT) {
            return Err(ReturnedError::RegisteredEnd(end));
        }
        let mut from = self.block.span.start();
        for span in &self.unused {
            if span.start() < from || !self.block.span.contains(*span) {
                return Err(ReturnedError::Ranges);
            }
            from = span.end();
        }
        let unused: u64 = self.unused.iter().map(|span| span.len()).sum();
        let sum = self.used.saturating_add(self.burned).saturating_add(unused);
        let len = self.block.span.len();
        if sum == len { Ok(()) } else { Err(ReturnedError::Sum { len, sum }) }
    }
}

/// What a call is answered when it was executed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// To `Register`.
    Registered {
        /// The incarnation of this start.
        incarnation: Incarnation,
        /// The leader's epoch.
        epoch: Epoch,
        /// The highest seq answered for this incarnation.
        last_seq: Seq,
        /// Which ledger the numbers come from.
        ledger: Option<LedgerId>,
        /// The highest mark of the database that anybody has told.
        mark: Mark,
    },
    /// To `Allocate`.
    Allocated {
        /// The block.
        block: Block,
        /// The leader's epoch.
        epoch: Epoch,
        /// The generation its numbers were leaked under: some may have links. None when they are surely unused.
        leaked: Option<Generation>,
        /// The history of the database that it was asked for: an earlier copy of the request may have named another.
        store: StoreEpoch,
    },
    /// To `KeepAlive`.
    Alive {
        /// The leader's epoch.
        epoch: Epoch,
        /// The announced ceilings of the namespaces that it named.
        ceilings: Vec<(Namespace, u64)>,
        /// The namespaces that it named in which another holder asks for numbers in vain.
        starving: Vec<Namespace>,
        /// Whether one of the namespaces that it named is near its end: beats tell where the last numbers are.
        scarce: bool,
        /// The highest mark of the database that anybody has told.
        mark: Mark,
    },
    /// To `Return`.
    Closed {
        /// How many of the blocks were open until now.
        blocks: u32,
    },
    /// To `Status`.
    Status(Box<StatusReport>),
}

/// The committed state, for people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusReport {
    /// The leader's epoch.
    pub epoch: Epoch,
    /// Every namespace, by name.
    pub namespaces: Vec<NamespaceReport>,
    /// Every holder, by name.
    pub holders: Vec<HolderReport>,
}

/// One namespace of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamespaceReport {
    /// The namespace.
    pub name: Namespace,
    /// How many numbers there are.
    pub capacity: u64,
    /// The first number never allocated.
    pub high_watermark: u64,
    /// Numbers from here on are allocated to nobody.
    pub ceiling: u64,
    /// Numbers that holders have not used yet, by their last reports in this term.
    pub in_hand: u64,
    /// Where its numbers are.
    pub account: Account,
}

/// One holder of a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderReport {
    /// The holder.
    pub id: HolderId,
    /// Its current incarnation.
    pub incarnation: Incarnation,
    /// Whether it was heard of within the holder TTL.
    pub alive: bool,
    /// Whether it is a reservation: its blocks are kept for it however long it is silent.
    pub reserved: bool,
    /// How many blocks it has.
    pub blocks: usize,
}

/// Where the leader is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// The address it advertises.
    pub url: String,
    /// Its epoch.
    pub epoch: Epoch,
}

/// Why a call was not executed, or that nobody can say.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Surely not executed: somebody else leads, or nobody does.
    #[error("this issuer does not lead")]
    NotLeader(Option<Leader>),
    /// The transaction's fate is not known: the same call may be sent again.
    #[error("the outcome is not known yet: send the same request again")]
    Unknown,
    /// The queue is full: surely not executed.
    #[error("too many requests are waiting: try again later")]
    Overloaded,
    /// The holder never registered with this ledger.
    #[error("holder {0:?} is not registered")]
    UnknownHolder(HolderId),
    /// A later start of the same holder has taken over.
    #[error("holder {holder:?} has started again: its incarnation is {current}, this call carries {got}")]
    Superseded {
        /// Who.
        holder: HolderId,
        /// The incarnation that counts.
        current: Incarnation,
        /// The one the call came with.
        got: Incarnation,
    },
    /// The seq is neither the next one nor the last one.
    #[error("seq: expected {expected} (or one less, to repeat the last request), got {got}")]
    Seq {
        /// The next one.
        expected: Seq,
        /// The one the call came with.
        got: Seq,
    },
    /// The namespace is not known.
    #[error("namespace {0:?} is not registered")]
    UnknownNamespace(Namespace),
    /// The capacity of a namespace would shrink.
    #[error("namespaces.capacity of {namespace:?}: expected at least {current}, got {got}")]
    CapacityShrunk {
        /// The namespace.
        namespace: Namespace,
        /// What it is.
        current: u64,
        /// What the call said.
        got: u64,
    },
    /// Every number of the namespace is used, burned or reserved.
    #[error("namespace {namespace:?} is exhausted: all {capacity} numbers are used, burned or reserved")]
    Exhausted {
        /// The namespace.
        namespace: Namespace,
        /// How many numbers it has.
        capacity: u64,
    },
    /// Every number of the namespace is allocated, but some may lie unused with other holders, or wait in leaked blocks.
    #[error("namespace {namespace:?} has no free number; others may come back: try again in {wait_ms} ms")]
    InOtherHands {
        /// The namespace.
        namespace: Namespace,
        /// When it is worth while to ask again, in milliseconds.
        wait_ms: u64,
    },
    /// The numbers below the ceiling are used up, and the next ceiling is announced but not used yet.
    #[error("namespace {namespace:?} is waiting for its next ceiling to be used: try again in {wait_ms} ms")]
    CeilingReached {
        /// The namespace.
        namespace: Namespace,
        /// How long it takes at most, in milliseconds.
        wait_ms: u64,
    },
    /// The holder has as many blocks as it may have.
    #[error("holder {holder:?} has {blocks} open blocks, which is the limit: return some first")]
    TooManyBlocks {
        /// Who.
        holder: HolderId,
        /// How many it has.
        blocks: usize,
    },
    /// There are as many namespaces or holders as there may be.
    #[error("{what}: at most {limit}")]
    TooMany {
        /// What there is too many of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}
