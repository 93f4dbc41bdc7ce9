//! Tests of leaked blocks: where they go when a holder is gone or suspended, or ends a reservation.

use super::*;

#[test]
fn a_new_start_of_a_holder_leaks_its_blocks_ends_the_rights_of_the_old_one_and_gets_them_back_at_once() {
    let (mut bench, first) = Bench::with_holder();
    let block = bench.allocate("a", first, 1).unwrap();
    assert_eq!(bench.register("a", "1", 100), first, "the same start, asked twice");
    let second = bench.register("a", "2", 100);
    assert!(second > first);
    assert_eq!(bench.account(), Account { allocated: 10, leaked: 10, ..Account::default() });
    assert!(matches!(bench.allocate("a", first, 2), Err(Refusal::Superseded { .. })));
    assert!(matches!(bench.ask(give_back("a", first, &block, 1)), Err(Refusal::Superseded { .. })));
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
    let (mut bench, a) = Bench::with_holder();
    bench.allocate("a", a, 1).unwrap();
    bench.wait(30_000);
    assert_eq!(bench.allocate("a", a, 1), Err(Refusal::Seq { expected: Seq(2), got: Seq(1) }));
    assert_eq!(bench.allocate("a", a, 2).unwrap().span.start(), 10);
}

#[test]
fn a_holder_that_is_heard_of_keeps_its_block_and_a_leader_that_is_new_or_woke_gives_a_full_ttl() {
    let (mut bench, a) = Bench::with_holder();
    bench.allocate("a", a, 1).unwrap();
    for _ in 0..5 {
        bench.wait(20_000);
        let alive = Answer::Alive { epoch: Epoch(1), starving: Vec::new(), scarce: false, mark: Mark(0) };
        assert_eq!(bench.ask(beat("a", a)), Ok(alive));
    }
    bench.wait(20_000);
    bench.elect(2);
    bench.wait(29_999);
    assert_eq!(bench.account().leaked, 0);
    bench.wait(1);
    assert_eq!(bench.account().leaked, 10);
    bench.allocate("a", a, 2).unwrap();
    // The process was suspended: beats may be waiting to be read.
    bench.now = Millis(bench.now.0 + 90_000);
    let effects = bench.core.step(bench.now, Event::Woke);
    bench.settle(effects);
    bench.wait(29_999);
    assert_eq!(bench.account().leaked, 10);
    bench.wait(1);
    assert_eq!(bench.account().leaked, 20);
}

#[test]
fn blocks_of_another_history_of_the_database_are_burned_not_reclaimed() {
    let (mut bench, first) = Bench::with_holder();
    bench.allocate("a", first, 1).unwrap();
    let second = bench.register("a", "2", 100);
    let (fresh, leaked) = bench.allocate_leaked(allocate_for("a", second, 1, "7001:2"));
    assert_eq!((fresh.span.start(), leaked), (10, None));
    assert_eq!(bench.account(), Account { allocated: 20, open: 10, burned: 10, ..Account::default() });
}

#[test]
fn a_reservation_gets_what_it_asks_for_and_keeps_it_until_it_is_given_up() {
    let mut bench = Bench::new(Limits { block_max: 50, ..blocks_of(10) });
    let a = bench.register("a", "1", 1_000);
    let leaked = bench.allocate("a", a, 1).unwrap();
    bench.register("a", "2", 1_000);
    bench.wait(600_000);
    bench.ask(reserve("1", 1_000, true)).unwrap();
    let asked = |seq, wanted_len| allocate_len("r", Incarnation(1), seq, wanted_len, "7001:1");
    let (first, from) = bench.allocate_leaked(asked(1, 37));
    assert_eq!((first.span.len(), from), (37, None), "as long as asked, and surely unused");
    assert_eq!(bench.allocate_leaked(asked(2, 99)).0.span.len(), 50, "within the longest block");
    bench.wait(1_000_000_000);
    assert_eq!((bench.account().open, bench.account().leaked), (87, 10), "silence ends no reservation");
    bench.ask(reserve("2", 1_000, false)).unwrap();
    assert_eq!((bench.account().open, bench.account().leaked), (0, 97));
    let b = bench.register("b", "1", 1_000);
    assert_eq!(bench.allocate("b", b, 1).unwrap().span, leaked.span, "the one that has rested");
    bench.wait(600_000);
    assert_eq!(bench.allocate_leaked(allocate("b", b, 2)).0.span, first.span, "and then the reservation's");
}

#[test]
fn the_rest_of_a_reclaimed_block_goes_out_as_leaked_again_and_is_reclaimed_once() {
    let mut bench = Bench::new(blocks_of(10));
    let ask = |bench: &mut Bench, request| match bench.ask(request) {
        Ok(Answer::Allocated { block, leaked, is_reclaimed, .. }) => (block, leaked, is_reclaimed),
        other => panic!("{other:?}"),
    };
    let first = bench.register("a", "1", 100);
    assert!(!ask(&mut bench, allocate("a", first, 1)).2, "it is fresh");
    let second = bench.register("a", "2", 100);
    let (again, _, is_reclaimed) = ask(&mut bench, allocate("a", second, 1));
    assert!(is_reclaimed);
    assert!(!ask(&mut bench, allocate("a", second, 1)).2, "the same request counts once");
    bench.ask(give_back("a", second, &again, 4)).unwrap();
    let b = bench.register("b", "1", 100);
    let (rest, leaked, is_reclaimed) = ask(&mut bench, allocate("b", b, 1));
    assert_eq!((rest.span, is_reclaimed), (Span::new(4, 6).unwrap(), false), "it was returned");
    assert_eq!(leaked, Some(again.generation), "the first start may still have inserts on the way");
    bench.ask(give_back("b", b, &rest, 1)).unwrap();
    let (next, leaked) = bench.allocate_leaked(allocate_for("b", b, 2, "7001:2"));
    assert_eq!((next.span.start(), leaked), (10, None), "what may have been acknowledged and lost is burned");
    assert_eq!((bench.account().burned, bench.account().free), (5, 0));
}

#[test]
fn a_part_returned_under_another_history_of_the_database_goes_out_as_leaked() {
    let (mut bench, a) = Bench::with_holder();
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
fn a_silent_holder_without_blocks_makes_room_for_a_new_one() {
    let mut bench = Bench::new(Limits { holders: 2, ..blocks_of(10) });
    let a = bench.register("a", "1", 100);
    bench.allocate("a", a, 1).unwrap();
    bench.register("b", "1", 100);
    assert_eq!(bench.ask(register("c", "1", 100)), Err(Refusal::TooMany("holders: at most 2".to_owned())));
    bench.now = Millis(30_000);
    assert_eq!(bench.register("c", "1", 100), Incarnation(1));
    assert!(bench.ledger.records.contains_key(&Key::Holder(holder("a"))), "it has a block");
    assert!(!bench.ledger.records.contains_key(&Key::Holder(holder("b"))));
}
