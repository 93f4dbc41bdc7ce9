//! Whether creates and misses keep their rate as the table grows; keyed by number as ours, and by text as others' are.
//!
//! 1. A run takes many minutes, in which a machine's speed changes. So each way is measured on the grown table and on a small one in
//!    turns, and what is told is the ratio of the two: an empty one for what writes, and one of 320,000 rows for what reads.
//! 2. Each has a Postgres of its own, with buffers for all of its tables and long pauses between checkpoints: the 128 MiB of a fresh
//!    installation would hold the small table and a fiftieth of the grown one, whatever it is keyed by. The first change of a page after
//!    a checkpoint writes all of it to the log, and keys at random change every page: so the last of each filling comes after a
//!    checkpoint, which leaves few of them for what is measured, and no checkpoint under way.
//! 3. The resolver is measured as its clients see it, over HTTP. The statements that it sends are measured by themselves too, on a table
//!    keyed by number and on one keyed by text: over HTTP a slower table shows less.
//! 4. What is measured adds to the tables, a few hundred thousand rows for each level; with no rows they are emptied before each round, and
//!    the ratio says how far two measurements of the same lie apart.
//!
//! A run takes about 15 GB of disk and 10 GB of memory.
//!
//! With `--huge-pages` Postgres keeps its buffers in pages of 2 MiB, as its manual advises for large ones. A row at random is some twenty lines of
//! memory that no core has at hand, and with pages of 4 KiB the way to each leads through tables that no core has at hand either.

mod keyed;
mod report;
mod side;

use std::time::Duration;

use crate::{Report, progress};
use report::{Level, Way};
use side::Side;

/// Rows of the small tables that are read. With fewer the cache would have some of the links.
const SMALL: u64 = 320_000;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Rows that each table has; each number is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "0,1000000,5000000,20000000", value_name = "N[,N…]")]
    rows: Vec<u64>,
    /// Rounds, of which the median is told.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How long each way is measured in each round, in seconds.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Clients that create, and connections that ask.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// Memory for each of the three servers' buffers: enough for all tables that are filled.
    #[arg(long, default_value = "8GB", value_name = "SIZE")]
    shared_buffers: String,
    /// Keep the buffers in huge pages, of which the machine must have reserved enough for three servers (sysctl vm.nr_hugepages).
    #[arg(long)]
    huge_pages: bool,
    /// What to measure; only the tables that it needs are filled.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Way::ALL, value_name = "WAY[,WAY…]")]
    ways: Vec<Way>,
}

/// Starts everything, measures and reports.
///
/// # Errors
/// A server does not start, a program is not installed, or a statement or a request failed.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    anyhow::ensure!(args.rows.is_sorted(), "--rows: expected numbers in ascending order");
    let levels = crate::on_runtime(measure(args))?;
    Ok(report::report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    progress::show("building the resolver and starting the servers …");
    let (mut grown, mut small, empty) =
        (Side::start(args).await?, Side::start(args).await?, Side::start(args).await?);
    small.fill(SMALL, &args.ways).await?;
    let mut levels = Vec::new();
    for rows in &args.rows {
        grown.fill(*rows, &args.ways).await?;
        let mut level = Level::new(*rows);
        for round in 1..=args.rounds {
            for way in args.ways.iter().copied() {
                // Nothing is there to be read yet.
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
