//! Benchmarks: each one starts the servers it needs, measures in turns, and prints a table or JSON.
//!
//! 1. The things compared are measured in the same run, in interleaved rounds, and reported as
//!    medians. Other work on the machine then affects all sides equally, so ratios hold where
//!    absolute figures do not.
//! 2. Servers are real and private; nothing is left behind.
//! 3. The daemons are built in the profile of this binary, so run it with `--profile dist`.

mod allocate;
mod attack;
mod beside;
mod bulk;
mod cores;
mod create;
mod failover;
mod grow;
mod links;
mod list;
mod load;
mod losses;
mod memory;
mod mint;
mod miss;
mod named;
mod pgbench;
mod progress;
mod recovery;
mod redirect;
mod scan;
mod stats;
mod table;
mod upgrade;
mod visits;
mod warm;
mod wrk;

use anyhow::Context;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measure Shortmint and its alternatives side by side
///
/// Run it optimised: cargo run --profile dist -p tests --bin bench -- allocate
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Cli {
    #[command(subcommand)]
    bench: Bench,
    /// Print JSON with every round instead of the tables.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// Measure durable allocations per second, compared with etcd's guarded puts and a Postgres
    /// segment row.
    Allocate(allocate::Args),
    /// Measure redirects and the resolver's memory during attacks on it.
    Attack(attack::Args),
    /// Compare this build's resolver with another build's: creates, redirects and misses in turns.
    Beside(beside::Args),
    /// Measure links created per second by bulk calls, compared with pgbench's single-row inserts.
    Bulk(bulk::Args),
    /// Measure links created per second over HTTP, compared with pgbench's single-row inserts.
    Create(create::Args),
    /// Measure how long allocations stop when the leading issuer crashes or hands over.
    Failover(failover::Args),
    /// Measure creates and misses while the table grows, keyed by number and by text.
    Grow(grow::Args),
    /// Measure the first byte of pages of the list of links among a million.
    List(list::Args),
    /// Count lost links while Postgres is stopped and its backends are killed at full speed.
    Losses(losses::Args),
    /// Measure a resolver's memory (idle, with many cached links, after many requests) and its
    /// start-up time.
    Memory(memory::Args),
    /// Measure redirects of uncached links, and the queries that they cost.
    Miss(miss::Args),
    /// Measure nanoseconds per minted code, in parts and over threads.
    Mint(mint::Args),
    /// Measure how soon creates and redirects work again after each fault.
    Recovery(recovery::Args),
    /// Measure redirects per second, compared with nginx and a bare hyper server.
    Redirect(redirect::Args),
    /// Measure popular links while another client scans random codes.
    Scan(scan::Args),
    /// Measure how long each migration of a large database keeps creates and reads waiting.
    Upgrade(upgrade::Args),
    /// Measure how visits are recorded, stored and read.
    #[command(subcommand)]
    Visits(visits::Args),
    /// Measure starts with many links in the cache.
    Warm(warm::Args),
    /// Serve redirects with the bare hyper server that `redirect` compares with.
    #[command(hide = true)]
    BareHyper(redirect::BareArgs),
}

/// The report of a benchmark, as text and as JSON.
struct Report {
    text: String,
    json: Value,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if cfg!(debug_assertions) {
        progress::note("a debug build: its figures say little, use --profile dist");
    }
    let report = match cli.bench {
        Bench::Allocate(args) => allocate::run(&args)?,
        Bench::Attack(args) => attack::run(&args)?,
        Bench::Beside(args) => beside::run(&args)?,
        Bench::Bulk(args) => bulk::run(&args)?,
        Bench::Create(args) => create::run(&args)?,
        Bench::Failover(args) => failover::run(&args)?,
        Bench::Grow(args) => grow::run(&args)?,
        Bench::List(args) => list::run(&args)?,
        Bench::Losses(args) => losses::run(&args)?,
        Bench::Memory(args) => memory::run(&args)?,
        Bench::Miss(args) => miss::run(&args)?,
        Bench::Scan(args) => scan::run(&args)?,
        Bench::Mint(args) => mint::run(&args)?,
        Bench::Recovery(args) => recovery::run(&args)?,
        Bench::Redirect(args) => redirect::run(&args)?,
        Bench::Upgrade(args) => upgrade::run(&args)?,
        Bench::Visits(args) => visits::run(&args)?,
        Bench::Warm(args) => warm::run(&args)?,
        Bench::BareHyper(args) => return redirect::serve_bare(&args),
    };
    print(&report, cli.json);
    Ok(())
}

/// Runs a benchmark on one thread: the servers under load need the cores.
fn on_runtime<T>(bench: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the runtime")?.block_on(bench)
}

#[expect(clippy::print_stdout, reason = "the report is the output that the user asked for")]
fn print(report: &Report, as_json: bool) {
    if as_json {
        println!("{:#}", report.json);
    } else {
        print!("{}", report.text);
    }
}
