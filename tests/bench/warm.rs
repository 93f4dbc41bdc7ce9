//! A start with a warm cache: how long a process takes until it is ready, and whether it then needs
//! the database.
//!
//! Each process starts on a new spool, without a list of links, and loads the most visited ones. It
//! then starts again on its list. Both are done in turns.

use std::time::Duration;

use anyhow::Context as _;
use harness::{Resolver, Scratch, secret};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    Report, cores, create, links, progress,
    stats::median,
    table::{Table, grouped},
    wrk::Wrk,
};

/// The targets: the time until the most visited links are cached, and until those of the list are.
const MOST_VISITED: Duration = Duration::from_secs(5);
const LISTED: Duration = Duration::from_secs(2);
const STOPS_WITHIN: Duration = Duration::from_secs(20);
const CONNECTIONS: usize = 64;
const HITS: &str = "resolver_cache_hits_total";

/// The flags of `bench warm`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Cache this many links.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    links: u32,
    /// Start this many processes, each twice, and report the medians.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// A start.
struct Start {
    ready: Duration,
    /// The share of redirects afterwards whose link was cached.
    hits: f64,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, wrk is not installed, or a request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let [most_visited, listed] = crate::on_runtime(measure(args))?;
    Ok(report(args, &most_visited, &listed))
}

async fn measure(args: &Args) -> anyhow::Result<[Vec<Start>; 2]> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let key = secret::random_hex()?;
    // Room for all links, with a margin.
    let limit = format!("warm-links={},cache-mib={}", args.links, (args.links / 1_800).max(64));
    let builder = |name: &str| {
        Ok::<_, anyhow::Error>(Resolver::builder(&scratch, name, &key)?.database(&postgres.url()))
    };
    let mut resolver = builder("first")?.start().await?;
    let paths = links::create(&resolver, usize::try_from(args.links)?).await?;
    resolver.stop(STOPS_WITHIN).await?;
    let visited = "INSERT INTO link_seen (link_id, seen_at, total, bots)
        SELECT id, now(), 1 + hashint8(id) & 65535, 0 FROM link ON CONFLICT DO NOTHING";
    let sql = postgres.client().await?;
    for statement in [visited, "VACUUM ANALYZE"] {
        sql.batch_execute(statement).await.context(statement)?;
    }
    let wrk = Wrk::getting_at_random(&scratch, &paths)?;
    let (mut most_visited, mut listed) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        progress::show(&format!("round {round} of {}", args.rounds));
        // Visits of the measurement's own load would be stored during the next start.
        let builder =
            builder(&format!("warm-{round}"))?.args(["--limit", &limit, "--visits-skip", "from=127.0.0.0/8"]);
        let begun = Instant::now();
        let mut resolver = builder.start().await?;
        most_visited.push(Start { ready: begun.elapsed(), hits: hits(&resolver, &wrk).await? });
        resolver.stop(STOPS_WITHIN).await?;
        let begun = Instant::now();
        resolver.restart().await?;
        listed.push(Start { ready: begun.elapsed(), hits: hits(&resolver, &wrk).await? });
        resolver.stop(STOPS_WITHIN).await?;
    }
    progress::clear();
    Ok([most_visited, listed])
}

/// Follows links at random for some seconds, and returns the share that was cached.
async fn hits(resolver: &Resolver, wrk: &Wrk) -> anyhow::Result<f64> {
    let read = async || resolver.metric(HITS).await.context("read a metric");
    let before = read().await?;
    let asked = wrk.load(resolver.api.url(), &cores::all(), CONNECTIONS, 3).await?.requests;
    Ok((read().await? - before) / asked)
}

fn report(args: &Args, most_visited: &[Start], listed: &[Start]) -> Report {
    let mut table = Table::new(&["links", "ready after s", "cached afterwards", ""]);
    let mut told = Vec::new();
    for (name, starts, most) in
        [("the most visited", most_visited, MOST_VISITED), ("those of its list", listed, LISTED)]
    {
        let seconds: Vec<f64> = starts.iter().map(|start| start.ready.as_secs_f64()).collect();
        let ready = median(seconds.iter().copied());
        let hits = median(starts.iter().map(|start| start.hits));
        let holds = if ready <= most.as_secs_f64() { "met" } else { "NOT MET" };
        table.row(vec![
            name.to_owned(),
            format!("{ready:.2}"),
            format!("{:.1} %", 100.0 * hits),
            format!("at most {most:?}: {holds}"),
        ]);
        told.push(json!({ "links": name, "ready_seconds": seconds, "hits": hits }));
    }
    let text = format!("A start with {} cached links.\n\n{table}", grouped(args.links.into()));
    Report { text, json: json!({ "bench": "warm", "links": args.links, "starts": told }) }
}
