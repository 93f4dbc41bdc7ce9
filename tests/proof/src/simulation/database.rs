//! The database as a process, with one register and one set of links for each namespace. Its calls
//! fail in every permitted way.
//!
//! A register call that ends in an error either has been executed or never will be. Its rows are
//! locked until its own transaction ends, so no other call overtakes it. An insert is one
//! statement, and a server that hangs may run it much later.

use std::{collections::BTreeMap, sync::Arc};

use numbers::{Span, StoreEpoch};

use super::{
    desk::Reply,
    holder::owner,
    plan::LATE_MAX,
    summary::Happening,
    world::{Caller, Event, World},
};
use crate::stores::{Entry, FakeDatabase};

/// How long a caller waits for an answer, in milliseconds.
const PATIENCE: u64 = 150;

/// A call to the store of links.
#[derive(Clone, Debug)]
pub(super) enum StoreOp {
    Epoch,
    Register { namespace: usize, entry: Entry },
    TakeOver { namespace: usize, entry: Entry, leaked: u64 },
    Unused { namespace: usize, span: Span },
    RegisteredEnd { namespace: usize },
    Release { namespace: usize, entry: Entry, kept: Vec<Span> },
    Insert { namespace: usize, number: u64, url: u64, history: Arc<StoreEpoch> },
    Read { namespace: usize, number: u64 },
    Holds { namespace: usize, number: u64, token: u64 },
    AddReservation { reservation: u64, namespace: usize },
    Reservations,
    CloseReservation { reservation: u64 },
}

/// A reservation as stored. Its numbers are its entries in the register.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    pub(super) id: u64,
    pub(super) namespace: usize,
    pub(super) closed: bool,
    pub(super) spans: Vec<Span>,
}

/// An answer of the store.
#[derive(Clone, Debug)]
pub(super) enum StoreReply {
    Epoch(StoreEpoch),
    Registered(bool),
    Unused(Vec<Span>),
    End(u64),
    Released,
    /// The kept part of a block has been taken over.
    Overlap,
    Inserted(bool),
    Row(Option<u64>),
    Holds(bool),
    Done,
    Reservations(Vec<Reservation>),
    /// The answer to an insert: not stored, for certain, because a copy has taken over.
    AnotherHistory,
    /// An error. For an insert it means "not stored, for certain".
    Failed,
    /// The answer to an insert whose outcome is unknown.
    Unknown,
}

/// The fate of a call on its way.
enum Way {
    Answered,
    /// The call never arrives, and the caller hears so.
    Failed,
    /// The call is executed after this delay, and the caller does not hear so.
    Unheard(u64),
    /// The call is not executed, and the caller does not hear so.
    Lost,
}

/// The database server.
#[derive(Debug)]
pub(super) struct Database {
    pub(super) keyspaces: Vec<FakeDatabase>,
    /// The namespace of each reservation, and whether it was given up.
    reservations: BTreeMap<u64, (usize, bool)>,
    epoch: StoreEpoch,
    /// The count of failovers. Calls to the server before the last one are lost.
    pub(super) history: u32,
    copy: (Vec<FakeDatabase>, BTreeMap<u64, (usize, bool)>),
    pub(super) away_until: u64,
}

impl Database {
    pub(super) fn new(namespaces: usize) -> Self {
        let epoch = StoreEpoch::new("7001:1").expect("the name is well-formed");
        let keyspaces = vec![FakeDatabase::default(); namespaces];
        let (reservations, copy) = (BTreeMap::new(), Default::default());
        Self { keyspaces, reservations, epoch, history: 0, copy, away_until: 0 }
    }

    /// Makes a copy of the database.
    pub(super) fn copy(&mut self) {
        self.copy = (self.keyspaces.clone(), self.reservations.clone());
    }

    /// Fails over to the copy, which begins a history of its own.
    pub(super) fn fail_over(&mut self) {
        (self.keyspaces, self.reservations) = std::mem::take(&mut self.copy);
        self.history += 1;
        self.epoch = StoreEpoch::new(format!("7001:{}", self.history + 1)).expect("the name is well-formed");
    }

    fn reservations(&self) -> Vec<Reservation> {
        let all = self.reservations.iter();
        let reservation = |(id, (namespace, closed)): (&u64, &(usize, bool))| {
            let entries = self.keyspaces[*namespace].entries().iter();
            let spans = entries.filter(|entry| owner(entry.generation) == *id).map(|entry| entry.span);
            Reservation { id: *id, namespace: *namespace, closed: *closed, spans: spans.collect() }
        };
        all.map(reservation).collect()
    }
}

impl World {
    /// Sends a call to the database.
    pub(super) fn ask_store(&mut self, from: Caller, op: StoreOp) {
        let insert = matches!(op, StoreOp::Insert { .. });
        let way = self.way(insert);
        let delay = self.delay();
        let history = self.database.history;
        let error = if insert { StoreReply::Unknown } else { StoreReply::Failed };
        match way {
            Way::Answered => self.agenda.after(delay, Event::Store { from, op, answers: true, history }),
            Way::Failed => self.reply(from, Reply::Store(StoreReply::Failed)),
            Way::Unheard(late) => {
                self.agenda.after(late, Event::Store { from, op, answers: false, history });
                self.agenda.after(PATIENCE, Event::Reply { to: from, reply: Reply::Store(error) });
            }
            Way::Lost => self.agenda.after(PATIENCE, Event::Reply { to: from, reply: Reply::Store(error) }),
        }
    }

    fn way(&mut self, insert: bool) -> Way {
        let away = self.agenda.now() < self.database.away_until;
        let unknown = self.chance(|rates| if insert { rates.insert_unknown } else { rates.store_failed });
        match () {
            () if away && self.rng.chance(700) => Way::Failed,
            () if away => Way::Lost,
            () if unknown && self.rng.chance(250) => Way::Lost,
            () if unknown && insert && self.rng.chance(500) => {
                Way::Unheard(self.rng.between(PATIENCE, LATE_MAX))
            }
            () if unknown => Way::Unheard(self.delay()),
            () if self.chance(|rates| rates.store_failed) => Way::Failed,
            () => Way::Answered,
        }
    }

    /// Executes a call in the database.
    pub(super) fn store(&mut self, from: Caller, op: &StoreOp, answers: bool, history: u32) {
        if history != self.database.history {
            if answers {
                let insert = matches!(op, StoreOp::Insert { .. });
                let error = if insert { StoreReply::Unknown } else { StoreReply::Failed };
                self.reply(from, Reply::Store(error));
            }
            return;
        }
        let reply = self.execute(op);
        if let (false, StoreReply::Inserted(true)) = (answers, &reply) {
            self.summary.add(Happening::LateInsert, 1);
        }
        if answers {
            self.reply(from, Reply::Store(reply));
        }
    }

    fn execute(&mut self, op: &StoreOp) -> StoreReply {
        let Database { keyspaces, epoch, reservations, .. } = &mut self.database;
        let (mutant, register) = (self.mutant, &mut self.checks.register);
        match op {
            StoreOp::Epoch => StoreReply::Epoch(epoch.clone()),
            StoreOp::Register { namespace, entry } => {
                let registered = keyspaces[*namespace].register(*entry, mutant);
                if registered {
                    register.registered(*namespace, *entry);
                }
                StoreReply::Registered(registered)
            }
            StoreOp::TakeOver { namespace, entry, leaked } => {
                let is_open = |id: u64| reservations.get(&id).is_some_and(|(_, closed)| !closed);
                let is_reserved = |other: &Entry| is_open(owner(other.generation));
                let taken = keyspaces[*namespace].take_over(*entry, *leaked, is_reserved, mutant);
                register.take_over(*namespace, *entry, *leaked, taken);
                StoreReply::Registered(taken)
            }
            StoreOp::Unused { namespace, span } => StoreReply::Unused(keyspaces[*namespace].unused(*span)),
            StoreOp::RegisteredEnd { namespace } => StoreReply::End(keyspaces[*namespace].registered_end()),
            StoreOp::Release { namespace, entry, kept } => {
                let released = keyspaces[*namespace].release(*entry, kept, mutant);
                if released {
                    register.released(*namespace, *entry, kept);
                }
                if released { StoreReply::Released } else { StoreReply::Overlap }
            }
            StoreOp::Insert { history, .. } if **history != *epoch => StoreReply::AnotherHistory,
            StoreOp::Insert { namespace, number, url, .. } => {
                StoreReply::Inserted(keyspaces[*namespace].insert(*number, *url))
            }
            StoreOp::Read { namespace, number } => StoreReply::Row(keyspaces[*namespace].link(*number)),
            StoreOp::Holds { namespace, number, token } => {
                StoreReply::Holds(keyspaces[*namespace].holds(*number, *token))
            }
            StoreOp::AddReservation { reservation, namespace } => {
                reservations.entry(*reservation).or_insert((*namespace, false));
                StoreReply::Done
            }
            StoreOp::Reservations => StoreReply::Reservations(self.database.reservations()),
            StoreOp::CloseReservation { reservation } => {
                reservations.entry(*reservation).and_modify(|(_, closed)| *closed = true);
                StoreReply::Done
            }
        }
    }
}
