//! Every migration of a large database, one by one, while links are created and read.
//!
//! The database begins at the oldest schema with a table of links. Each create is an insert of its
//! own on one of several connections, and each read one of random links; both use only columns that
//! the oldest schema has, as an older release does. Their slowest answers say how long a migration
//! kept others waiting, and are compared with the deadline of a resolver's statements.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::Context as _;
use harness::{Postgres, Scratch};
use serde_json::json;
use store::postgres::migrate_to;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_postgres::{Client, types::Type};

use crate::{Report, progress, table::Table};

/// The first schema with a table of links that has the columns of the inserts.
const FIRST: i32 = 2;
/// The deadline of a statement of a resolver.
const DEADLINE: Duration = Duration::from_secs(3);
/// Rows of an insert, as of a batch under load.
const BATCH: i64 = 32;
/// Links of a read.
const READ: u64 = 32;
/// Rows that are loaded at a time.
const CHUNK: u64 = 1_000_000;
/// How long the load runs before and after each migration.
const AROUND: Duration = Duration::from_millis(500);

/// The flags of `bench upgrade`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Load this many links before the first migration.
    #[arg(long, default_value_t = 20_000_000)]
    rows: u64,
    /// Create links on this many connections, and read them on as many.
    #[arg(long, default_value_t = 2)]
    connections: usize,
}

/// One migration.
struct Step {
    version: i32,
    took: Duration,
    creates: Load,
    reads: Load,
}

/// Results of the creates or the reads of a time.
#[derive(Clone, Copy, Default)]
struct Load {
    count: u64,
    slowest: Duration,
}

/// Loads the table, runs every migration, and reports.
///
/// # Errors
/// Returns an error if Postgres does not start, or if a statement or a migration fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let steps = runtime.context("start the runtime")?.block_on(measure(args))?;
    Ok(report(args, &steps))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Step>> {
    let scratch = Scratch::new()?;
    let postgres = Postgres::builder().scratch(&scratch).setting("max_wal_size", "8GB");
    let postgres = postgres.setting("shared_buffers", "2GB").start().await?;
    let (url, sql) = (postgres.url(), postgres.client().await?);
    migrate_to(&url, FIRST).await.context("create the first tables")?;
    fill(&sql, args.rows).await?;

    let last = newest(&url).await?;
    let traffic = Traffic::start(&postgres, args).await?;
    let mut steps = Vec::new();
    for version in FIRST + 1..=last {
        progress::show(&format!("migration {version} of {last}"));
        traffic.reset();
        sleep(AROUND).await;
        let begun = Instant::now();
        migrate_to(&url, version).await.with_context(|| format!("migration {version}"))?;
        let took = begun.elapsed();
        sleep(AROUND).await;
        let (creates, reads) = traffic.seen();
        steps.push(Step { version, took, creates, reads });
    }
    progress::clear();
    traffic.stop().await?;
    Ok(steps)
}

/// Returns the newest version, on a database of its own.
async fn newest(url: &str) -> anyhow::Result<i32> {
    let store = store::postgres::PostgresStore::new(url, None).await?;
    Ok(i32::try_from(store::Store::schema(&store).await?.needed)?)
}

async fn fill(sql: &Client, rows: u64) -> anyhow::Result<()> {
    // Loaded rows need no crash safety, unlike those that are measured.
    sql.batch_execute("SET synchronous_commit = off").await?;
    for first in (0..rows).step_by(usize::try_from(CHUNK)?) {
        progress::show(&format!("loading links: {first} of {rows}"));
        let last = (first + CHUNK).min(rows) - 1;
        let insert = format!(
            "INSERT INTO link (id, long_url, crawlable, forward_query, created_by)
             SELECT n, 'https://example.com/a/path/of/usual/length/' || n, false, true, 1 FROM generate_series({first}, {last}) n"
        );
        sql.batch_execute(&insert).await.context("load links")?;
    }
    progress::show("analyze");
    // One by one: several statements at a time are a transaction, in which no VACUUM runs.
    for statement in ["SET synchronous_commit = on", "VACUUM ANALYZE link", "CHECKPOINT"] {
        sql.batch_execute(statement).await.context(statement)?;
    }
    Ok(())
}

/// Creates and reads without pause.
struct Traffic {
    counters: Arc<[Counter; 2]>,
    ended: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<anyhow::Result<()>>>,
}

#[derive(Default)]
struct Counter {
    count: AtomicU64,
    slowest_us: AtomicU64,
}

impl Counter {
    fn add(&self, took: Duration) {
        self.count.fetch_add(1, Relaxed);
        self.slowest_us.fetch_max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
    }

    fn load(&self) -> Load {
        let slowest = Duration::from_micros(self.slowest_us.load(Relaxed));
        Load { count: self.count.load(Relaxed), slowest }
    }
}

impl Traffic {
    async fn start(postgres: &Postgres, args: &Args) -> anyhow::Result<Self> {
        let (counters, ended) = (Arc::<[Counter; 2]>::default(), Arc::new(AtomicBool::new(false)));
        let next = Arc::new(AtomicI64::new(i64::try_from(args.rows)?));
        let mut tasks = Vec::new();
        for _ in 0..args.connections {
            let (counters, ended) = (Arc::clone(&counters), Arc::clone(&ended));
            let next = Arc::clone(&next);
            tasks.push(tokio::spawn(create(postgres.client().await?, next, counters, ended)));
        }
        for number in 0..args.connections {
            let (counters, ended) = (Arc::clone(&counters), Arc::clone(&ended));
            let seed = u64::try_from(number)?;
            tasks.push(tokio::spawn(read(postgres.client().await?, (seed, args.rows), counters, ended)));
        }
        Ok(Self { counters, ended, tasks })
    }

    fn reset(&self) {
        for counter in self.counters.iter() {
            counter.count.store(0, Relaxed);
            counter.slowest_us.store(0, Relaxed);
        }
    }

    fn seen(&self) -> (Load, Load) {
        (self.counters[0].load(), self.counters[1].load())
    }

    async fn stop(self) -> anyhow::Result<()> {
        self.ended.store(true, Relaxed);
        for task in self.tasks {
            task.await??;
        }
        Ok(())
    }
}

async fn create(
    sql: Client,
    next: Arc<AtomicI64>,
    counters: Arc<[Counter; 2]>,
    ended: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let insert = "INSERT INTO link (id, long_url, crawlable, forward_query, created_by)
         SELECT n, 'https://example.com/new/' || n, false, true, 1 FROM generate_series($1, $1 + $2 - 1) n
         ON CONFLICT (id) DO NOTHING RETURNING id";
    while !ended.load(Relaxed) {
        let first = next.fetch_add(BATCH, Relaxed);
        let begun = Instant::now();
        let rows = sql.query_typed(insert, &[(&first, Type::INT8), (&BATCH, Type::INT8)]).await?;
        counters[0].add(begun.elapsed());
        anyhow::ensure!(rows.len() == usize::try_from(BATCH)?, "a batch was stored in part");
    }
    Ok(())
}

async fn read(
    sql: Client,
    (seed, rows): (u64, u64),
    counters: Arc<[Counter; 2]>,
    ended: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let mut state = seed;
    while !ended.load(Relaxed) {
        let ids: Vec<i64> = (0..READ)
            .map(|_| {
                // Knuth's multiplier: any links will do, as long as they lie apart.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                i64::try_from((state >> 33) % rows.max(1)).unwrap_or(0)
            })
            .collect();
        let begun = Instant::now();
        let read = "SELECT id, long_url FROM link WHERE id = ANY($1)";
        sql.query_typed(read, &[(&ids, Type::INT8_ARRAY)]).await?;
        counters[1].add(begun.elapsed());
    }
    Ok(())
}

fn report(args: &Args, steps: &[Step]) -> Report {
    let mut table = Table::new(&["migration", "seconds", "creates", "slowest, ms", "reads", "slowest, ms"]);
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1_000.0);
    for Step { version, took, creates, reads } in steps {
        table.row(vec![
            format!("V{version}"),
            format!("{:.2}", took.as_secs_f64()),
            (creates.count * u64::try_from(BATCH).unwrap_or(0)).to_string(),
            ms(creates.slowest),
            reads.count.to_string(),
            ms(reads.slowest),
        ]);
    }
    let slowest =
        steps.iter().map(|step| step.creates.slowest.max(step.reads.slowest)).max().unwrap_or_default();
    let late = slowest > DEADLINE;
    let text = format!(
        "{} links, creates and reads on {} connections each\n\n{table}\nslowest of all: {} ms; a resolver waits {} ms{}\n",
        args.rows,
        args.connections,
        ms(slowest),
        DEADLINE.as_millis(),
        if late { ": OVER THE DEADLINE" } else { "" },
    );
    let json = json!({
        "rows": args.rows,
        "slowest_ms": slowest.as_secs_f64() * 1_000.0,
        "migrations": steps.iter().map(|Step { version, took, creates, reads }| json!({
            "version": version, "seconds": took.as_secs_f64(), "batches": creates.count,
            "slowest_create_ms": creates.slowest.as_secs_f64() * 1_000.0,
            "reads": reads.count, "slowest_read_ms": reads.slowest.as_secs_f64() * 1_000.0,
        })).collect::<Vec<_>>(),
    });
    Report { text, json }
}
