//! Links created per second over HTTP, each acknowledged after COMMIT, compared with single-row
//! inserts by pgbench.
//!
//! 1. Both use the same Postgres, with the settings of a fresh installation except for more
//!    connections and longer intervals between checkpoints: `fsync` and `synchronous_commit` are
//!    on.
//! 2. Postgres, the resolver and the load share all cores; so do pgbench and its server.
//! 3. Links with a slug that is also a code are created in the same turns: no resolver may wait for
//!    others before it answers.
//! 4. With `--flush-ms` each commit waits that long before it flushes (`commit_delay`), which
//!    simulates a slower disk.

mod report;

use harness::{Postgres, PostgresBuilder, Resolver, Scratch, migrate, secret};

use crate::{
    Report, cores,
    pgbench::Pgbench,
    progress,
    stats::Latencies,
    wrk::{Loaded, Wrk},
};
use report::{Level, Way};

/// So many codes that random slugs do not meet any of those that a run mints.
const KEYSPACES: &str = "default=8:0-9A-Za-z";

/// The warm-up before the first round, in seconds.
const WARM_UP: u64 = 1;

/// The flags of `bench create`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure with this many concurrent clients; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_name = "N[,N…]")]
    clients: Vec<usize>,
    /// Delay each commit's flush by this many milliseconds; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "0,2", value_name = "N[,N…]")]
    flush_ms: Vec<u32>,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measure each variant for this many seconds per round.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=20))]
    seconds: u64,
    /// Measure only the resolver, for profiling.
    #[arg(long)]
    resolver_only: bool,
}

/// The figures of one variant in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
}

impl Figures {
    fn new(rate: f64, latencies: &Latencies) -> Self {
        Self { rate, p50_ms: latencies.percentile_ms(50), p99_ms: latencies.percentile_ms(99) }
    }
}

impl From<Loaded> for Figures {
    fn from(load: Loaded) -> Self {
        Self { rate: load.requests / load.seconds, p50_ms: load.p50_us / 1e3, p99_ms: load.p99_us / 1e3 }
    }
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a create fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(measure(args))?;
    Ok(report::report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    let mut levels = Vec::new();
    for flush_ms in &args.flush_ms {
        progress::show("building the resolver and starting the servers …");
        let scratch = Scratch::new()?;
        let postgres = database(&scratch, *flush_ms).await?;
        let key = secret::random_hex()?;
        let resolver = Resolver::builder(&scratch, "resolver", &key)?
            .database(&postgres.url())
            .keyspaces(KEYSPACES)
            .start()
            .await?;
        let pgbench = Pgbench::new(&scratch, &postgres).await?;
        let digits = resolver.api.create("https://example.org/").await?.code.len();
        let loads =
            [Wrk::creating(&scratch, &key)?, Wrk::creating_slugs(&scratch, &key, digits, args.seconds)?];
        for clients in &args.clients {
            levels.push(level(args, &resolver, &loads, &pgbench, (*clients, *flush_ms)).await?);
        }
    }
    progress::clear();
    Ok(levels)
}

/// Starts a Postgres with the resolver's schema.
pub(crate) async fn database(scratch: &Scratch, flush_ms: u32) -> anyhow::Result<Postgres> {
    let postgres = server(scratch, flush_ms).await?;
    migrate(scratch, &postgres.url()).await?.success()?;
    Ok(postgres)
}

/// Starts a Postgres without a schema.
pub(crate) async fn server(scratch: &Scratch, flush_ms: u32) -> anyhow::Result<Postgres> {
    configured(scratch, flush_ms).start().await
}

/// Configures a server for creates, whose commits take this much longer.
pub(crate) fn configured(scratch: &Scratch, flush_ms: u32) -> PostgresBuilder {
    Postgres::builder()
        .scratch(scratch)
        .setting("max_connections", "400")
        .setting("max_wal_size", "16GB")
        .setting("commit_delay", &(flush_ms * 1_000).to_string())
        .setting("commit_siblings", "0")
}

async fn level(
    args: &Args,
    resolver: &Resolver,
    [codes, slugs]: &[Wrk; 2],
    pgbench: &Pgbench,
    (clients, flush_ms): (usize, u32),
) -> anyhow::Result<Level> {
    let cores = cores::count();
    let all = format!("0-{}", cores - 1);
    let mut level = Level::new(clients, flush_ms);
    for load in [codes, slugs] {
        load.load(resolver.api.url(), &all, clients, WARM_UP).await?;
    }
    for round in 1..=args.rounds {
        let show = |way: Way| {
            let of = args.rounds;
            progress::show(&format!(
                "{clients} clients, {flush_ms} ms, round {round} of {of}: {}",
                way.name()
            ));
        };
        for (way, load) in [(Way::Resolver, codes), (Way::Slugs, slugs)] {
            show(way);
            level.add(way, load.load(resolver.api.url(), &all, clients, args.seconds).await?.into());
        }
        if !args.resolver_only {
            show(Way::Pgbench);
            let (rate, latencies) = pgbench.run(clients, args.seconds).await?;
            level.add(Way::Pgbench, Figures::new(rate, &latencies));
        }
    }
    Ok(level)
}
