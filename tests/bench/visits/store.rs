//! Visits stored per second of Postgres' processor time, and their space, also once their day is
//! closed.

use std::{fmt::Write as _, time::Duration};

use anyhow::Context as _;
use codes::LinkId;
use harness::{Postgres, Scratch, procfs};
use nix::unistd::Pid;
use serde_json::json;
use store::{Store as _, postgres::PostgresStore};
use tokio::time::Instant;
use visit_store::{PostgresVisits, Remaining, SpoolId, VisitStore as _};
use visits::{DAY, Day};

use super::load::Load;
use crate::{
    Report, progress,
    table::{Table, grouped},
};

/// The target on one link, in visits per second of processor time.
const ONE_LINK: f64 = 250_000.0;
/// The target if all links differ.
const MANY_LINKS: f64 = 90_000.0;

/// The flags of `bench visits store`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Store this many visits in each round.
    #[arg(long, default_value_t = 1_000_000)]
    visits: usize,
    /// Store this many visits in each batch.
    #[arg(long, default_value_t = 20_000)]
    batch: usize,
    /// Spread the visits of the second round over this many links.
    #[arg(long, default_value_t = 100_000)]
    links: u64,
}

/// Costs of storing.
struct Round {
    links: u64,
    rate: f64,
    made: Duration,
    cpu: Duration,
    elapsed: Duration,
    bytes: [i64; 3],
    closed: Closed,
}

/// Costs of closing the day.
struct Closed {
    /// Of the server and of this process.
    cpu: Duration,
    /// Bytes of rows with their indexes, and of counters.
    bytes: [i64; 2],
}

/// Starts Postgres, measures and reports.
///
/// # Errors
/// Returns an error if Postgres does not start or a batch is not stored.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let rounds = crate::on_runtime(async {
        let one = measure(args, 1).await?;
        let many = measure(args, args.links).await?;
        Ok([one, many])
    })?;
    Ok(report(args, &rounds))
}

/// Measures on a new server.
async fn measure(args: &Args, links: u64) -> anyhow::Result<Round> {
    progress::show("starting Postgres …");
    let scratch = Scratch::new()?;
    let postgres =
        Postgres::builder().scratch(&scratch).setting("max_wal_size", "8GB").setting("shared_buffers", "1GB");
    let postgres = postgres.start().await?;
    PostgresStore::new(&postgres.url(), None).await?.migrate().await?;
    let store = PostgresVisits::new(&postgres.url())?;
    let mut producer = store.register(SpoolId(1), "bench").await?;
    let today = today(&postgres).await?;
    store.keep(today.minus(30)).await?;
    // The latest day that is closed.
    let day = today.minus(2);
    let mut load = Load::new(7);
    let (mut made, mut elapsed, mut cpu) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let batches = args.visits / args.batch;
    for number in 0..batches {
        progress::show(&format!("batch {number} of {batches}"));
        let begun = Instant::now();
        let step = DAY / i64::try_from(args.visits)?;
        let first = day.start() + step * i64::try_from(number * args.batch)?;
        let times: Vec<i64> = (0..i64::try_from(args.batch)?).map(|place| first + place * step).collect();
        let batch = load.batch(&producer, &times, |load| {
            LinkId::from_stored(1_000_000_000_000_000 + i64::try_from(load.below(links)).unwrap_or(0))
        });
        made += begun.elapsed();
        let (begun, before) = (Instant::now(), used(&postgres));
        store.store(&producer, &batch, 0).await?;
        elapsed += begun.elapsed();
        cpu += used(&postgres).saturating_sub(before);
        producer.position = batch.to;
    }
    progress::clear();
    let stored = f64::from(u32::try_from(batches * args.batch)?);
    let bytes = sizes(&postgres).await?;
    let closed = close(&postgres, &store).await?;
    Ok(Round { links, rate: stored / cpu.as_secs_f64(), made, cpu, elapsed, bytes, closed })
}

async fn close(postgres: &Postgres, store: &PostgresVisits) -> anyhow::Result<Closed> {
    progress::show("closing the day …");
    let all = || used(postgres) + procfs::cpu_time(Pid::this()).unwrap_or_default();
    let before = all();
    while store.merge().await? == Remaining::Something {}
    while store.rebuild_index(today(postgres).await?.minus(30)).await? {}
    let cpu = all().saturating_sub(before);
    let client = postgres.client().await?;
    // Otherwise the next day's counters take the place of what was removed.
    client.batch_execute("VACUUM FULL visit_day").await?;
    progress::clear();
    let [rows, counters, _] = sizes(postgres).await?;
    Ok(Closed { cpu, bytes: [rows, counters] })
}

/// Returns the processor time of the server and all its processes.
fn used(postgres: &Postgres) -> Duration {
    let pids = procfs::children(postgres.pid()).into_iter().map(|child| child.pid);
    pids.chain([postgres.pid()]).filter_map(procfs::cpu_time).sum()
}

async fn today(postgres: &Postgres) -> anyhow::Result<Day> {
    let client = postgres.client().await?;
    let row = client.query_one("SELECT (extract(epoch FROM now())::bigint / 86400)::integer", &[]).await?;
    Ok(Day::from_stored(row.get(0)))
}

/// Returns the bytes of rows with their indexes, of counters, and of texts.
async fn sizes(postgres: &Postgres) -> anyhow::Result<[i64; 3]> {
    let client = postgres.client().await?;
    client.batch_execute("CHECKPOINT").await?;
    let rows = "SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class WHERE relname ~ '^visit_[0-9]+$' OR relname = 'visit_default'";
    let size = |table: &'static str| format!("SELECT pg_total_relation_size('{table}')");
    let mut bytes = [0; 3];
    for (place, query) in [rows.to_owned(), size("visit_day"), size("visit_text")].iter().enumerate() {
        bytes[place] = client.query_one(query, &[]).await.context("measure a table")?.get(0);
    }
    Ok(bytes)
}

fn report(args: &Args, rounds: &[Round; 2]) -> Report {
    let mut table = Table::new(&[
        "links",
        "visits/s per core of Postgres",
        "target",
        "µs each",
        "wall s",
        "making s",
        "B/row",
        "B counters",
        "B texts",
        "µs to close",
        "B/row, closed",
        "B counters, closed",
    ]);
    let visits = f64::from(u32::try_from(args.visits).unwrap_or(u32::MAX));
    for (round, target) in rounds.iter().zip([ONE_LINK, MANY_LINKS]) {
        let each = |bytes: i64| {
            format!("{:.1}", f64::from(i32::try_from(bytes / 1024).unwrap_or(i32::MAX)) * 1024.0 / visits)
        };
        table.row(vec![
            round.links.to_string(),
            grouped(round.rate),
            grouped(target),
            format!("{:.2}", round.cpu.as_secs_f64() * 1e6 / visits),
            format!("{:.1}", round.elapsed.as_secs_f64()),
            format!("{:.1}", round.made.as_secs_f64()),
            each(round.bytes[0]),
            each(round.bytes[1]),
            each(round.bytes[2]),
            format!("{:.2}", round.closed.cpu.as_secs_f64() * 1e6 / visits),
            each(round.closed.bytes[0]),
            each(round.closed.bytes[1]),
        ]);
    }
    let mut text = String::new();
    let _ = writeln!(text, "{} visits in batches of {}\n{table}", args.visits, args.batch);
    let json = rounds.each_ref().map(|round| {
        json!({ "links": round.links, "visits_per_cpu_second": round.rate, "cpu_seconds": round.cpu.as_secs_f64(),
                "row_bytes": round.bytes[0], "counter_bytes": round.bytes[1], "text_bytes": round.bytes[2],
                "closing_cpu_seconds": round.closed.cpu.as_secs_f64(), "closed_row_bytes": round.closed.bytes[0],
                "closed_counter_bytes": round.closed.bytes[1] })
    });
    Report { text, json: json!({ "visits": args.visits, "rounds": json }) }
}
