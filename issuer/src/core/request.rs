//! The requests of callers, the core's answers, and the reasons for a refusal.

use numbers::{
    Block, Epoch, Generation, HolderId, Incarnation, Instance, Invalid, LedgerId, Mark, Namespace, Seq, Span,
    StoreEpoch,
};

use crate::core::NamespaceRecord;

/// A call whose form has been checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Registers a start of a holder.
    Register {
        /// The holder.
        holder: HolderId,
        /// Random id of the start.
        instance: Instance,
        /// Namespaces that the holder needs, with their capacities.
        namespaces: Vec<(Namespace, u64)>,
        /// Whether the holder is a reservation. A reservation keeps its blocks however long it is
        /// silent, until it registers without this flag.
        reserved: bool,
    },
    /// Allocates a block to a holder.
    Allocate {
        /// The holder.
        holder: HolderId,
        /// Incarnation of the holder.
        incarnation: Incarnation,
        /// Sequence number of the request within the incarnation.
        seq: Seq,
        /// Namespace to allocate from.
        namespace: Namespace,
        /// Requested length, in numbers.
        wanted_len: u64,
        /// Database history that links will be written to.
        store: StoreEpoch,
    },
    /// Keeps a holder alive, and tells it where others starve.
    KeepAlive {
        /// The holder.
        holder: HolderId,
        /// Incarnation of the holder.
        incarnation: Incarnation,
        /// Last seq whose block the progress includes; 0 if the holder does not say.
        last_seq: Seq,
        /// Unused numbers in hand, for each namespace that the holder wants to hear of.
        progress: Vec<(Namespace, u64)>,
        /// The database's mark, as the holder has seen it.
        mark: Mark,
    },
    /// Returns blocks of a holder.
    Return {
        /// The holder.
        holder: HolderId,
        /// Incarnation of the holder.
        incarnation: Incarnation,
        /// Blocks, with the account of each.
        blocks: Vec<Returned>,
    },
    /// Reads the committed state.
    Status,
}

impl Request {
    /// Returns the holder that calls, if it matters who does.
    pub fn holder(&self) -> Option<&HolderId> {
        match self {
            Self::Register { holder, .. }
            | Self::Allocate { holder, .. }
            | Self::KeepAlive { holder, .. }
            | Self::Return { holder, .. } => Some(holder),
            Self::Status => None,
        }
    }
}

/// A returned block, with the account of its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Returned {
    /// The block as it was allocated.
    pub block: Block,
    /// Numbers that have a link.
    pub used: u64,
    /// Numbers given up for good.
    pub burned: u64,
    /// Unused numbers, ascending and disjoint.
    pub unused: Vec<Span>,
    /// First number past all numbers of the namespace that the database has registered. Set if the
    /// database refused to register the block: the ledger has lost history, as after a restored
    /// backup.
    pub registered_end: Option<u64>,
}

const OUTSIDE: Invalid =
    Invalid::because("blocks.unused: expected ascending, disjoint ranges inside the block");

impl Returned {
    /// Checks that the account covers the block exactly.
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(end) = self.registered_end.filter(|end| *end > Span::LIMIT) {
            return Err(format!("blocks.registered_end: expected at most 2^48, got {end}").into());
        }
        let mut from = self.block.span.start();
        for span in &self.unused {
            if span.start() < from || !self.block.span.contains(*span) {
                return Err(OUTSIDE);
            }
            from = span.end();
        }
        let unused: u64 = self.unused.iter().map(|span| span.len()).sum();
        let sum = self.used.saturating_add(self.burned).saturating_add(unused);
        let len = self.block.span.len();
        if sum == len {
            return Ok(());
        }
        Err(format!("blocks.used: expected used + burned + unused = len ({len}), got {sum}").into())
    }
}

/// The answer to an executed call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Answer to [`Request::Register`].
    Registered {
        /// Incarnation of this start.
        incarnation: Incarnation,
        /// Epoch of the leader.
        epoch: Epoch,
        /// Highest seq answered for this incarnation.
        last_seq: Seq,
        /// Identity of the ledger that the numbers come from.
        ledger: Option<LedgerId>,
        /// Highest database mark that holders have reported.
        mark: Mark,
    },
    /// Answer to [`Request::Allocate`].
    Allocated {
        /// The block.
        block: Block,
        /// Whether the answer was given before, to the same request.
        is_repeated: bool,
        /// Whether this request took the numbers of a leaked block.
        is_reclaimed: bool,
        /// Epoch of the leader.
        epoch: Epoch,
        /// Generation that the numbers were leaked under: some may have links. `None` if none can.
        leaked: Option<Generation>,
        /// Database history that the block was requested for. If the request was repeated, it is
        /// the history that the first copy named.
        store: StoreEpoch,
    },
    /// Answer to [`Request::KeepAlive`].
    Alive {
        /// Epoch of the leader.
        epoch: Epoch,
        /// Namespaces that the beat named in which another holder is starving: it asked for numbers
        /// and none was left.
        starving: Vec<Namespace>,
        /// Whether numbers of a namespace that the beat named are scarce. Then holders send beats
        /// more often, because beats show where the last numbers are.
        scarce: bool,
        /// Highest database mark that holders have reported.
        mark: Mark,
    },
    /// Answer to [`Request::Return`].
    Closed {
        /// Number of the blocks that were open until now.
        blocks: u32,
    },
    /// Answer to [`Request::Status`].
    Status(Box<StatusReport>),
}

/// The committed state, for people and metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusReport {
    /// Epoch of the leader.
    pub epoch: Epoch,
    /// All namespaces, by name.
    pub namespaces: Vec<NamespaceReport>,
    /// All holders, by name.
    pub holders: Vec<HolderReport>,
}

/// A namespace in a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamespaceReport {
    /// Name of the namespace.
    pub name: Namespace,
    /// Its record in the ledger.
    pub record: NamespaceRecord,
    /// Unused numbers in hand, by the holders' last reports in this term.
    pub in_hand: u64,
}

/// A holder in a [`StatusReport`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HolderReport {
    /// Id of the holder.
    pub id: HolderId,
    /// Current incarnation.
    pub incarnation: Incarnation,
    /// Whether the holder was heard within the holder TTL.
    pub alive: bool,
    /// Whether the holder is a reservation, which keeps its blocks however long it is silent.
    pub reserved: bool,
    /// Number of open blocks.
    pub blocks: usize,
}

/// The current leader.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leader {
    /// URL that it advertises.
    pub url: String,
    /// Epoch of its term.
    pub epoch: Epoch,
}

/// The reason why a call was not executed, or [`Refusal::Unknown`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// Surely not executed: another issuer leads, or none does.
    #[error("this issuer does not lead")]
    NotLeader(Option<Leader>),
    /// The outcome of the transaction is unknown: the caller may send the same call again.
    #[error("the outcome is not known yet: send the same request again")]
    Unknown,
    /// Surely not executed: the queue is full.
    #[error("too many requests are waiting: try again later")]
    Overloaded,
    /// The holder never registered with this ledger.
    #[error("holder {0:?} is not registered")]
    UnknownHolder(HolderId),
    /// A later start of the same holder has registered.
    #[error("holder {holder:?} has started again: its incarnation is {current}, this call carries {got}")]
    Superseded {
        /// The holder.
        holder: HolderId,
        /// Current incarnation.
        current: Incarnation,
        /// Incarnation in the call.
        got: Incarnation,
    },
    /// The seq is neither the next one nor the last one.
    #[error("seq: expected {expected} (or one less, to repeat the last request), got {got}")]
    Seq {
        /// Next seq.
        expected: Seq,
        /// Seq in the call.
        got: Seq,
    },
    /// The namespace was never registered.
    #[error("namespace {0:?} is not registered")]
    UnknownNamespace(Namespace),
    /// The call would lower the capacity of a namespace.
    #[error("namespaces.capacity of {namespace:?}: expected at least {current}, got {got}")]
    CapacityShrunk {
        /// The namespace.
        namespace: Namespace,
        /// Current capacity.
        current: u64,
        /// Capacity in the call.
        got: u64,
    },
    /// Every number of the namespace is used, burned or reserved.
    #[error("namespace {namespace:?} is exhausted: all {capacity} numbers are used, burned or reserved")]
    Exhausted {
        /// The namespace.
        namespace: Namespace,
        /// Capacity, in numbers.
        capacity: u64,
    },
    /// Every number is allocated, but other holders or leaked blocks may have unused ones.
    #[error("namespace {namespace:?} has no free number; others may come back: try again in {wait_ms} ms")]
    InOtherHands {
        /// The namespace.
        namespace: Namespace,
        /// Time after which to ask again, in milliseconds.
        wait_ms: u64,
    },
    /// The numbers below the ceiling are used up, which holders of the release before may trust for
    /// a short time more.
    #[error(
        "namespace {namespace:?} cannot pass the ceiling of an older issuer yet: try again in {wait_ms} ms"
    )]
    CeilingReached {
        /// The namespace.
        namespace: Namespace,
        /// Maximum time until the ceiling is lifted, in milliseconds.
        wait_ms: u64,
    },
    /// The limit on namespaces, on holders, or on open blocks of a holder is reached.
    #[error("{0}")]
    TooMany(String),
}
