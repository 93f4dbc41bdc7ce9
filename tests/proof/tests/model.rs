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
    let missing: Vec<_> = witnesses.iter().filter(|witness| !outcome.seen.contains(witness)).collect();
    assert!(missing.is_empty(), "never seen: {missing:?}; seen: {:?}", outcome.seen);
}

#[test]
fn leaders_change_with_transactions_in_doubt() {
    holds(
        Bounds::LEADER_CHANGE,
        &[
            Witness::DoubtOutlivedItsLeader,
            Witness::LostReplySettled,
            Witness::DeposedRefused,
            Witness::LateCopyRefused,
        ],
    );
}

#[test]
fn replies_are_lost_and_callers_lose_patience() {
    holds(
        Bounds::LOST_REPLIES,
        &[Witness::DoubtOutlivedItsLeader, Witness::LostReplySettled, Witness::SeqRepeated],
    );
}

#[test]
fn three_issuers_take_turns() {
    holds(Bounds::THREE_ISSUERS, &[Witness::EarlyReadRefused, Witness::DeposedRefused]);
}

#[test]
fn requests_are_doubled_and_late() {
    holds(
        Bounds::DOUBLED_REQUESTS,
        &[Witness::SeqRepeated, Witness::ReclaimedUnused, Witness::TailAllocatedAgain],
    );
}

#[test]
fn holders_crash_and_others_reclaim_their_blocks() {
    holds(Bounds::RECLAIM, &[Witness::ReclaimedUnused, Witness::ReclaimedPartly, Witness::NumberTaken]);
}

#[test]
fn an_heir_gives_a_leaked_block_back() {
    holds(Bounds::CONTESTED, &[Witness::ReclaimedUnused]);
}

#[test]
fn a_slow_heir_is_overtaken() {
    holds(Bounds::SLOW_HEIR, &[Witness::TakeOverRefused]);
}

#[test]
fn tails_come_back_and_are_allocated_again() {
    holds(Bounds::RETURN, &[Witness::TailAllocatedAgain, Witness::DoubtResolved]);
}

#[test]
fn a_deposed_leader_is_asked_where_to_go_on() {
    holds(Bounds::DEPOSED_REGISTRAR, &[Witness::DeposedRefused, Witness::DoubtResolved]);
}

#[test]
fn an_insert_arrives_after_its_row_was_read() {
    holds(Bounds::IN_DOUBT, &[Witness::BurnedThenStored, Witness::ReservationFilled]);
}

#[test]
fn a_return_arrives_a_second_time() {
    holds(Bounds::LATE_RETURN, &[Witness::LateReturn, Witness::TailAllocatedAgain]);
}

#[test]
fn a_second_process_has_the_name_of_a_holder() {
    holds(Bounds::ONE_NAME, &[Witness::Superseded, Witness::ReclaimedUnused, Witness::NumberTaken]);
}

#[test]
fn etcd_is_restored_from_an_old_backup() {
    holds(Bounds::RESTORED, &[Witness::RegisterRefused, Witness::WatermarkRepaired]);
}

#[test]
fn the_last_numbers_are_used_before_a_holder_hears_that_there_are_none() {
    holds(Bounds::EXHAUSTED, &[Witness::ExhaustedHeard]);
}

#[test]
fn a_deposed_leader_hears_that_the_last_numbers_are_used() {
    holds(Bounds::BEATS_TO_DEPOSED, &[Witness::BeatAnsweredByDeposed, Witness::ExhaustedHeard]);
}

#[test]
fn a_capacity_is_raised_while_a_holder_is_configured_with_the_old_one() {
    holds(Bounds::RAISED, &[Witness::RaisedUsed, Witness::LoweringRefused]);
}

#[test]
fn a_reservation_is_kept_filled_and_given_up() {
    holds(
        Bounds::RESERVED,
        &[Witness::ReservationFilled, Witness::ReservationSilent, Witness::ReservationReclaimed],
    );
}

#[test]
fn a_holder_hears_that_there_are_no_numbers_left_beside_a_reservation() {
    holds(Bounds::ALL_RESERVED, &[Witness::ExhaustedBesideReservation]);
}
