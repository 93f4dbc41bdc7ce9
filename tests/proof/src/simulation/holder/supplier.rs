//! The shell of a holder's real core: its calls and store calls go through the desk.
//!
//! Times are a fifth of the real ones here, so the core's clock runs five times as fast.

use std::rc::Rc;

use holder::{
    Answer, Call, Effect, Event, Note as CoreNote, Refused, StoreAnswer, StoreCall, calls::RegisterEntry,
};
use issuer::core::{self, Request};
use numbers::Millis;

use super::{Holder, client, client::Next, last_token};
use crate::{
    Mutant, messages,
    simulation::{
        checks::Note,
        database::{StoreOp, StoreReply},
        summary::Happening,
    },
    stores::Entry,
};

/// How much faster the core's clock runs than the simulated one.
const SCALE: u64 = 5;
/// The pause before a store that failed is asked again, in milliseconds.
const STORE_PAUSE: u64 = 60;
/// How many times a stopping process waits before it ends. The real one has a time limit; blocks
/// left then are leaked.
const STOP_WAITS: usize = 50;
/// The interval at which a stopping process checks whether its creates have ended, in milliseconds.
const POLL: u64 = 20;

/// Steps the core until the process stops, and then returns the unused blocks.
pub(super) async fn supply(holder: Rc<Holder>) {
    let mut event = Event::Woken;
    while !holder.may_end() {
        event = match holder.step(event).await {
            Some(Effect::Wait { until, for_demand }) => holder.rest(until, for_demand).await,
            Some(effect) => holder.perform(effect).await,
            None => return,
        };
    }
    holder.end(event).await;
}

/// Sends beats.
pub(super) async fn beat(holder: Rc<Holder>) {
    while !holder.is_stopping() {
        let request = holder.next_beat();
        if let Some(request) = request {
            holder.one_beat(&Rc::new(request)).await;
        }
        let scarce = holder.state.borrow().scarce;
        holder.desk.sleep(holder.setup.holder_ttl_ms / if scarce { 15 } else { 3 }).await;
    }
}

impl Holder {
    /// Returns whether the process is stopping and its creates have ended.
    fn may_end(&self) -> bool {
        self.is_stopping() && self.state.borrow().creators == 0
    }

    /// Steps the core through its shutdown.
    pub(super) async fn end(&self, event: Event) {
        let mut event = if event == Event::Woken {
            Event::Stop
        } else {
            self.step(Event::Stop).await;
            event
        };
        let mut waits = 0;
        while waits < STOP_WAITS {
            event = match self.step(event).await {
                Some(Effect::Wait { until, .. }) => {
                    waits += 1;
                    self.rest(until, false).await
                }
                Some(effect) => self.perform(effect).await,
                None => return,
            };
        }
    }

    /// Steps the core, carries out the effects that need no answer, and returns the one that does.
    pub(super) async fn step(&self, event: Event) -> Option<Effect> {
        let now = self.core_now();
        let effects = {
            let mut state = self.state.borrow_mut();
            let state = &mut *state;
            state.core.step(now, event, &mut state.keyspaces)
        };
        let mut next = None;
        for effect in effects {
            match effect {
                Effect::WakeCreators(_) => self.signal(|state| &mut state.came),
                Effect::Note(note) => self.tell(&note),
                Effect::BeatNow | Effect::Lost(_) => {}
                effect => next = Some(effect),
            }
        }
        // A lost holder's process ends, and another one starts.
        next.filter(|effect| *effect != Effect::Done)
    }

    fn tell(&self, note: &CoreNote) {
        match note {
            CoreNote::TakenOver(_, unused) => {
                self.desk.note(Note::Happened(Happening::TakeOver, 1));
                self.desk.note(Note::Happened(Happening::ReclaimedGap, *unused));
            }
            CoreNote::Overlaps { leaked, .. } => self.desk.note(Note::Refused { take_over: *leaked }),
            CoreNote::Refused(_, Refused::Malformed(_)) => self.desk.note(Note::ForeignBlock),
            _ => {}
        }
    }

    pub(super) fn core_now(&self) -> Millis {
        Millis(self.desk.now() * SCALE)
    }

    /// Waits as the core requests.
    pub(super) async fn rest(&self, until: Millis, for_demand: bool) -> Event {
        let most = until.since(self.core_now()).div_ceil(SCALE).max(1);
        let most = if self.is_stopping() { most.min(POLL) } else { most };
        if for_demand {
            self.wait(|state| &mut state.wanted, most).await;
        } else {
            self.desk.sleep(most).await;
        }
        Event::Woken
    }

    /// Carries out the effect that causes the next event, and returns that event.
    pub(super) async fn perform(&self, effect: Effect) -> Event {
        match effect {
            Effect::Call(call) => Event::Answered(self.send(call).await),
            Effect::Store(call) => Event::Stored(self.ask(call).await),
            _ => Event::Woken,
        }
    }

    async fn send(&self, call: Call) -> Result<Answer, Refused> {
        let returns = matches!(call, Call::Return { .. });
        let start = (self.setup.id.clone(), self.setup.instance.clone());
        let request = messages::request(start, call, |keyspace| {
            let wanted_len = self.desk.draw(|rng| rng.between(1, 2 * self.setup.block_max));
            (self.setup.namespaces[keyspace].0.clone(), wanted_len)
        });
        let answer = self.call(request).await?;
        if returns {
            self.desk.note(Note::Happened(Happening::Returned, 1));
        }
        Ok(messages::answer(answer, self.setup.holder_ttl_ms))
    }

    async fn ask(&self, call: StoreCall) -> Option<StoreAnswer> {
        let op = match call {
            // There is one ledger here, and marks are covered by the resolver's `world` tests.
            StoreCall::AdoptLedger(ledger) => return Some(StoreAnswer::Ledger(ledger)),
            StoreCall::RaiseMark(_) => return Some(StoreAnswer::Raised(true)),
            StoreCall::Epoch => StoreOp::Epoch,
            StoreCall::Register(entry) => {
                StoreOp::Register { namespace: self.place(&entry), entry: self.entry(&entry) }
            }
            StoreCall::TakeOver(entry, leaked) => StoreOp::TakeOver {
                namespace: self.place(&entry),
                entry: self.entry(&entry),
                leaked: last_token(leaked),
            },
            StoreCall::Unused(index, span) => StoreOp::Unused { namespace: self.place_of(index), span },
            StoreCall::RegisteredEnd(index) => StoreOp::RegisteredEnd { namespace: self.place_of(index) },
            StoreCall::Release(entry, kept) => {
                StoreOp::Release { namespace: self.place(&entry), entry: self.entry(&entry), kept }
            }
        };
        match self.desk.store(op).await {
            StoreReply::Epoch(epoch) => Some(StoreAnswer::Epoch(epoch)),
            StoreReply::Registered(true) => Some(StoreAnswer::Entered),
            StoreReply::Registered(false) => Some(Mutant::refusal(self.setup.mutant)),
            StoreReply::Overlap => Some(StoreAnswer::Overlaps),
            StoreReply::Unused(unused) => Some(StoreAnswer::Unused(unused)),
            StoreReply::End(end) => Some(StoreAnswer::End(end)),
            StoreReply::Released => Some(StoreAnswer::Released),
            _ => None,
        }
    }

    fn place(&self, entry: &RegisterEntry) -> usize {
        self.place_of(entry.index)
    }

    fn place_of(&self, index: codes::KeyspaceIndex) -> usize {
        usize::from(index.get()) - 1
    }

    /// Returns the register entry of a block. The real one has an instance and an entry id beside
    /// the generation.
    fn entry(&self, entry: &RegisterEntry) -> Entry {
        let generation = self.token(entry.block.generation, entry.entry);
        Entry { span: entry.block.span, generation }
    }

    fn next_beat(&self) -> Option<Request> {
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        let session = state.core.session?;
        let beat = state.core.beat(session, &mut state.keyspaces);
        Some(messages::keep_alive(self.setup.id.clone(), beat))
    }

    async fn one_beat(&self, request: &Rc<Request>) {
        for _ in 0..3 {
            match self.one_try(request).await {
                Next::Done(core::Answer::Alive { starving, scarce, .. }) => {
                    self.state.borrow_mut().scarce = scarce;
                    return self.share(&starving);
                }
                Next::Follow(_) => {}
                Next::Again => self.state.borrow_mut().leader = None,
                Next::Done(_) | Next::Refused(_) | Next::Busy => return,
            }
        }
    }

    fn share(&self, starving: &[numbers::Namespace]) {
        if starving.is_empty() {
            return;
        }
        self.desk.note(Note::Happened(Happening::GaveBack, 1));
        let now = self.core_now();
        let mut state = self.state.borrow_mut();
        let state = &mut *state;
        state.core.share(now, starving, &mut state.keyspaces);
    }

    pub(super) async fn until_it_answers(&self, op: StoreOp) -> StoreReply {
        loop {
            match self.desk.store(op.clone()).await {
                StoreReply::Failed | StoreReply::Unknown => self.desk.sleep(STORE_PAUSE).await,
                reply => return reply,
            }
        }
    }
}

impl From<client::Refused> for Refused {
    fn from(refused: client::Refused) -> Self {
        match refused {
            client::Refused::Exhausted => Self::Exhausted,
            client::Refused::InOtherHands => Self::InOtherHands,
            client::Refused::NotRegistered => Self::NotRegistered(String::new()),
            client::Refused::Other => Self::Other(String::new()),
        }
    }
}
