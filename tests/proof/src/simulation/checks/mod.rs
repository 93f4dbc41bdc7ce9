//! Checks of the invariants, whatever has happened. The checkers are independent of the faults.
//! They learn what was committed, answered and acknowledged, and keep their own accounts.

mod ledger;
mod links;
mod register;
mod reservations;

use issuer::{
    core::{Answer, Head, Refusal, Request},
    ledger::{Snapshot, Txn},
};
use numbers::{Epoch, Namespace, Span};

use self::{ledger::LedgerCheck, links::LinkCheck, register::RegisterCheck, reservations::ReservationCheck};
use super::{
    database::Database,
    summary::{Happening, Summary},
};

/// A report of a holder to the checkers.
#[derive(Clone, Debug)]
pub(super) enum Note {
    Acknowledged {
        namespace: usize,
        number: u64,
        url: u64,
    },
    /// A client has received the numbers of a reservation.
    Reserved {
        reservation: u64,
        namespace: usize,
        spans: Vec<Span>,
    },
    /// From now on the reservation's numbers may be allocated to others.
    GivingUp {
        reservation: u64,
    },
    Filled {
        reservation: u64,
        namespace: usize,
        number: u64,
        url: u64,
    },
    Burned {
        namespace: usize,
        number: u64,
    },
    Met {
        reclaimed: bool,
    },
    Refused {
        take_over: bool,
    },
    ForeignBlock,
    Exhausted {
        namespace: Namespace,
        capacity: u64,
    },
    /// The holder is configured with a lower capacity than the issuer's.
    Outdated,
    Superseded,
    Swept,
    Happened(Happening, u64),
}

/// All checkers.
#[derive(Debug)]
pub(super) struct Checks {
    namespaces: Vec<Namespace>,
    ledger: LedgerCheck,
    pub(super) register: RegisterCheck,
    links: LinkCheck,
    reservations: ReservationCheck,
    broken: Option<String>,
    /// Whether the ledger or the database has lost history. Some promises do not hold then.
    history_lost: bool,
}

impl Checks {
    pub(super) fn new(namespaces: Vec<Namespace>) -> Self {
        let count = namespaces.len();
        Self {
            ledger: LedgerCheck::new(namespaces.clone()),
            register: RegisterCheck::new(count),
            links: LinkCheck::new(count),
            reservations: ReservationCheck::default(),
            namespaces,
            broken: None,
            history_lost: false,
        }
    }

    /// Returns the first violation.
    pub(super) fn broken(&self) -> Option<String> {
        let (links, reservations) = (&self.links.broken, &self.reservations.broken);
        let all = [&self.broken, &self.ledger.broken, &self.register.broken, links, reservations];
        all.into_iter().flatten().next().cloned()
    }

    /// Records a violation.
    pub(super) fn fail(&mut self, what: String) {
        self.broken.get_or_insert(what);
    }

    /// Checks an applied transaction. `leader` is the epoch that held the leader key at that time.
    pub(super) fn applied(&mut self, txn: &Txn, leader: Option<Epoch>, summary: &mut Summary) {
        self.ledger.applied(txn, leader, summary);
    }

    /// Checks an issuer's answer.
    pub(super) fn answered(
        &mut self,
        request: &Request,
        answer: &Result<Answer, Refusal>,
        summary: &mut Summary,
    ) {
        self.ledger.answered(request, answer, summary);
    }

    /// Checks the ledger that a new leader has read in its current state.
    pub(super) fn read(&mut self, snapshot: &Snapshot) {
        self.ledger.read(snapshot);
    }

    /// Records that the ledger was restored to an earlier state.
    pub(super) fn restored(&mut self, snapshot: &Snapshot) {
        self.history_lost = true;
        self.ledger.restored(snapshot);
    }

    /// Records that a copy of the database was made.
    pub(super) fn store_copied(&mut self) {
        self.register.copied();
    }

    /// Records that the copy of the database has taken over.
    pub(super) fn failed_over(&mut self, database: &Database) {
        self.history_lost = true;
        self.register.failed_over();
        self.links.failed_over(database);
    }

    /// Handles a report of a process.
    pub(super) fn note(&mut self, note: Note, database: &Database, summary: &mut Summary) {
        match note {
            Note::Acknowledged { namespace, number, url } => {
                summary.add(Happening::Acknowledged, 1);
                let stored = database.keyspaces[namespace].link(number);
                self.reservations.minted((namespace, number));
                self.links.acknowledged((namespace, number), url, stored);
            }
            Note::Reserved { reservation, namespace, spans } => {
                summary.add(Happening::Reserved, 1);
                self.reservations.told(reservation, namespace, &spans);
            }
            Note::GivingUp { reservation } => self.reservations.given_up(reservation),
            Note::Filled { reservation, namespace, number, url } => {
                summary.add(Happening::Filled, 1);
                let late = self.reservations.filled(reservation);
                summary.add(Happening::FilledLate, u64::from(late));
                let stored = database.keyspaces[namespace].link(number);
                self.links.filled((namespace, number), url, stored);
            }
            Note::Burned { namespace, number } => {
                summary.add(Happening::Burned, 1);
                self.links.burned(namespace, number);
            }
            Note::Met { reclaimed } => {
                summary.add(Happening::Met, 1);
                summary.add(Happening::MetLate, u64::from(reclaimed));
            }
            Note::Refused { take_over: true } => summary.add(Happening::TakeOverRefused, 1),
            Note::Refused { take_over: false } => summary.add(Happening::RegisterRefused, 1),
            Note::Superseded => summary.add(Happening::Superseded, 1),
            Note::ForeignBlock => {
                self.fail("I5: a seq was answered with a block of another namespace".to_owned());
            }
            Note::Exhausted { namespace, capacity } => {
                if !self.history_lost
                    && let Some(number) = self.unused(&namespace, capacity, database)
                {
                    self.fail(format!("{namespace} is said to be exhausted, and {number} is unused"));
                }
            }
            Note::Swept | Note::Outdated => {}
            Note::Happened(happening, count) => summary.add(happening, count),
        }
    }

    /// Returns a number below the capacity that is neither used nor given up, wherever the ledger
    /// has it. The capacity may have been raised since.
    fn unused(&self, namespace: &Namespace, capacity: u64, database: &Database) -> Option<u64> {
        let index = self.namespaces.iter().position(|name| name == namespace)?;
        let allocated = self.ledger.allocated(index);
        if allocated < capacity {
            return Some(allocated);
        }
        let spans = self.ledger.not_settled(index).into_iter();
        let unused = spans.flat_map(|span| database.keyspaces[index].unused(span));
        let mut numbers = unused.flat_map(|gap| gap.start()..gap.end());
        let settled = |number| self.links.is_burned(index, number) || self.ledger.was_reserved(index, number);
        numbers.find(|number| *number < capacity && !settled(*number))
    }

    /// Checks the final state, after every process has stopped and the leftovers are swept.
    pub(super) fn at_the_end(&mut self, head: Option<&Head>, database: &Database, summary: &mut Summary) {
        self.links.still_there(database);
        let Some(head) = head else { return self.fail("the ledger is empty".to_owned()) };
        for (index, name) in self.namespaces.clone().iter().enumerate() {
            let Some(record) = head.namespaces.get(name) else {
                return self.fail(format!("namespace {name} is not in the ledger"));
            };
            let free = self.ledger.free(index);
            let (kept, keyspace) = (self.ledger.reserved(index), &database.keyspaces[index]);
            let found = links::Found { account: record.account, free, kept, keyspace };
            let free_taken = self.links.account(index, &found, self.history_lost);
            summary.add(Happening::FreeTaken, free_taken);
        }
    }
}
