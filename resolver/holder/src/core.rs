//! The supplier as a state machine: it registers with the issuer, refills, and returns blocks.
//!
//! 1. I5: allocations go out one at a time with a seq that grows by one. A call in doubt is repeated
//!    with its own seq; the shell repeats it until the answer is definite.
//! 2. A block is in the database's register before a number of it is claimed. One that overlaps
//!    another is never used.
//! 3. A block is released in the register before it is returned to the issuer: the next holder
//!    registers the same numbers.
//! 4. When the issuer says that a later start of this holder has registered, this process mints no
//!    more and never registers again. Two processes that did would take the holder from each other
//!    without end; the younger one wins, as a restart must.
//! 5. Numbers come from one ledger for good: the first one that the database has seen.
//! 6. Nothing here is needed to mint from blocks in hand: the issuer may be away.
//!
//! [`Core::step`] returns effects of which exactly one, the last, brings the next event: a call, a
//! store call or a wait. After [`Effect::Done`] and [`Effect::Lost`] none follows, and none is
//! returned for a [`Event::Stop`] while a call is under way: its answer brings the next.

mod beats;
mod refill;
mod registration;
mod returns;

use std::{collections::VecDeque, mem};

use numbers::{Block, Generation, Incarnation, Millis, Seq};

use crate::{
    buffer::EntryId,
    calls::{
        Answer, Call, Event, History, Refused, RegisterEntry, Registered, Returning, StoreAnswer, StoreCall,
    },
    keyspace::{Keyspaces, Spec},
    rules::Rules,
};

pub use beats::Beat;

/// How long an exhausted keyspace or a refusal rests before the next try, in milliseconds.
pub const REST_MS: u64 = 2_000;
/// How long a keyspace rests whose last numbers are in other hands.
const SCARCE_REST_MS: u64 = 250;
/// How often used-up blocks are looked for when nothing else wakes the supplier.
const SWEEP_MS: u64 = 1_000;
/// Pause before a store that failed is asked again.
const STORE_PAUSE_MS: u64 = 200;
/// Pause before what could not be given back at the end is tried again.
const RETURN_PAUSE_MS: u64 = 200;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Call the issuer, again and again until it answers or refuses; then [`Event::Answered`].
    Call(Call),
    /// Ask the store once; then [`Event::Stored`].
    Store(StoreCall),
    /// Wait until then; then [`Event::Woken`].
    Wait {
        /// The time.
        until: Millis,
        /// Whether numbers that run low end the wait.
        for_demand: bool,
    },
    /// The registration has changed: [`Core::session`].
    Session,
    /// Creators that wait for a number of this keyspace look again.
    Came(usize),
    /// A beat is wanted at once: the issuer is to know what is in hand now.
    Hurry,
    /// Something that an operator may want to know.
    Note(Note),
    /// This holder mints no more.
    Lost(Lost),
    /// Everything is given back, or cannot be.
    Done,
}

/// What an operator may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Registered with the issuer.
    Registered(Incarnation),
    /// The issuer has another ledger than this database's numbers come from.
    AnotherLedger {
        /// What the issuer has.
        issuer: String,
        /// What the database has adopted.
        database: String,
    },
    /// A block that an earlier call was answered with, unheard, comes in.
    Missed(Block),
    /// A block is in a buffer.
    Refilled(usize),
    /// A block was taken over, with so many unused numbers.
    TakenOver(Block, u64),
    /// The register has numbers of this block already.
    Overlaps {
        /// The block.
        block: Block,
        /// Whether it was leaked, so that it was to be taken over.
        leaked: bool,
    },
    /// Every number of the keyspace is used.
    Exhausted(usize),
    /// The last numbers of the keyspace are in other hands.
    InOtherHands(usize),
    /// The issuer refused, and the call is tried again after a rest.
    Refused(&'static str, Refused),
    /// A block could not be returned, and is tried again.
    NotReturned(Refused),
    /// A block has too many gaps for a call: it will be reclaimed after the holder is gone.
    TooManyGaps(Block),
}

/// Why a holder mints no more, for good.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// A later start of the same holder has registered; what the issuer said.
    Superseded(String),
    /// The issuer's ledger is not the one that the database's numbers come from.
    AnotherLedger {
        /// What the issuer has.
        issuer: String,
        /// What the database has adopted.
        database: String,
    },
}

/// A registration that is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Session {
    /// Which start of the holder it is.
    pub incarnation: Incarnation,
    /// How long the holder counts as alive after a beat, in milliseconds.
    pub holder_ttl_ms: u64,
}

/// What the event that comes next belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Nothing is under way.
    Idle,
    /// After a refusal, until then; the round goes on with this keyspace.
    Resting(Millis, usize),
    Registering,
    Adopting(Registered),
    Raising(Registered),
    /// A block of this registration that was never heard of is asked for, keyspace after keyspace.
    Missed(Registered, usize),
    /// A block for this keyspace is asked for.
    Refilling(usize, Option<History>),
    /// A block comes in; one that was missed, before the registration counts.
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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Core {
    specs: Vec<Spec>,
    rules: Rules,
    session: Option<Session>,
    /// The last registration, and the last seq that was answered to it.
    incarnation: Incarnation,
    seq: Seq,
    /// The last seq whose block is in a buffer.
    entered: Seq,
    /// How many entries this start has made in the register.
    entries: EntryId,
    /// Whether the issuer's ledger was once the database's.
    confirmed: bool,
    /// Until when each keyspace asks for nothing.
    rests: Vec<Option<Millis>>,
    returns: VecDeque<Returning>,
    stage: Stage,
    /// The store call that is repeated until it is answered, and from when on.
    asked: Option<StoreCall>,
    retry_at: Option<Millis>,
    stopping: bool,
    lost: Option<Lost>,
}

impl Core {
    /// A holder that has not registered yet, with its keyspaces in the shell's order.
    #[must_use]
    pub fn new(specs: Vec<Spec>, rules: Rules) -> Self {
        Self {
            rests: vec![None; specs.len()],
            specs,
            rules,
            session: None,
            incarnation: Incarnation(0),
            seq: Seq(0),
            entered: Seq(0),
            entries: EntryId(0),
            confirmed: false,
            returns: VecDeque::new(),
            stage: Stage::Idle,
            asked: None,
            retry_at: None,
            stopping: false,
            lost: None,
        }
    }

    /// Returns the registration that is in force.
    #[must_use]
    pub fn session(&self) -> Option<Session> {
        self.session
    }

    /// Returns why this holder mints no more, if it does not.
    #[must_use]
    pub fn lost(&self) -> Option<&Lost> {
        self.lost.as_ref()
    }

    /// Returns whether the next event ends a wait: no call is under way.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.retry_at.is_some() || matches!(self.stage, Stage::Idle | Stage::Resting(..))
    }

    /// Changes the capacities, and registers with them. Processes are started anew for that; a proof
    /// lets one start register twice, because an issuer must bear it.
    #[cfg(feature = "rules")]
    pub fn configure(&mut self, capacities: impl Iterator<Item = u64>) {
        self.specs.iter_mut().zip(capacities).for_each(|(spec, capacity)| spec.capacity = capacity);
        self.session = None;
    }

    /// Returns the block that is on its way into a buffer, for a proof to judge.
    #[cfg(feature = "rules")]
    #[must_use]
    pub fn arriving(&self) -> Option<&Block> {
        match &self.stage {
            Stage::Entering(arrival, _) => Some(&arrival.block),
            _ => None,
        }
    }

    /// Takes an event and returns what to do. An answer that nobody asked for changes nothing.
    pub fn step(&mut self, now: Millis, event: Event, keyspaces: &mut impl Keyspaces) -> Vec<Effect> {
        let mut step = Step { core: self, now, keyspaces, effects: Vec::new() };
        step.take(event);
        step.effects
    }
}

/// One step under way.
struct Step<'a, K> {
    core: &'a mut Core,
    now: Millis,
    keyspaces: &'a mut K,
    effects: Vec<Effect>,
}

impl<K: Keyspaces> Step<'_, K> {
    fn take(&mut self, event: Event) {
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

    /// Registers if it has to; else asks for what is wanted, and gives back what is used up.
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

    /// Asks the store, as often as it takes.
    fn ask(&mut self, stage: Stage, call: StoreCall) {
        self.core.stage = stage;
        self.core.asked = Some(call.clone());
        self.effects.push(Effect::Store(call));
    }

    /// The store failed: the same question, after a pause.
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

    /// Ends a round: until numbers run low, a rest is over, or used-up blocks are looked for again.
    fn idle(&mut self) {
        if self.core.stopping {
            return self.give_all_back();
        }
        self.core.stage = Stage::Idle;
        let sweep = Millis(self.now.0 + SWEEP_MS);
        let rested = self.core.rests.iter().flatten().copied().filter(|until| *until > self.now).min();
        self.wait(rested.map_or(sweep, |until| until.min(sweep)), true);
    }

    /// A definite refusal. The round goes on with `keyspace` after a rest.
    fn refused(&mut self, what: &'static str, refused: Refused, keyspace: usize) {
        if let Refused::Superseded(reason) = refused {
            return self.lose(Lost::Superseded(reason));
        }
        if matches!(refused, Refused::NotRegistered(_)) {
            self.core.session = None;
            self.effects.push(Effect::Session);
        }
        self.note(Note::Refused(what, refused));
        if self.core.stopping && self.core.session.is_none() {
            return self.give_all_back();
        }
        self.rest(Millis(self.now.0 + REST_MS), keyspace);
    }

    fn lose(&mut self, lost: Lost) {
        for keyspace in 0..self.core.specs.len() {
            self.keyspaces.with(keyspace, |keyspace| keyspace.close());
            self.effects.push(Effect::Came(keyspace));
        }
        self.core.stage = Stage::Ended;
        self.core.lost.get_or_insert(lost.clone());
        self.effects.push(Effect::Lost(lost));
    }

    /// The register's entry of a block.
    fn entry(&self, keyspace: usize, block: Block, entry: EntryId) -> RegisterEntry {
        let (index, incarnation) = (self.core.specs[keyspace].index, self.core.incarnation);
        RegisterEntry { index, block, incarnation, entry }
    }
}
