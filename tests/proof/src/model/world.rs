//! The state of the system: all machines and the network between them at one instant.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holder::{Claim, EntryId, KeyspaceNumbers, StoreCall, SupplyCore};
use issuer::{
    core::{self, Answer, Refusal, Request},
    ledger::{Snapshot, Txn, TxnOutcome},
};
use numbers::{Block, Epoch, Generation, Incarnation, Millis, Namespace, Seq, Span, Ticket};

use super::{bounds::Budget, laws::Law};
use crate::stores::{Entry, FakeDatabase, FakeEtcd};

/// A state of the system. Parts that seldom change are shared between states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) etcd: Arc<FakeEtcd>,
    /// The state of etcd when a backup was taken.
    pub(super) backup: Option<Arc<FakeEtcd>>,
    pub(super) database: Arc<FakeDatabase>,
    pub(super) servers: Vec<Server>,
    pub(super) holders: Vec<Holder>,
    /// Transactions under way that no issuer waits for.
    pub(super) late_commits: Vec<Arc<Txn>>,
    /// Calls under way, with the count of copies of each.
    pub(super) calls: BTreeMap<CallId, (Arc<Request>, u8)>,
    pub(super) late_inserts: Vec<LateInsert>,
    pub(super) now: Millis,
    pub(super) left: Budget,
    pub(super) past: Arc<Past>,
}

/// An issuer: the real core, and the state of its shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) core: Arc<core::Core>,
    /// The epoch in which it believes to lead.
    pub(super) epoch: Option<Epoch>,
    pub(super) flight: Option<Flight>,
    /// A snapshot that was read before the election was won.
    pub(super) early: Option<Arc<Snapshot>>,
}

/// The progress of the transaction that an issuer waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    /// The transaction is on its way to etcd.
    Sent(Arc<Txn>),
    /// The transaction has executed; the outcome is on its way back.
    Executed(Arc<Txn>, TxnOutcome),
}

/// A holder of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// The count of starts so far, which names the instance.
    pub(super) starts: u8,
    /// The count of calls so far, over all starts.
    pub(super) calls: u8,
    /// The call under way, apart from beats: one at a time.
    pub(super) call: Option<Call>,
    pub(super) beat: Option<Call>,
    /// Whether the holder is configured with the raised capacity.
    pub(super) is_raised: bool,
    pub(super) part: Part,
}

/// The kind of a holder.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// A resolver that mints numbers.
    Mints(Arc<Minter>),
    /// A reservation.
    Reserves(Reservation),
}

/// A resolver: the real core and its keyspace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Minter {
    pub(super) core: SupplyCore,
    pub(super) keyspaces: Vec<KeyspaceNumbers>,
    /// The core's store call that has not been executed yet.
    pub(super) asked: Option<StoreCall>,
}

/// The state of a reservation in the process that makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reservation {
    pub(super) incarnation: Option<Incarnation>,
    /// The last seq that was answered.
    pub(super) seq: Seq,
    /// A block that is not in the register yet, and the generation it was leaked under.
    pub(super) allocated: Option<(Block, Option<Generation>)>,
    /// Blocks that are in the register.
    pub(super) reserved: Vec<Reserved>,
}

/// The id of a call: its holder, and its number among the holder's calls.
pub(super) type CallId = (u8, u8);

/// A call that its caller waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) number: u8,
    pub(super) request: Arc<Request>,
    /// Answers on their way to the caller.
    pub(super) answers: Vec<Result<Answer, Refusal>>,
}

/// A block of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reserved {
    pub(super) block: Block,
    /// Numbers without an insert so far.
    pub(super) left: Vec<u64>,
}

/// An insert under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LateInsert {
    pub(super) holder: u8,
    /// The start of the holder that claimed the number.
    pub(super) start: u8,
    pub(super) number: u64,
    /// The URL to store.
    pub(super) url: u64,
    /// The claim that the holder settles; a reservation has none.
    pub(super) claim: Option<Claim>,
    /// Whether the holder waits no longer for the insert.
    pub(super) is_given_up: bool,
}

/// The parts of the past that the laws need.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Past {
    /// Every allocation that etcd has ever contained.
    pub(super) allocated: BTreeSet<(Generation, Span)>,
    /// The generations of blocks that ever leaked.
    pub(super) leaked: BTreeSet<Generation>,
    /// The block that was answered to each (holder, incarnation, seq).
    pub(super) answered: BTreeMap<(u8, u64, u64), (Generation, Span)>,
    /// The numbers of acknowledged links.
    pub(super) acknowledged: BTreeSet<u64>,
    /// The processes that were told of a later start of their holder: holder and start.
    pub(super) superseded: BTreeSet<(u8, u8)>,
    /// Whether etcd has been restored from a backup.
    pub(super) restored: bool,
    /// The laws that were broken.
    pub(super) broken: BTreeSet<Law>,
}

impl World {
    /// Returns whether a law was broken on the way to this state.
    #[must_use]
    pub fn broke(&self, law: Law) -> bool {
        self.past.broken.contains(&law)
    }

    pub(super) fn break_law(&mut self, law: Law) {
        Arc::make_mut(&mut self.past).broken.insert(law);
    }

    /// Marks the law as broken unless `kept`.
    pub(super) fn keep(&mut self, law: Law, kept: bool) {
        if !kept {
            self.break_law(law);
        }
    }
}

/// The bits of a token for the holder with its start, and for the entries of one start.
const START_BITS: u32 = 6;
const ENTRY_BITS: u32 = 6;

/// Returns the register entry of a block. In the real register generation, instance and entry id
/// are separate.
pub(super) fn entry(block: &Block, (holder, start): (u8, u8), id: EntryId) -> Entry {
    Entry { span: block.span, generation: token(block.generation, (holder, start), id) }
}

/// Packs a generation, an instance and an entry into one number that sorts by generation.
pub(super) fn token(generation: Generation, (holder, start): (u8, u8), id: EntryId) -> u64 {
    let start = u64::from(holder) * 8 + u64::from(start);
    (((generation.0 << START_BITS) | start) << ENTRY_BITS) | id.0
}

/// Returns the greatest token of a generation.
pub(super) fn last_token(generation: Generation) -> u64 {
    ((generation.0 + 1) << (START_BITS + ENTRY_BITS)) - 1
}

/// Returns the name of the only namespace.
pub(super) fn namespace() -> Namespace {
    Namespace::new("web").expect("letters are valid")
}

/// Packs a call's id, incarnation and seq into a ticket.
pub(super) fn ticket((holder, number): CallId, request: &Request) -> Ticket {
    let (incarnation, seq) = match request {
        Request::Allocate { incarnation, seq, .. } => (incarnation.0, seq.0),
        _ => (0, 0),
    };
    Ticket(((u64::from(holder) * 256 + u64::from(number)) * 256 + incarnation) * 256 + seq)
}

/// Unpacks a ticket made by [`ticket`]: the call, the incarnation and the seq.
pub(super) fn from_ticket(ticket: Ticket) -> (CallId, u64, u64) {
    let byte = |shift: u32| ticket.0 >> shift & 0xff;
    let small = |shift| u8::try_from(byte(shift)).expect("the mask leaves one byte");
    ((small(24), small(16)), byte(8), byte(0))
}
