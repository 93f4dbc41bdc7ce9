//! What holders do: the resolver's side of the protocol, as its supplier and its creators do it.

use std::sync::Arc;

use issuer::core::{Answer, Refusal, Request, Returned};
use numbers::{HolderId, Incarnation, Instance, Mark, Millis, Seq, Span, StoreEpoch};

use super::{
    Step,
    laws::Law,
    witness::Witness,
    world::{Call, CallId, Held, Holder, LateInsert, Trusted, last_token, namespace, token},
};
use crate::Mutant;

/// The holders' names.
const NAMES: [&str; 3] = ["a", "b", "c"];

impl Holder {
    /// The ceiling that it relies on now, if any.
    pub(super) fn fresh_ceiling(&self, now: Millis) -> Option<u64> {
        self.trusted.filter(|trusted| now < trusted.until).map(|trusted| trusted.ceiling)
    }

    /// Whether it was never started again; of a reservation, whether it is open.
    pub(super) fn is_first_start(&self) -> bool {
        self.starts == 1
    }

    /// Whether it would ask for a block.
    pub(super) fn wants_block(&self, in_hand: usize) -> bool {
        let fresh = self.held.iter().filter(|held| !held.left.is_empty()).count();
        self.incarnation.is_some() && self.call.is_none() && self.allocated.is_none() && fresh < in_hand
    }
}

impl Step<'_> {
    /// A start of the holder registers.
    pub(super) fn register(&mut self, holder: usize) {
        let instance = Instance::new(self.world.holders[holder].starts.to_string());
        let bounds = &self.system.bounds;
        let is_raised = self.world.holders[holder].is_raised;
        let capacity = if is_raised { bounds.raised_capacity } else { bounds.capacity };
        let namespaces = vec![(namespace(), capacity)];
        let instance = instance.expect("digits are allowed");
        let reserved = self.is_open_reservation(holder);
        let request = Request::Register { holder: name(holder), instance, namespaces, reserved };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// Whether a holder is a reservation that is not given up.
    pub(super) fn is_open_reservation(&self, holder: usize) -> bool {
        self.system.is_reservation(holder) && self.world.holders[holder].is_first_start()
    }

    /// The holder asks for a block.
    pub(super) fn allocate(&mut self, holder: usize) {
        let Some(incarnation) = self.incarnation(holder) else { return };
        let request = Request::Allocate {
            holder: name(holder),
            incarnation,
            seq: Seq(self.world.holders[holder].seq + 1),
            namespace: namespace(),
            wanted_len: self.wanted_len(holder),
            store: StoreEpoch::new("1").expect("digits are allowed"),
        };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    pub(super) fn wanted_len(&self, holder: usize) -> u64 {
        let bounds = &self.system.bounds;
        if self.system.is_reservation(holder) { bounds.reserved_len } else { bounds.block }
    }

    /// The holder says that it is alive, and wants to hear of the ceiling.
    pub(super) fn beat(&mut self, holder: usize) {
        let Some(incarnation) = self.incarnation(holder) else { return };
        let state = &self.world.holders[holder];
        let unused = |held: &Held| held.left.len() as u64 + u64::from(held.claimed);
        // What is on its way back is not back yet.
        let returning = match state.call.as_ref().map(|call| &*call.request) {
            Some(Request::Return { blocks, .. }) => {
                blocks.iter().flat_map(|block| &block.unused).map(|span| span.len()).sum()
            }
            _ => 0,
        };
        let in_hand = state.held.iter().map(unused).sum::<u64>() + returning;
        let progress = vec![(namespace(), in_hand)];
        // What is allocated and not entered yet is not in the progress.
        let last_seq = Seq(state.seq - u64::from(state.allocated.is_some()));
        let request =
            Request::KeepAlive { holder: name(holder), incarnation, last_seq, progress, mark: Mark(0) };
        self.world.holders[holder].beat = Some(self.call(holder, request));
    }

    fn incarnation(&self, holder: usize) -> Option<Incarnation> {
        self.world.holders[holder].incarnation.map(Incarnation)
    }

    /// Sends a call for the first time.
    fn call(&mut self, holder: usize, request: Request) -> Call {
        let now = self.world.now;
        let state = &mut self.world.holders[holder];
        state.calls += 1;
        let (number, request) = (state.calls, Arc::new(request));
        self.world.calls.insert((index(holder), number), (Arc::clone(&request), 1));
        Call { number, request, sent: now, answers: Vec::new() }
    }

    /// The holder loses patience: one more copy of its call.
    pub(super) fn resend(&mut self, id: CallId) {
        if let Some(call) = self.waiting(id) {
            let request = Arc::clone(&call.request);
            self.world.calls.entry(id).or_insert((request, 0)).1 += 1;
        }
    }

    /// The call, if its caller still waits for it.
    pub(super) fn waiting(&mut self, (holder, number): CallId) -> Option<&mut Call> {
        let holder = &mut self.world.holders[usize::from(holder)];
        holder.call.iter_mut().chain(&mut holder.beat).find(|call| call.number == number)
    }

    /// A caller gets an answer.
    pub(super) fn take(&mut self, (holder, number): CallId, answer: usize) {
        let state = &mut self.world.holders[usize::from(holder)];
        let is_beat = state.beat.as_ref().is_some_and(|beat| beat.number == number);
        let Some(mut call) = (if is_beat { state.beat.take() } else { state.call.take() }) else { return };
        match call.answers.swap_remove(answer) {
            Ok(Answer::Registered { incarnation, last_seq, .. }) => {
                state.incarnation = Some(incarnation.0);
                state.seq = last_seq.0;
            }
            Ok(Answer::Allocated { block, leaked, .. }) => {
                state.seq += 1;
                state.allocated = Some((block, leaked));
                self.judge_hands(usize::from(holder));
                self.judge_reservation(usize::from(holder));
            }
            Ok(Answer::Alive { ceilings, .. }) => {
                let bounds = &self.system.bounds;
                let trusted = Mutant::trust_ms(self.system.mutant, bounds.holder_ttl_ms);
                // By the issuers' clocks, which the world's is.
                let until = Millis(call.sent.0 + trusted * 1_000 / (1_000 - bounds.slower));
                state.trusted = ceilings.first().map(|(_, ceiling)| Trusted { ceiling: *ceiling, until });
                self.judge_ceiling(usize::from(holder));
            }
            // Registering again tells where to go on.
            Err(Refusal::UnknownHolder(_) | Refusal::Seq { .. }) => state.incarnation = None,
            // Its operator updates it.
            Err(Refusal::CapacityShrunk { .. }) => {
                (state.incarnation, state.is_raised) = (None, true);
                self.system.seen.note(Witness::LoweringRefused);
            }
            Err(Refusal::Exhausted { capacity, .. }) => self.judge_exhausted(capacity),
            Ok(Answer::Closed { .. } | Answer::Status(_)) | Err(_) => {}
        }
    }

    /// The holder enters its new block into the register; only then it mints from it. If the register refuses, the block goes back
    /// burned, with what the register knows.
    pub(super) fn enter(&mut self, holder: usize) {
        let start = self.world.holders[holder].starts;
        let Some((block, leaked)) = self.world.holders[holder].allocated.take() else { return };
        let entry = Held::entry(&block, index(holder), start);
        let (mutant, seen) = (self.system.mutant, &self.system.seen);
        let newer = self.newer_holds(&block.span, entry.generation);
        let database = Arc::make_mut(&mut self.world.database);
        let entered = match leaked {
            None => database.register(entry, mutant),
            Some(generation) => database.take_over(entry, last_token(generation), |_| false, mutant),
        };
        if entered {
            self.world.keep(Law::RegisterForward, !newer);
            let held = Held { reclaimed: leaked.is_some(), left: self.unused(block.span), block, claimed: 0 };
            if held.reclaimed {
                let whole = held.left.len() as u64 == held.block.span.len();
                seen.note(if whole { Witness::ReclaimedUnused } else { Witness::ReclaimedPartly });
                if self.system.bounds.reserved_len < self.system.bounds.block && held.block.span.len() == 1 {
                    seen.note(Witness::ReservationReclaimed);
                }
            }
            self.world.holders[holder].held.push(held);
            return self.judge_register();
        }
        seen.note(if leaked.is_some() { Witness::TakeOverRefused } else { Witness::RegisterRefused });
        let end = self.world.database.registered_end();
        if self
            .world
            .etcd
            .head()
            .and_then(|head| head.namespaces.get(&namespace()))
            .is_some_and(|record| record.high_watermark < end)
        {
            seen.note(Witness::WatermarkRepaired);
        }
        let burned = block.span.len();
        let returned = Returned { block, used: 0, burned, unused: Vec::new(), registered_end: Some(end) };
        self.send_back(holder, returned);
    }

    pub(super) fn unused(&self, span: Span) -> Vec<u64> {
        self.world.database.unused(span).into_iter().flat_map(|gap| gap.start()..gap.end()).collect()
    }

    /// Whether the register has one of the numbers from a newer allocation.
    fn newer_holds(&self, span: &Span, token: u64) -> bool {
        let blocks = self.world.holders.iter().enumerate().flat_map(|(other, state)| {
            let entry = move |held: &Held| Held::entry(&held.block, index(other), state.starts);
            state.held.iter().map(entry)
        });
        blocks.filter(|entry| entry.generation > token && entry.span.overlaps(*span)).any(|entry| {
            (entry.span.start()..entry.span.end())
                .any(|number| self.world.database.holds(number, entry.generation))
        })
    }

    /// The holder gives a block back: released in the register first.
    pub(super) fn give_back(&mut self, holder: usize, held: usize) {
        let state = &mut self.world.holders[holder];
        let Held { block, left, .. } = state.held.remove(held);
        let entry = Held::entry(&block, index(holder), state.starts);
        let unused = spans(&left);
        if !unused.is_empty() {
            let used: Vec<u64> =
                (block.span.start()..block.span.end()).filter(|number| !left.contains(number)).collect();
            Arc::make_mut(&mut self.world.database).release(entry, &spans(&used));
        }
        let used = block.span.len() - left.len() as u64;
        let returned = Returned { block, used, burned: 0, unused, registered_end: None };
        self.send_back(holder, returned);
    }

    fn send_back(&mut self, holder: usize, returned: Returned) {
        debug_assert_eq!(returned.check(), Ok(()), "the holder's account");
        let Some(incarnation) = self.incarnation(holder) else { return };
        let request = Request::Return { holder: name(holder), incarnation, blocks: vec![returned] };
        self.world.holders[holder].call = Some(self.call(holder, request));
    }

    /// The holder claims the next number of a block and inserts a link.
    pub(super) fn insert(&mut self, holder: usize, held: usize) {
        let claim = self.claim(holder, held);
        self.land(claim);
    }

    /// It claims one, and the insert is under way for a while.
    pub(super) fn insert_late(&mut self, holder: usize, held: usize) {
        let claim = self.claim(holder, held);
        self.world.late_inserts.push(claim);
        self.world.late_inserts.sort_unstable();
    }

    /// It inserts one and the reply is lost. It reads the row then, and takes it for its own if the register says that the number
    /// is its own alone. Two creators may well store the same long URL, so the row itself says nothing.
    pub(super) fn insert_in_doubt(&mut self, holder: usize, held: usize) {
        let claim = self.claim(holder, held);
        Arc::make_mut(&mut self.world.database).insert(claim.number, who(claim));
        let block = &mut self.world.holders[holder].held[held];
        block.claimed -= 1;
        let token = token(claim.generation, claim.holder, claim.start);
        if !block.reclaimed && self.world.database.holds(claim.number, token) {
            self.system.seen.note(Witness::DoubtResolved);
            self.acknowledge(claim.number);
        }
    }

    fn claim(&mut self, holder: usize, held: usize) -> LateInsert {
        let state = &mut self.world.holders[holder];
        let block = &mut state.held[held];
        block.claimed += 1;
        let (number, generation) = (block.left.remove(0), block.block.generation);
        LateInsert { holder: index(holder), start: state.starts, number, generation }
    }

    /// An insert reaches the database. It is acknowledged if the holder that sent it is still there.
    pub(super) fn land(&mut self, claim: LateInsert) {
        let inserted = Arc::make_mut(&mut self.world.database).insert(claim.number, who(claim));
        if !inserted {
            self.system.seen.note(Witness::NumberTaken);
        }
        let owner = usize::from(claim.holder);
        let apart = !self.is_reserved_by_another(claim.number, owner);
        self.world.keep(Law::ReservationUnused, apart || !inserted);
        if inserted && self.system.is_reservation(owner) {
            self.system.seen.note(Witness::ReservationFilled);
        }
        let state = &mut self.world.holders[usize::from(claim.holder)];
        if state.starts != claim.start {
            return;
        }
        // Of a block that is in hand twice, which a guard prevents, the one with an open claim.
        let claimed = |held: &&mut Held| held.block.generation == claim.generation && held.claimed > 0;
        if let Some(held) = state.held.iter_mut().find(claimed) {
            held.claimed -= 1;
        }
        if inserted {
            self.acknowledge(claim.number);
        }
    }

    /// A creator is told that its link exists.
    fn acknowledge(&mut self, number: u64) {
        let first = Arc::make_mut(&mut self.world.past).acknowledged.insert(number);
        self.world.keep(Law::AcknowledgedOnce, first);
        let now = self.world.now;
        let mut fresh = self.world.holders.iter().filter_map(|holder| holder.fresh_ceiling(now)).peekable();
        if fresh.peek().is_some() {
            self.system.seen.note(Witness::CeilingTrusted);
        }
        let below = fresh.all(|ceiling| number < ceiling);
        self.world.keep(Law::NoFalseAbove, below);
    }

    /// The process ends and starts again. Its calls and inserts stay under way.
    pub(super) fn crash(&mut self, holder: usize) {
        let state = &mut self.world.holders[holder];
        let (starts, calls) = (state.starts + 1, state.calls);
        *state = Holder { starts, calls, ..Holder::default() };
    }
}

/// Who stored a link: a value that tells holders and their starts apart.
fn who(claim: LateInsert) -> u64 {
    token(claim.generation, claim.holder, claim.start)
}

pub(super) fn within(number: u64, span: Span) -> bool {
    (span.start()..span.end()).contains(&number)
}

/// Ascending numbers as ranges.
fn spans(numbers: &[u64]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for number in numbers {
        let grown = spans.last().filter(|last| last.end() == *number);
        let span = grown.map_or(Span::new(*number, 1), |last| Span::new(last.start(), last.len() + 1));
        if grown.is_some() {
            spans.pop();
        }
        spans.extend(span.ok());
    }
    spans
}

pub(super) fn index(holder: usize) -> u8 {
    u8::try_from(holder).expect("at most three holders")
}

fn name(holder: usize) -> HolderId {
    HolderId::new(NAMES[holder]).expect("letters are allowed")
}
