//! Tests of ceilings that an issuer of the release before has left in the ledger.

use super::*;

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
