//! Tests of what the next leader knows, also from a ledger with journals of the release before.

use numbers::Batch;

use super::*;

#[test]
fn the_next_leader_knows_every_allocation() {
    let mut bench = Bench::new(blocks_of(10));
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
        assert_eq!(bench.allocate(&holder, Incarnation(1), seq), Ok(block), "{holder}");
    }
}

#[test]
fn what_the_release_before_has_journalled_is_known_to_every_later_leader() {
    let mut bench = Bench::new(blocks_of(10));
    let holders = ["a", "b"].map(|name| (name, bench.register(name, "1", 1_000)));
    let before = bench.ledger.records.clone();
    let blocks = holders.map(|(name, incarnation)| bench.allocate(name, incarnation, 1).unwrap());
    let [first, second] = blocks.clone().map(|block| {
        let open = OpenBlock { block, store: StoreEpoch::new("7001:1").unwrap(), contested: false };
        Entry { holder: holder("a"), seq: Seq(1), epoch: Epoch(1), leaked: None, open }
    });
    let second = Entry { holder: holder("b"), ..second };
    // As that release leaves it: one is in a journal, the other in `head`, and an older journal names
    // a holder that was forgotten since.
    for (name, _) in holders {
        let key = Key::Holder(holder(name));
        bench.ledger.records.insert(key.clone(), before[&key].clone());
    }
    let Some(Record::Head(head)) = bench.ledger.records.get_mut(&Key::Head) else { panic!("no head") };
    head.recent = vec![second.clone()];
    let former = Entry { seq: Seq(9), ..second };
    for (slot, batch, entry) in [(0, Batch(0), former), (1, head.batch, first)] {
        let journal = Record::Journal(slot, Journal { batch, entries: vec![entry] });
        bench.ledger.records.insert(journal.key(), journal);
    }
    for epoch in [2, 3] {
        bench.elect(epoch);
        for ((name, incarnation), block) in holders.iter().zip(&blocks) {
            assert_eq!(bench.allocate(name, *incarnation, 1).as_ref(), Ok(block), "{name} in epoch {epoch}");
        }
    }
    let next = holders.map(|(name, incarnation)| bench.allocate(name, incarnation, 2).unwrap());
    bench.elect(4);
    for ((name, incarnation), block) in holders.into_iter().zip(next) {
        assert_eq!(bench.allocate(name, incarnation, 2), Ok(block), "{name}");
    }
}

#[test]
fn a_holder_that_was_forgotten_and_came_back_has_nothing_of_its_former_self() {
    let mut bench = Bench::new(Limits { holders: 1, ..blocks_of(10) });
    let a = bench.register("a", "1", 1 << 30);
    let block = bench.allocate("a", a, 1).unwrap();
    bench.ask(give_back("a", a, &block, block.span.len())).unwrap();
    bench.wait(30_000);
    bench.register("b", "1", 1 << 30);
    bench.wait(30_000);
    let again = bench.register("a", "2", 1 << 30);
    bench.elect(2);
    assert_ne!(bench.allocate("a", again, 1).unwrap(), block);
}
