//! Links created per second by bulk calls over HTTP, compared with single-row inserts by pgbench on
//! the same Postgres.

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

/// The target, in rows per second.
const RATE: f64 = 150_000.0;
/// The target for links with a slug, tags and a domain.
const NAMED_RATE: f64 = 30_000.0;
/// The number of pgbench's connections.
const CLIENTS: usize = 64;

/// The flags of `bench bulk`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Create this many links per call.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    links: u32,
    /// Make this many calls concurrently.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=8))]
    calls: u32,
    /// Repeat the concurrent calls this many times per round.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
    /// Give each link a custom slug, two tags and a domain.
    #[arg(long)]
    named: bool,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run pgbench for this many seconds per round.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a link is not
/// created.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let rounds = crate::on_runtime(measure(args))?;
    Ok(report(args, &rounds))
}

/// Measures the rows per second of the resolver and of pgbench in each round.
async fn measure(args: &Args) -> anyhow::Result<Vec<(f64, f64)>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let key = secret::random_hex()?;
    let resolver = Resolver::builder(&scratch, "resolver", &key)?.database(&postgres.url()).start().await?;
    let pgbench = Pgbench::new(&scratch, &postgres).await?;
    let mut slugs = 0;
    // Slugs are new in each call, so bodies are made before the clock starts.
    let mut bodies = || -> Vec<String> { (0..args.calls).map(|_| body(args, &mut slugs)).collect() };
    calls(args, &resolver, bodies()).await?;
    let mut rounds = Vec::new();
    for round in 1..=args.rounds {
        progress::show(&format!("round {round} of {}", args.rounds));
        let of_repeats: Vec<_> = (0..args.repeats).map(|_| bodies()).collect();
        let begun = Instant::now();
        for bodies in of_repeats {
            calls(args, &resolver, bodies).await?;
        }
        let rows = f64::from(args.links) * f64::from(args.calls) * f64::from(args.repeats);
        let ours = rows / begun.elapsed().as_secs_f64();
        rounds.push((ours, pgbench.run(CLIENTS, args.seconds).await?.0));
    }
    progress::clear();
    Ok(rounds)
}

/// Returns the body of a call. `slugs` counts those that were used before.
fn body(args: &Args, slugs: &mut u64) -> String {
    let mut body = String::new();
    for number in 0..args.links {
        let _ = write!(body, "{{\"longUrl\":\"https://example.org/some/where/{number}\"");
        if args.named {
            *slugs += 1;
            let tags = format!("\"season-{}\",\"bench\"", number % 10);
            let slug = format!("\"offer-{slugs}\"");
            let _ = write!(body, ",\"customSlug\":{slug},\"tags\":[{tags}],\"domain\":\"a.example\"");
        }
        body.push_str("}\n");
    }
    body
}

/// Makes the concurrent calls and waits for all of them.
async fn calls(args: &Args, resolver: &Resolver, bodies: Vec<String>) -> anyhow::Result<()> {
    let calls = bodies.into_iter().map(|body| call(args, resolver, body));
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
    let (way, rate) = match args.named {
        true => ("resolver, POST bulk with slug, tags and domain", NAMED_RATE),
        false => ("resolver, POST bulk", RATE),
    };
    table.row(vec![way.to_owned(), grouped(ours), format!("{ratio:.1}")]);
    table.row(vec![format!("pgbench, INSERT, {CLIENTS} clients"), grouped(theirs), String::new()]);
    let mut text = format!(
        "{} calls of {} links at a time, each link durable before its answer; {} rounds in turns.\n\n{table}\n",
        args.calls,
        grouped(args.links.into()),
        args.rounds,
    );
    let met = ours >= rate;
    let _ = writeln!(
        text,
        "{}: at least {} rows/s: {}",
        if met { "met" } else { "NOT MET" },
        grouped(rate),
        grouped(ours)
    );
    let rounds: Vec<_> =
        rounds.iter().map(|(ours, theirs)| json!({ "bulk": ours, "pgbench": theirs })).collect();
    let wanted = json!([{ "what": "rows per second", "least": rate, "got": ours, "met": met }]);
    let json = json!({
        "bench": "bulk", "links": args.links, "named": args.named, "rounds": rounds, "wanted": wanted,
    });
    Report { text, json }
}
