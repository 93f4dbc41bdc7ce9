//! The state machine of a number supplier: it registers with the issuer, refills buffers and
//! returns blocks.
//!
//! 1. I5: allocation requests go out one at a time, with a seq that grows by one. A call with an
//!    unknown outcome is repeated under its own seq; the shell repeats it until the answer is
//!    definite.
//! 2. A block is entered into the database's register before a number of it is claimed. A block
//!    that overlaps a registered one is never used.
//! 3. A block is released in the register before it is returned to the issuer, because the next
//!    holder registers the same numbers.
//! 4. If the issuer reports that a later start of this holder has registered, this process stops
//!    minting and never registers again. Otherwise two processes would take the holder from each
//!    other without end. The later start wins, as a restart must.
//! 5. All numbers of a database come from one ledger: the first one that the database adopted.
//! 6. Minting from blocks in hand needs nothing of this: it continues while the issuer is away.
//!
//! [`SupplyCore::step`] returns a list of effects. The last one, and only that one, causes the next
//! event: it is a call, a store call or a wait. There is no such effect after [`Effect::Done`] and
//! [`Effect::Lost`]. Nor is there one for an [`Event::Stop`] while a call is under way, because the
//! answer to that call is the next event.

mod beats;
mod refill;
mod registration;
mod returns;

use std::{collections::VecDeque, mem};

use numbers::{Block, Generation, Incarnation, Invalid, Millis, Seq};

use crate::{
    buffer::EntryId,
    calls::{
        Answer, Call, Event, History, Refused, RegisterEntry, Registered, Returning, StoreAnswer, StoreCall,
    },
    keyspace::{Keyspaces, Spec},
    safety_rule::SafetyRules,
};

pub use beats::Beat;

/// The back-off in milliseconds after a refusal, or for an exhausted keyspace.
pub const REST_MS: u64 = 2_000;
/// The back-off in milliseconds for a keyspace whose last numbers are held by others.
const SCARCE_REST_MS: u64 = 250;
/// The interval in milliseconds at which used-up blocks are collected if nothing else wakes the
/// supplier.
const SWEEP_MS: u64 = 1_000;
/// The pause in milliseconds before a failed store call is repeated.
const STORE_PAUSE_MS: u64 = 200;
/// The pause in milliseconds before blocks that could not be returned at shutdown are tried again.
const RETURN_PAUSE_MS: u64 = 200;

/// An instruction of the core to its shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Call the issuer, and repeat the call until it answers or refuses; then send
    /// [`Event::Answered`].
    Call(Call),
    /// Call the store once; then send [`Event::Stored`].
    Store(StoreCall),
    /// Wait until a time; then send [`Event::Woken`].
    Wait {
        /// The end of the wait.
        until: Millis,
        /// Whether the wait also ends when numbers run low.
        for_demand: bool,
    },
    /// Wake the creators that wait for a number of this keyspace: it has numbers, is exhausted or
    /// is closed.
    WakeCreators(usize),
    /// Send a beat at once, so that the issuer learns what is in hand now.
    BeatNow,
    /// Report an occurrence to the operator.
    Note(Note),
    /// This holder mints no more.
    Lost(StopReason),
    /// The shutdown is complete: no block is left that can be returned.
    Done,
}

/// An occurrence for the log and the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The holder has registered with the issuer.
    Registered(Incarnation),
    /// The issuer's ledger is not the one that the database has adopted.
    AnotherLedger {
        /// The id of the issuer's ledger.
        issuer: String,
        /// The id of the ledger that the database has adopted.
        database: String,
    },
    /// The answer to an earlier allocation was lost; its block is entered now.
    Missed(Block),
    /// A block was added to the buffer of this keyspace.
    Refilled(usize),
    /// A leaked block was taken over. Carries the count of its unused numbers.
    TakenOver(Block, u64),
    /// The register already has numbers of this block.
    Overlaps {
        /// The rejected block.
        block: Block,
        /// Whether the block was leaked, so that this holder tried to take it over.
        leaked: bool,
    },
    /// Every number of this keyspace is used.
    Exhausted(usize),
    /// The last numbers of this keyspace are held by others.
    InOtherHands(usize),
    /// The issuer refused a call, named by the text. The call is tried again after a back-off.
    Refused(&'static str, Refused),
    /// A block could not be returned. It is tried again.
    NotReturned(Refused),
    /// A block has too many gaps for a return call. It will be reclaimed when the holder is gone.
    TooManyGaps(Block),
}

/// The reason why a holder mints no more, for good.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// A later start of the same holder has registered. Carries the issuer's message.
    Superseded(String),
    /// The issuer's ledger is not the one that the database has adopted.
    AnotherLedger {
        /// The id of the issuer's ledger.
        issuer: String,
        /// The id of the ledger that the database has adopted.
        database: String,
    },
    /// The database contradicts the keyspaces of this process. The shell finds that out.
    Keyspaces(Invalid),
}

/// The registration in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// The incarnation of this start of the holder.
    pub incarnation: Incarnation,
    /// The holder TTL in milliseconds: how long the holder counts as alive after a beat.
    pub holder_ttl_ms: u64,
}

/// The operation that the next event belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Stage {
    /// No call is under way.
    #[default]
    Idle,
    /// Backing off after a refusal until this time. The round then continues with this keyspace.
    Resting(Millis, usize),
    Registering,
    Adopting(Registered),
    Raising(Registered),
    /// Asking for a block of this registration whose allocation went unanswered, one keyspace after
    /// another.
    Missed(Registered, usize),
    /// Asking for a block for this keyspace. The history is `None` until the store has answered.
    Refilling(usize, Option<History>),
    /// Entering a block into the register. A block whose allocation went unanswered carries the
    /// registration, which takes effect only afterwards.
    Entering(Arrival, Option<Registered>),
    Releasing(Returning, usize),
    GivingBack(Returning, usize),
    Ended,
}

/// An allocated block on its way into a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Arrival {
    keyspace: usize,
    block: Block,
    entry: EntryId,
    leaked: Option<Generation>,
    history: History,
}

/// The state of one holder's supplier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct SupplyCore {
    specs: Vec<Spec>,
    rules: SafetyRules,
    /// The registration in force.
    pub session: Option<Session>,
    /// The incarnation of the last registration, and the last seq that was answered under it.
    incarnation: Incarnation,
    seq: Seq,
    /// The last seq whose block is in a buffer.
    entered: Seq,
    /// The count of register entries that this start has made.
    entries: EntryId,
    /// Whether the issuer's ledger has ever matched the database's.
    confirmed: bool,
    /// The end of each keyspace's back-off, before which it asks for no block.
    rests: Vec<Option<Millis>>,
    returns: VecDeque<Returning>,
    stage: Stage,
    /// The store call that is repeated until it is answered, and the time of the next try after a
    /// failure.
    asked: Option<StoreCall>,
    retry_at: Option<Millis>,
    stopping: bool,
    /// The reason why this holder mints no more; `None` while it does.
    pub lost: Option<StopReason>,
}

impl SupplyCore {
    /// Creates the state of a holder that has not registered yet. `specs` are its keyspaces in the
    /// shell's order.
    pub fn new(specs: Vec<Spec>, rules: SafetyRules) -> Self {
        Self { rests: vec![None; specs.len()], specs, rules, ..Self::default() }
    }

    /// Returns whether a wait is under way, and not a call.
    pub fn is_waiting(&self) -> bool {
        self.retry_at.is_some() || matches!(self.stage, Stage::Idle | Stage::Resting(..))
    }

    /// Changes the capacities and requires a new registration with them. A daemon reads capacities
    /// only at its start. A proof lets one start register twice, because an issuer must cope with
    /// it.
    #[cfg(feature = "rules")]
    pub fn configure(&mut self, capacities: impl Iterator<Item = u64>) {
        self.specs.iter_mut().zip(capacities).for_each(|(spec, capacity)| spec.capacity = capacity);
        self.session = None;
    }

    /// Returns the block that is being entered into the register, for proofs to check.
    #[cfg(feature = "rules")]
    pub fn arriving(&self) -> Option<&Block> {
        match &self.stage {
            Stage::Entering(arrival, _) => Some(&arrival.block),
            _ => None,
        }
    }

    /// Handles an event at the time `now`, and returns the effects for the shell to carry out. An
    /// answer that belongs to no call under way changes nothing.
    pub fn step(&mut self, now: Millis, event: Event, keyspaces: &mut impl Keyspaces) -> Vec<Effect> {
        let mut step = Step { core: self, now, keyspaces, effects: Vec::new() };
        step.take(event);
        step.effects
    }
}

struct Step<'a, K> {
    core: &'a mut SupplyCore,
    now: Millis,
    keyspaces: &'a mut K,
    effects: Vec<Effect>,
}

impl<K: Keyspaces> Step<'_, K> {
    fn take(&mut self, event: Event) {
        // A holder may be superseded during a call or a wait, whose end is still reported.
        if matches!(self.core.stage, Stage::Ended) {
            return;
        }
        match event {
            Event::Stop => self.stop(),
            Event::Woken => self.woken(),
            Event::Answered(answer) => {
                let stage = mem::replace(&mut self.core.stage, Stage::Idle);
                self.answered(stage, answer);
            }
            Event::Stored(answer) => self.stored(answer),
        }
    }

    fn stop(&mut self) {
        self.core.stopping = true;
        if let Some(until) = self.core.retry_at {
            return self.retry(until);
        }
        if matches!(self.core.stage, Stage::Idle | Stage::Resting(..)) {
            self.give_all_back();
        }
    }

    fn woken(&mut self) {
        if let Some(until) = self.core.retry_at {
            return self.retry(until);
        }
        match self.core.stage {
            Stage::Idle => self.round(),
            Stage::Resting(until, _) if self.now < until => self.wait(until, false),
            Stage::Resting(_, keyspace) => {
                self.core.stage = Stage::Idle;
                self.refill(keyspace);
            }
            _ => {}
        }
    }

    fn retry(&mut self, until: Millis) {
        if self.now < until {
            return self.wait(until, false);
        }
        self.core.retry_at = None;
        self.effects.extend(self.core.asked.clone().map(Effect::Store));
    }

    /// Starts a round: registers if there is no registration, otherwise refills, and then returns
    /// used-up blocks.
    fn round(&mut self) {
        if self.core.stopping {
            return self.give_all_back();
        }
        if self.core.session.is_none() { self.register() } else { self.refill(0) }
    }

    fn answered(&mut self, stage: Stage, answer: Result<Answer, Refused>) {
        match stage {
            Stage::Registering => self.registered(answer),
            Stage::Missed(registered, keyspace) => self.missed(registered, keyspace, answer),
            Stage::Refilling(keyspace, Some(history)) => self.allocated(keyspace, history, answer),
            Stage::GivingBack(returning, left) => self.returned(returning, left, answer),
            other => self.core.stage = other,
        }
    }

    fn stored(&mut self, answer: Option<StoreAnswer>) {
        let stage = mem::replace(&mut self.core.stage, Stage::Idle);
        if let Stage::Releasing(returning, left) = stage {
            return self.released(returning, left, answer);
        }
        let Some(answer) = answer else { return self.ask_later(stage) };
        match (stage, answer) {
            (Stage::Adopting(registered), StoreAnswer::Ledger(database)) => {
                self.adopted(registered, database);
            }
            (Stage::Raising(registered), StoreAnswer::Raised(raised)) => self.raised(registered, raised),
            (Stage::Missed(registered, keyspace), StoreAnswer::Epoch(epoch)) => {
                self.ask_for_missed(registered, keyspace, epoch);
            }
            (Stage::Refilling(keyspace, None), StoreAnswer::Epoch(epoch)) => self.allocate(keyspace, epoch),
            (Stage::Entering(arrival, missed), answer) => self.entering(arrival, missed, answer),
            (other, _) => self.core.stage = other,
        }
    }

    /// Makes a store call that is repeated until the store answers.
    fn ask(&mut self, stage: Stage, call: StoreCall) {
        self.core.stage = stage;
        self.core.asked = Some(call.clone());
        self.effects.push(Effect::Store(call));
    }

    /// Repeats the last store call after a pause, because the store failed.
    fn ask_later(&mut self, stage: Stage) {
        let until = Millis(self.now.0 + STORE_PAUSE_MS);
        self.core.stage = stage;
        self.core.retry_at = Some(until);
        self.wait(until, false);
    }

    fn call(&mut self, stage: Stage, call: Call) {
        self.core.stage = stage;
        self.core.asked = None;
        self.effects.push(Effect::Call(call));
    }

    fn wait(&mut self, until: Millis, for_demand: bool) {
        self.effects.push(Effect::Wait { until, for_demand });
    }

    fn rest(&mut self, until: Millis, keyspace: usize) {
        self.core.stage = Stage::Resting(until, keyspace);
        self.wait(until, false);
    }

    fn note(&mut self, note: Note) {
        self.effects.push(Effect::Note(note));
    }

    /// Ends a round. The next one begins when numbers run low, a back-off ends or used-up blocks
    /// are to be collected.
    fn idle(&mut self) {
        if self.core.stopping {
            return self.give_all_back();
        }
        self.core.stage = Stage::Idle;
        let sweep = Millis(self.now.0 + SWEEP_MS);
        let rested = self.core.rests.iter().flatten().copied().filter(|until| *until > self.now).min();
        self.wait(rested.map_or(sweep, |until| until.min(sweep)), true);
    }

    /// Handles a definite refusal. The round continues with `keyspace` after a back-off.
    fn refused(&mut self, what: &'static str, refused: Refused, keyspace: usize) {
        if let Refused::Superseded(reason) = refused {
            return self.lose(StopReason::Superseded(reason));
        }
        if matches!(refused, Refused::NotRegistered(_)) {
            self.core.session = None;
        }
        self.note(Note::Refused(what, refused));
        if self.core.stopping && self.core.session.is_none() {
            return self.give_all_back();
        }
        self.rest(Millis(self.now.0 + REST_MS), keyspace);
    }

    fn lose(&mut self, lost: StopReason) {
        for keyspace in 0..self.core.specs.len() {
            self.keyspaces.with(keyspace, |keyspace| keyspace.closed = true);
            self.effects.push(Effect::WakeCreators(keyspace));
        }
        self.core.stage = Stage::Ended;
        (self.core.asked, self.core.retry_at) = (None, None);
        self.core.lost.get_or_insert(lost.clone());
        self.effects.push(Effect::Lost(lost));
    }

    fn entry(&self, keyspace: usize, block: Block, entry: EntryId) -> RegisterEntry {
        let (index, incarnation) = (self.core.specs[keyspace].index, self.core.incarnation);
        RegisterEntry { index, block, incarnation, entry }
    }
}

#[cfg(test)]
mod tests;
