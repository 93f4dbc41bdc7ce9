//! Runs the simulation over a range of seeds: `cargo run --profile dist -p proof --bin simulate
//! -- --seeds 100000 [--from N] [--mutant NAME]`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output is meant for a terminal")]

use std::{
    io::{IsTerminal, stderr},
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use clap::Parser;
use proof::{
    Mutant,
    simulation::{Summary, Violation, run},
};

/// Runs the simulation of the number protocol over many seeds.
#[derive(Parser)]
struct Options {
    /// Set the number of seeds.
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// Set the first seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Switch off a guard, named as in the mutation check: EpochCompare, Core(Seq), …
    #[arg(long, value_parser = mutant)]
    mutant: Option<Mutant>,
}

fn mutant(name: &str) -> Result<Mutant, String> {
    let named = |mutant: &&Mutant| format!("{mutant:?}").eq_ignore_ascii_case(name);
    let known = || Mutant::ALL.map(|mutant| format!("{mutant:?}")).join(", ");
    Mutant::ALL.iter().find(named).copied().ok_or_else(|| format!("expected one of {}", known()))
}

/// The progress over the seeds, shared by the threads.
struct Progress {
    next: AtomicU64,
    done: AtomicU64,
    end: u64,
}

impl Progress {
    /// Runs seeds until all are taken or one fails.
    fn work(&self, mutant: Option<Mutant>) -> (Summary, Option<Violation>) {
        let mut summary = Summary::default();
        loop {
            let seed = self.next.fetch_add(1, Ordering::Relaxed);
            if seed >= self.end {
                return (summary, None);
            }
            match run(seed, mutant) {
                Ok(one) => summary.merge(&one),
                Err(violation) => {
                    self.next.fetch_max(self.end, Ordering::Relaxed);
                    return (summary, Some(violation));
                }
            }
            self.done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let progress = Progress {
        next: AtomicU64::new(options.from),
        done: AtomicU64::new(0),
        end: options.from.saturating_add(options.seeds),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let results: Vec<_> = thread::scope(|scope| {
        let work = || progress.work(options.mutant);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while stderr().is_terminal() && !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            eprint!("\r{} of {} seeds", progress.done.load(Ordering::Relaxed), options.seeds);
            thread::sleep(Duration::from_millis(200));
        }
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    });
    report(&results, progress.done.into_inner())
}

fn report(results: &[(Summary, Option<Violation>)], done: u64) -> ExitCode {
    let mut all = Summary::default();
    results.iter().for_each(|(summary, _)| all.merge(summary));
    if stderr().is_terminal() {
        eprintln!();
    }
    println!("{done} seeds without a violation\n{all}");
    // The lowest failing seed is reported, so that two runs name the same one.
    match results.iter().filter_map(|(_, violation)| violation.as_ref()).min_by_key(|found| found.seed) {
        None => ExitCode::SUCCESS,
        Some(violation) => {
            println!("{violation}\nto see it again: --from {} --seeds 1", violation.seed);
            ExitCode::FAILURE
        }
    }
}
