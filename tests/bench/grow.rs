//! The rates of creates and misses as the table grows, keyed by number as in Shortmint and by text
//! as in other shorteners.
//!
//! 1. A run takes many minutes, in which a machine's speed changes. So each workload is measured in
//!    turns on the grown table and on a small one, and the report shows the ratio: an empty table
//!    for writes, one of 320,000 rows for reads.
//! 2. Each side has its own Postgres, with buffers for all of its tables and long intervals between
//!    checkpoints. The 128 MiB of a fresh installation would hold the small table and a fiftieth of
//!    the grown one, whatever the key. The first change of a page after a checkpoint writes the
//!    whole page to the WAL, and random keys change every page. So the last part of each filling
//!    follows a checkpoint: it leaves few such writes for the measurement, and no checkpoint in
//!    progress.
//! 3. The resolver is measured over HTTP, as its clients see it. Its statements are also measured
//!    directly, on a table keyed by number and on one keyed by text: over HTTP a slower table shows
//!    less.
//! 4. The measurement adds to the tables, a few hundred thousand rows per level. With 0 rows both
//!    tables are emptied before each round, and the ratio shows how far two measurements of the
//!    same thing differ.
//!
//! A run takes about 15 GB of disk and 10 GB of memory.
//!
//! With `--huge-pages` Postgres keeps its buffers in pages of 2 MiB, as its manual advises for
//! large buffers. Reading a random row touches some twenty cache lines that no core has cached.
//! With pages of 4 KiB each access also walks page tables that no core has cached.

mod keyed;
mod report;
mod side;

use std::time::Duration;

use crate::{Report, progress};
use report::{Level, Way};
use side::Side;

/// The number of rows of the small tables for reads. With fewer, the cache would hold some of the
/// links.
const SMALL: u64 = 320_000;
/// The buffers of the servers of small tables.
const SMALL_BUFFERS: &str = "1GB";

/// The flags of `bench grow`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Grow each table to this many rows; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "0,1000000,5000000,20000000", value_name = "N[,N…]")]
    rows: Vec<u64>,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Measure each workload for this many seconds per round.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Use this many clients for creates and connections for misses.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Give the server of the grown tables this much memory for buffers: enough for all of them.
    /// The two of small tables get 1GB each.
    #[arg(long, default_value = "8GB", value_name = "SIZE")]
    shared_buffers: String,
    /// Keep the buffers in huge pages; reserve enough for the three servers first (sysctl
    /// vm.nr_hugepages).
    #[arg(long)]
    huge_pages: bool,
    /// Measure these workloads; only the tables that they need are filled.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Way::ALL, value_name = "WAY[,WAY…]")]
    ways: Vec<Way>,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a statement or a
/// request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    anyhow::ensure!(args.rows.is_sorted(), "--rows: expected numbers in ascending order");
    let levels = crate::on_runtime(measure(args))?;
    Ok(report::report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    progress::show("building the resolver and starting the servers …");
    let mut grown = Side::start(args, &args.shared_buffers).await?;
    let (mut small, empty) =
        (Side::start(args, SMALL_BUFFERS).await?, Side::start(args, SMALL_BUFFERS).await?);
    small.fill(SMALL, &args.ways).await?;
    let mut levels = Vec::new();
    for rows in &args.rows {
        grown.fill(*rows, &args.ways).await?;
        let mut level = Level::new(*rows);
        for round in 1..=args.rounds {
            for way in args.ways.iter().copied() {
                // There are no rows to read yet.
                if *rows == 0 && way.reads() {
                    continue;
                }
                progress::show(&format!("{rows} rows, round {round} of {}: {}", args.rounds, way.name()));
                let length = Duration::from_secs(args.seconds);
                let of_small = if way.reads() {
                    small.rate(way, args.clients, length).await?
                } else {
                    empty.clear(way).await?;
                    if *rows == 0 {
                        grown.clear(way).await?;
                    }
                    empty.rate(way, args.clients, length).await?
                };
                level.add(way, grown.rate(way, args.clients, length).await?, of_small);
            }
        }
        levels.push(level);
    }
    progress::clear();
    Ok(levels)
}
