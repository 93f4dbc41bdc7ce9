//! The end of a number space, with the issuer's real core and real buffers: every code is minted before any holder hears that the
//! keyspace is exhausted, and then all of them hear it. Holders differ in how much they create; inserts fail, creates are under
//! way for a while, and holders crash with numbers in hand.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use codes::KeyspaceIndex;
use issuer::{
    core::{Answer, Core, Effect, Event, Limits, Refusal, Request, Returned},
    ledger::{HeadRead, Key, Record, Snapshot, Txn, TxnOutcome, Write},
};
use numbers::{
    Epoch, HolderId, Incarnation, Instance, Mark, Millis, Namespace, Revision, Seq, Span, StoreEpoch, Ticket,
};
use proptest::prelude::*;

use super::{
    buffer::{Claim, Entered, EntryId, Fate},
    minting::{ClaimError, Minting},
};

/// What a run is made of.
#[derive(Clone, Debug)]
struct Plan {
    capacity: u64,
    /// How many creates each holder has per round.
    loads: Vec<u64>,
    block_min: u64,
    seed: u64,
    /// One create of so many fails, one round of so many has a crash; 0 for none.
    fails: u64,
    crashes: u64,
}

/// One transaction at a time, applied at once.
#[derive(Default)]
struct Ledger {
    head: Revision,
    records: BTreeMap<Key, Record>,
}

impl Ledger {
    fn apply(&mut self, txn: &Txn) -> TxnOutcome {
        if txn.head != self.head {
            let Some(Record::Head(head)) = self.records.get(&Key::Head) else {
                return TxnOutcome::Refused(None);
            };
            return TxnOutcome::Refused(Some(HeadRead { head: head.clone(), revision: self.head }));
        }
        self.head = self.head.next();
        for write in txn.writes.iter() {
            match write {
                Write::Put(record) => self.records.insert(record.key(), record.clone()),
                Write::Delete(key) => self.records.remove(key),
            };
        }
        TxnOutcome::Applied(self.head)
    }
}

/// One process.
struct Process {
    name: HolderId,
    starts: u64,
    incarnation: Incarnation,
    seq: Seq,
    minting: Arc<Minting>,
    entries: u64,
    under_way: Vec<Claim>,
    is_told: bool,
}

struct World {
    plan: Plan,
    core: Core,
    ledger: Ledger,
    now: Millis,
    minted: HashSet<u64>,
    processes: Vec<Process>,
    random: u64,
}

fn namespace() -> Namespace {
    Namespace::new("tiny").unwrap()
}

fn history() -> StoreEpoch {
    StoreEpoch::new("7001:1").unwrap()
}

fn minting(capacity: u64) -> Arc<Minting> {
    Arc::new(Minting::new(KeyspaceIndex::new(1).unwrap(), namespace(), capacity, 300))
}

impl World {
    fn new(plan: Plan) -> Self {
        let limits = Limits { block_min: plan.block_min, reclaim_after_ms: 60_000, ..Limits::default() };
        let mut world = Self {
            core: Core::new(limits),
            ledger: Ledger::default(),
            now: Millis(0),
            minted: HashSet::new(),
            processes: Vec::new(),
            random: plan.seed | 1,
            plan,
        };
        let snapshot = Snapshot { head: world.ledger.head, records: Vec::new() };
        let effects = world.core.step(world.now, Event::Elected { epoch: Epoch(1), snapshot });
        world.settle(effects);
        for index in 0..world.plan.loads.len() {
            world.processes.push(Process {
                name: HolderId::new(format!("h{index}")).unwrap(),
                starts: 0,
                incarnation: Incarnation(0),
                seq: Seq(0),
                minting: minting(world.plan.capacity),
                entries: 0,
                under_way: Vec::new(),
                is_told: false,
            });
            world.start(index);
        }
        world
    }

    /// Whether one of `many` chances comes true; never of none.
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
                        let outcome = self.ledger.apply(&txn);
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
        self.settle(effects).expect("each call is answered")
    }

    /// A process starts, after a crash with nothing in hand.
    fn start(&mut self, index: usize) {
        let capacity = self.plan.capacity;
        let process = &mut self.processes[index];
        process.starts += 1;
        (process.minting, process.under_way, process.is_told) = (minting(capacity), Vec::new(), false);
        let request = Request::Register {
            holder: process.name.clone(),
            instance: Instance::new(format!("start-{}", process.starts)).unwrap(),
            namespaces: vec![(namespace(), capacity)],
            reserved: false,
        };
        let Ok(Answer::Registered { incarnation, last_seq, .. }) = self.ask(request) else {
            panic!("registered")
        };
        (self.processes[index].incarnation, self.processes[index].seq) = (incarnation, last_seq);
    }

    fn is_used_up(&self) -> bool {
        self.minted.len() as u64 == self.plan.capacity
    }

    /// One create: it claims a number, and its insert is under way from then on.
    fn create(&mut self, index: usize) {
        let claimed = self.processes[index].minting.try_claim();
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

    /// Every insert under way ends.
    fn finish(&mut self, index: usize) {
        for claim in std::mem::take(&mut self.processes[index].under_way) {
            let number = claim.number;
            let fate = if self.one_in(self.plan.fails) { Fate::Unused } else { Fate::Used };
            if fate == Fate::Used {
                assert!(self.minted.insert(number), "{number} is minted twice: {:?}", self.plan);
            }
            self.processes[index].minting.settle(claim, fate);
        }
    }

    /// What the supplier does in one round.
    fn supply(&mut self, index: usize) {
        while self.processes[index].minting.wants_block() {
            let process = &self.processes[index];
            let request = Request::Allocate {
                holder: process.name.clone(),
                incarnation: process.incarnation,
                seq: process.seq.next(),
                namespace: namespace(),
                wanted_len: self.plan.loads[index].max(1) * 300,
                store: history(),
            };
            match self.ask(request) {
                Ok(Answer::Allocated { block, leaked, .. }) => {
                    let unused = leaked.map(|_| self.unused(block.span));
                    let process = &mut self.processes[index];
                    process.seq = process.seq.next();
                    process.entries += 1;
                    let entry = EntryId(process.entries);
                    process.minting.add(Entered { block, entry, history: Arc::new(history()) }, unused);
                }
                Err(Refusal::InOtherHands { .. }) => {
                    self.processes[index].minting.starve();
                    break;
                }
                Err(Refusal::Exhausted { .. }) => {
                    assert!(self.is_used_up(), "a holder is told of the end too early: {:?}", self.plan);
                    self.processes[index].minting.exhaust();
                    break;
                }
                other => panic!("{other:?}"),
            }
        }
        self.give_back(index);
    }

    /// What the database says of a block that is taken over.
    fn unused(&self, span: Span) -> Vec<Span> {
        let unused = (span.start()..span.end()).filter(|number| !self.minted.contains(number));
        unused.map(|number| Span::new(number, 1).unwrap()).collect()
    }

    fn give_back(&mut self, index: usize) {
        for (closed, on_the_way) in self.processes[index].minting.take_closed() {
            let returned = Returned {
                block: closed.block,
                used: closed.used,
                burned: closed.burned,
                unused: closed.unused,
                registered_end: None,
            };
            assert_eq!(returned.check(), Ok(()));
            let process = &self.processes[index];
            let (holder, incarnation) = (process.name.clone(), process.incarnation);
            self.ask(Request::Return { holder, incarnation, blocks: vec![returned] }).unwrap();
            drop(on_the_way);
        }
    }

    fn beat(&mut self, index: usize) {
        let process = &self.processes[index];
        let progress = vec![(namespace(), process.minting.unsettled())];
        let (holder, incarnation) = (process.name.clone(), process.incarnation);
        let request =
            Request::KeepAlive { holder, incarnation, last_seq: process.seq, progress, mark: Mark(0) };
        match self.ask(request) {
            Ok(Answer::Alive { starving, .. }) => {
                if !starving.is_empty() {
                    self.processes[index].minting.relinquish();
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// One round of two seconds, which is how often beats come near the end.
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
            self.give_back(index);
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
    panic!("{} of {} codes after {rounds} rounds: {:?}", world.minted.len(), world.plan.capacity, world.plan);
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
