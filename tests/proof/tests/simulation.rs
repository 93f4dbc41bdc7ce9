//! The simulation over thousands of seeds.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use proof::simulation::{Happening, Summary, run};

/// The number of seeds in each run of the tests. `SHORTMINT_PROOF_SEEDS` sets another number, and
/// `SHORTMINT_FIRST_SEED` the first of them.
const SEEDS: u64 = 12_000;

/// Returns the number in an environment variable.
fn asked(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).map_or(usual, |text| text.parse().expect("a number"))
}

/// The minimum count of each of the [`USUAL`] events in [`SEEDS`] seeds.
const OFTEN: u64 = 1_000;
const USUAL: [Happening; 7] = [
    Happening::Several,
    Happening::Raise,
    Happening::RaisedUsed,
    Happening::LoweringRefused,
    Happening::Reserved,
    Happening::Filled,
    Happening::GivenUp,
];

/// Runs one seed with all guards on. To keep a seed that failed, call this function in a test of
/// its own:
/// ```ignore
/// #[test]
/// fn numbers_stay_apart_when_…() {
///     replay(4711);
/// }
/// ```
fn replay(seed: u64) -> Summary {
    run(seed, None).unwrap_or_else(|violation| panic!("{violation}\nto see it again: replay({seed});"))
}

/// Runs many seeds, with one thread per processor, and returns the merged summary.
fn replay_all(seeds: u64) -> Summary {
    let (first, next) = (asked("SHORTMINT_FIRST_SEED", 0), AtomicU64::new(0));
    let work = || {
        let mut summary = Summary::default();
        loop {
            let count = next.fetch_add(1, Ordering::Relaxed);
            if count >= seeds {
                return summary;
            }
            summary.merge(&replay(first + count));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut summary = Summary::default();
        for thread in threads {
            summary.merge(&thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        summary
    })
}

#[test]
fn no_number_is_acknowledged_twice_and_every_number_is_accounted_for_whatever_fails() {
    let seeds = asked("SHORTMINT_PROOF_SEEDS", SEEDS);
    let summary = replay_all(seeds);
    println!("{seeds} seeds\n{summary}");
    for happening in Happening::ALL.iter() {
        let count = summary.count(*happening);
        let least = if USUAL.contains(happening) { OFTEN } else { 20 };
        let least = (least * seeds.min(SEEDS) / SEEDS).max(1);
        assert!(count >= least, "too rare to prove anything: {count} {}", happening.words());
    }
}

#[test]
fn a_seed_is_the_same_run_every_time() {
    for seed in [1, 22, 333] {
        assert_eq!(replay(seed), replay(seed));
    }
}
