//! Local minting with the resolver's own types: claim a number, permute it, encode it.
//!
//! 1. All threads share one keyspace's supply and one mint, as in a resolver.
//! 2. All numbers are available from the start. Fetching a block is a background call to the
//!    issuer, once per million codes, and is not measured here. Neither is the insert.
//! 3. The parts and the whole take turns in every round. `permute` is the time to mint a number
//!    minus that to encode it.

use std::{
    hint::black_box,
    sync::{Arc, Barrier},
    thread,
    time::Duration,
};

use anyhow::Context;
use codes::{CodeKey, Keyspace, KeyspaceIndex, Mint};
use numbers::{Block, Generation, Namespace, Span, StoreEpoch};
use serde_json::json;
use supply::{Claim, Clock, Entered, EntryId, Fate, Minting, Spec};
use tokio::time::Instant;

use crate::{
    Report, cores, progress,
    stats::median,
    table::{Table, grouped},
};

/// The number of codes between two readings of the clock.
const CHUNK: u32 = 1_000;

/// The flags of `bench mint`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Mint on this many threads concurrently; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "1,2,4", value_name = "N[,N…]")]
    threads: Vec<usize>,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measure each part for this many milliseconds per round.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=600_000))]
    millis: u64,
    /// Mint from this keyspace, in the format of the resolver's --keyspaces.
    #[arg(long, default_value = "default=6:0-9A-Za-z")]
    keyspace: String,
}

/// The parts of minting that are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Claim,
    Mint,
    Encode,
    /// All parts, with the claim settled as used.
    Whole,
}

/// The state shared by all threads.
struct Ground {
    keyspace: Keyspace,
    index: KeyspaceIndex,
    minting: Minting,
    mint: Mint,
}

/// Measures and reports.
///
/// # Errors
/// Returns an error if the keyspace is malformed or the system provides no random bytes.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let keyspace = Keyspace::parse(&args.keyspace).context("parse --keyspace")?;
    let key = CodeKey::draw().context("draw a code key")?;
    let length = Duration::from_millis(args.millis);
    let mut parts: Vec<(Part, f64)> = Vec::new();
    let mut threads: Vec<(usize, f64)> = Vec::new();
    for round in 1..=args.rounds {
        progress::show(&format!("round {round} of {}", args.rounds));
        for part in [Part::Claim, Part::Mint, Part::Encode] {
            parts.push((part, Ground::new(&key, &keyspace)?.nanos(part, 1, length)?));
        }
        for count in &args.threads {
            threads.push((*count, Ground::new(&key, &keyspace)?.nanos(Part::Whole, *count, length)?));
        }
    }
    progress::clear();
    Ok(report(args, &parts, &threads))
}

impl Ground {
    fn new(key: &CodeKey, keyspace: &Keyspace) -> anyhow::Result<Arc<Self>> {
        let index = KeyspaceIndex::new(1).context("the first keyspace")?;
        let namespace = Namespace::new("bench").context("a namespace")?;
        let capacity = keyspace.capacity();
        let minting =
            Minting::new(Spec { index, namespace: namespace.clone(), capacity }, 1_000, Clock::start());
        let span = Span::new(0, capacity).context("all numbers of the keyspace")?;
        let block = Block { namespace, span, generation: Generation(1) };
        let history = Arc::new(StoreEpoch::new("bench").context("a history")?);
        minting.add(Entered { block, entry: EntryId(1), history }, None);
        let mint = Mint::new(key, [(index, keyspace.clone())]);
        Ok(Arc::new(Self { keyspace: keyspace.clone(), index, minting, mint }))
    }

    /// Returns the nanoseconds that a code takes on each of that many concurrent threads.
    fn nanos(self: &Arc<Self>, part: Part, threads: usize, length: Duration) -> anyhow::Result<f64> {
        let start = Arc::new(Barrier::new(threads));
        let worker = || {
            let (ground, start) = (Arc::clone(self), Arc::clone(&start));
            thread::spawn(move || {
                start.wait();
                ground.work(part, length)
            })
        };
        let workers: Vec<_> = (0..threads).map(|_| worker()).collect();
        let mut nanos = Vec::new();
        for worker in workers {
            nanos.push(worker.join().map_err(|_| anyhow::anyhow!("a minting thread panicked"))??);
        }
        // Threads differ a little; their joint rate is the sum of their rates.
        let rate: f64 = nanos.iter().map(|nanos| 1.0 / nanos).sum();
        Ok(f64::from(u32::try_from(threads)?) / rate)
    }

    /// Repeats a part for this long and returns the nanoseconds per code. Claiming is asynchronous,
    /// so each thread has a runtime, as each of a resolver's listeners has.
    fn work(&self, part: Part, length: Duration) -> anyhow::Result<f64> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(async {
            let (from, mut done) = (Instant::now(), 0_u32);
            while from.elapsed() < length {
                for number in done..done + CHUNK {
                    self.once(part, number.into(), from + 2 * length).await?;
                }
                done = done
                    .checked_add(CHUNK)
                    .filter(|done| *done < u32::MAX - CHUNK)
                    .context("too long a round")?;
            }
            Ok(from.elapsed().as_secs_f64() * 1e9 / f64::from(done))
        })
    }

    /// Claims a number, which never waits while numbers are left.
    async fn claim(&self, deadline: Instant) -> anyhow::Result<Claim> {
        self.minting
            .claim(None, deadline)
            .await
            .context("the keyspace is too small for a round of this length")
    }

    async fn once(&self, part: Part, number: u64, deadline: Instant) -> anyhow::Result<()> {
        match part {
            Part::Claim => {
                let _ = black_box(self.claim(deadline).await?);
            }
            Part::Mint => {
                black_box(self.mint.mint(self.index, black_box(number % self.keyspace.capacity())));
            }
            Part::Encode => {
                black_box(self.keyspace.code_at(black_box(number % self.keyspace.capacity())));
            }
            Part::Whole => {
                let claim = self.claim(deadline).await?;
                black_box(self.mint.mint(self.index, claim.number));
                self.minting.settle(claim, Fate::Used);
            }
        }
        Ok(())
    }
}

fn report(args: &Args, parts: &[(Part, f64)], threads: &[(usize, f64)]) -> Report {
    let part = |part: Part| median(parts.iter().filter(|(other, _)| *other == part).map(|(_, nanos)| *nanos));
    let encode = part(Part::Encode);
    let named = [("claim", part(Part::Claim)), ("permute", part(Part::Mint) - encode), ("encode", encode)];
    let whole: Vec<(usize, f64)> = args
        .threads
        .iter()
        .map(|count| {
            (*count, median(threads.iter().filter(|(other, _)| other == count).map(|(_, nanos)| *nanos)))
        })
        .collect();
    let cores = cores::count();
    let text = format!(
        "Local minting from {}, {cores} cores; medians of {} rounds of {} ms in turns.\n\n{}\n{}",
        args.keyspace,
        args.rounds,
        args.millis,
        table_of_parts(&named),
        table_of_threads(&whole),
    );
    let json = json!({
        "bench": "mint",
        "keyspace": args.keyspace,
        "rounds": args.rounds,
        "millis": args.millis,
        "parts_ns": named.iter().map(|(name, nanos)| json!({ "part": name, "ns": nanos })).collect::<Vec<_>>(),
        "threads": whole.iter().map(|(count, nanos)| json!({ "threads": count, "ns_per_code_and_thread": nanos })).collect::<Vec<_>>(),
    });
    Report { text, json }
}

fn table_of_parts(named: &[(&str, f64)]) -> Table {
    let mut table = Table::new(&["part, one thread", "ns per code"]);
    for (name, nanos) in named {
        table.row(vec![(*name).to_owned(), format!("{nanos:.1}")]);
    }
    table
}

fn table_of_threads(whole: &[(usize, f64)]) -> Table {
    let mut table = Table::new(&["claim, mint, settle", "threads", "ns per code", "codes/s", "× one thread"]);
    let rate = |(threads, nanos): &(usize, f64)| {
        u32::try_from(*threads).map_or(f64::INFINITY, f64::from) * 1e9 / nanos
    };
    let one = whole.iter().find(|(threads, _)| *threads == 1).map(rate);
    for at in whole {
        let scaling = one.map(|one| format!("{:.2}", rate(at) / one)).unwrap_or_default();
        let cells = [at.0.to_string(), format!("{:.1}", at.1), grouped(rate(at)), scaling];
        table.row([String::new()].into_iter().chain(cells).collect());
    }
    table
}
