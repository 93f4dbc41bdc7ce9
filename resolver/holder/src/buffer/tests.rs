//! Tests of the buffer with claims, fates and new blocks in any order.

use std::collections::BTreeSet;

use numbers::Namespace;
use proptest::prelude::*;

use super::*;

fn entered(start: u64, len: u64, generation: u64, entry: u64) -> Entered {
    let (namespace, span) = (Namespace::new("web").unwrap(), Span::new(start, len).unwrap());
    let block = Block { namespace, span, generation: Generation(generation) };
    Entered { block, entry: EntryId(entry), history: Arc::new(history(1)) }
}

fn history(timeline: u32) -> StoreEpoch {
    StoreEpoch::new(format!("7001:{timeline}")).unwrap()
}

fn balances(closed: &Closed) -> bool {
    let unused: u64 = closed.unused.iter().map(|span| span.len()).sum();
    closed.used + closed.burned + unused == closed.block.span.len()
}

#[test]
fn two_blocks_are_wanted_and_the_second_only_after_the_refill_point() {
    let mut buffer = Buffer::default();
    assert!(buffer.wants_block(200));
    buffer.add(entered(0, 10, 1, 1), None);
    assert!(!buffer.wants_block(200));
    let claims: Vec<_> = (0..2).filter_map(|_| buffer.claim()).collect();
    assert_eq!(claims.len(), 2);
    assert!(buffer.wants_block(200));
    buffer.add(entered(10, 10, 2, 2), None);
    assert!(!buffer.wants_block(0));
    assert_eq!(buffer.in_hand(), 18);
}

#[test]
fn a_number_that_came_back_is_used_first_and_burned_ones_never() {
    let mut buffer = Buffer::default();
    buffer.add(entered(5, 3, 1, 1), None);
    let (first, second) = (buffer.claim().unwrap(), buffer.claim().unwrap());
    buffer.settle(first, Fate::Unused);
    buffer.settle(second, Fate::Burned);
    let numbers: Vec<_> = std::iter::from_fn(|| buffer.claim()).collect();
    assert_eq!(numbers.iter().map(|claim| claim.number).collect::<Vec<_>>(), [5, 7]);
    assert_eq!(buffer.take_closed(), [], "claims are still open");
    numbers.into_iter().for_each(|claim| buffer.settle(claim, Fate::Used));
    let closed = buffer.take_closed();
    assert_eq!((closed[0].used, closed[0].burned, closed[0].unused.len()), (2, 1, 0));
}

#[test]
fn of_a_reclaimed_block_only_the_gaps_are_claimed_and_the_rest_counts_as_used() {
    let span = |start, len| Span::new(start, len).unwrap();
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 10, 2, 1), Some(vec![span(1, 1), span(4, 3)]));
    assert_eq!(buffer.in_hand(), 4);
    let claims: Vec<_> = (0..2).filter_map(|_| buffer.claim()).collect();
    assert!(claims.iter().all(|claim| claim.reclaimed));
    assert_eq!(claims.iter().map(|claim| claim.number).collect::<Vec<_>>(), [1, 4]);
    claims.into_iter().for_each(|claim| buffer.settle(claim, Fate::Unused));
    let closed = buffer.take_all().remove(0);
    assert!(balances(&closed));
    assert_eq!((closed.used, closed.unused), (6, vec![span(1, 1), span(4, 3)]));

    buffer.add(entered(20, 10, 3, 2), Some(Vec::new()));
    assert_eq!(buffer.claim(), None);
    assert_eq!(buffer.take_closed()[0].used, 10, "a block without gaps closes at once");
}

#[test]
fn numbers_that_find_the_pool_full_go_back_with_their_block() {
    let mut buffer = Buffer::default();
    let len = POOL_MAX as u64 + 3;
    buffer.add(entered(0, len, 1, 1), None);
    let claims: Vec<_> = std::iter::from_fn(|| buffer.claim()).collect();
    claims.into_iter().for_each(|claim| buffer.settle(claim, Fate::Unused));
    assert_eq!((buffer.pooled(), buffer.overflowed), (POOL_MAX as u64, 3));
    let again: Vec<_> = std::iter::from_fn(|| buffer.claim()).collect();
    assert_eq!(again.len(), POOL_MAX, "the pool is used before anything else");
    again.into_iter().for_each(|claim| buffer.settle(claim, Fate::Used));
    let closed = buffer.take_closed().remove(0);
    assert_eq!((closed.used, closed.unused), (len - 3, vec![Span::new(len - 3, 3).unwrap()]));
}

#[test]
fn a_block_that_a_lost_ledger_allocated_again_keeps_an_account_of_its_own() {
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 2, 1, 1), None);
    let first: Vec<_> = (0..2).filter_map(|_| buffer.claim()).collect();
    buffer.add(entered(0, 2, 1, 2), None);
    first.into_iter().for_each(|claim| buffer.settle(claim, Fate::Used));
    assert_eq!(buffer.take_closed()[0].entry, EntryId(1));
    assert_eq!(buffer.in_hand(), 2);
}

#[test]
fn the_numbers_of_a_history_that_has_ended_are_given_up_and_no_others() {
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 10, 1, 1), None);
    buffer.add(Entered { history: Arc::new(history(2)), ..entered(10, 10, 2, 2) }, None);
    let (used, unused, open) = (buffer.claim().unwrap(), buffer.claim().unwrap(), buffer.claim().unwrap());
    buffer.settle(used, Fate::Used);
    buffer.settle(unused, Fate::Unused);
    assert_eq!(buffer.give_up(&history(1)), 8, "seven that were never claimed and the one in the pool");
    assert_eq!(buffer.give_up(&history(1)), 0);
    assert_eq!(buffer.claim().map(|claim| claim.number), Some(10));
    assert_eq!(buffer.take_closed(), [], "a claim is open");
    buffer.settle(open, Fate::Burned);
    let closed = buffer.take_closed().remove(0);
    assert_eq!((closed.entry, closed.used, closed.burned, closed.unused.len()), (EntryId(1), 1, 9, 0));
}

proptest! {
    /// Any order of claims, fates and new blocks: no number is claimed twice at a time, and at the
    /// end every number is accounted for.
    #[test]
    fn numbers_are_claimed_once_and_accounts_balance(steps in prop::collection::vec((0_u8..5, any::<u8>()), 0..400)) {
        let mut buffer = Buffer::default();
        let (mut out, mut dead, mut blocks) = (Vec::new(), BTreeSet::new(), 0_u64);
        let mut closed = Vec::new();
        for (step, choice) in steps {
            match step {
                0 if buffer.wants_block(0) => {
                    buffer.add(entered(blocks * 7, 7, blocks + 1, blocks), None);
                    blocks += 1;
                }
                0 | 1 => if let Some(claim) = buffer.claim() {
                    prop_assert!(!dead.contains(&claim.number), "{} was used", claim.number);
                    prop_assert!(out.iter().all(|other: &Claim| other.number != claim.number));
                    out.push(claim);
                },
                2 | 3 if !out.is_empty() => {
                    let claim = out.swap_remove(usize::from(choice) % out.len());
                    let fate = [Fate::Used, Fate::Unused, Fate::Burned][usize::from(choice) % 3];
                    if fate != Fate::Unused { dead.insert(claim.number); }
                    buffer.settle(claim, fate);
                }
                _ => closed.extend(buffer.take_closed()),
            }
        }
        out.into_iter().for_each(|claim| buffer.settle(claim, Fate::Used));
        closed.extend(buffer.take_all());
        prop_assert!(closed.iter().all(balances));
        prop_assert_eq!(closed.iter().map(|one| one.block.span.len()).sum::<u64>(), blocks * 7);
        for one in &closed {
            let numbers = one.unused.iter().flat_map(|span| span.start()..span.end());
            for number in numbers {
                prop_assert!(!dead.contains(&number), "{number} is not unused");
            }
        }
    }
}

#[test]
fn what_is_kept_and_what_is_unused_make_up_the_block() {
    let span = |start, len| Span::new(start, len).unwrap();
    let kept = |unused: &[Span]| {
        let Entered { block, entry, .. } = entered(10, 10, 1, 1);
        Closed { block, entry, used: 0, burned: 0, unused: unused.to_vec() }.kept()
    };
    assert_eq!(kept(&[]), [span(10, 10)]);
    assert_eq!(kept(&[span(10, 10)]), []);
    assert_eq!(kept(&[span(10, 1), span(15, 2)]), [span(11, 4), span(17, 3)]);
    assert_eq!(kept(&[span(14, 6)]), [span(10, 4)]);
}

/// Uses a number of a bucket. The bucket of a number is its remainder by four, and the first two
/// are on a node that may be away.
fn of_bucket(buffer: &mut Buffer, wanted: usize, is_away: bool) -> Option<u64> {
    let choice = Choice {
        bucket: &|number| usize::try_from(number % 4).unwrap(),
        is_wanted: &|bucket| bucket == wanted,
        is_up: &|bucket| !is_away || bucket >= 2,
    };
    let claim = buffer.claim_of(&choice)?;
    let number = claim.number;
    buffer.settle(claim, Fate::Used);
    Some(number)
}

#[test]
fn a_claim_is_of_the_wanted_bucket_and_numbers_of_others_are_kept_for_theirs() {
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 16, 1, 1), None);
    let claims = [3, 3, 0, 1, 2].map(|bucket| of_bucket(&mut buffer, bucket, false));
    assert_eq!(claims, [Some(3), Some(7), Some(0), Some(1), Some(2)]);
    assert_eq!(buffer.in_hand(), 11);
    assert_eq!(buffer.claims, 5);
    // Without numbers of the bucket, any other is used.
    let mut rest: Vec<u64> = std::iter::from_fn(|| of_bucket(&mut buffer, 3, false)).collect();
    rest.sort_unstable();
    assert_eq!(rest, [4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
}

#[test]
fn numbers_of_a_node_that_is_away_wait_for_it_and_the_many_are_burned() {
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 4, 1, 1), None);
    let taken = [2, 2].map(|bucket| of_bucket(&mut buffer, bucket, true));
    assert_eq!(taken, [Some(2), Some(3)]);
    assert_eq!((of_bucket(&mut buffer, 2, true), buffer.in_hand()), (None, 2));
    assert_eq!(of_bucket(&mut buffer, 0, false), Some(0));
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 4_000, 1, 1), None);
    let used = std::iter::from_fn(|| of_bucket(&mut buffer, 2, true)).count();
    assert_eq!((used, buffer.in_hand()), (2_000, 512));
    assert_eq!(buffer.away, 2_000 - 512);
}

#[test]
fn kept_numbers_go_back_with_their_block_and_are_burned_with_their_history() {
    let mut buffer = Buffer::default();
    buffer.add(entered(0, 4, 1, 1), None);
    assert_eq!(of_bucket(&mut buffer, 3, false), Some(3));
    let mut other = buffer.clone();
    buffer.relinquish();
    let closed = buffer.take_closed();
    assert_eq!(closed[0].unused, [Span::new(0, 3).unwrap()]);
    assert_eq!(other.give_up(&history(1)), 3);
    assert_eq!(other.take_closed()[0].burned, 3);
}
