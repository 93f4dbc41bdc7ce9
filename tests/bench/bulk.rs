//! Links created per second by bulk calls over HTTP, beside single-row inserts by pgbench on the same Postgres.

use std::fmt::Write as _;

use harness::{Resolver, Scratch, secret};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    Report, create, links,
    pgbench::Pgbench,
    progress,
    stats::median,
    table::{Table, grouped},
};

/// What is wanted, in rows per second.
const RATE: f64 = 150_000.0;
/// pgbench's connections.
const CLIENTS: usize = 64;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Links in a call.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    links: u32,
    /// Calls at the same time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    calls: u32,
    /// Calls one after another in each round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Rounds, of which the median is told.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long pgbench runs in each round, in seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// Starts everything, measures and reports.
///
/// # Errors
/// A server does not start, a program is not installed, or a link was not created.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let rounds = crate::on_runtime(measure(args))?;
    Ok(report(args, &rounds))
}

/// Rows per second: ours, and pgbench's.
async fn measure(args: &Args) -> anyhow::Result<Vec<(f64, f64)>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let key = secret::random_hex()?;
    let resolver = Resolver::builder(&scratch, "resolver", &key)?.database(&postgres.url()).start().await?;
    let pgbench = Pgbench::new(&scratch, &postgres).await?;
    let line = |number: u32| format!("{{\"longUrl\":\"https://example.org/some/where/{number}\"}}\n");
    let body: String = (0..args.links).map(line).collect();
    calls(args, &resolver, &body).await?;
    let mut rounds = Vec::new();
    for round in 1..=args.rounds {
        progress::show(&format!("round {round} of {}", args.rounds));
        let begun = Instant::now();
        for _ in 0..args.repeats {
            calls(args, &resolver, &body).await?;
        }
        let rows = f64::from(args.links) * f64::from(args.calls) * f64::from(args.repeats);
        let ours = rows / begun.elapsed().as_secs_f64();
        rounds.push((ours, pgbench.run(CLIENTS, args.seconds).await?.0));
    }
    progress::clear();
    Ok(rounds)
}

/// As many calls at a time as wanted, to their ends.
async fn calls(args: &Args, resolver: &Resolver, body: &str) -> anyhow::Result<()> {
    let calls = (0..args.calls).map(|_| call(args, resolver, body.to_owned()));
    futures_util::future::try_join_all(calls).await.map(drop)
}

async fn call(args: &Args, resolver: &Resolver, body: String) -> anyhow::Result<()> {
    let created = links::bulk(resolver, body).await?.len();
    anyhow::ensure!(created == usize::try_from(args.links)?, "a link was not created");
    Ok(())
}

fn report(args: &Args, rounds: &[(f64, f64)]) -> Report {
    let (ours, theirs) =
        (median(rounds.iter().map(|(ours, _)| *ours)), median(rounds.iter().map(|(_, theirs)| *theirs)));
    let ratio = median(rounds.iter().map(|(ours, theirs)| ours / theirs));
    let mut table = Table::new(&["way", "rows/s", "× pgbench"]);
    table.row(vec!["resolver, POST bulk".to_owned(), grouped(ours), format!("{ratio:.1}")]);
    table.row(vec![format!("pgbench, INSERT, {CLIENTS} clients"), grouped(theirs), String::new()]);
    let mut text = format!(
        "{} calls of {} links at a time, each link durable before its answer; {} rounds in turns.\n\n{table}\n",
        args.calls,
        grouped(args.links.into()),
        args.rounds,
    );
    let met = ours >= RATE;
    let _ = writeln!(
        text,
        "{}: at least {} rows/s: {}",
        if met { "met" } else { "NOT MET" },
        grouped(RATE),
        grouped(ours)
    );
    let rounds: Vec<_> =
        rounds.iter().map(|(ours, theirs)| json!({ "bulk": ours, "pgbench": theirs })).collect();
    let wanted = json!([{ "what": "rows per second", "least": RATE, "got": ours, "met": met }]);
    Report { text, json: json!({ "bench": "bulk", "links": args.links, "rounds": rounds, "wanted": wanted }) }
}
