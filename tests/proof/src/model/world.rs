//! One state of the system: what every machine and the network between them hold at an instant.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use issuer::{
    core::{Answer, Core, Refusal, Request},
    ledger::{Snapshot, Txn, TxnOutcome},
};
use numbers::{Block, Epoch, Generation, Millis, Namespace, Span, Ticket};

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
    pub(super) core: Arc<Core>,
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

/// A resolver, as far as numbers are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    /// Starts so far; names the instance.
    pub(super) starts: u8,
    /// Calls so far, over all starts.
    pub(super) calls: u8,
    pub(super) incarnation: Option<u64>,
    /// The last seq that it was answered.
    pub(super) seq: u64,
    /// The supplier's call: one at a time.
    pub(super) call: Option<Call>,
    /// The keep-alive, which is apart from it.
    pub(super) beat: Option<Call>,
    /// A block that it has not entered into the register yet, and the generation it was leaked under.
    pub(super) allocated: Option<(Block, Option<Generation>)>,
    /// Blocks that it mints from.
    pub(super) held: Vec<Held>,
    pub(super) trusted: Option<Trusted>,
    /// Whether it is configured with the raised capacity.
    pub(super) is_raised: bool,
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

/// A block that a holder mints from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) block: Block,
    /// Whether an earlier holder had it too.
    pub(super) reclaimed: bool,
    /// Numbers not claimed yet.
    pub(super) left: Vec<u64>,
    /// Numbers claimed whose insert is under way.
    pub(super) claimed: u8,
}

/// A ceiling that a holder was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Trusted {
    pub(super) ceiling: u64,
    /// From then on it is not trusted any more.
    pub(super) until: Millis,
}

/// An insert under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LateInsert {
    pub(super) holder: u8,
    /// Which start of it claimed the number.
    pub(super) start: u8,
    pub(super) number: u64,
    pub(super) generation: Generation,
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

impl Held {
    /// How the register knows the block. The real one also compares the instance, which tells allocations of the same generation
    /// apart when etcd was set back; here the start is a part of the token.
    pub(super) fn entry(block: &Block, holder: u8, start: u8) -> Entry {
        Entry { span: block.span, generation: token(block.generation, holder, start) }
    }
}

/// How many instances there may be: holders times starts.
const INSTANCES: u64 = 64;

/// A generation and an instance in one number, in the order of the generations.
pub(super) fn token(generation: Generation, holder: u8, start: u8) -> u64 {
    generation.0 * INSTANCES + u64::from(holder) * 8 + u64::from(start)
}

/// The greatest token of a generation.
pub(super) fn last_token(generation: Generation) -> u64 {
    generation.0 * INSTANCES + INSTANCES - 1
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
