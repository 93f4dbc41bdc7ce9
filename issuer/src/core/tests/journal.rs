//! Tests of the journal: with any number of slots, the next leader knows every allocation.

use super::*;

/// Holders allocate, one returns a block, and another leader must repeat every last answer.
fn the_next_leader_knows(limits: Limits) {
    let mut bench = Bench::new(limits);
    let holders: Vec<_> = (0..150).map(|n| format!("h{n}")).collect();
    for holder in &holders {
        bench.register(holder, "1", 1 << 30);
    }
    let mut last = BTreeMap::new();
    for seq in 1..=6 {
        // All at once: the first makes a batch of its own, and the others share the next ones.
        let asking = holders.iter().filter(|holder| seq < 4 || holder.ends_with(['1', '2']));
        let effects: Vec<_> =
            asking.clone().map(|h| bench.arrive(allocate(h, Incarnation(1), seq))).collect();
        let answers = bench.settle(effects.concat());
        for (holder, answer) in asking.zip(answers) {
            let Ok(Answer::Allocated { block, .. }) = answer else { panic!("{answer:?}") };
            last.insert(holder.clone(), (seq, block));
        }
        if seq == 2 {
            let (_, block) = &last["h7"];
            bench.ask(give_back("h7", Incarnation(1), block, block.span.len())).unwrap();
        }
    }
    bench.elect(2);
    for (holder, (seq, block)) in last {
        assert_eq!(bench.allocate(&holder, Incarnation(1), seq), Ok(block), "{holder} with {limits:?}");
    }
}

#[test]
fn whatever_the_slots_the_next_leader_knows_every_allocation() {
    for journal_slots in [0, 1, 2, 3, 128] {
        for journal_saves in [0, 1, 16] {
            for journal_recent in [0, 1, 4] {
                let limits = Limits { journal_recent, journal_slots, journal_saves, ..blocks_of(10) };
                the_next_leader_knows(limits);
            }
        }
    }
}

#[test]
fn a_leader_with_another_number_of_slots_overwrites_nothing_that_is_needed() {
    for (before, after) in [(2, 3), (3, 2), (4, 8), (8, 4), (1, 128), (3, 0)] {
        let limits =
            |journal_slots| Limits { journal_recent: 0, journal_slots, journal_saves: 0, ..blocks_of(10) };
        let mut bench = Bench::new(limits(before));
        for holder in ["a", "b", "c", "d"] {
            bench.register(holder, "1", 1 << 30);
        }
        let mut last = BTreeMap::new();
        for holder in ["a", "b"] {
            last.insert(holder, (1, bench.allocate(holder, Incarnation(1), 1).unwrap()));
        }
        bench.core = Core::new(limits(after));
        bench.elect(2);
        for seq in 1..=8 {
            for holder in ["c", "d"] {
                last.insert(holder, (seq, bench.allocate(holder, Incarnation(1), seq).unwrap()));
            }
        }
        bench.elect(3);
        for (holder, (seq, block)) in last {
            assert_eq!(
                bench.allocate(holder, Incarnation(1), seq),
                Ok(block),
                "{holder}: {before}, then {after}"
            );
        }
    }
}

#[test]
fn few_allocations_are_a_write_of_head_alone_and_a_batch_of_many_is_one_write_beside_it() {
    let mut bench = Bench::new(Limits { journal_recent: 2, ..blocks_of(10) });
    for holder in ["a", "b", "c"] {
        bench.register(holder, "1", 1 << 30);
    }
    let first = bench.arrive(allocate("a", Incarnation(1), 1));
    for holder in ["b", "c"] {
        assert!(bench.arrive(allocate(holder, Incarnation(1), 1)).is_empty(), "it waits for the first");
    }
    let [Effect::Commit { txn, .. }] = &first[..] else { panic!("{first:?}") };
    let [Write::Put(Record::Head(head))] = &txn.writes[..] else { panic!("{:?}", txn.writes) };
    assert_eq!(head.recent.len(), 1);
    let outcome = bench.ledger.apply(txn);
    let effects = bench.core.step(bench.now, Event::Committed(outcome));
    let Some(Effect::Commit { txn, .. }) = effects.last() else { panic!("{effects:?}") };
    let [Write::Put(Record::Head(head)), Write::Put(Record::Journal(_, journal))] = &txn.writes[..] else {
        panic!("{:?}", txn.writes)
    };
    assert!(head.recent.is_empty(), "the journal has them all");
    assert_eq!(journal.entries.len(), 3);
}

#[test]
fn a_holder_that_was_forgotten_and_came_back_has_nothing_of_its_former_self() {
    let mut bench = Bench::new(Limits { holders: 1, journal_recent: 0, ..blocks_of(10) });
    let a = bench.register("a", "1", 1 << 30);
    let block = bench.allocate("a", a, 1).unwrap();
    bench.ask(give_back("a", a, &block, block.span.len())).unwrap();
    bench.wait(30_000);
    bench.register("b", "1", 1 << 30);
    bench.wait(30_000);
    let again = bench.register("a", "2", 1 << 30);
    bench.elect(2);
    assert_ne!(bench.allocate("a", again, 1).unwrap(), block, "the journal still has the former one's entry");
}
