//! A holder as the model plays it: it asks, waits or does not, mints a little, gives the rest back, dies.

use issuer::{
    block::{Block, Span},
    core::{Answer, Refusal, Request, Returned},
    names::{HolderId, Instance, Namespace, StoreEpoch},
    tokens::{Generation, Incarnation, Seq, Ticket},
};

use super::shared::Shared;

/// A set of small numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn of(span: Span) -> Self {
        (span.start()..span.end()).fold(Self::default(), |set, n| Self(set.0 | 1 << n))
    }

    pub(super) fn below(end: u64) -> Self {
        Self((1 << end) - 1)
    }

    pub(super) fn insert(&mut self, n: u64) {
        self.0 |= 1 << n;
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(super) fn count(self) -> u64 {
        u64::from(self.0.count_ones())
    }

    pub(super) fn iter(self) -> impl Iterator<Item = u64> {
        (0..64).filter(move |n| self.0 & 1 << n != 0)
    }
}

/// A block as its holder got it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) block: Block,
    pub(super) leaked: Option<Generation>,
}

/// What a holder can want.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Register,
    Allocate,
    /// Give back what is left of its oldest block.
    Return,
}

/// One holder, through all its starts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Holder {
    pub(super) index: u8,
    /// Which start; its instance.
    pub(super) start: u8,
    pub(super) incarnation: Option<Incarnation>,
    last_seq: Seq,
    /// What it wants done and has no answer to yet.
    pub(super) asked: Option<Shared<Request>>,
    /// Whether a call is under way whose answer it will take.
    pub(super) waiting: bool,
    /// A request it is done with, or died over; a copy may still be on the way.
    pub(super) past: Option<Shared<Request>>,
    pub(super) held: Vec<Held>,
    pub(super) allocations: u8,
    pub(super) returns: u8,
}

impl Holder {
    pub(super) fn new(index: u8) -> Self {
        Self {
            index,
            start: 1,
            incarnation: None,
            last_seq: Seq(0),
            asked: None,
            waiting: false,
            past: None,
            held: Vec::new(),
            allocations: 0,
            returns: 0,
        }
    }

    /// Makes up its mind. `rows` are the numbers with a link, as the database says.
    pub(super) fn want(&mut self, want: Want, capacity: u64, rows: Numbers) {
        let request = match (want, self.incarnation) {
            (Want::Register, _) => self.register(capacity),
            (Want::Allocate, Some(incarnation)) => self.allocate(incarnation),
            (Want::Return, Some(incarnation)) => self.give_back(incarnation, rows),
            (_, None) => unreachable!("a holder registers first"),
        };
        self.asked = Some(Shared::new(request));
    }

    fn register(&self, capacity: u64) -> Request {
        let instance = Instance::new(self.start.to_string()).unwrap();
        Request::Register { holder: self.id(), instance, namespaces: vec![(namespace(), capacity)] }
    }

    fn allocate(&mut self, incarnation: Incarnation) -> Request {
        self.allocations += 1;
        Request::Allocate {
            holder: self.id(),
            incarnation,
            seq: self.last_seq.next(),
            namespace: namespace(),
            wanted_len: u64::MAX,
            store: StoreEpoch::new("1:1").unwrap(),
        }
    }

    fn give_back(&mut self, incarnation: Incarnation, rows: Numbers) -> Request {
        self.returns += 1;
        let Held { block, .. } = self.held.remove(0);
        let unused = Numbers::of(block.span).without(rows);
        let returned = Returned {
            used: block.span.len() - unused.count(),
            burned: 0,
            unused: unused.iter().map(|n| Span::new(n, 1).unwrap()).collect(),
            registered_end: None,
            block,
        };
        returned.check().unwrap();
        Request::Return { holder: self.id(), incarnation, blocks: vec![returned] }
    }

    /// Takes the answer to the call it waits for; a block, if it got one.
    pub(super) fn hear(&mut self, answer: &Result<Answer, Refusal>) -> Option<Held> {
        self.waiting = false;
        let mut got = None;
        match answer {
            Ok(Answer::Registered { incarnation, last_seq, .. }) => {
                self.incarnation = Some(*incarnation);
                self.last_seq = *last_seq;
            }
            Ok(Answer::Allocated { block, leaked, .. }) => {
                self.last_seq = self.last_seq.next();
                let held = Held { block: block.clone(), leaked: *leaked };
                self.held.push(held.clone());
                got = Some(held);
            }
            Ok(_) | Err(Refusal::Exhausted { .. }) => {}
            // It will ask again, or somebody else.
            Err(_) => return None,
        }
        self.past = self.asked.take();
        got
    }

    /// `kill -9` and a new start.
    pub(super) fn restart(&mut self) {
        let past = self.asked.take().or_else(|| self.past.take());
        let (start, allocations, returns) = (self.start + 1, self.allocations, self.returns);
        *self = Self { start, past, allocations, returns, ..Self::new(self.index) };
    }

    /// Whether it has done nothing yet.
    pub(super) fn untouched(&self) -> bool {
        self.start == 1 && self.incarnation.is_none() && self.asked.is_none()
    }

    fn id(&self) -> HolderId {
        holder_id(self.index)
    }
}

/// Who waits for an answer; packed into the ticket, which is opaque to the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) holder: u8,
    pub(super) start: u8,
    /// Of an allocation, or 0.
    pub(super) incarnation: u8,
    pub(super) seq: u8,
    /// Nobody waits any more: the answer is lost.
    pub(super) patient: bool,
}

impl Caller {
    pub(super) fn of(holder: &Holder, request: &Request, patient: bool) -> Self {
        let (incarnation, seq) = match request {
            Request::Allocate { incarnation, seq, .. } => (small(incarnation.0), small(seq.0)),
            _ => (0, 0),
        };
        Self { holder: holder.index, start: holder.start, incarnation, seq, patient }
    }

    pub(super) fn ticket(self) -> Ticket {
        let bytes = [self.holder, self.start, self.incarnation, self.seq, self.patient.into(), 0, 0, 0];
        Ticket(u64::from_le_bytes(bytes))
    }

    pub(super) fn from_ticket(ticket: Ticket) -> Self {
        let [holder, start, incarnation, seq, patient, ..] = ticket.0.to_le_bytes();
        Self { holder, start, incarnation, seq, patient: patient != 0 }
    }
}

fn small(n: u64) -> u8 {
    u8::try_from(n).expect("the bounds are far below 256")
}

pub(super) fn holder_id(index: u8) -> HolderId {
    HolderId::new(char::from(b'a' + index).to_string()).unwrap()
}

pub(super) fn namespace() -> Namespace {
    Namespace::new("web").unwrap()
}
