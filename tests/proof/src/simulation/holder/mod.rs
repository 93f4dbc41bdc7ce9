//! Holders: processes that follow the resolver's rules step by step, around the real minting buffer.
//!
//! [`client`] stands for `supply::IssuerClient`, [`supplier`] for
//! `supply::Supplier`, [`creator`] for `app::creator`, [`reserver`] for
//! `app::reservation::Reserver`. Each is the same sequence of awaits; what differs is only who
//! answers.

mod client;
mod creator;
mod reserver;
mod supplier;
mod sweeper;

use std::{cell::RefCell, collections::VecDeque, rc::Rc};

use numbers::{Block, Generation, HolderId, Incarnation, Instance, Namespace, Seq, Span};
use supply::{Buffer, Closed, Entered, EntryId};

use super::desk::{Desk, Reply, Tasks};
use crate::stores::Entry;

/// What a process starts with.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) id: HolderId,
    pub(super) instance: Instance,
    /// The same as a number, for the register.
    pub(super) start: u64,
    pub(super) issuers: usize,
    /// With the capacities that the process starts with.
    pub(super) namespaces: Vec<(Namespace, u64)>,
    pub(super) holder_ttl_ms: u64,
    /// How long a ceiling is believed.
    pub(super) trust_ms: u64,
    pub(super) block_max: u64,
    pub(super) creators: usize,
    pub(super) think_max: u64,
    pub(super) shared_urls: u64,
    /// Whether it makes, fills and gives up reservations.
    pub(super) reserves: bool,
}

/// How long a holder asks for nothing ahead of need after it heard that one starves.
const LEAN: u64 = 4_000;

/// One process, shared by its tasks.
pub(super) struct Holder {
    desk: Rc<Desk>,
    setup: Setup,
    refill_permille: u64,
    state: RefCell<State>,
}

struct State {
    registered: Option<(Incarnation, Seq)>,
    /// The namespaces that it is configured with now, and whether it is to register with them
    /// although it is registered.
    configured: Vec<(Namespace, u64)>,
    registers_again: bool,
    /// The last seq whose block is in a buffer.
    entered: Seq,
    /// The last seq that was answered.
    registered_seq: Seq,
    incarnation: Incarnation,
    /// Whether the issuer wants beats more often.
    scarce: bool,
    mintings: Vec<Minting>,
    /// Where the leader was last, and whom to ask when nobody knows.
    leader: Option<usize>,
    turn: usize,
    urls: u64,
    reservations: u64,
    creators: usize,
    stopping: bool,
    /// How many entries this start made in the register.
    entries: EntryId,
    /// Blocks on their way back.
    returning: VecDeque<Returning>,
    /// Slots of creators that wait for numbers, and of a supplier that waits for work.
    came: Vec<u64>,
    wanted: Vec<u64>,
}

/// A block on its way back.
struct Returning {
    namespace: usize,
    closed: Closed,
    released: bool,
    registered_end: Option<u64>,
}

#[derive(Default)]
struct Minting {
    buffer: Buffer,
    exhausted: bool,
    rests_until: u64,
    /// Until when nothing is asked for ahead of need, and whether a create found nothing since numbers came.
    lean_until: u64,
    unmet: bool,
    /// Unused numbers on their way back.
    returning: u64,
}

/// The register's fencing token: the generation with start and entry, because a ledger that was lost counts generations anew.
fn token(generation: Generation, start: u64, entry: EntryId) -> u64 {
    (generation.0 << (START_BITS + ENTRY_BITS)) | (start << ENTRY_BITS) | entry.0
}

/// The highest token of a generation.
fn last_token(generation: Generation) -> u64 {
    token(generation, (1 << START_BITS) - 1, EntryId((1 << ENTRY_BITS) - 1))
}

/// The start that a token is of, or the reservation.
pub(super) fn owner(token: u64) -> u64 {
    (token >> ENTRY_BITS) & ((1 << START_BITS) - 1)
}

/// Bits for the start, and for the entries of one start; no run has as many.
const START_BITS: u32 = 16;
const ENTRY_BITS: u32 = 16;

impl Holder {
    fn new(desk: Rc<Desk>, setup: Setup) -> Rc<Self> {
        let state = State {
            registered: None,
            configured: setup.namespaces.clone(),
            registers_again: false,
            entered: Seq(0),
            registered_seq: Seq(0),
            incarnation: Incarnation(0),
            scarce: false,
            mintings: setup.namespaces.iter().map(|_| Minting::default()).collect(),
            leader: None,
            turn: desk.draw(|rng| rng.index(setup.issuers)),
            urls: 0,
            reservations: 0,
            creators: 0,
            stopping: false,
            entries: EntryId(0),
            returning: VecDeque::new(),
            came: Vec::new(),
            wanted: Vec::new(),
        };
        let refill_permille = desk.draw(|rng| rng.between(0, 900));
        Rc::new(Self { desk, setup, refill_permille, state: RefCell::new(state) })
    }

    /// A process that mints: its supplier, its beats and its creators.
    pub(super) fn start(desk: Rc<Desk>, setup: Setup, tasks: &mut Tasks) -> Rc<Self> {
        let holder = Self::new(desk, setup);
        holder.state.borrow_mut().creators = holder.setup.creators;
        tasks.spawn(supplier::supply(Rc::clone(&holder)));
        tasks.spawn(supplier::beat(Rc::clone(&holder)));
        for _ in 0..holder.setup.creators {
            tasks.spawn(creator::create_links(Rc::clone(&holder)));
        }
        if holder.setup.reserves {
            tasks.spawn(reserver::reserve(Rc::clone(&holder)));
        }
        holder
    }

    /// A process that takes up every block whose holder is gone and gives it back.
    pub(super) fn sweep(desk: Rc<Desk>, setup: Setup, tasks: &mut Tasks) -> Rc<Self> {
        let holder = Self::new(desk, setup);
        tasks.spawn(sweeper::sweep(Rc::clone(&holder)));
        holder
    }

    /// Asks the process to stop and to give back what it has.
    pub(super) fn stop(&self) {
        self.state.borrow_mut().stopping = true;
        self.signal(|state| &mut state.wanted);
    }

    /// Registers with these capacities, in the same start.
    pub(super) fn configure(&self, namespaces: &[(Namespace, u64)]) {
        let mut state = self.state.borrow_mut();
        state.configured = namespaces.to_vec();
        state.registers_again = true;
        drop(state);
        self.signal(|state| &mut state.wanted);
    }

    fn is_stopping(&self) -> bool {
        self.state.borrow().stopping
    }

    fn entry(&self, block: &Block, entry: EntryId) -> Entry {
        Entry { span: block.span, generation: token(block.generation, self.setup.start, entry) }
    }

    fn wants_block(&self, namespace: usize) -> bool {
        let state = self.state.borrow();
        let minting = &state.mintings[namespace];
        let asks = minting.exhausted || minting.unmet || self.desk.now() >= minting.lean_until;
        asks && minting.buffer.wants_block(self.refill_permille)
    }

    /// Adds a block. `left` is what is unused of one that was taken over.
    fn add(&self, namespace: usize, entered: Entered, left: Option<Vec<Span>>) {
        let mut state = self.state.borrow_mut();
        let minting = &mut state.mintings[namespace];
        match left {
            None => minting.buffer.add(entered),
            Some(left) => minting.buffer.add_reclaimed(entered, left),
        }
        (minting.exhausted, minting.unmet) = (false, false);
        drop(state);
        self.signal(|state| &mut state.came);
    }

    /// Saves from now on; `gives` what is not claimed, because another holder starves.
    fn save(&self, namespace: usize, gives: bool) {
        let until = self.desk.now() + LEAN;
        let mut state = self.state.borrow_mut();
        let minting = &mut state.mintings[namespace];
        minting.lean_until = until;
        if gives {
            minting.buffer.relinquish();
        } else {
            minting.exhausted = false;
        }
    }

    fn exhaust(&self, namespace: usize, until: u64) {
        let mut state = self.state.borrow_mut();
        state.mintings[namespace].exhausted = true;
        state.mintings[namespace].rests_until = until;
        drop(state);
        self.signal(|state| &mut state.came);
    }

    /// Waits until a signal is given, at most so long.
    async fn wait(&self, signal: fn(&mut State) -> &mut Vec<u64>, at_most: u64) {
        let slot = self.desk.open();
        signal(&mut self.state.borrow_mut()).push(slot);
        self.desk.wake_after(slot, at_most);
        self.desk.wait(slot).await;
    }

    /// Wakes everything that waits for a signal.
    fn signal(&self, signal: fn(&mut State) -> &mut Vec<u64>) {
        let slots = std::mem::take(signal(&mut self.state.borrow_mut()));
        for slot in slots {
            self.desk.deliver(slot, Reply::Awake);
        }
    }
}
