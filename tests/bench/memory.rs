//! The memory of a resolver: idle before anybody has visited a link, embedded and on Postgres; with
//! many cached links and after many requests; and the time from its start to its first redirect.

use std::time::Duration;

use anyhow::Context;
use futures_util::StreamExt;
use harness::{Resolver, ResolverBuilder, Scratch, procfs, secret};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    Report, cores, create, links, progress,
    stats::median,
    table::{Table, grouped},
    wrk::Wrk,
};

/// The target for the time from the start of the process to its first redirect.
const FIRST_REDIRECT: Duration = Duration::from_millis(100);
/// The target for the memory when idle, in MiB.
const IDLE_MIB: f64 = 30.0;
const SERVES_WITHIN: Duration = Duration::from_secs(20);
/// The ratio above which more memory counts as growth. Fluctuations of the allocator are smaller.
const GROWTH: f64 = 1.1;
/// The time after which a started resolver takes no more memory.
const SETTLED: Duration = Duration::from_secs(3);
/// The pause between two attempts on a port that is not open yet.
const POLL: Duration = Duration::from_millis(1);
const CONNECTIONS: usize = 64;
/// The number of links between two progress messages.
const CHUNK: usize = 10_000;
const HITS: &str = "resolver_cache_hits_total";

/// The flags of `bench memory`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Cache this many links.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=5_000_000))]
    links: u32,
    /// Send this many requests.
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
    /// Start the resolver this many times and report the median.
    #[arg(long, default_value_t = 5)]
    starts: usize,
}

/// The measured memory in bytes, and times.
struct Found {
    starts: Vec<Duration>,
    idle_embedded: u64,
    idle: u64,
    /// After the first visits: the rules of user agents are read for the first of them.
    visited: u64,
    cached: u64,
    hit_share: f64,
    /// The memory after a tenth of the requests, and after all of them.
    early: u64,
    late: u64,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let found = crate::on_runtime(measure(args))?;
    Ok(report(args, &found))
}

async fn measure(args: &Args) -> anyhow::Result<Found> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let builder = |name: &str| Resolver::builder(&scratch, name, &secret::random_hex()?);
    let idle_embedded = idle(builder("embedded")?).await?;
    let builder = builder("resolver")?.database(&postgres.url());
    let idle = idle(builder.clone()).await?;
    // Room for all links, with a margin.
    let cache_mib = (args.links / 1_800).max(64);
    let mut resolver = builder.args(["--limit", &format!("cache-mib={cache_mib}")]).start().await?;
    let code = resolver.api.create("https://example.org/first").await?.code;
    let mut starts = Vec::new();
    for start in 1..=args.starts {
        progress::show(&format!("start {start} of {}", args.starts));
        resolver.stop(SERVES_WITHIN).await?;
        starts.push(first_redirect(&mut resolver, &code).await?);
    }
    resolver.wait_ready().await?;
    sleep(SETTLED).await;
    let visited = resident(&resolver)?;
    let paths = links::create(&resolver, usize::try_from(args.links)?).await?;
    let all = cores::all();
    ask_once(&resolver, &paths).await?;
    let cached = resident(&resolver)?;
    let hits_before = resolver.metric(HITS).await.context("read a metric")?;

    let wrk = Wrk::getting_at_random(&scratch, &paths)?;
    let (mut asked, mut early, requests) = (0.0, None, f64::from(args.requests));
    while asked < requests {
        progress::show(&format!("{} requests of {}", grouped(asked), grouped(requests)));
        asked += wrk.load(resolver.api.url(), &all, CONNECTIONS, 5).await?.requests;
        if asked >= requests / 10.0 && early.is_none() {
            early = Some(resident(&resolver)?);
        }
    }
    progress::clear();
    let hits = resolver.metric(HITS).await.context("read a metric")? - hits_before;
    let late = resident(&resolver)?;
    let (hit_share, early) = (hits / asked, early.unwrap_or(late));
    Ok(Found { starts, idle_embedded, idle, visited, cached, hit_share, early, late })
}

/// Starts a resolver with its defaults and returns its memory, before anybody asks it for anything.
async fn idle(builder: ResolverBuilder) -> anyhow::Result<u64> {
    let mut resolver = builder.start().await?;
    sleep(SETTLED).await;
    let found = resident(&resolver)?;
    resolver.stop(SERVES_WITHIN).await?;
    Ok(found)
}

/// Requests each link once, which puts it into the cache.
async fn ask_once(resolver: &Resolver, paths: &[String]) -> anyhow::Result<()> {
    for (index, paths) in paths.chunks(CHUNK).enumerate() {
        progress::show(&format!("asking for each link once: {}", grouped((index * CHUNK) as f64)));
        let asked = futures_util::stream::iter(paths).map(|path| resolver.api.follow(&path[1..]));
        let mut answers = asked.buffer_unordered(CONNECTIONS);
        while let Some(answer) = answers.next().await {
            let (status, _) = answer?;
            anyhow::ensure!(status == 302, "a link was answered with {status}");
        }
    }
    Ok(())
}

/// Starts the process and requests a code until it redirects; returns the time taken.
async fn first_redirect(resolver: &mut Resolver, code: &str) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    resolver.process.respawn()?;
    while begun.elapsed() < SERVES_WITHIN {
        if resolver.api.follow(code).await.is_ok_and(|(status, _)| status == 302) {
            return Ok(begun.elapsed());
        }
        sleep(POLL).await;
    }
    anyhow::bail!("no redirect within {SERVES_WITHIN:?}: {}", resolver.process.tail())
}

fn resident(resolver: &Resolver) -> anyhow::Result<u64> {
    procfs::resident(resolver.process.pid()).context("look at the resolver's memory")
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory, shown in MiB")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn report(args: &Args, found: &Found) -> Report {
    let mut table = Table::new(&["resolver", "MiB"]);
    let links = grouped(args.links.into());
    for (when, bytes) in [
        ("embedded, idle".to_owned(), found.idle_embedded),
        ("on Postgres, idle".to_owned(), found.idle),
        ("after the first visits".to_owned(), found.visited),
        (format!("{links} links, all cached"), found.cached),
        (format!("after {} requests", grouped(f64::from(args.requests) / 10.0)), found.early),
        (format!("after {} requests", grouped(args.requests.into())), found.late),
    ] {
        table.row(vec![when, format!("{:.1}", mib(bytes))]);
    }
    let first = Duration::from_secs_f64(median(found.starts.iter().map(Duration::as_secs_f64)));
    let idle = mib(found.idle.max(found.idle_embedded));
    let growth = mib(found.late) / mib(found.early);
    let line = |met: bool, what: String| format!("{}: {what}\n", if met { "met" } else { "NOT MET" });
    let text = format!(
        "{table}\n{:.1} % of the requests were answered from the cache.\n\n{}{}{}",
        100.0 * found.hit_share,
        line(idle <= IDLE_MIB, format!("at most {IDLE_MIB} MiB when idle: {idle:.1}")),
        line(growth <= GROWTH, format!("no growth: {growth:.2} × the memory after a tenth of the requests")),
        line(
            first < FIRST_REDIRECT,
            format!("first redirect within {FIRST_REDIRECT:?} of the start: {first:.0?}")
        ),
    );
    let starts: Vec<_> = found.starts.iter().map(Duration::as_secs_f64).collect();
    let json = json!({
        "bench": "memory", "links": args.links, "requests": args.requests, "first_redirect_seconds": starts,
        "bytes": {
            "idle_embedded": found.idle_embedded, "idle": found.idle, "visited": found.visited,
            "cached": found.cached, "early": found.early, "late": found.late,
        },
    });
    Report { text, json }
}
