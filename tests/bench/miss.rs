//! Redirects of uncached links: random requests over many stored links, with cache room for one in
//! a hundred.

use std::fmt::Write as _;

use anyhow::Context;
use harness::{Resolver, Scratch, secret};
use serde_json::json;

use crate::{
    Report, cores, create, links, progress,
    stats::median,
    table::{Table, grouped},
    wrk::{Loaded, Wrk},
};

const WARM_UP: u64 = 2;
/// The target: redirects per database query with 256 connections.
const PER_QUERY: f64 = 5.0;

/// The flags of `bench miss`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Store this many links.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    links: u32,
    /// Give the cache this many MiB; one MiB holds about 2,000 links of this benchmark.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    cache_mib: u32,
    /// Keep this many connections open; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_name = "N[,N…]")]
    connections: Vec<usize>,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run each round for this many seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// The figures of one round: the load's, and the counts of queries and of cache hits.
struct Round {
    load: Loaded,
    queries: f64,
    hits: f64,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(measure(args))?;
    Ok(report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<(usize, Vec<Round>)>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let builder = Resolver::builder(&scratch, "resolver", &secret::random_hex()?)?.database(&postgres.url());
    let resolver = builder.args(["--limit", &format!("cache-mib={}", args.cache_mib)]).start().await?;
    let paths = links::create(&resolver, usize::try_from(args.links)?).await?;
    let wrk = Wrk::getting_at_random(&scratch, &paths)?;
    let all = cores::all();
    let mut levels = Vec::new();
    for connections in &args.connections {
        wrk.load(resolver.api.url(), &all, *connections, WARM_UP).await?;
        let mut rounds = Vec::new();
        for round in 1..=args.rounds {
            progress::show(&format!("{connections} connections, round {round} of {}", args.rounds));
            let before = counts(&resolver).await?;
            let load = wrk.load(resolver.api.url(), &all, *connections, args.seconds).await?;
            let after = counts(&resolver).await?;
            rounds.push(Round { queries: after.0 - before.0, hits: after.1 - before.1, load });
        }
        levels.push((*connections, rounds));
    }
    progress::clear();
    Ok(levels)
}

/// Returns the counts of queries and of cache hits so far.
async fn counts(resolver: &Resolver) -> anyhow::Result<(f64, f64)> {
    let metric = async |name| resolver.metric(name).await.context("read a metric");
    Ok((metric("resolver_link_reads_total").await?, metric("resolver_cache_hits_total").await?))
}

fn report(args: &Args, levels: &[(usize, Vec<Round>)]) -> Report {
    let columns = ["connections", "redirects/s", "queries/s", "per query", "hits %", "p50 ms", "p99 ms"];
    let mut table = Table::new(&columns);
    let (mut wanted, mut told) = (String::new(), Vec::new());
    for (connections, rounds) in levels {
        let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
        let per_query = of(|round| round.load.requests / round.queries);
        table.row(vec![
            connections.to_string(),
            grouped(of(|round| round.load.requests / round.load.seconds)),
            grouped(of(|round| round.queries / round.load.seconds)),
            format!("{per_query:.1}"),
            format!("{:.1}", of(|round| 100.0 * round.hits / round.load.requests)),
            format!("{:.2}", of(|round| round.load.p50_us / 1e3)),
            format!("{:.2}", of(|round| round.load.p99_us / 1e3)),
        ]);
        if *connections == 256 {
            let met = if per_query >= PER_QUERY { "met" } else { "NOT MET" };
            let _ =
                writeln!(wanted, "{met}: 256 connections, at least 5 redirects per query: {per_query:.1}");
        }
        let rounds = rounds.iter().map(|round| {
            json!({ "redirects": round.load.requests, "seconds": round.load.seconds, "queries": round.queries, "hits": round.hits })
        });
        told.push(json!({ "connections": connections, "rounds": rounds.collect::<Vec<_>>() }));
    }
    let text = format!(
        "{} links stored, asked for at random; {} MiB of cache; {} rounds of {} s.\n\n{table}\n{wanted}",
        grouped(args.links.into()),
        args.cache_mib,
        args.rounds,
        args.seconds
    );
    Report {
        text,
        json: json!({ "bench": "miss", "links": args.links, "cache_mib": args.cache_mib, "levels": told }),
    }
}
