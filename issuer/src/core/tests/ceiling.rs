//! Tests of the ceiling: when it is announced to holders, and when it is used.

use super::*;

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
