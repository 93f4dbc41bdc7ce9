//! Benchmarks: each starts what it needs, measures in turns, and prints a table or JSON.
//!
//! 1. What is compared is measured in the same run, in interleaved rounds, and told as medians: the machine's other work
//!    then hits all sides alike, so ratios hold where absolute figures do not.
//! 2. Servers are real and private; nothing is left behind.
//! 3. The daemons are built in the profile of this binary, so run it with `--release`.

mod allocate;
mod attack;
mod beside;
mod bulk;
mod cores;
mod create;
mod failover;
mod grow;
mod links;
mod load;
mod losses;
mod memory;
mod mint;
mod miss;
mod pgbench;
mod progress;
mod redirect;
mod scan;
mod stats;
mod table;
mod wrk;

use anyhow::Context;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Measures Shortmint beside the ways it competes with.
///
/// Run it in release mode: cargo run --release -p tests --bin bench -- allocate
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
    /// Durable allocations per second, beside etcd's guarded puts and a segment row in Postgres.
    Allocate(allocate::Args),
    /// Redirects beside somebody who attacks the resolver, and the memory that it holds meanwhile.
    Attack(attack::Args),
    /// This build's resolver beside another build's: creates, redirects and misses in turns.
    Beside(beside::Args),
    /// Links created per second by bulk calls, beside single-row inserts by pgbench.
    Bulk(bulk::Args),
    /// Links created per second over HTTP, beside single-row inserts by pgbench.
    Create(create::Args),
    /// How long nobody can allocate when the leading issuer dies, and when it hands over.
    Failover(failover::Args),
    /// Whether creates and misses keep their rate while the table grows, keyed by number and by text.
    Grow(grow::Args),
    /// Acknowledged links while Postgres is stopped at once, and its backends are killed, at full speed.
    Losses(losses::Args),
    /// Memory of a resolver, idle, with many cached links and after many requests; and how soon it serves.
    Memory(memory::Args),
    /// Redirects of links that no cache has, and the queries that they cost.
    Miss(miss::Args),
    /// Nanoseconds per minted code, in parts and over threads.
    Mint(mint::Args),
    /// Redirects per second, beside nginx and a bare hyper server.
    Redirect(redirect::Args),
    /// Popular links while somebody asks for codes at random.
    Scan(scan::Args),
    /// The bare hyper server that `redirect` compares with.
    #[command(hide = true)]
    BareHyper(redirect::BareArgs),
}

/// What a bench has to say: the same in two forms.
struct Report {
    text: String,
    json: Value,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    if cfg!(debug_assertions) {
        progress::note("a debug build: its figures say little, use --release");
    }
    let report = match cli.bench {
        Bench::Allocate(args) => allocate::run(&args)?,
        Bench::Attack(args) => attack::run(&args)?,
        Bench::Beside(args) => beside::run(&args)?,
        Bench::Bulk(args) => bulk::run(&args)?,
        Bench::Create(args) => create::run(&args)?,
        Bench::Failover(args) => failover::run(&args)?,
        Bench::Grow(args) => grow::run(&args)?,
        Bench::Losses(args) => losses::run(&args)?,
        Bench::Memory(args) => memory::run(&args)?,
        Bench::Miss(args) => miss::run(&args)?,
        Bench::Scan(args) => scan::run(&args)?,
        Bench::Mint(args) => mint::run(&args)?,
        Bench::Redirect(args) => redirect::run(&args)?,
        Bench::BareHyper(args) => return redirect::serve_bare(&args),
    };
    print(&report, cli.json);
    Ok(())
}

/// Runs a bench on one thread: the servers under load need the cores.
fn on_runtime<T>(bench: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("start the runtime")?.block_on(bench)
}

#[expect(clippy::print_stdout, reason = "the answer to what a person asked for")]
fn print(report: &Report, as_json: bool) {
    if as_json {
        println!("{:#}", report.json);
    } else {
        print!("{}", report.text);
    }
}
