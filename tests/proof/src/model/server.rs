//! The steps of issuers and of etcd.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use issuer::{
    core::{Answer, Effect, Event, Refusal},
    ledger::{Txn, TxnOutcome},
};
use numbers::Ticket;

use super::{
    Step,
    laws::{Law, Whereabouts},
    witness::Witness,
    world::{CallId, Flight, from_ticket, ticket},
};
use crate::Mutant;

impl Step<'_> {
    /// Lets a follower win the election. It reads the ledger at once, unless it did so before and
    /// `early` is set.
    pub(super) fn elect(&mut self, server: usize, early: bool) {
        let Some(epoch) = Arc::make_mut(&mut self.world.etcd).campaign() else { return };
        let read_early = self.world.servers[server].early.take().filter(|_| early);
        let snapshot = read_early.map_or_else(|| self.world.etcd.snapshot(), Arc::unwrap_or_clone);
        self.world.servers[server].epoch = Some(epoch);
        self.tell(server, Event::Elected { epoch, snapshot });
    }

    /// Deposes an issuer. Its shell drops the transaction that it waits for, which may still
    /// execute.
    pub(super) fn depose(&mut self, server: usize) {
        self.world.servers[server].epoch = None;
        if let Some(Flight::Sent(txn)) = self.world.servers[server].flight.take() {
            self.leave_behind(txn);
        }
        self.tell(server, Event::Following(None));
    }

    /// Executes the transaction that an issuer waits for.
    pub(super) fn execute(&mut self, server: usize) {
        if let Some(Flight::Sent(txn)) = self.world.servers[server].flight.take() {
            let outcome = self.apply(&txn);
            if let TxnOutcome::Refused(Some(read)) = &outcome
                && self.world.etcd.leader == Some(txn.epoch)
                && read.head.epoch != txn.epoch
            {
                self.system.seen.note(Witness::EarlyReadRefused);
            }
            self.world.servers[server].flight = Some(Flight::Executed(txn, outcome));
        }
    }

    /// Delivers the outcome of a transaction to its issuer.
    pub(super) fn reply(&mut self, server: usize) {
        if let Some(Flight::Executed(_, outcome)) = self.world.servers[server].flight.take() {
            let refused = matches!(outcome, TxnOutcome::Refused(_));
            self.tell(server, Event::Committed(outcome));
            if refused && self.world.servers[server].epoch.is_some() {
                self.system.seen.note(Witness::LostReplySettled);
            }
        }
    }

    /// Lets an issuer's wait time out: the reply was lost, or the transaction is still under way.
    pub(super) fn time_out(&mut self, server: usize) {
        if let Some(Flight::Sent(txn)) = self.world.servers[server].flight.take() {
            self.leave_behind(txn);
        }
        self.tell(server, Event::Committed(TxnOutcome::Unknown));
    }

    /// Executes a copy of a transaction that no issuer waits for.
    pub(super) fn execute_late(&mut self, index: usize) {
        let txn = self.world.late_commits.remove(index);
        if let TxnOutcome::Refused(_) = self.apply(&txn) {
            self.system.seen.note(Witness::LateCopyRefused);
        }
    }

    /// Restores etcd from the backup. It was away for longer than a lease lasts, so every issuer
    /// knows that it does not lead.
    pub(super) fn restore(&mut self) {
        let Some(backup) = self.world.backup.take() else { return };
        self.world.etcd = backup;
        Arc::make_mut(&mut self.world.etcd).vacate();
        Arc::make_mut(&mut self.world.past).restored = true;
        for server in 0..self.world.servers.len() {
            self.depose(server);
        }
    }

    /// Delivers a call to an issuer.
    pub(super) fn deliver(&mut self, id: CallId, server: usize) {
        let Some((request, copies)) = self.world.calls.get_mut(&id) else { return };
        let request = Arc::clone(request);
        *copies -= 1;
        if *copies == 0 {
            self.world.calls.remove(&id);
        }
        let ticket = ticket(id, &request);
        let request = Mutant::request(self.system.mutant, Arc::unwrap_or_clone(request), &self.world.etcd);
        self.tell(server, Event::Arrived(ticket, request));
    }

    /// Steps the core with an event and carries out the effects.
    pub(super) fn tell(&mut self, server: usize, event: Event) {
        let (now, core) = (self.world.now, Arc::make_mut(&mut self.world.servers[server].core));
        let Ok(effects) = catch_unwind(AssertUnwindSafe(|| core.step(now, event))) else {
            return self.world.break_law(Law::NoPanic);
        };
        for effect in effects {
            match effect {
                Effect::Answer(ticket, answer) => self.answer(server, ticket, answer),
                Effect::Commit { txn, .. } => {
                    self.world.servers[server].flight = Some(Flight::Sent(Arc::new(txn)));
                    if self.system.bounds.prompt_commits {
                        self.execute(server);
                        self.reply(server);
                    }
                }
                Effect::Abdicate => self.resign(server),
            }
        }
    }

    /// Resigns an issuer's leadership, if it has any.
    fn resign(&mut self, server: usize) {
        let epoch = self.world.servers[server].epoch.take();
        if epoch.is_some() && self.world.etcd.leader == epoch {
            Arc::make_mut(&mut self.world.etcd).vacate();
        }
        self.tell(server, Event::Following(None));
    }

    fn leave_behind(&mut self, txn: Arc<Txn>) {
        if self.world.late_commits.len() < self.system.bounds.late_commits {
            self.world.late_commits.push(txn);
        }
    }

    /// Executes a transaction in etcd and checks the laws on its result.
    fn apply(&mut self, txn: &Txn) -> TxnOutcome {
        let leads = self.world.etcd.leader == Some(txn.epoch);
        let before = Whereabouts::of(&self.world.etcd);
        let outcome = Arc::make_mut(&mut self.world.etcd).commit(txn, self.system.mutant);
        if !matches!(outcome, TxnOutcome::Applied(_)) {
            if !leads {
                self.system.seen.note(Witness::DeposedRefused);
            }
            return outcome;
        }
        let after = Whereabouts::of(&self.world.etcd);
        let links = self.world.database.links();
        self.world.keep(Law::OnlyTheLeaderWrites, leads);
        self.world.keep(Law::WatermarkForward, before.high_watermark() <= after.high_watermark());
        self.world.keep(Law::CapacityForward, before.capacity() <= after.capacity());
        if after.high_watermark() > self.system.bounds.capacity {
            self.system.seen.note(Witness::RaisedUsed);
        }
        self.world.keep(Law::LedgerDisjoint, after.are_disjoint());
        self.world.keep(Law::AccountBalances, after.are_accounted_for(links));
        self.judge_kept(&after);
        self.remember(&after);
        outcome
    }

    /// Checks that the blocks of open reservations are open in the ledger, however long the
    /// reservations are silent.
    fn judge_kept(&mut self, after: &Whereabouts) {
        let open = (0..self.world.holders.len()).filter(|holder| self.is_open_reservation(*holder));
        let held: Vec<_> = open.flat_map(|holder| self.reserved(holder)).collect();
        let kept = held.iter().all(|block| after.open.contains(&(block.generation, block.span)));
        if !held.is_empty() && self.world.now.0 > self.system.bounds.holder_ttl_ms {
            self.system.seen.note(Witness::ReservationSilent);
        }
        self.world.keep(Law::ReservationKept, kept);
    }

    fn remember(&mut self, after: &Whereabouts) {
        let known = &self.world.past;
        let new_open = after.open.iter().chain(&after.leaked).any(|block| !known.allocated.contains(block));
        let new_leaked = after.leaked.iter().any(|(generation, _)| !known.leaked.contains(generation));
        if new_open || new_leaked {
            let past = Arc::make_mut(&mut self.world.past);
            // A block may leak in the very transaction that allocates it.
            past.allocated.extend(after.open.iter().chain(&after.leaked));
            past.leaked.extend(after.leaked.iter().map(|(generation, _)| *generation));
        }
    }

    /// Delivers an issuer's answer. After an answer that means "not executed" or "unknown" the
    /// caller sends the call again at once.
    fn answer(&mut self, server: usize, ticket: Ticket, answer: Result<Answer, Refusal>) {
        let (id, incarnation, seq) = from_ticket(ticket);
        if let Ok(Answer::Allocated { block, epoch, leaked, .. }) = &answer {
            let (given, key) = ((block.generation, block.span), (id.0, incarnation, seq));
            let committed = self.world.past.allocated.contains(&given);
            self.world.keep(Law::AnsweredWhenCommitted, committed);
            let known = self.world.past.answered.get(&key).copied();
            let same = known.is_none_or(|known| known == given);
            // A restored etcd has forgotten its answers.
            self.world.keep(Law::OneBlockPerSeq, same || self.world.past.restored);
            if known.is_some() {
                self.system.seen.note(Witness::SeqRepeated);
            } else {
                Arc::make_mut(&mut self.world.past).answered.insert(key, given);
                if self.world.servers[server].epoch.is_some_and(|now| now > *epoch) {
                    self.system.seen.note(Witness::DoubtOutlivedItsLeader);
                }
            }
            let mut others = self.world.past.allocated.iter().filter(|other| **other != given);
            if leaked.is_none() && others.any(|(_, span)| span.overlaps(block.span)) {
                self.system.seen.note(Witness::TailAllocatedAgain);
            }
        }
        match &answer {
            Ok(Answer::Closed { blocks: 0 }) => self.system.seen.note(Witness::LateReturn),
            Ok(Answer::Alive { epoch, .. }) if self.world.etcd.leader.is_some_and(|now| now > *epoch) => {
                self.system.seen.note(Witness::BeatAnsweredByDeposed);
            }
            _ => {}
        }
        let Some(call) = self.waiting(id) else { return };
        if matches!(
            answer,
            Err(Refusal::NotLeader(_)
                | Refusal::Unknown
                | Refusal::Overloaded
                | Refusal::CeilingReached { .. })
        ) {
            let request = Arc::clone(&call.request);
            self.world.calls.entry(id).or_insert((request, 0)).1 += 1;
        } else if !call.answers.contains(&answer) {
            call.answers.push(answer);
            if self.system.bounds.prompt_answers {
                self.take(id, 0);
            }
        }
    }
}
