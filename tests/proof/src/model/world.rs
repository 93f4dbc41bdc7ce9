//! One state of the system: what every machine and the network between them hold at an instant.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use holder::{Ceilings, Claim, Core, EntryId, Keyspace, StoreCall};
use issuer::{
    core::{self, Answer, Refusal, Request},
    ledger::{Snapshot, Txn, TxnOutcome},
};
use numbers::{Block, Epoch, Generation, Incarnation, Millis, Namespace, Seq, Span, Ticket};

use super::{bounds::Budget, laws::Law};
use crate::stores::{Entry, FakeDatabase, FakeEtcd};

/// A state. What seldom changes is shared between states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) etcd: Arc<FakeEtcd>,
    /// What etcd was when a backup was taken.
    pub(super) backup: Option<Arc<FakeEtcd>>,
    pub(super) database: Arc<FakeDatabase>,
    pub(super) servers: Vec<Server>,
    pub(super) holders: Vec<Holder>,
    /// Transactions under way that nobody waits for.
    pub(super) late_commits: Vec<Arc<Txn>>,
    /// Calls under way, and how many copies of each.
    pub(super) calls: BTreeMap<CallId, (Arc<Request>, u8)>,
    pub(super) late_inserts: Vec<LateInsert>,
    pub(super) now: Millis,
    pub(super) left: Budget,
    pub(super) past: Arc<Past>,
}

/// An issuer: the real core, and what its shell knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) core: Arc<core::Core>,
    /// The epoch that it believes to lead in.
    pub(super) epoch: Option<Epoch>,
    pub(super) flight: Option<Flight>,
    /// A snapshot from before it won.
    pub(super) early: Option<Arc<Snapshot>>,
}

/// Where the transaction is that an issuer waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Flight {
    /// On its way to etcd.
    Sent(Arc<Txn>),
    /// Executed; the outcome is on its way back.
    Executed(Arc<Txn>, TxnOutcome),
}

/// A holder of numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// Starts so far; names the instance.
    pub(super) starts: u8,
    /// Calls so far, over all starts.
    pub(super) calls: u8,
    /// The call under way, apart from beats: one at a time.
    pub(super) call: Option<Call>,
    pub(super) beat: Option<Call>,
    /// Whether it is configured with the raised capacity.
    pub(super) is_raised: bool,
    pub(super) part: Part,
}

/// What a holder is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Part {
    /// A resolver, as far as numbers are concerned.
    Mints(Arc<Minter>),
    /// A reservation.
    Reserves(Reservation),
}

/// A resolver: the real core, its keyspace and its ceilings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Minter {
    pub(super) core: Core,
    pub(super) keyspaces: Vec<Keyspace>,
    pub(super) ceilings: Ceilings,
    /// What the core asks of the store, and is not executed yet.
    pub(super) asked: Option<StoreCall>,
}

/// A reservation, as the process knows it that makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Reservation {
    pub(super) incarnation: Option<Incarnation>,
    /// The last seq that it was answered.
    pub(super) seq: Seq,
    /// A block that it has not entered into the register yet, and the generation it was leaked under.
    pub(super) allocated: Option<(Block, Option<Generation>)>,
    /// Blocks that are in the register.
    pub(super) reserved: Vec<Reserved>,
}

/// Who called and which of its calls it is.
pub(super) type CallId = (u8, u8);

/// A call that its caller waits for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Call {
    pub(super) number: u8,
    pub(super) request: Arc<Request>,
    pub(super) sent: Millis,
    /// Answers on their way to the caller.
    pub(super) answers: Vec<Result<Answer, Refusal>>,
}

/// A block of a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reserved {
    pub(super) block: Block,
    /// Numbers that nobody has begun to fill.
    pub(super) left: Vec<u64>,
}

/// An insert under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct LateInsert {
    pub(super) holder: u8,
    /// Which start of it claimed the number.
    pub(super) start: u8,
    pub(super) number: u64,
    /// What is stored.
    pub(super) url: u64,
    /// The claim that its holder settles; a reservation has none.
    pub(super) claim: Option<Claim>,
}

/// What the laws need to know of the past.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Past {
    /// Every allocation that etcd has ever had.
    pub(super) allocated: BTreeSet<(Generation, Span)>,
    /// The generations of blocks that were ever leaked.
    pub(super) leaked: BTreeSet<Generation>,
    /// What was answered to each (holder, incarnation, seq).
    pub(super) answered: BTreeMap<(u8, u64, u64), (Generation, Span)>,
    /// Numbers of acknowledged links.
    pub(super) acknowledged: BTreeSet<u64>,
    /// Whether etcd has been set back.
    pub(super) restored: bool,
    /// Laws that were broken.
    pub(super) broken: BTreeSet<Law>,
}

impl World {
    /// Whether a law has been broken on the way here.
    #[must_use]
    pub fn broke(&self, law: Law) -> bool {
        self.past.broken.contains(&law)
    }

    pub(super) fn break_law(&mut self, law: Law) {
        Arc::make_mut(&mut self.past).broken.insert(law);
    }

    /// Breaks the law unless it is kept.
    pub(super) fn keep(&mut self, law: Law, kept: bool) {
        if !kept {
            self.break_law(law);
        }
    }
}

/// Bits of a token for the holder and its start, and for the entries of one start.
const START_BITS: u32 = 6;
const ENTRY_BITS: u32 = 6;

/// The register's entry of a block. The real one has generation, instance and entry id apart.
pub(super) fn entry(block: &Block, (holder, start): (u8, u8), id: EntryId) -> Entry {
    Entry { span: block.span, generation: token(block.generation, (holder, start), id) }
}

/// A generation, an instance and an entry in one number, in the order of the generations.
pub(super) fn token(generation: Generation, (holder, start): (u8, u8), id: EntryId) -> u64 {
    let start = u64::from(holder) * 8 + u64::from(start);
    (((generation.0 << START_BITS) | start) << ENTRY_BITS) | id.0
}

/// The greatest token of a generation.
pub(super) fn last_token(generation: Generation) -> u64 {
    ((generation.0 + 1) << (START_BITS + ENTRY_BITS)) - 1
}

/// The name of the only namespace.
pub(super) fn namespace() -> Namespace {
    Namespace::new("web").expect("letters are allowed")
}

/// A ticket from which its call is known again.
pub(super) fn ticket((holder, number): CallId, request: &Request) -> Ticket {
    let (incarnation, seq) = match request {
        Request::Allocate { incarnation, seq, .. } => (incarnation.0, seq.0),
        _ => (0, 0),
    };
    Ticket(((u64::from(holder) * 256 + u64::from(number)) * 256 + incarnation) * 256 + seq)
}

/// What [`ticket`] was made of: the call, the incarnation and the seq.
pub(super) fn from_ticket(ticket: Ticket) -> (CallId, u64, u64) {
    let byte = |shift: u32| ticket.0 >> shift & 0xff;
    let small = |shift| u8::try_from(byte(shift)).expect("one byte");
    ((small(24), small(16)), byte(8), byte(0))
}
