//! Tests of the core against a fake ledger that enforces the guard, and can lose replies.

mod journal;
mod leak;
mod scarcity;

use std::collections::BTreeMap;

use numbers::{
    Block, Epoch, Generation, HolderId, Incarnation, Instance, Mark, Millis, Namespace, Revision, Seq, Span,
    StoreEpoch, Ticket,
};

use super::*;

/// An in-memory ledger that applies transactions by the rule of every ledger.
#[derive(Default)]
struct FakeLedger {
    leader: Epoch,
    head: Revision,
    records: BTreeMap<Key, Record>,
}

impl FakeLedger {
    fn apply(&mut self, txn: &Txn) -> TxnOutcome {
        if txn.epoch != self.leader || txn.head != self.head {
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

    fn snapshot(&self) -> Snapshot {
        Snapshot { head: self.head, records: self.records.values().cloned().collect() }
    }

    fn account(&self, namespace: &Namespace) -> Account {
        match self.records.get(&Key::Head) {
            Some(Record::Head(head)) => head.namespaces[namespace].account,
            other => panic!("no head: {other:?}"),
        }
    }

    /// Lowers the ceiling of the only namespace, as an issuer of the release before leaves it.
    fn set_ceiling(&mut self, ceiling: u64) {
        let Some(Record::Head(head)) = self.records.get_mut(&Key::Head) else { panic!("no head") };
        for record in head.namespaces.values_mut() {
            (record.ceiling, record.announced) = (ceiling, ceiling);
        }
    }
}

/// One issuer on the fake ledger. Every commit is answered at once.
struct Bench {
    core: Core,
    ledger: FakeLedger,
    tickets: u64,
    now: Millis,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let mut bench =
            Self { core: Core::new(limits), ledger: FakeLedger::default(), tickets: 0, now: Millis(0) };
        bench.elect(1);
        bench
    }

    /// Returns an issuer with 100 numbers in blocks of 10, and its only holder `a`.
    fn with_holder() -> (Self, Incarnation) {
        let mut bench = Self::new(blocks_of(10));
        let holder = bench.register("a", "1", 100);
        (bench, holder)
    }

    fn elect(&mut self, epoch: u64) {
        self.ledger.leader = Epoch(epoch);
        let snapshot = self.ledger.snapshot();
        let effects = self.core.step(self.now, Event::Elected { epoch: Epoch(epoch), snapshot });
        self.settle(effects);
    }

    /// Runs effects until none is left, and returns the answers in their order.
    fn settle(&mut self, effects: Vec<Effect>) -> Vec<Result<Answer, Refusal>> {
        let mut answers = Vec::new();
        let mut waiting = effects;
        while !waiting.is_empty() {
            for effect in std::mem::take(&mut waiting) {
                match effect {
                    Effect::Answer(_, answer) => answers.push(answer),
                    Effect::Commit { txn, .. } => {
                        let outcome = self.ledger.apply(&txn);
                        waiting.extend(self.core.step(self.now, Event::Committed(outcome)));
                    }
                    Effect::Abdicate => {}
                }
            }
        }
        answers
    }

    /// Advances the clock, and runs a tick.
    fn wait(&mut self, milliseconds: u64) {
        self.now = Millis(self.now.0 + milliseconds);
        let effects = self.core.step(self.now, Event::Tick);
        self.settle(effects);
    }

    /// Allocates a block, and returns it with the generation that it was leaked under.
    fn allocate_leaked(&mut self, request: Request) -> (Block, Option<Generation>) {
        match self.ask(request) {
            Ok(Answer::Allocated { block, leaked, .. }) => (block, leaked),
            other => panic!("{other:?}"),
        }
    }

    fn arrive(&mut self, request: Request) -> Vec<Effect> {
        self.tickets += 1;
        self.core.step(self.now, Event::Arrived(Ticket(self.tickets), request))
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        let effects = self.arrive(request);
        self.settle(effects).pop().expect("one answer")
    }

    fn register(&mut self, holder: &str, instance: &str, capacity: u64) -> Incarnation {
        match self.ask(register(holder, instance, capacity)) {
            Ok(Answer::Registered { incarnation, .. }) => incarnation,
            other => panic!("{other:?}"),
        }
    }

    fn allocate(&mut self, holder: &str, incarnation: Incarnation, seq: u64) -> Result<Block, Refusal> {
        self.ask(allocate(holder, incarnation, seq)).map(|answer| match answer {
            Answer::Allocated { block, .. } => block,
            other => panic!("{other:?}"),
        })
    }

    fn account(&self) -> Account {
        self.ledger.account(&namespace())
    }
}

fn namespace() -> Namespace {
    Namespace::new("web").unwrap()
}

fn holder(name: &str) -> HolderId {
    HolderId::new(name).unwrap()
}

fn register(name: &str, instance: &str, capacity: u64) -> Request {
    start(name, instance, capacity, false)
}

/// Returns a registration of the reservation `r`, or, if it is not `reserved`, its end.
fn reserve(instance: &str, capacity: u64, reserved: bool) -> Request {
    start("r", instance, capacity, reserved)
}

fn start(name: &str, instance: &str, capacity: u64, reserved: bool) -> Request {
    let (namespaces, instance) = (vec![(namespace(), capacity)], Instance::new(instance).unwrap());
    Request::Register { holder: holder(name), instance, namespaces, reserved }
}

fn allocate(name: &str, incarnation: Incarnation, seq: u64) -> Request {
    allocate_for(name, incarnation, seq, "7001:1")
}

fn allocate_for(name: &str, incarnation: Incarnation, seq: u64, store: &str) -> Request {
    allocate_len(name, incarnation, seq, u64::MAX, store)
}

fn allocate_len(name: &str, incarnation: Incarnation, seq: u64, wanted_len: u64, store: &str) -> Request {
    let (holder, seq, store) = (holder(name), Seq(seq), StoreEpoch::new(store).unwrap());
    Request::Allocate { holder, incarnation, seq, namespace: namespace(), wanted_len, store }
}

/// Returns limits under which all blocks have one length, even near the end.
fn blocks_of(len: u64) -> Limits {
    Limits { block_min: len, block_max: len, fair_shares: 0, ..Limits::default() }
}

fn beat(name: &str, incarnation: Incarnation) -> Request {
    beat_of(name, incarnation, 0, 7)
}

/// Returns a beat that reports `in_hand` unused numbers after the allocation of `last_seq`.
fn beat_of(name: &str, incarnation: Incarnation, last_seq: u64, in_hand: u64) -> Request {
    let progress = vec![(namespace(), in_hand)];
    Request::KeepAlive { holder: holder(name), incarnation, last_seq: Seq(last_seq), progress, mark: Mark(0) }
}

fn give_back(name: &str, incarnation: Incarnation, block: &Block, used: u64) -> Request {
    let (_, unused) = block.span.take_front(used);
    let (block, unused) = (block.clone(), unused.into_iter().collect());
    let returned = Returned { block, used, burned: 0, unused, registered_end: None };
    assert_eq!(returned.check(), Ok(()));
    Request::Return { holder: holder(name), incarnation, blocks: vec![returned] }
}

#[test]
fn every_small_number_space_is_handed_out_once_to_the_last_number() {
    for capacity in 1..40 {
        for len in 1..12 {
            let mut bench = Bench::new(blocks_of(len));
            let incarnation = bench.register("a", "1", capacity);
            let mut next = 0;
            for seq in 1.. {
                match bench.allocate("a", incarnation, seq) {
                    Ok(block) => {
                        assert_eq!(block.span.start(), next, "capacity {capacity}, blocks of {len}");
                        next = block.span.end();
                    }
                    Err(refusal) => {
                        assert!(matches!(refusal, Refusal::InOtherHands { .. }), "{refusal:?}");
                        bench.ask(beat_of("a", incarnation, seq - 1, 0)).unwrap();
                        let refusal = bench.allocate("a", incarnation, seq).unwrap_err();
                        assert_eq!(refusal, Refusal::Exhausted { namespace: namespace(), capacity });
                        break;
                    }
                }
            }
            assert_eq!(next, capacity);
            assert_eq!(bench.account().allocated, capacity);
        }
    }
}

#[test]
fn the_end_of_the_largest_number_space_does_not_wrap() {
    let mut bench = Bench::new(Limits { block_max: u64::MAX, ..blocks_of(Span::LIMIT - 3) });
    let incarnation = bench.register("a", "1", Span::LIMIT);
    assert_eq!(bench.allocate("a", incarnation, 1).unwrap().span.len(), Span::LIMIT - 3);
    assert_eq!(bench.allocate("a", incarnation, 2).unwrap().span.end(), Span::LIMIT);
    assert!(matches!(bench.allocate("a", incarnation, 3), Err(Refusal::InOtherHands { .. })));
}

#[test]
fn one_seq_gets_one_block_also_from_the_next_leader() {
    let (mut bench, incarnation) = Bench::with_holder();
    let block = bench.allocate("a", incarnation, 1).unwrap();
    assert_eq!(bench.allocate("a", incarnation, 1).unwrap(), block);
    bench.elect(2);
    assert_eq!(bench.allocate("a", incarnation, 1).unwrap(), block);
    assert_eq!(bench.allocate("a", incarnation, 3), Err(Refusal::Seq { expected: Seq(2), got: Seq(3) }));
    assert_eq!(bench.account().open, 10);
}

#[test]
fn a_lost_reply_is_settled_by_the_head_and_nothing_is_answered_before() {
    let (mut bench, incarnation) = Bench::with_holder();
    let effects = bench.arrive(allocate("a", incarnation, 1));
    let [Effect::Commit { txn, again: false }] = &effects[..] else { panic!("{effects:?}") };

    bench.ledger.apply(txn);
    let retried = bench.core.step(bench.now, Event::Committed(TxnOutcome::Unknown));
    assert_eq!(retried, [Effect::Commit { txn: txn.clone(), again: true }]);
    let answers = bench.settle(retried);
    assert!(matches!(&answers[..], [Ok(Answer::Allocated { .. })]), "{answers:?}");
    assert_eq!(bench.account().open, 10);
}

#[test]
fn a_deposed_leader_answers_unknown_and_steps_down() {
    let (mut bench, incarnation) = Bench::with_holder();
    let in_flight = bench.arrive(allocate("a", incarnation, 1));
    assert!(bench.arrive(allocate("b", incarnation, 1)).is_empty(), "one transaction at a time");

    let mut rival = Core::new(blocks_of(10));
    bench.ledger.leader = Epoch(2);
    let snapshot = bench.ledger.snapshot();
    for effect in rival.step(bench.now, Event::Elected { epoch: Epoch(2), snapshot }) {
        let Effect::Commit { txn, .. } = effect else { continue };
        assert!(matches!(bench.ledger.apply(&txn), TxnOutcome::Applied(_)));
    }
    let [Effect::Commit { txn, .. }] = &in_flight[..] else { panic!("{in_flight:?}") };
    let refused = bench.ledger.apply(txn);
    let effects = bench.core.step(bench.now, Event::Committed(refused));
    assert_eq!(
        effects,
        [
            Effect::Answer(Ticket(2), Err(Refusal::Unknown)),
            Effect::Answer(Ticket(3), Err(Refusal::NotLeader(None))),
            Effect::Abdicate,
        ]
    );
    assert_eq!(bench.core.serving(), None);
}

#[test]
fn a_stale_snapshot_at_take_over_is_noticed_by_the_write_of_head() {
    let mut bench = Bench::new(blocks_of(10));
    let stale = bench.ledger.snapshot();
    bench.register("a", "1", 100);
    bench.ledger.leader = Epoch(2);
    let effects = bench.core.step(bench.now, Event::Elected { epoch: Epoch(2), snapshot: stale });
    bench.settle(effects);
    assert_eq!(bench.core.serving(), None);
}

#[test]
fn a_returned_rest_is_free_and_goes_out_before_the_watermark_moves() {
    let (mut bench, a) = Bench::with_holder();
    let block = bench.allocate("a", a, 1).unwrap();
    assert_eq!(bench.ask(give_back("a", a, &block, 4)), Ok(Answer::Closed { blocks: 1 }));
    assert_eq!(
        bench.ask(give_back("a", a, &block, 4)),
        Ok(Answer::Closed { blocks: 0 }),
        "a copy changes nothing"
    );
    assert_eq!(bench.account(), Account { allocated: 10, used: 4, free: 6, ..Account::default() });

    let b = bench.register("b", "1", 100);
    let again = bench.allocate("b", b, 1).unwrap();
    assert_eq!(again.span, Span::new(4, 6).unwrap());
    assert!(again.generation > block.generation);
    assert_eq!(bench.allocate("b", b, 2).unwrap().span.start(), 10);
    assert_eq!(bench.account(), Account { allocated: 20, used: 4, open: 16, ..Account::default() });
}

#[test]
fn blocks_at_most_double_and_start_short_after_a_restart() {
    let mut bench = Bench::new(Limits { block_min: 10, block_max: 50, ..Limits::default() });
    let first = bench.register("a", "1", 1_000);
    let lens: Vec<_> = (1..=5).map(|seq| bench.allocate("a", first, seq).unwrap().span.len()).collect();
    assert_eq!(lens, [10, 20, 40, 50, 50]);
    let other = bench.register("b", "1", 1_000);
    assert_eq!(bench.allocate("b", other, 1).unwrap().span.len(), 10);
}

#[test]
fn a_ledger_from_a_backup_is_moved_past_what_the_database_has_registered() {
    let (mut bench, a) = Bench::with_holder();
    let block = bench.allocate("a", a, 1).unwrap();
    let refused = |block: &Block, registered_end| {
        let block = block.clone();
        Returned { block, used: 0, burned: 10, unused: Vec::new(), registered_end: Some(registered_end) }
    };
    let beyond = refused(&block, Span::LIMIT + 1).check().unwrap_err().to_string();
    assert!(beyond.contains("registered_end"), "{beyond}");
    let call = |blocks| Request::Return { holder: holder("a"), incarnation: a, blocks };
    assert_eq!(bench.ask(call(vec![refused(&block, 55)])), Ok(Answer::Closed { blocks: 1 }));
    assert_eq!(bench.account(), Account { allocated: 55, burned: 55, ..Account::default() });
    assert_eq!(bench.ask(call(vec![refused(&block, 90)])), Ok(Answer::Closed { blocks: 0 }), "not open");
    let next = bench.allocate("a", a, 2).unwrap();
    assert_eq!(next.span.start(), 55, "neither by a call that comes twice");
    assert_eq!(bench.ask(call(vec![refused(&next, 40)])), Ok(Answer::Closed { blocks: 1 }));
    let last = bench.allocate("a", a, 3).unwrap();
    assert_eq!(last.span.start(), 65, "it never moves back");
    assert_eq!(bench.ask(call(vec![refused(&last, 1_000)])), Ok(Answer::Closed { blocks: 1 }));
    assert!(
        matches!(bench.allocate("a", a, 4), Err(Refusal::Exhausted { .. })),
        "not past the capacity either"
    );
    assert_eq!(
        bench.ask(beat("a", a.next())),
        Err(Refusal::UnknownHolder(holder("a"))),
        "a lost registration"
    );
}

#[test]
fn a_deposed_leader_that_does_not_know_it_tells_no_mark() {
    let (mut bench, incarnation) = Bench::with_holder();
    let told = |mark| Request::KeepAlive {
        holder: holder("a"),
        incarnation,
        last_seq: Seq(0),
        progress: Vec::new(),
        mark: Mark(mark),
    };
    bench.ask(told(5)).unwrap();
    bench.ledger.leader = Epoch(2);
    assert_eq!(bench.ask(told(5)), Err(Refusal::Unknown));
    assert_eq!(bench.core.serving(), None);
}

#[test]
fn a_capacity_may_grow_and_never_shrinks() {
    let mut bench = Bench::new(blocks_of(10));
    let incarnation = bench.register("a", "1", 10);
    bench.allocate("a", incarnation, 1).unwrap();
    bench.ask(beat_of("a", incarnation, 1, 0)).unwrap();
    assert!(matches!(bench.allocate("a", incarnation, 2), Err(Refusal::Exhausted { .. })));
    assert!(matches!(bench.ask(register("a", "1", 9)), Err(Refusal::CapacityShrunk { .. })));
    bench.register("a", "1", 15);
    let reached = |allocated| matches!(allocated, Err(Refusal::CeilingReached { .. }));
    assert!(reached(bench.allocate("a", incarnation, 2)), "an older issuer may have told otherwise");
    bench.wait(30_000);
    assert_eq!(bench.allocate("a", incarnation, 2).unwrap().span, Span::new(10, 5).unwrap());
}

#[test]
fn a_full_batch_stays_within_the_transaction_limit_and_every_caller_is_answered() {
    let mut bench = Bench::new(blocks_of(10));
    let holders: Vec<_> = (0..300).map(|n| format!("h{n}")).collect();
    let mut effects = Vec::new();
    for holder in &holders {
        effects.extend(bench.arrive(register(holder, "1", 10_000)));
    }
    let mut answers = 0;
    while let Some(effect) = effects.pop() {
        match effect {
            Effect::Answer(_, answer) => {
                assert!(answer.is_ok(), "{answer:?}");
                answers += 1;
            }
            Effect::Commit { txn, .. } => {
                assert!(txn.writes.len() <= MAX_TXN_WRITES);
                let outcome = bench.ledger.apply(&txn);
                effects.extend(bench.core.step(bench.now, Event::Committed(outcome)));
            }
            Effect::Abdicate => panic!("nobody else leads"),
        }
    }
    assert_eq!(answers, holders.len());
}

#[test]
fn retiring_finishes_the_transaction_in_flight_and_takes_nothing_new() {
    let mut bench = Bench::new(blocks_of(10));
    let effects = bench.arrive(register("a", "1", 100));
    assert!(bench.core.step(bench.now, Event::Retire).is_empty());
    let refused = bench.arrive(register("b", "1", 100));
    assert_eq!(refused, [Effect::Answer(Ticket(2), Err(Refusal::NotLeader(None)))]);
    let [Effect::Commit { txn, .. }] = &effects[..] else { panic!("{effects:?}") };
    let outcome = bench.ledger.apply(txn);
    let last = bench.core.step(bench.now, Event::Committed(outcome));
    assert!(matches!(last[..], [Effect::Answer(Ticket(1), Ok(_)), Effect::Abdicate]), "{last:?}");
}

#[test]
fn a_seq_repeated_for_another_namespace_is_not_answered_with_the_first_ones_block() {
    let mut bench = Bench::new(blocks_of(10));
    let other = Namespace::new("mobile").unwrap();
    let mut both = register("a", "1", 100);
    let Request::Register { namespaces, .. } = &mut both else { panic!("a registration") };
    namespaces.push((other.clone(), 100));
    bench.ask(both).unwrap();
    bench.allocate("a", Incarnation(1), 1).unwrap();
    let mut asked = allocate("a", Incarnation(1), 1);
    let Request::Allocate { namespace, .. } = &mut asked else { panic!("an allocation") };
    *namespace = other;
    assert_eq!(bench.ask(asked), Err(Refusal::Seq { expected: Seq(2), got: Seq(1) }));
}

#[test]
fn a_ledger_is_named_after_the_first_start_that_registers_and_keeps_the_name() {
    let mut bench = Bench::new(blocks_of(10));
    let named = |bench: &mut Bench, holder, instance| match bench.ask(register(holder, instance, 100)) {
        Ok(Answer::Registered { ledger, .. }) => ledger.map(|ledger| ledger.to_string()),
        other => panic!("{other:?}"),
    };
    assert_eq!(named(&mut bench, "a", "i-7").as_deref(), Some("a.i-7"));
    bench.elect(2);
    assert_eq!(named(&mut bench, "b", "i-8").as_deref(), Some("a.i-7"));
}

#[test]
fn a_leader_goes_past_a_ceiling_that_it_found_only_when_no_holder_trusts_it() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 1_000);
    bench.ledger.set_ceiling(15);
    bench.elect(2);
    assert_eq!(bench.allocate("a", a, 1).unwrap().span.end(), 10);
    assert_eq!(bench.allocate("a", a, 2).unwrap().span.end(), 15, "cut at the ceiling");
    // A leader with a shorter TTL keeps the promises of the one before.
    bench.core = Core::new(Limits { holder_ttl_ms: 1_000, ..blocks_of(10) });
    for epoch in [3, 4] {
        bench.elect(epoch);
        bench.wait(29_999);
        bench.ask(beat("a", a)).unwrap();
        assert!(matches!(bench.allocate("a", a, 3), Err(Refusal::CeilingReached { .. })));
    }
    bench.wait(1);
    assert_eq!(bench.allocate("a", a, 3).unwrap().span, Span::new(15, 10).unwrap());
}
