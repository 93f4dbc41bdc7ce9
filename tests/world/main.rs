//! Simulation of the real resolver under seeded faults. Supplier, returns, heartbeat, creator and
//! lookup are the production code; the store and the issuer behind them fail in every possible way.
//!
//! 1. The store is the real SQLite store, in memory and on this thread, behind
//!    [`ways::FaultyStore`]. That delays and refuses calls, loses replies, lets writes land late,
//!    and restores older copies. So the fake cannot differ from what the conformance suite requires
//!    of the stores.
//! 2. The issuer is the real one, over [`ledger::MemoryLedger`] and connections that break.
//! 3. Time is tokio's paused clock on one thread, and the seed determines every choice of the
//!    simulation. tokio chooses the order of `select!` by itself, so a seed that fails may have to
//!    be run a few times to fail again.
//! 4. [`book::Book`] records what was acknowledged. A code is acknowledged once. Unless a link is
//!    lost with a history, every process finds it or answers that it does not know; at the end
//!    every process finds all of them.
//! 5. [`timeline::Timeline`] records where each changed link led, and when. A change is visible
//!    everywhere within the promised time, unless links cannot be read. Even then no process gives
//!    an answer that is older than what it has answered or was notified of. An absence is never
//!    older than the lookup that reports it.
//! 6. Keyspaces and domains are added in rolling updates, the default keyspace differs between
//!    processes, and polls of the settings hang or are answered late. Every process finds each
//!    code, or answers that it does not know.
//! 7. Clients reserve codes, fill them through any process and give them up. A reserved code is
//!    never given to another link, and every process knows that it is reserved.
//!
//! A few schedules that rarely occur by chance are written out in [`alone`].
//!
//! Not covered: the pure core of the issuer and the ledger's own protocol under message loss
//! (`tests/proof`), keyspaces that an older copy of the database lacks (except for one schedule),
//! and whole processes that are paused.
#![expect(clippy::unwrap_used, reason = "tests and their helpers fail by panicking")]

mod alone;
mod book;
mod changes;
mod clients;
mod database;
mod focus;
mod ledger;
mod looks;
mod network;
mod node;
mod outcome;
mod reserved;
mod rng;
mod rules;
mod run;
mod shared;
mod store;
mod strikes;
mod timeline;
mod ways;

use focus::Focus;
use outcome::Outcome;
use rules::{Off, StoreRule, without};
use run::{Failure, run};
use supply::safety_rule::SafetyRule;

/// Number of seeds in a test run, a sample of a longer one. `SHORTMINT_WORLD_SEEDS` sets another
/// number, `SHORTMINT_FIRST_SEED` the first of them, and `SHORTMINT_WORLD_SEED` runs a single seed
/// with its log.
const SEEDS: u64 = 200;
/// Number of seeds within which the absence of a safeguard has to break a promise.
const SEEDS_OF_A_GUARD: u64 = 4_000;
/// How often a seed that breaks a promise without a safeguard is run with it: `select!` makes each
/// run a little different.
const RUNS_IN_FORCE: u64 = 3;

/// Returns the number in an environment variable.
fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// Runs seeds on every core until one fails. Returns the sum of all outcomes, and the seed that
/// failed.
fn run_all(seeds: u64, guard: Option<(Off, Focus)>) -> (Outcome, Option<(u64, Failure)>) {
    use std::sync::atomic::{AtomicU64, Ordering};
    let first = asked("SHORTMINT_FIRST_SEED").unwrap_or(0);
    let next = AtomicU64::new(0);
    let work = || {
        let mut sum = Outcome::default();
        loop {
            let count = next.fetch_add(1, Ordering::Relaxed);
            if count >= seeds {
                return (sum, None);
            }
            let seed = first + count;
            let focus = guard.map_or(Focus::of(seed), |(_, focus)| focus);
            match without(guard.map(|(guard, _)| guard), || run(seed, focus)) {
                Ok(outcome) => sum.add(&outcome),
                // Without a safeguard, a run may get stuck without having broken a promise.
                Err(Failure::Stuck(_) | Failure::NoWorld(_)) if guard.is_some() => {}
                Err(failure) => {
                    next.fetch_max(seeds, Ordering::Relaxed);
                    return (sum, Some((seed, failure)));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut all = (Outcome::default(), None);
        for thread in threads {
            let (sum, failed) = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.0.add(&sum);
            all.1 = all.1.or(failed);
        }
        all
    })
}

#[test]
fn nothing_acknowledged_is_given_twice_or_denied_whatever_fails() {
    if let Some(seed) = asked("SHORTMINT_WORLD_SEED") {
        daemon::LogFormat::Text.init();
        println!("seed {seed}: {:#?}", run(seed, Focus::of(seed)).unwrap());
        return;
    }
    let seeds = asked("SHORTMINT_WORLD_SEEDS").unwrap_or(SEEDS);
    let (outcome, failed) = run_all(seeds, None);
    println!("{seeds} seeds: {outcome:#?}");
    if let Some((seed, failure)) = failed {
        panic!("seed {seed}: {failure}");
    }
    outcome.expect_enough(seeds);
}

/// Checks that a safeguard is needed: without it some seed breaks a promise, which the same seed
/// keeps with it.
#[expect(clippy::print_stdout, reason = "the seed and what it broke belong to the proof")]
fn is_missed(guard: Off, focus: Focus) {
    let seeds = asked("SHORTMINT_WORLD_SEEDS").unwrap_or(SEEDS_OF_A_GUARD);
    let (_, failed) = run_all(seeds, Some((guard, focus)));
    let (seed, violation) = failed.unwrap_or_else(|| panic!("nothing in {seeds} seeds misses {guard:?}"));
    println!("{guard:?}: seed {seed}: {violation}");
    for _ in 0..RUNS_IN_FORCE {
        if let Err(failure) = run(seed, focus) {
            panic!("{guard:?}: seed {seed} fails with the rule in force as well: {failure}");
        }
    }
}

macro_rules! each_is_missed {
    ($($test:ident: $rule:ident::$guard:ident beside $focus:ident,)+) => {
        $(#[test]
        fn $test() {
            is_missed($rule::$guard.into(), Focus::$focus);
        })+
    };
}

each_is_missed! {
    without_release_before_return_the_register_refuses_the_next_holder: SafetyRule::ReleaseFirst beside Doubts,
    without_completeness_a_copy_denies_links: SafetyRule::Complete beside Histories,
    without_a_look_an_insert_in_doubt_is_acknowledged: SafetyRule::Doubt beside Doubts,
    without_a_look_at_the_news_a_read_undoes_an_edit_for_good: SafetyRule::ChangedSince beside Changes,
    without_an_end_to_belief_an_edit_that_nobody_heard_of_never_shows: SafetyRule::Away beside Changes,
    without_the_question_for_its_history_a_lost_code_is_given_again: StoreRule::History beside Histories,
    without_the_wait_for_a_new_keyspace_its_codes_are_denied: SafetyRule::KeyspaceWait beside Rollouts,
    without_a_look_at_its_row_a_reserved_code_is_filled_twice: SafetyRule::FilledOnce beside Rollouts,
}

mod long {
    use super::*;

    each_is_missed! {
        without_a_look_at_the_former_holder_a_row_is_taken_for_ones_own: SafetyRule::Reclaimed beside Doubts,
        without_the_register_a_row_is_taken_for_ones_own: SafetyRule::Holds beside Doubts,
        without_the_mark_a_database_put_back_gives_codes_again: SafetyRule::Mark beside Histories,
        without_a_memory_of_changes_a_replica_undoes_an_edit: SafetyRule::ChangedLately beside Changes,
        without_the_time_of_its_lag_a_replica_undoes_an_edit_that_nobody_heard_of: SafetyRule::ToldFor beside Changes,
        without_a_proof_of_age_a_copy_undoes_an_edit: StoreRule::Proved beside Outages,
        without_a_memory_of_changes_a_copy_undoes_an_edit: SafetyRule::Outdated beside Outages,
        without_a_look_at_the_news_an_editor_is_given_the_link_as_it_was: SafetyRule::Joined beside Changes,
        without_forgetting_what_is_deleted_a_restored_link_is_denied: SafetyRule::Deleted beside Changes,
        without_reading_it_again_a_link_that_moved_back_is_denied: SafetyRule::Moved beside Changes,
        without_reading_again_an_edit_that_was_missed_never_shows: SafetyRule::Settled beside Changes,
        without_a_comparison_after_a_restart_a_lost_code_is_given_again: StoreRule::Compared beside Histories,
        without_the_wait_for_its_keyspace_a_picked_code_is_denied: SafetyRule::KeyspaceShown beside Rollouts,
        without_freshness_before_the_settings_a_new_code_is_denied: SafetyRule::FreshBefore beside Rollouts,
        without_the_copy_in_its_version_settings_of_an_older_one_are_never_read: StoreRule::SettingsCopy beside Copies,
        without_a_question_for_its_keyspace_a_reserved_code_is_said_not_to_be: SafetyRule::KeyspaceKnown beside Rollouts,
        without_a_read_of_its_own_a_restored_link_is_denied: SafetyRule::Late beside Changes,
        without_its_row_a_forgotten_reservations_codes_are_minted: StoreRule::OpenReservation beside Ledgers,
    }
}
