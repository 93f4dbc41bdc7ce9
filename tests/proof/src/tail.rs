//! Tests of the end of a number space, with the cores of issuer and holders.
//!
//! Every code is minted before any holder hears that the keyspace is exhausted, and then all
//! holders hear it. Holders differ in how much they create. Inserts fail, creates are under way for
//! a while, and holders crash with numbers in hand.

use codes::KeyspaceIndex;
use holder::{
    Call, Claim, ClaimError, Effect as HolderEffect, Event as HolderEvent, Fate, KeyspaceNumbers, Refused,
    SafetyRules, Spec, StoreAnswer, StoreCall, SupplyCore as Holder,
};
use issuer::core::{Answer, Core, Effect, Event, Limits, Refusal, Request};
use numbers::{HolderId, Instance, Millis, Namespace, StoreEpoch, Ticket};
use proptest::prelude::*;

use crate::{
    messages,
    stores::{FakeDatabase, FakeEtcd},
};

/// The parameters of a run.
#[derive(Clone, Debug)]
struct Plan {
    capacity: u64,
    /// The number of creates per round, for each holder.
    loads: Vec<u64>,
    block_min: u64,
    seed: u64,
    /// One in `fails` creates fails, and one in `crashes` rounds has a crash; 0 for none.
    fails: u64,
    crashes: u64,
}

/// A holder's process.
struct Process {
    name: HolderId,
    starts: u64,
    core: Holder,
    keyspaces: Vec<KeyspaceNumbers>,
    under_way: Vec<Claim>,
    is_told: bool,
}

impl Process {
    fn new(index: usize, starts: u64, capacity: u64) -> Self {
        let spec = Spec { index: KeyspaceIndex::new(1).unwrap(), namespace: namespace(), capacity };
        Self {
            name: HolderId::new(format!("h{index}")).unwrap(),
            starts,
            core: Holder::new(vec![spec], SafetyRules::default()),
            keyspaces: vec![KeyspaceNumbers::new(300)],
            under_way: Vec::new(),
            is_told: false,
        }
    }
}

struct World {
    plan: Plan,
    core: Core,
    etcd: FakeEtcd,
    /// The links. Every register entry is accepted.
    database: FakeDatabase,
    now: Millis,
    processes: Vec<Process>,
    random: u64,
}

fn namespace() -> Namespace {
    Namespace::new("tiny").unwrap()
}

fn history() -> StoreEpoch {
    StoreEpoch::new("7001:1").unwrap()
}

impl World {
    fn new(plan: Plan) -> Self {
        let limits = Limits { block_min: plan.block_min, reclaim_after_ms: 60_000, ..Limits::default() };
        let mut world = Self {
            core: Core::new(limits),
            etcd: FakeEtcd::default(),
            database: FakeDatabase::default(),
            now: Millis(0),
            processes: Vec::new(),
            random: plan.seed | 1,
            plan,
        };
        let epoch = world.etcd.campaign().expect("there is one issuer");
        let snapshot = world.etcd.snapshot();
        let effects = world.core.step(world.now, Event::Elected { epoch, snapshot });
        world.settle(effects);
        for index in 0..world.plan.loads.len() {
            world.processes.push(Process::new(index, 0, world.plan.capacity));
            world.start(index);
        }
        world
    }

    /// Returns true with a probability of 1 in `many`; false if `many` is 0.
    fn one_in(&mut self, many: u64) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        many > 0 && self.random.is_multiple_of(many)
    }

    fn settle(&mut self, mut waiting: Vec<Effect>) -> Option<Result<Answer, Refusal>> {
        let mut answered = None;
        while !waiting.is_empty() {
            for effect in std::mem::take(&mut waiting) {
                match effect {
                    Effect::Answer(_, answer) => answered = Some(answer),
                    Effect::Commit { txn, .. } => {
                        let outcome = self.etcd.commit(&txn, None);
                        waiting.extend(self.core.step(self.now, Event::Committed(outcome)));
                    }
                    Effect::Abdicate => panic!("there is one issuer"),
                }
            }
        }
        answered
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        let effects = self.core.step(self.now, Event::Arrived(Ticket(1), request));
        self.settle(effects).expect("the issuer answers each call")
    }

    /// Starts a process with nothing in hand, as after a crash.
    fn start(&mut self, index: usize) {
        let starts = self.processes[index].starts + 1;
        self.processes[index] = Process::new(index, starts, self.plan.capacity);
        self.supply(index);
    }

    fn is_used_up(&self) -> bool {
        self.database.links() as u64 == self.plan.capacity
    }

    /// Starts a create: claims a number, whose insert is under way from then on.
    fn create(&mut self, index: usize) {
        let claimed = self.processes[index].keyspaces[0].claim();
        match claimed {
            Ok(Some(claim)) => self.processes[index].under_way.push(claim),
            Ok(None) => {}
            Err(ClaimError::Exhausted) => {
                assert!(self.is_used_up(), "a create is told of the end too early: {:?}", self.plan);
                self.processes[index].is_told = true;
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// Ends every insert under way.
    fn finish(&mut self, index: usize) {
        for claim in std::mem::take(&mut self.processes[index].under_way) {
            let number = claim.number;
            let fate = if self.one_in(self.plan.fails) { Fate::Unused } else { Fate::Used };
            if fate == Fate::Used {
                assert!(self.database.insert(number, 0), "{number} is minted twice: {:?}", self.plan);
            }
            self.processes[index].keyspaces[0].buffer.settle(claim, fate);
        }
    }

    /// Steps the supplier until it waits.
    fn supply(&mut self, index: usize) {
        let mut event = HolderEvent::Woken;
        loop {
            let now = self.now;
            let Process { core, keyspaces, .. } = &mut self.processes[index];
            let last = core.step(now, event, keyspaces).pop();
            event = match last {
                Some(HolderEffect::Call(call)) => HolderEvent::Answered(self.call(index, call)),
                Some(HolderEffect::Store(call)) => HolderEvent::Stored(Some(self.store(call))),
                Some(HolderEffect::Wait { .. }) => return,
                other => panic!("{other:?}"),
            };
        }
    }

    /// Carries a holder's call to the issuer.
    fn call(&mut self, index: usize, call: Call) -> Result<holder::Answer, Refused> {
        let Process { name, starts, .. } = &self.processes[index];
        let start = (name.clone(), Instance::new(format!("start-{starts}")).unwrap());
        let wanted_len = self.plan.loads[index].max(1) * 300;
        let request = messages::request(start, call, |_| (namespace(), wanted_len));
        match self.ask(request) {
            Ok(answer) => Ok(messages::answer(answer, Limits::default().holder_ttl_ms)),
            Err(Refusal::InOtherHands { .. }) => Err(Refused::InOtherHands),
            Err(Refusal::Exhausted { .. }) => {
                assert!(self.is_used_up(), "a holder is told of the end too early: {:?}", self.plan);
                Err(Refused::Exhausted)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Answers for the database, which accepts every register entry.
    fn store(&self, call: StoreCall) -> StoreAnswer {
        match call {
            StoreCall::AdoptLedger(ledger) => StoreAnswer::Ledger(ledger),
            StoreCall::RaiseMark(_) => StoreAnswer::Raised(true),
            StoreCall::Epoch => StoreAnswer::Epoch(history()),
            StoreCall::Register(_) | StoreCall::TakeOver(..) => StoreAnswer::Entered,
            StoreCall::Unused(_, span) => StoreAnswer::Unused(self.database.unused(span)),
            StoreCall::RegisteredEnd(_) => StoreAnswer::End(0),
            StoreCall::Release(..) => StoreAnswer::Released,
        }
    }

    fn beat(&mut self, index: usize) {
        let Process { core, keyspaces, name, .. } = &mut self.processes[index];
        let beat = core.beat(core.session.expect("a process registers at its start"), keyspaces);
        let request = messages::keep_alive(name.clone(), beat);
        match self.ask(request) {
            Ok(Answer::Alive { starving, .. }) => {
                let now = self.now;
                let Process { core, keyspaces, .. } = &mut self.processes[index];
                core.share(now, &starving, keyspaces);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Runs one round of two seconds, which is the interval of beats near the end.
    fn round(&mut self) {
        for index in 0..self.processes.len() {
            for _ in 0..self.plan.loads[index] {
                self.create(index);
            }
            if self.one_in(self.plan.crashes) {
                self.start(index);
            }
            self.supply(index);
            if self.one_in(2) {
                self.beat(index);
                self.finish(index);
            } else {
                self.finish(index);
                self.beat(index);
            }
            self.supply(index);
        }
        self.now = Millis(self.now.0 + 2_000);
        let effects = self.core.step(self.now, Event::Tick);
        self.settle(effects);
    }
}

/// Runs until every holder with creates has heard that the keyspace is exhausted.
fn use_up(plan: Plan) {
    let creates: u64 = plan.loads.iter().sum();
    let rounds = 400 + 40 * plan.capacity / creates.max(1);
    let mut world = World::new(plan);
    for _ in 0..rounds {
        world.round();
        let mut creators = world.processes.iter().zip(&world.plan.loads).filter(|(_, load)| **load > 0);
        if creators.all(|(process, _)| process.is_told) {
            assert!(world.is_used_up());
            return;
        }
    }
    let (minted, plan) = (world.database.links(), &world.plan);
    panic!("{minted} of {} codes after {rounds} rounds: {plan:?}", plan.capacity);
}

#[test]
fn the_smallest_keyspaces_are_used_up_by_any_number_of_holders() {
    for capacity in 1..=64 {
        for holders in 1..=8_u64 {
            let plan = Plan {
                capacity,
                loads: (0..holders).map(|index| index % 4).rev().collect(),
                block_min: 1_000,
                seed: capacity * 8 + holders,
                fails: 0,
                crashes: 0,
            };
            if plan.loads.iter().any(|load| *load > 0) {
                use_up(plan);
            }
        }
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let capacity = prop_oneof![1_u64..100, 100..1_000_u64, 1_000..10_001_u64];
    let load = prop_oneof![Just(0_u64), 1_u64..4, 4_u64..200];
    let loads = (prop::collection::vec(load, 0..8), 1..100_u64).prop_map(|(mut loads, last)| {
        loads.push(last);
        loads
    });
    let block_min = prop_oneof![Just(1_u64), Just(10), Just(1_000)];
    let (fails, crashes) = (prop_oneof![Just(0_u64), 2..20_u64], prop_oneof![Just(0_u64), 5..60_u64]);
    (capacity, loads, block_min, any::<u64>(), fails, crashes).prop_map(
        |(capacity, loads, block_min, seed, fails, crashes)| Plan {
            capacity,
            loads,
            block_min,
            seed,
            fails,
            crashes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn every_code_is_minted_before_any_holder_hears_that_the_keyspace_is_exhausted(plan in plans()) {
        use_up(plan);
    }
}
