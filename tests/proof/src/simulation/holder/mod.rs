//! Holders: processes around the real core of a holder ([`holder::Core`]) and its keyspaces.
//!
//! [`supplier`] carries out the core's effects, as `supply::Supplier` does. [`creator`] claims from
//! the real keyspaces, and lets the real [`holder::Verdict`] judge an insert in doubt. [`client`]
//! stands for `supply::IssuerClient` and [`reserver`] for `app::reservation`. They have
//! the same sequence of awaits, and differ only in where the answers come from.

mod client;
mod creator;
mod reserver;
mod supplier;
mod sweeper;

use std::{cell::RefCell, rc::Rc};

use codes::KeyspaceIndex;
use holder::{EntryId, KeyspaceNumbers, SafetyRules, Spec, SupplyCore};
use numbers::{Generation, HolderId, Instance, Namespace};

use super::desk::{Desk, Reply, Tasks};
use crate::Mutant;

/// The configuration of a process at its start.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) id: HolderId,
    pub(super) instance: Instance,
    /// The number of the start, which stands for the instance in the register.
    pub(super) start: u64,
    pub(super) issuers: usize,
    /// The namespaces, with the capacities that the process starts with.
    pub(super) namespaces: Vec<(Namespace, u64)>,
    pub(super) holder_ttl_ms: u64,
    pub(super) rules: SafetyRules,
    /// The guard that is switched off in the run.
    pub(super) mutant: Option<Mutant>,
    pub(super) block_max: u64,
    pub(super) creators: usize,
    pub(super) think_max: u64,
    pub(super) shared_urls: u64,
    /// Whether the process makes, fills and gives up reservations.
    pub(super) reserves: bool,
}

/// A holder's process, shared by its tasks.
pub(super) struct Holder {
    desk: Rc<Desk>,
    setup: Setup,
    state: RefCell<State>,
}

struct State {
    core: SupplyCore,
    keyspaces: Vec<KeyspaceNumbers>,
    /// The namespaces that the process is configured with now.
    configured: Vec<(Namespace, u64)>,
    /// Whether the issuer asks for more frequent beats.
    scarce: bool,
    /// The last known leader, and the count of tries without one, which selects the issuer to ask.
    leader: Option<usize>,
    turn: usize,
    urls: u64,
    reservations: u64,
    creators: usize,
    stopping: bool,
    /// The slots of creators that wait for numbers, and of a supplier that waits for work.
    came: Vec<u64>,
    wanted: Vec<u64>,
}

/// Returns the index of a namespace in the database.
fn index(namespace: usize) -> KeyspaceIndex {
    let index = i64::try_from(namespace + 1).expect("a run has few namespaces");
    KeyspaceIndex::new(index).expect("a run has few namespaces")
}

fn specs(namespaces: &[(Namespace, u64)]) -> Vec<Spec> {
    let spec = |(place, (name, capacity)): (usize, &(Namespace, u64))| Spec {
        index: index(place),
        namespace: name.clone(),
        capacity: *capacity,
    };
    namespaces.iter().enumerate().map(spec).collect()
}

/// Packs a generation, a start and an entry into a fencing token of the register. A generation
/// alone is not enough, because a ledger that was lost counts generations anew.
fn token(generation: Generation, start: u64, entry: EntryId) -> u64 {
    (generation.0 << (START_BITS + ENTRY_BITS)) | (start << ENTRY_BITS) | entry.0
}

/// Returns the highest token of a generation.
fn last_token(generation: Generation) -> u64 {
    token(generation, (1 << START_BITS) - 1, EntryId((1 << ENTRY_BITS) - 1))
}

/// Returns the start or the reservation that a token belongs to.
pub(super) fn owner(token: u64) -> u64 {
    (token >> ENTRY_BITS) & ((1 << START_BITS) - 1)
}

/// The bits for the start, and for the entries of one start; no run has as many.
const START_BITS: u32 = 16;
const ENTRY_BITS: u32 = 16;

impl Holder {
    fn new(desk: Rc<Desk>, setup: Setup) -> Rc<Self> {
        let refill_permille = desk.draw(|rng| rng.between(0, 900));
        let state = State {
            core: SupplyCore::new(specs(&setup.namespaces), setup.rules),
            keyspaces: setup.namespaces.iter().map(|_| KeyspaceNumbers::new(refill_permille)).collect(),
            configured: setup.namespaces.clone(),
            scarce: false,
            leader: None,
            turn: desk.draw(|rng| rng.index(setup.issuers)),
            urls: 0,
            reservations: 0,
            creators: 0,
            stopping: false,
            came: Vec::new(),
            wanted: Vec::new(),
        };
        Rc::new(Self { desk, setup, state: RefCell::new(state) })
    }

    /// Starts a process that mints, with its supplier, its beats and its creators.
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

    /// Starts a process that takes over every leaked block and returns it.
    pub(super) fn sweep(desk: Rc<Desk>, setup: Setup, tasks: &mut Tasks) -> Rc<Self> {
        let holder = Self::new(desk, setup);
        tasks.spawn(sweeper::sweep(Rc::clone(&holder)));
        holder
    }

    /// Asks the process to stop and to return its blocks.
    pub(super) fn stop(&self) {
        self.state.borrow_mut().stopping = true;
        self.signal(|state| &mut state.wanted);
    }

    /// Registers again with these capacities, in the same start.
    pub(super) fn configure(&self, namespaces: &[(Namespace, u64)]) {
        let mut state = self.state.borrow_mut();
        state.configured = namespaces.to_vec();
        state.core.configure(namespaces.iter().map(|(_, capacity)| *capacity));
        drop(state);
        self.signal(|state| &mut state.wanted);
    }

    /// Returns the fencing token under which the register has a block of this process.
    fn token(&self, generation: Generation, entry: EntryId) -> u64 {
        let (start, entry) = Mutant::entry(self.setup.mutant, self.setup.start, entry);
        token(generation, start, entry)
    }

    fn is_stopping(&self) -> bool {
        self.state.borrow().stopping
    }

    /// Waits for a signal, for at most `at_most` milliseconds.
    async fn wait(&self, signal: fn(&mut State) -> &mut Vec<u64>, at_most: u64) {
        let slot = self.desk.open();
        signal(&mut self.state.borrow_mut()).push(slot);
        self.desk.wake_after(slot, at_most);
        self.desk.wait(slot).await;
    }

    /// Wakes all tasks that wait for a signal.
    fn signal(&self, signal: fn(&mut State) -> &mut Vec<u64>) {
        let slots = std::mem::take(signal(&mut self.state.borrow_mut()));
        for slot in slots {
            self.desk.deliver(slot, Reply::Awake);
        }
    }
}
