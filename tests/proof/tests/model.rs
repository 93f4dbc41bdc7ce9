//! Every schedule of the model's worlds keeps every law; with a guard off, some schedule breaks
//! one.

use proof::model::{Bounds, Outcome, Witness, check};

#[expect(clippy::print_stdout, reason = "the size of each world belongs to the proof")]
fn explore(bounds: Bounds) -> Outcome {
    let outcome = check(bounds, None, None);
    println!(
        "{}: {} states, {} different, depth {}, {:.1} s",
        outcome.name,
        outcome.states,
        outcome.unique,
        outcome.depth,
        outcome.took.as_secs_f64()
    );
    outcome
}

/// Explores a world with all guards on: no law may break, and every witness must occur.
fn holds(bounds: Bounds, witnesses: &[Witness]) {
    let outcome = explore(bounds);
    if let Some(broken) = outcome.broken.first() {
        panic!("{}: {:#?}", broken.law.name(), broken.schedule);
    }
    let missing: Vec<_> = witnesses.iter().filter(|witness| !outcome.seen.has(**witness)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}");
}

/// Makes a test of each world: it holds with these witnesses.
macro_rules! each_holds {
    ($($test:ident: $world:ident with $($witness:ident),+;)+) => {
        $(#[test]
        fn $test() {
            holds(Bounds::$world, &[$(Witness::$witness),+]);
        })+
    };
}

each_holds! {
    leaders_change_with_transactions_in_doubt: LEADER_CHANGE
        with DoubtOutlivedItsLeader, LostReplySettled, DeposedRefused, LateCopyRefused;
    replies_are_lost_and_callers_lose_patience: LOST_REPLIES
        with DoubtOutlivedItsLeader, LostReplySettled, SeqRepeated;
    three_issuers_take_turns: THREE_ISSUERS with EarlyReadRefused, DeposedRefused;
    requests_are_doubled_and_late: DOUBLED_REQUESTS with SeqRepeated, ReclaimedUnused, TailAllocatedAgain;
    holders_crash_and_others_reclaim_their_blocks: RECLAIM with ReclaimedUnused, ReclaimedPartly, NumberTaken;
    an_heir_gives_a_leaked_block_back: CONTESTED with ReclaimedUnused;
    a_slow_heir_is_overtaken: SLOW_HEIR with TakeOverRefused;
    tails_come_back_and_are_allocated_again: RETURN with TailAllocatedAgain, DoubtResolved;
    a_deposed_leader_is_asked_where_to_go_on: DEPOSED_REGISTRAR with DeposedRefused, DoubtResolved;
    an_insert_arrives_after_its_row_was_read: IN_DOUBT with BurnedThenStored, ReservationFilled;
    a_return_arrives_a_second_time: LATE_RETURN with LateReturn, TailAllocatedAgain;
    a_second_process_has_the_name_of_a_holder: ONE_NAME with Superseded, ReclaimedUnused, NumberTaken;
    etcd_is_restored_from_an_old_backup: RESTORED with RegisterRefused, WatermarkRepaired;
    the_last_numbers_are_used_before_a_holder_hears_that_there_are_none: EXHAUSTED with ExhaustedHeard;
    a_deposed_leader_hears_that_the_last_numbers_are_used: BEATS_TO_DEPOSED
        with BeatAnsweredByDeposed, ExhaustedHeard;
    a_capacity_is_raised_while_a_holder_is_configured_with_the_old_one: RAISED
        with RaisedUsed, LoweringRefused;
    a_reservation_is_kept_filled_and_given_up: RESERVED
        with ReservationFilled, ReservationSilent, ReservationReclaimed;
    a_holder_hears_that_there_are_no_numbers_left_beside_a_reservation: ALL_RESERVED
        with ExhaustedBesideReservation;
}
