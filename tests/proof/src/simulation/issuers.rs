//! Issuers as processes: the real core, with a shell that does the same as `issuer::driver` and the
//! election.

use std::{collections::BTreeMap, rc::Rc};

use issuer::{
    core::{Answer, Core, Effect, Event as Input, Leader, Limits, Refusal, Request},
    ledger::{Snapshot, Txn, TxnOutcome},
};
use numbers::{Epoch, Millis, Ticket};

use super::{
    desk::Reply,
    plan::{LEASE_TTL, TICK},
    summary::Happening,
    world::{Caller, Event, World},
};
use crate::Mutant;

/// How long an issuer waits for a transaction, in milliseconds.
const TXN_PATIENCE: u64 = 200;
/// The first and the longest pause before a transaction in doubt is sent again, in milliseconds.
const AGAIN: (u64, u64) = (20, 300);
/// The pause after a term, in milliseconds.
const REST: u64 = 200;

/// One issuer.
#[derive(Debug)]
pub(super) struct Issuer {
    /// The count of crashes. Events meant for an earlier life are lost.
    pub(super) life: u32,
    pub(super) up: bool,
    pub(super) paused_until: u64,
    core: Core,
    limits: Limits,
    /// The term that it believes to be in, and the end of its lease.
    term: Option<(Epoch, u64)>,
    rest_until: u64,
    waiting: BTreeMap<Ticket, (Caller, Rc<Request>)>,
    next_ticket: Ticket,
    /// The number of the transaction whose outcome is awaited.
    commit: u64,
    committing: bool,
    in_doubt: bool,
    again: u64,
    served: Option<Epoch>,
}

impl Issuer {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            life: 0,
            up: true,
            paused_until: 0,
            core: Core::new(limits),
            limits,
            term: None,
            rest_until: 0,
            waiting: BTreeMap::new(),
            next_ticket: Ticket(0),
            commit: 0,
            committing: false,
            in_doubt: false,
            again: AGAIN.0,
            served: None,
        }
    }

    /// Ends the process, and clears its memory.
    pub(super) fn crash(&mut self) {
        *self = Self { life: self.life + 1, up: false, commit: self.commit, ..Self::new(self.limits) };
    }
}

fn url(issuer: usize) -> String {
    format!("http://issuer-{issuer}")
}

/// Returns the issuer with the address of a leader.
pub(super) fn issuer_at(leader: &Leader) -> Option<usize> {
    leader.url.rsplit('-').next()?.parse().ok()
}

impl World {
    /// Renews the lease or campaigns, and then ticks the core, which looks for silent holders.
    pub(super) fn tick(&mut self, index: usize) {
        self.elect(index);
        self.step(index, Input::Tick);
        let life = self.issuers[index].life;
        self.agenda.after(TICK, Event::Tick { issuer: index, life });
    }

    fn elect(&mut self, index: usize) {
        let now = self.agenda.now();
        let reaches = !self.etcd.is_away(now) && !self.chance(|rates| rates.txn_lost);
        match self.issuers[index].term {
            Some((epoch, _)) if reaches => {
                if self.etcd.beat(now, epoch) {
                    self.issuers[index].term = Some((epoch, now + LEASE_TTL));
                } else {
                    self.end_term(index);
                }
            }
            Some((_, deadline)) if now >= deadline => self.end_term(index),
            None if reaches && now >= self.issuers[index].rest_until => self.campaign(index),
            _ => {}
        }
    }

    fn campaign(&mut self, index: usize) {
        let now = self.agenda.now();
        if let Some((leader, epoch)) = self.etcd.leader(now) {
            let leader = Leader { url: url(leader), epoch };
            if self.issuers[index].core.leader() != Some(&leader) {
                self.step(index, Input::Following(Some(leader)));
            }
        } else if let Some(epoch) = self.etcd.campaign(now, index) {
            let life = self.issuers[index].life;
            self.issuers[index].term = Some((epoch, now + LEASE_TTL));
            let delay = self.delay();
            self.agenda.after(delay, Event::Load { issuer: index, life, epoch });
        }
    }

    /// Reads the ledger after an election is won, perhaps from a member that is behind.
    pub(super) fn load(&mut self, index: usize, epoch: Epoch) {
        let stale = self.chance(|rates| rates.stale_read);
        let snapshot = self.etcd.load(stale);
        let (life, delay) = (self.issuers[index].life, self.delay());
        self.agenda.after(delay, Event::Elected { issuer: index, life, epoch, snapshot: Box::new(snapshot) });
    }

    /// Begins a term, unless it has ended in the meantime.
    pub(super) fn elected(&mut self, index: usize, epoch: Epoch, snapshot: Snapshot) {
        if self.issuers[index].term.is_some_and(|(current, _)| current == epoch) {
            let now = self.agenda.now();
            if self.etcd.at(now).snapshot().head == snapshot.head {
                self.checks.read(&snapshot);
            } else {
                self.summary.add(Happening::StaleTakeOver, 1);
            }
            self.issuers[index].committing = false;
            self.step(index, Input::Elected { epoch, snapshot });
        }
    }

    fn end_term(&mut self, index: usize) {
        let now = self.agenda.now();
        let issuer = &mut self.issuers[index];
        let Some((epoch, _)) = issuer.term.take() else { return };
        issuer.rest_until = now + REST;
        issuer.committing = false;
        self.step(index, Input::Following(None));
        let delay = self.delay();
        self.agenda.after(delay, Event::Resign { epoch });
    }

    /// Asks the process to stop: it hands over and starts again.
    pub(super) fn retire(&mut self, index: usize) {
        self.step(index, Input::Retire);
        // A process that does not lead has nothing to hand over. One that waits for a transaction
        // is killed in the end.
        let (life, delay) = (self.issuers[index].life, self.rng.between(100, 600));
        self.agenda.after(delay, Event::StopIssuer { issuer: index, life });
    }

    /// Delivers a call to an issuer.
    pub(super) fn call(&mut self, index: usize, from: Caller, request: Rc<Request>) {
        let now = self.agenda.now();
        let read = Mutant::request(self.mutant, (*request).clone(), self.etcd.at(now));
        let issuer = &mut self.issuers[index];
        issuer.next_ticket = issuer.next_ticket.next();
        let ticket = issuer.next_ticket;
        issuer.waiting.insert(ticket, (from, request));
        self.step(index, Input::Arrived(ticket, read));
    }

    /// Delivers the outcome of a transaction, if it is still awaited.
    pub(super) fn committed(&mut self, index: usize, commit: u64, outcome: TxnOutcome) {
        let issuer = &mut self.issuers[index];
        if !issuer.committing || issuer.commit != commit {
            return;
        }
        issuer.committing = false;
        let in_doubt = std::mem::replace(&mut issuer.in_doubt, outcome == TxnOutcome::Unknown);
        let (applied, refused) =
            (matches!(outcome, TxnOutcome::Applied(_)), matches!(outcome, TxnOutcome::Refused(_)));
        self.step(index, Input::Committed(outcome));
        let deposed = self.issuers[index].term.is_none();
        if in_doubt && applied {
            self.summary.add(Happening::UnknownResent, 1);
        } else if in_doubt && refused && deposed {
            self.summary.add(Happening::UnknownDeposed, 1);
        } else if in_doubt && refused {
            self.summary.add(Happening::UnknownApplied, 1);
        }
    }

    fn step(&mut self, index: usize, input: Input) {
        let issuer = &mut self.issuers[index];
        let now = Millis(self.agenda.now());
        let effects = issuer.core.step(now, input);
        for effect in effects {
            match effect {
                Effect::Answer(ticket, answer) => self.answer(index, ticket, answer),
                Effect::Commit { txn, again } => self.send_txn(index, txn, again),
                Effect::Abdicate => self.end_term(index),
            }
        }
        let issuer = &mut self.issuers[index];
        let serving = issuer.core.serving();
        if serving.is_some() && serving != issuer.served {
            self.summary.add(Happening::LeaderChange, 1);
        }
        issuer.served = serving;
    }

    fn answer(&mut self, index: usize, ticket: Ticket, answer: Result<Answer, Refusal>) {
        let Some((from, request)) = self.issuers[index].waiting.remove(&ticket) else { return };
        self.checks.answered(&request, &answer, &mut self.summary);
        self.reply(from, Reply::Answer(answer));
    }

    fn send_txn(&mut self, index: usize, txn: Txn, again: bool) {
        let issuer = &mut self.issuers[index];
        let pause = if again { issuer.again } else { 0 };
        issuer.again = if again { (issuer.again * 2).min(AGAIN.1) } else { AGAIN.0 };
        issuer.in_doubt &= again;
        issuer.commit += 1;
        issuer.committing = true;
        let (commit, life, history) = (issuer.commit, issuer.life, self.etcd.history);
        let away = self.etcd.is_away(self.agenda.now() + pause);
        let late = self.chance(|rates| rates.txn_late);
        let lost = away || self.chance(|rates| rates.txn_lost);
        let answers = !late && !lost && !self.chance(|rates| rates.txn_reply_lost);
        if late || !lost {
            let delay =
                if late { self.rng.between(TXN_PATIENCE, super::plan::LATE_MAX) } else { self.delay() };
            let arrival = Event::Txn { issuer: index, life, commit, history, answers, txn: Box::new(txn) };
            self.agenda.after(pause + delay, arrival);
        }
        if !answers {
            let outcome = TxnOutcome::Unknown;
            let unknown = Event::Committed { issuer: index, life, commit, outcome };
            self.agenda.after(pause + TXN_PATIENCE, unknown);
        }
    }

    /// Executes a transaction in etcd, whatever has become of its sender.
    pub(super) fn txn(&mut self, issuer: usize, life: u32, commit: u64, answers: bool, txn: &Txn) {
        let now = self.agenda.now();
        let leader = self.etcd.at(now).leader;
        let outcome = self.etcd.commit(now, txn, self.mutant);
        if matches!(outcome, TxnOutcome::Applied(_)) {
            self.checks.applied(txn, leader, &mut self.summary);
            if self.rng.chance(30) {
                self.etcd.fall_behind();
            }
        }
        let current = &self.issuers[issuer];
        if current.life != life || current.commit != commit {
            self.summary.add(Happening::LateTransaction, 1);
        }
        if answers {
            let delay = self.delay();
            self.agenda.after(delay, Event::Committed { issuer, life, commit, outcome });
        }
    }
}
