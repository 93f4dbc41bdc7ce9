//! This build's resolver compared with another build's, for example that of an earlier commit, or
//! with itself on another database.
//!
//! 1. Each side has its own servers and folder, and its own `migrate` creates its schema.
//! 2. The sides take turns and swap their order every round, so that a machine that slows down
//!    affects both equally.
//! 3. The report shows the processor time of the resolver and its Postgres as well as the rate. On
//!    a shared machine it is the steadier figure.

mod report;
mod side;

use std::path::PathBuf;

use crate::{Report, cores, progress, wrk::Loaded};
use report::{Figures, Level};
use side::{Build, Side};

/// The warm-up before the first round of a level, in seconds.
const WARM_UP: u64 = 1;

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// Single creates over HTTP, on Postgres.
    Create,
    /// Redirects from the cache, on SQLite.
    Redirect,
    /// Redirects that no cache can answer, on Postgres.
    Miss,
}

/// The flags of `bench beside`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Compare with this `resolver` binary of another build.
    #[arg(long, value_name = "FILE", required_unless_present = "nodes")]
    resolver: Option<PathBuf>,
    /// Keep this build's links on so many nodes of Citus, for creates and misses. The Postgres of
    /// `SHORTMINT_POSTGRES` must have it.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=8))]
    nodes: u8,
    /// Keep the other's links on so many.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=8))]
    other_nodes: u8,
    /// Measure these workloads.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "create,redirect,miss")]
    ways: Vec<Way>,
    /// Keep this many connections open for each workload; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_name = "N[,N…]")]
    connections: Vec<usize>,
    /// Run this many rounds and report the median of their ratios.
    #[arg(long, default_value_t = 8)]
    rounds: usize,
    /// Measure each side for this many seconds per round.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Store this many links for redirects and misses.
    #[arg(long, default_value_t = 300_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    links: u32,
}

/// Starts both sides, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(measure(args))?;
    Ok(report::report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    let mut levels = Vec::new();
    for way in &args.ways {
        // For redirects a resolver with one thread has its own core, so its cost does not mix with
        // that of the load.
        let threads: &[usize] = if *way == Way::Redirect { &[1, 2] } else { &[2] };
        for threads in threads {
            progress::show("building the resolver and starting the servers …");
            let ours = Build { binary: None, nodes: args.nodes.into() };
            let theirs = Build { binary: args.resolver.as_deref(), nodes: args.other_nodes.into() };
            let ours = Side::start(*way, *threads, args.links, ours).await?;
            let theirs = Side::start(*way, *threads, args.links, theirs).await?;
            for connections in &args.connections {
                levels.push(level(args, [&ours, &theirs], *way, (*threads, *connections)).await?);
            }
        }
    }
    progress::clear();
    Ok(levels)
}

async fn level(
    args: &Args,
    sides: [&Side; 2],
    way: Way,
    (threads, connections): (usize, usize),
) -> anyhow::Result<Level> {
    let cores = if threads == 1 { "1".to_owned() } else { cores::all() };
    for side in sides {
        side.load(&cores, connections, WARM_UP).await?;
    }
    let mut level = Level { way, threads, connections, rounds: Vec::new() };
    for round in 0..args.rounds {
        progress::show(&format!(
            "{way:?}, {connections} connections, round {} of {}",
            round + 1,
            args.rounds
        ));
        let (first, second) = (round % 2, 1 - round % 2);
        let mut figures = [None, None];
        for index in [first, second] {
            figures[index] = Some(measured(sides[index], &cores, connections, args.seconds).await?);
        }
        if let [Some(ours), Some(theirs)] = figures {
            level.rounds.push([ours, theirs]);
        }
    }
    Ok(level)
}

async fn measured(side: &Side, cores: &str, connections: usize, seconds: u64) -> anyhow::Result<Figures> {
    let before = side.cpu();
    let load: Loaded = side.load(cores, connections, seconds).await?;
    let spent = side.cpu() - before;
    Ok(Figures {
        rate: load.requests / load.seconds,
        cpu_us: spent.as_secs_f64() * 1e6 / load.requests.max(1.0),
        p99_ms: load.p99_us / 1e3,
    })
}
