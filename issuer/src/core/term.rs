//! One leader's term: its state, the queue of calls, and the batch in flight.

use std::collections::VecDeque;

use numbers::{Epoch, HolderId, Mark, Millis, Revision, Ticket};

use super::{
    allocate::{self, BlockRequest},
    event::Effect,
    guard::Guard,
    journal::ENTRIES_MAX,
    leader_state::{LeaderState, NumbersReport},
    leak::{BURNED_MAX, leak_open_blocks},
    limits::Limits,
    register::{self, Start},
    request::{Answer, Leader, Refusal, Request},
    return_blocks, scarcity,
    state::State,
    status,
    txn::{HeadRead, MAX_TXN_WRITES, Snapshot, Txn, TxnOutcome},
    values::{HolderRecord, NamespaceRecord},
};

/// The state of a leader until deposition. It is dropped whole: see [`crate::core`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Term {
    pub(super) leader: LeaderState,
    /// Revision of `head` that the next transaction compares.
    head: Revision,
    queue: VecDeque<Work>,
    in_flight: Option<InFlight>,
    pub(super) serving: bool,
    retiring: bool,
}

/// A queued piece of work for the next transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Work {
    /// A call.
    Call(Ticket, Request),
    /// The expiry of a silent holder. It lapses if the holder is heard before it is executed.
    Expire(HolderId),
}

/// The batch whose transaction is in flight.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InFlight {
    txn: Txn,
    answers: Vec<(Ticket, Result<Answer, Refusal>)>,
}

impl Term {
    /// Rebuilds the state, and writes `head` once before any call is served. The write proves that
    /// this leader can commit and that the snapshot was not stale.
    pub(super) fn take_over(
        limits: Limits,
        now: Millis,
        epoch: Epoch,
        snapshot: Snapshot,
        effects: &mut Vec<Effect>,
    ) -> Self {
        let head = snapshot.head;
        let mut state = State::rebuild(snapshot);
        state.head.holder_ttl_ms = state.head.holder_ttl_ms.max(limits.holder_ttl_ms);
        let mut term = Self {
            leader: LeaderState::new(limits, now, epoch, state),
            head,
            queue: VecDeque::new(),
            in_flight: None,
            serving: false,
            retiring: false,
        };
        term.commit(Vec::new(), effects);
        term
    }

    /// Queues a call, or executes it at once if no transaction is in flight.
    pub(super) fn arrived(
        &mut self,
        now: Millis,
        ticket: Ticket,
        request: Request,
        effects: &mut Vec<Effect>,
    ) {
        if self.retiring {
            effects.push(Effect::Answer(ticket, Err(Refusal::NotLeader(None))));
        } else if self.queue.len() >= self.leader.limits.queue {
            effects.push(Effect::Answer(ticket, Err(Refusal::Overloaded)));
        } else {
            self.queue.push_back(Work::Call(ticket, request));
            self.open_batch(now, effects);
        }
    }

    /// Handles the outcome of the transaction in flight. Returns whether the term goes on: `false`
    /// if another leader has written the ledger.
    pub(super) fn committed(&mut self, now: Millis, outcome: TxnOutcome, effects: &mut Vec<Effect>) -> bool {
        let Some(in_flight) = &self.in_flight else {
            // The shell reports outcomes only of transactions that it was given, one at a time.
            return true;
        };
        let revision = match outcome {
            TxnOutcome::Unknown => {
                effects.push(Effect::Commit { txn: in_flight.txn.clone(), again: true });
                return true;
            }
            TxnOutcome::Applied(revision) => revision,
            TxnOutcome::Refused(head) => match self.applied_before(&in_flight.txn, head) {
                Some(revision) => revision,
                None => return false,
            },
        };
        self.head = revision;
        self.serving = true;
        let in_flight = self.in_flight.take().expect("`in_flight` was `Some` at the top of this function");
        effects.extend(in_flight.answers.into_iter().map(|(ticket, answer)| Effect::Answer(ticket, answer)));
        if self.retiring {
            effects.push(Effect::Abdicate);
        } else {
            self.open_batch(now, effects);
        }
        true
    }

    /// Applies the lost-reply rule: a refused copy means that an earlier copy has applied, if
    /// `head` carries this batch. Returns the revision of `head` in that case.
    fn applied_before(&self, txn: &Txn, head: Option<HeadRead>) -> Option<Revision> {
        let guarded = self.leader.limits.guards(Guard::LostReply);
        head.filter(|read| !guarded || (read.head.epoch == txn.epoch && read.head.batch == txn.batch))
            .map(|read| read.revision)
    }

    /// Refuses new requests, and abdicates as soon as no transaction is in flight.
    pub(super) fn retire(&mut self, effects: &mut Vec<Effect>) {
        self.retiring = true;
        self.refuse_queue(None, effects);
        if self.in_flight.is_none() {
            effects.push(Effect::Abdicate);
        }
    }

    /// Ends the term. Calls in flight have an unknown outcome; queued ones were not executed.
    pub(super) fn end(mut self, leader: Option<&Leader>, effects: &mut Vec<Effect>) {
        let in_doubt = self.in_flight.take().into_iter().flat_map(|batch| batch.answers);
        effects.extend(in_doubt.map(|(ticket, _)| Effect::Answer(ticket, Err(Refusal::Unknown))));
        self.refuse_queue(leader, effects);
    }

    fn refuse_queue(&mut self, leader: Option<&Leader>, effects: &mut Vec<Effect>) {
        for work in self.queue.drain(..) {
            if let Work::Call(ticket, _) = work {
                effects.push(Effect::Answer(ticket, Err(Refusal::NotLeader(leader.cloned()))));
            }
        }
    }

    /// Queues the expiry of holders that were silent for too long, as far as there is room.
    pub(super) fn tick(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        if self.retiring || !self.serving {
            return;
        }
        let guarded = self.leader.limits.guards(Guard::Reserved);
        let keeps = |record: &HolderRecord| record.reserved && guarded;
        let holds = |record: &HolderRecord| !record.open.is_empty() && !keeps(record);
        let holders = self
            .leader
            .state
            .holders
            .iter()
            .filter(|(id, record)| holds(record) && self.leader.is_silent(now, id));
        let silent: Vec<_> = holders.map(|(id, _)| Work::Expire(id.clone())).collect();
        for work in silent {
            if self.queue.len() < self.leader.limits.queue && !self.queue.contains(&work) {
                self.queue.push_back(work);
            }
        }
        self.open_batch(now, effects);
    }

    /// Executes queued work, as much as fits one transaction, and sends the transaction. If the
    /// whole batch changes nothing, its requests are answered at once, so that reading costs no
    /// write.
    fn open_batch(&mut self, now: Millis, effects: &mut Vec<Effect>) {
        while self.in_flight.is_none() && !self.queue.is_empty() {
            let mut answers = Vec::new();
            while let Some(work) = self.queue.front() {
                // One write is `head` itself. The first piece of work always fits.
                let is_full = self.leader.state.touched() + self.cost(work) >= MAX_TXN_WRITES
                    || self.leader.state.entries.len() >= ENTRIES_MAX;
                if is_full && self.leader.state.touched() > 0 {
                    break;
                }
                match self.queue.pop_front().expect("`front` has just returned an element") {
                    Work::Call(ticket, request) => {
                        answers.push((ticket, self.execute(now, request)));
                    }
                    Work::Expire(holder) if self.leader.is_silent(now, &holder) => {
                        leak_open_blocks(&mut self.leader, now, &holder);
                    }
                    Work::Expire(_) => {}
                }
            }
            if self.leader.state.head_changed || self.leader.state.touched() > 0 {
                self.commit(answers, effects);
            } else {
                effects.extend(answers.into_iter().map(|(ticket, answer)| Effect::Answer(ticket, answer)));
            }
        }
    }

    fn commit(&mut self, answers: Vec<(Ticket, Result<Answer, Refusal>)>, effects: &mut Vec<Effect>) {
        self.leader.state.head.epoch = self.leader.epoch;
        self.leader.state.head.batch = self.leader.state.head.batch.next();
        debug_assert!(
            self.leader.state.head.namespaces.values().all(NamespaceRecord::is_sound),
            "I10 or the ceiling"
        );
        let room = MAX_TXN_WRITES.saturating_sub(self.leader.state.touched() + 1);
        self.leader.state.save_some(&self.leader.limits, room);
        let txn = Txn {
            epoch: self.leader.epoch,
            head: self.head,
            batch: self.leader.state.head.batch,
            writes: self.leader.state.take_writes(&self.leader.limits).into(),
        };
        effects.push(Effect::Commit { txn: txn.clone(), again: false });
        self.in_flight = Some(InFlight { txn, answers });
    }

    /// Returns an upper bound of the keys that a piece of work writes, without `head`.
    fn cost(&self, work: &Work) -> usize {
        let of_holder = |holder: &HolderId| {
            1 + self.leader.state.holders.get(holder).map_or(0, |record| record.open.len())
        };
        match work {
            Work::Expire(holder) => of_holder(holder),
            // One more holder may be forgotten to make room.
            Work::Call(_, Request::Register { holder, .. }) => 1 + of_holder(holder),
            // The holder or the journal, the free part that was taken, the rest of it, and blocks
            // that are burned on the way.
            Work::Call(_, Request::Allocate { .. }) => 3 + 2 * BURNED_MAX,
            Work::Call(_, Request::Return { blocks, .. }) => {
                1 + blocks.iter().map(|returned| returned.unused.len()).sum::<usize>()
            }
            Work::Call(_, Request::KeepAlive { .. } | Request::Status) => 0,
        }
    }

    fn execute(&mut self, now: Millis, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Register { holder, instance, namespaces, reserved } => {
                self.leader.heard.insert(holder.clone(), now);
                let start = Start { holder: &holder, instance, namespaces: &namespaces, reserved };
                register::register(&mut self.leader, now, start)
            }
            Request::Allocate { holder, incarnation, seq, namespace, wanted_len, store } => {
                self.leader.hear(now, &holder, incarnation)?;
                let asked = BlockRequest { holder: &holder, seq, namespace: &namespace, wanted_len, store };
                allocate::allocate(&mut self.leader, now, asked)
            }
            Request::KeepAlive { holder, incarnation, last_seq, progress, mark } => {
                self.leader.hear(now, &holder, incarnation)?;
                self.leader.hear_mark(mark);
                // Answered only after a commit, which proves that this leader is not deposed: it
                // would tell an old mark, and a database that was put back could pass for whole.
                self.leader.state.head_changed |= mark > Mark(0);
                Ok(self.alive(now, holder, NumbersReport { last_seq, numbers: progress }))
            }
            Request::Return { holder, incarnation, blocks } => {
                self.leader.hear(now, &holder, incarnation)?;
                return_blocks::return_blocks(&mut self.leader, &holder, blocks)
            }
            Request::Status => Ok(Answer::Status(Box::new(status::report(&self.leader, now)))),
        }
    }

    /// Records a holder's report, and answers with the namespaces in which others starve.
    fn alive(&mut self, now: Millis, holder: HolderId, report: NumbersReport) -> Answer {
        let named = || report.numbers.iter().map(|(name, _)| name);
        let starving =
            named().filter(|name| scarcity::others_starve(&self.leader, now, &holder, name)).cloned();
        let starving = starving.collect();
        let scarce = named().any(|name| scarcity::is_scarce(&self.leader, now, name));
        self.leader.in_hand.insert(holder, report);
        Answer::Alive { epoch: self.leader.epoch, starving, scarce, mark: self.leader.state.head.mark }
    }
}
