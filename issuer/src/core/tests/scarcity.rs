//! Tests of the end of a namespace: fair shares, and when "exhausted" may be answered.

use super::*;

/// Returns an issuer whose default blocks are large compared with the namespace.
fn bench() -> Bench {
    Bench::new(Limits::default())
}

fn is_exhausted(allocated: &Result<Block, Refusal>) -> bool {
    matches!(allocated, Err(Refusal::Exhausted { .. }))
}

fn is_in_other_hands(allocated: &Result<Block, Refusal>) -> bool {
    matches!(allocated, Err(Refusal::InOtherHands { .. }))
}

/// Returns whether the answer to a beat reports a starving holder, and whether it reports scarcity.
fn told(bench: &mut Bench, beat: Request) -> (bool, bool) {
    match bench.ask(beat) {
        Ok(Answer::Alive { starving, scarce, .. }) => (starving == [namespace()], scarce),
        other => panic!("{other:?}"),
    }
}

/// Allocates until nothing is left, and returns the last seq that got a block.
fn take_all(bench: &mut Bench, holder: &str, incarnation: Incarnation) -> u64 {
    (1..).take_while(|seq| bench.allocate(holder, incarnation, *seq).is_ok()).last().unwrap_or(0)
}

#[test]
fn the_first_to_ask_gets_half_of_its_share_and_not_all() {
    let mut bench = bench();
    let alone = bench.register("a", "1", 620);
    assert_eq!(bench.allocate("a", alone, 1).unwrap().span.len(), 310, "half of it for the only holder");
    let other = bench.register("b", "1", 620);
    assert_eq!(bench.allocate("b", other, 1).unwrap().span.len(), 77);
    // A reservation gets the length that it asks for, and does not count as a minting holder.
    bench.ask(reserve("reserved", 620, true)).unwrap();
    assert_eq!(bench.allocate("b", other, 2).unwrap().span.len(), 58);
    assert_eq!(bench.allocate("r", Incarnation(1), 1).unwrap().span.len(), 175);
    assert!(is_in_other_hands(&bench.allocate("b", other, 3)));
}

#[test]
fn a_large_namespace_is_not_shared_before_its_end() {
    let mut bench = bench();
    let a = bench.register("a", "1", 4_000);
    bench.register("b", "1", 4_000);
    let lens: Vec<_> = (1..=4).map(|seq| bench.allocate("a", a, seq).unwrap().span.len()).collect();
    assert_eq!(lens, [1_000, 750, 562, 422], "never more than half of what one of two may have");
    bench.wait(30_000);
    bench.ask(beat_of("a", a, 4, 9)).unwrap();
    assert_eq!(bench.allocate("a", a, 5).unwrap().span.len(), 633, "the other one is silent by now");
}

#[test]
fn exhausted_is_said_when_every_holder_has_used_what_it_has_and_not_before() {
    let mut bench = bench();
    let [a, b] = ["a", "b"].map(|name| bench.register(name, "1", 20));
    bench.allocate("b", b, 1).unwrap();
    let last = take_all(&mut bench, "a", a);
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)), "nobody has reported");
    assert_eq!(told(&mut bench, beat_of("a", a, last, 0)), (false, true), "one does not give back to itself");
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)), "b has not reported");
    assert_eq!(told(&mut bench, beat_of("b", b, 0, 0)), (true, true));
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)), "that report is older than b's block");
    bench.ask(beat_of("b", b, 1, 3)).unwrap();
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)), "b has some");
    bench.ask(beat_of("b", b, 1, 0)).unwrap();
    assert!(is_exhausted(&bench.allocate("a", a, last + 1)));
    assert!(!told(&mut bench, beat_of("b", b, 1, 0)).0, "nobody starves any more");
}

#[test]
fn what_others_give_back_goes_to_the_one_that_starves() {
    let mut bench = bench();
    let [a, b] = ["a", "b"].map(|name| bench.register(name, "1", 20));
    let idle = bench.allocate("b", b, 1).unwrap();
    let last = take_all(&mut bench, "a", a);
    bench.ask(beat_of("a", a, last, 0)).unwrap();
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)));
    assert!(told(&mut bench, beat_of("b", b, 1, idle.span.len())).0);
    bench.ask(give_back("b", b, &idle, 1)).unwrap();
    let got = bench.allocate("a", a, last + 1).unwrap();
    assert_eq!(got.span.start(), idle.span.start() + 1);
    assert!(!told(&mut bench, beat_of("b", b, 1, 0)).0, "it starves no more");
}

#[test]
fn a_silent_holders_numbers_are_in_other_hands_until_they_are_reclaimed_and_used() {
    let mut bench = bench();
    let [a, b] = ["a", "b"].map(|name| bench.register(name, "1", 20));
    let lost = bench.allocate("b", b, 1).unwrap();
    let last = take_all(&mut bench, "a", a);
    for _ in 0..3 {
        bench.wait(12_000);
        bench.ask(beat_of("a", a, last, 0)).unwrap();
        assert!(is_in_other_hands(&bench.allocate("a", a, last + 1)));
    }
    assert_eq!(bench.account().leaked, lost.span.len());
    for _ in 0..30 {
        bench.wait(20_000);
        bench.ask(beat_of("a", a, last, 0)).unwrap();
    }
    let (block, leaked) = bench.allocate_leaked(allocate("a", a, last + 1));
    assert_eq!((block.span, leaked), (lost.span, Some(lost.generation)));
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 2)), "the report is older than that block");
    bench.ask(beat_of("a", a, last + 1, 0)).unwrap();
    assert!(is_exhausted(&bench.allocate("a", a, last + 2)));
    bench.elect(2);
    assert!(is_in_other_hands(&bench.allocate("a", a, last + 2)), "the new leader has heard of nobody");
    bench.ask(beat_of("a", a, last + 1, 0)).unwrap();
    assert!(is_exhausted(&bench.allocate("a", a, last + 2)));
}

#[test]
fn open_reservations_hold_their_numbers_on_purpose() {
    let mut bench = bench();
    let a = bench.register("a", "1", 20);
    bench.ask(reserve("reserved", 20, true)).unwrap();
    bench.allocate("r", Incarnation(1), 1).unwrap();
    assert!(is_exhausted(&bench.allocate("a", a, 1)), "all of them are reserved");
    bench.ask(reserve("given-up", 20, false)).unwrap();
    assert!(is_in_other_hands(&bench.allocate("a", a, 1)), "they come back");
}
