//! The core against a fake ledger that keeps the guard's rule, and can lose replies.

use std::collections::BTreeMap;

use super::*;
use crate::{
    block::{Block, Span},
    ledger::{HeadRead, Key, Record, Write},
    names::{HolderId, Instance, Namespace, StoreEpoch},
    tokens::{Generation, Incarnation, Revision, Seq},
};

/// Applies transactions by the rule that every ledger keeps.
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
}

/// One issuer on the fake ledger, with every commit answered at once.
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

    fn elect(&mut self, epoch: u64) {
        self.ledger.leader = Epoch(epoch);
        let snapshot = self.ledger.snapshot();
        let effects = self.core.step(self.now, Event::Elected { epoch: Epoch(epoch), snapshot });
        self.settle(effects);
    }

    /// Runs effects until none is left; the answers in their order.
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

    /// Lets time pass and the core notice.
    fn wait(&mut self, milliseconds: u64) {
        self.now = Millis(self.now.0 + milliseconds);
        let effects = self.core.step(self.now, Event::Tick);
        self.settle(effects);
    }

    /// A block, and the generation that it was leaked under.
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
        match self.ask(allocate(holder, incarnation, seq)) {
            Ok(Answer::Allocated { block, .. }) => Ok(block),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal),
        }
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
    let namespaces = vec![(namespace(), capacity)];
    let instance = Instance::new(instance).unwrap();
    Request::Register { holder: holder(name), instance, namespaces, reserved: false }
}

fn allocate(name: &str, incarnation: Incarnation, seq: u64) -> Request {
    allocate_for(name, incarnation, seq, "7001:1")
}

fn allocate_for(name: &str, incarnation: Incarnation, seq: u64, store: &str) -> Request {
    Request::Allocate {
        holder: holder(name),
        incarnation,
        seq: Seq(seq),
        namespace: namespace(),
        wanted_len: u64::MAX,
        store: StoreEpoch::new(store).unwrap(),
    }
}

/// Blocks of one length, and a ceiling that never gets in the way.
fn blocks_of(len: u64) -> Limits {
    Limits { block_min: len, block_max: len, headroom_blocks: u64::MAX, ..Limits::default() }
}

fn beat(name: &str, incarnation: Incarnation) -> Request {
    Request::KeepAlive { holder: holder(name), incarnation, progress: vec![(namespace(), 7)] }
}

fn give_back(name: &str, incarnation: Incarnation, block: &Block, used: u64) -> Request {
    let (_, unused) = block.span.take_front(used);
    let returned = Returned {
        block: block.clone(),
        used,
        burned: 0,
        unused: unused.into_iter().collect(),
        registered_end: None,
    };
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
    assert!(matches!(bench.allocate("a", incarnation, 3), Err(Refusal::Exhausted { .. })));
}

#[test]
fn one_seq_gets_one_block_also_from_the_next_leader() {
    let mut bench = Bench::new(blocks_of(10));
    let incarnation = bench.register("a", "1", 100);
    let block = bench.allocate("a", incarnation, 1).unwrap();
    assert_eq!(bench.allocate("a", incarnation, 1).unwrap(), block);
    bench.elect(2);
    assert_eq!(bench.allocate("a", incarnation, 1).unwrap(), block);
    assert_eq!(bench.allocate("a", incarnation, 3), Err(Refusal::Seq { expected: Seq(2), got: Seq(3) }));
    assert_eq!(bench.account().open, 10);
}

#[test]
fn a_lost_reply_is_settled_by_the_head_and_nothing_is_answered_before() {
    let mut bench = Bench::new(blocks_of(10));
    let incarnation = bench.register("a", "1", 100);
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
    let mut bench = Bench::new(blocks_of(10));
    let incarnation = bench.register("a", "1", 100);
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
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
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
fn a_new_start_of_a_holder_leaks_its_blocks_and_ends_the_rights_of_the_old_one() {
    let mut bench = Bench::new(blocks_of(10));
    let first = bench.register("a", "1", 100);
    let block = bench.allocate("a", first, 1).unwrap();
    assert_eq!(bench.register("a", "1", 100), first, "the same start, asked twice");
    let second = bench.register("a", "2", 100);
    assert!(second > first);
    assert_eq!(bench.account(), Account { allocated: 10, leaked: 10, ..Account::default() });
    assert!(matches!(bench.allocate("a", first, 2), Err(Refusal::Superseded { .. })));
    assert!(matches!(bench.ask(give_back("a", first, &block, 1)), Err(Refusal::Superseded { .. })));
}

#[test]
fn a_new_start_of_a_holder_gets_its_leaked_block_back_at_once() {
    let mut bench = Bench::new(blocks_of(10));
    let first = bench.register("a", "1", 100);
    let block = bench.allocate("a", first, 1).unwrap();
    let second = bench.register("a", "2", 100);
    let (again, leaked) = bench.allocate_leaked(allocate("a", second, 1));
    assert_eq!((again.span, leaked), (block.span, Some(block.generation)));
    assert!(again.generation > block.generation);
    assert_eq!(bench.account(), Account { allocated: 10, open: 10, ..Account::default() });
    let repeated = bench.allocate_leaked(allocate("a", second, 1));
    assert_eq!(repeated, (again, leaked), "the same seq gets the same answer, the leak included");
}

#[test]
fn a_silent_holders_block_rests_and_then_goes_to_whoever_asks_but_itself() {
    let mut bench = Bench::new(blocks_of(10));
    let (a, b) = (bench.register("a", "1", 100), bench.register("b", "1", 100));
    let block = bench.allocate("a", a, 1).unwrap();
    bench.wait(29_999);
    assert_eq!(bench.account().leaked, 0);
    bench.wait(1);
    assert_eq!(bench.account().leaked, 10);
    assert_eq!(bench.allocate_leaked(allocate("b", b, 1)).1, None, "it has not rested yet");
    bench.wait(600_000);
    let (own, leaked) = bench.allocate_leaked(allocate("a", a, 2));
    assert_eq!((own.span.start(), leaked), (20, None), "its holder may still be minting from it");
    let (taken, leaked) = bench.allocate_leaked(allocate("b", b, 2));
    assert_eq!((taken.span, leaked), (block.span, Some(block.generation)));
    assert_eq!(
        bench.ask(give_back("a", a, &block, 3)),
        Ok(Answer::Closed { blocks: 0 }),
        "it is not its own now"
    );
}

#[test]
fn a_repeated_seq_is_not_answered_with_a_block_that_has_leaked_since() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    bench.allocate("a", a, 1).unwrap();
    bench.wait(30_000);
    assert_eq!(bench.allocate("a", a, 1), Err(Refusal::Seq { expected: Seq(2), got: Seq(1) }));
    assert_eq!(bench.allocate("a", a, 2).unwrap().span.start(), 10);
}

#[test]
fn a_holder_that_is_heard_of_keeps_its_block_and_a_new_leader_gives_everyone_a_full_ttl() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    bench.allocate("a", a, 1).unwrap();
    for _ in 0..5 {
        bench.wait(20_000);
        let alive = Answer::Alive { epoch: Epoch(1), ceilings: vec![(namespace(), 100)] };
        assert_eq!(bench.ask(beat("a", a)), Ok(alive));
    }
    bench.wait(20_000);
    bench.elect(2);
    bench.wait(29_999);
    assert_eq!(bench.account().leaked, 0);
    bench.wait(1);
    assert_eq!(bench.account().leaked, 10);
}

#[test]
fn blocks_of_another_history_of_the_database_are_burned_not_reclaimed() {
    let mut bench = Bench::new(blocks_of(10));
    let first = bench.register("a", "1", 100);
    bench.allocate("a", first, 1).unwrap();
    let second = bench.register("a", "2", 100);
    let (fresh, leaked) = bench.allocate_leaked(allocate_for("a", second, 1, "7001:2"));
    assert_eq!((fresh.span.start(), leaked), (10, None));
    assert_eq!(bench.account(), Account { allocated: 20, open: 10, burned: 10, ..Account::default() });
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
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    let block = bench.allocate("a", a, 1).unwrap();
    let refused = |block: &Block, registered_end| {
        let block = block.clone();
        Returned { block, used: 0, burned: 10, unused: Vec::new(), registered_end: Some(registered_end) }
    };
    assert_eq!(refused(&block, Span::LIMIT + 1).check(), Err(ReturnedError::RegisteredEnd(Span::LIMIT + 1)));
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
fn a_capacity_may_grow_and_never_shrinks() {
    let mut bench = Bench::new(blocks_of(10));
    let incarnation = bench.register("a", "1", 10);
    bench.allocate("a", incarnation, 1).unwrap();
    assert!(matches!(bench.allocate("a", incarnation, 2), Err(Refusal::Exhausted { .. })));
    assert!(matches!(bench.ask(register("a", "1", 9)), Err(Refusal::CapacityShrunk { .. })));
    bench.register("a", "1", 15);
    let reached = |allocated| matches!(allocated, Err(Refusal::CeilingReached { .. }));
    assert!(reached(bench.allocate("a", incarnation, 2)), "holders were told that nothing is up there");
    bench.wait(30_000);
    assert_eq!(bench.allocate("a", incarnation, 2).unwrap().span, Span::new(10, 5).unwrap());
}

#[test]
fn numbers_above_the_ceiling_are_allocated_only_when_every_holder_knows_or_has_stopped_trusting() {
    let mut bench = Bench::new(Limits { headroom_blocks: 1, ..blocks_of(10) });
    let a = bench.register("a", "1", 1_000);
    let told = |bench: &mut Bench| match bench.ask(beat("a", a)) {
        Ok(Answer::Alive { ceilings, .. }) => ceilings[0].1,
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&mut bench), 15, "a 64th of the capacity");
    assert_eq!(bench.allocate("a", a, 1).unwrap().span.end(), 10);
    bench.wait(100);
    assert_eq!(bench.allocate("a", a, 2).unwrap().span.end(), 15, "cut at the ceiling");
    assert_eq!(told(&mut bench), 25, "announced when half of the room was used");
    bench.wait(29_999);
    told(&mut bench);
    assert!(matches!(bench.allocate("a", a, 3), Err(Refusal::CeilingReached { .. })));
    bench.elect(2);
    bench.wait(29_999);
    told(&mut bench);
    let early = bench.allocate("a", a, 3);
    assert!(matches!(early, Err(Refusal::CeilingReached { .. })), "a new leader counts from its take-over");
    bench.wait(1);
    assert_eq!(bench.allocate("a", a, 3).unwrap().span, Span::new(15, 10).unwrap());
}

#[test]
fn a_leader_with_a_shorter_holder_ttl_keeps_the_promises_of_the_one_before() {
    let limits = Limits { headroom_blocks: 1, ..blocks_of(10) };
    let mut bench = Bench::new(limits);
    let a = bench.register("a", "1", 1_000);
    bench.allocate("a", a, 1).unwrap();
    bench.allocate("a", a, 2).unwrap();
    bench.core = Core::new(Limits { holder_ttl_ms: 1_000, ..limits });
    for epoch in [2, 3] {
        bench.elect(epoch);
        bench.wait(29_999);
        bench.ask(beat("a", a)).unwrap();
        assert!(matches!(bench.allocate("a", a, 3), Err(Refusal::CeilingReached { .. })));
    }
    bench.wait(1);
    bench.allocate("a", a, 3).unwrap();
}

#[test]
fn a_deposed_leader_that_does_not_know_it_keeps_no_old_ceiling_fresh() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    bench.ledger.leader = Epoch(2);
    assert_eq!(bench.ask(beat("a", a)), Err(Refusal::Unknown));
    assert_eq!(bench.core.serving(), None);
}

#[test]
fn a_reservation_gets_what_it_asks_for_and_keeps_it_until_it_is_given_up() {
    let mut bench = Bench::new(Limits { block_max: 50, ..blocks_of(10) });
    let a = bench.register("a", "1", 1_000);
    let leaked = bench.allocate("a", a, 1).unwrap();
    bench.register("a", "2", 1_000);
    bench.wait(600_000);
    let reserve = |instance: &str, reserved| Request::Register {
        holder: holder("r"),
        instance: Instance::new(instance).unwrap(),
        namespaces: vec![(namespace(), 1_000)],
        reserved,
    };
    bench.ask(reserve("1", true)).unwrap();
    let asked = |seq, wanted_len| Request::Allocate {
        holder: holder("r"),
        incarnation: Incarnation(1),
        seq: Seq(seq),
        namespace: namespace(),
        wanted_len,
        store: StoreEpoch::new("7001:1").unwrap(),
    };
    let (first, from) = bench.allocate_leaked(asked(1, 37));
    assert_eq!((first.span.len(), from), (37, None), "as long as asked, and surely unused");
    assert_eq!(bench.allocate_leaked(asked(2, 99)).0.span.len(), 50, "within the longest block");
    bench.wait(1_000_000_000);
    assert_eq!((bench.account().open, bench.account().leaked), (87, 10), "silence ends no reservation");
    bench.ask(reserve("2", false)).unwrap();
    assert_eq!((bench.account().open, bench.account().leaked), (0, 97));
    let b = bench.register("b", "1", 1_000);
    assert_eq!(bench.allocate("b", b, 1).unwrap().span, leaked.span, "the one that has rested");
    bench.wait(600_000);
    assert_eq!(bench.allocate_leaked(allocate("b", b, 2)).0.span, first.span, "and then the reservation's");
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
                assert!(txn.writes.len() <= crate::ledger::MAX_TXN_WRITES);
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
    let namespaces = vec![(namespace(), 100), (other.clone(), 100)];
    let instance = Instance::new("1").unwrap();
    bench.ask(Request::Register { holder: holder("a"), instance, namespaces, reserved: false }).unwrap();
    bench.allocate("a", Incarnation(1), 1).unwrap();
    let Request::Allocate { holder, incarnation, seq, wanted_len, store, .. } =
        allocate("a", Incarnation(1), 1)
    else {
        panic!("an allocation");
    };
    let asked = Request::Allocate { holder, incarnation, seq, namespace: other, wanted_len, store };
    assert_eq!(bench.ask(asked), Err(Refusal::Seq { expected: Seq(2), got: Seq(1) }));
}

#[test]
fn the_rest_of_a_reclaimed_block_goes_out_as_leaked_again() {
    let mut bench = Bench::new(blocks_of(10));
    let first = bench.register("a", "1", 100);
    bench.allocate("a", first, 1).unwrap();
    let second = bench.register("a", "2", 100);
    let (again, _) = bench.allocate_leaked(allocate("a", second, 1));
    bench.ask(give_back("a", second, &again, 4)).unwrap();
    let b = bench.register("b", "1", 100);
    let (rest, leaked) = bench.allocate_leaked(allocate("b", b, 1));
    assert_eq!(rest.span, Span::new(4, 6).unwrap());
    assert_eq!(leaked, Some(again.generation), "the first start may still have inserts on the way");
    bench.ask(give_back("b", b, &rest, 1)).unwrap();
    let (next, leaked) = bench.allocate_leaked(allocate_for("b", b, 2, "7001:2"));
    assert_eq!((next.span.start(), leaked), (10, None), "what may have been acknowledged and lost is burned");
    assert_eq!((bench.account().burned, bench.account().free), (5, 0));
}

#[test]
fn a_part_returned_under_another_history_of_the_database_goes_out_as_leaked() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    let block = bench.allocate("a", a, 1).unwrap();
    let in_hand = |bench: &mut Bench| match bench.ask(Request::Status) {
        Ok(Answer::Status(report)) => report.namespaces[0].in_hand,
        other => panic!("{other:?}"),
    };
    bench.ask(beat("a", a)).unwrap();
    assert_eq!(in_hand(&mut bench), 7);
    bench.ask(give_back("a", a, &block, 4)).unwrap();
    assert_eq!(in_hand(&mut bench), 0, "what was reported before is given back");
    let (rest, leaked) = bench.allocate_leaked(allocate_for("a", a, 2, "7001:2"));
    assert_eq!((rest.span.start(), leaked), (4, Some(block.generation)));
}

#[test]
fn a_leader_that_stood_still_gives_everyone_a_full_ttl() {
    let mut bench = Bench::new(blocks_of(10));
    let a = bench.register("a", "1", 100);
    bench.allocate("a", a, 1).unwrap();
    bench.now = Millis(90_000);
    let effects = bench.core.step(bench.now, Event::Woke);
    bench.settle(effects);
    bench.wait(29_999);
    assert_eq!(bench.account().leaked, 0);
    bench.wait(1);
    assert_eq!(bench.account().leaked, 10);
}

#[test]
fn a_silent_holder_without_blocks_makes_room_for_a_new_one() {
    let mut bench = Bench::new(Limits { holders: 2, ..blocks_of(10) });
    let a = bench.register("a", "1", 100);
    bench.allocate("a", a, 1).unwrap();
    bench.register("b", "1", 100);
    assert!(matches!(bench.ask(register("c", "1", 100)), Err(Refusal::TooMany { what: "holders", .. })));
    bench.now = Millis(30_000);
    assert_eq!(bench.register("c", "1", 100), Incarnation(1));
    assert!(bench.ledger.records.contains_key(&Key::Holder(holder("a"))), "it has a block");
    assert!(!bench.ledger.records.contains_key(&Key::Holder(holder("b"))));
}
