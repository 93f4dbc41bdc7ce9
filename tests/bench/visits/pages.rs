//! Pages and statistics of many visits: their latency, and whether they are right.
//!
//! 1. Visits are stored in batches by the product's own code, in three sets: on one link over a
//!    year, on one link within a quarter hour, and over many links in 90 days.
//! 2. Each question goes to a resolver over HTTP on one connection, one at a time.
//! 3. Its first answer is compared with a plain sort, or plain sums, of the rows. The time of that
//!    statement is shown beside: it is how an application without counters would answer.

mod load;
mod memory;
mod question;

use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use harness::{Clickhouse, Postgres, Resolver};
use serde_json::json;
use tokio_postgres::Client;

use crate::{Report, progress, stats::Latencies, table::Table};
use load::Loaded;
use question::{Kind, Question};

/// The flags of `bench visits pages`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Store this many visits in each set.
    #[arg(long, default_value_t = 10_000_000)]
    visits: u64,
    /// Spread the visits of the set `links` over this many links.
    #[arg(long, default_value_t = 100_000)]
    links: u64,
    /// Ask each question this many times.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    requests: u32,
    /// Keep the visits in ClickHouse. Their rows are in Postgres too, to compare answers with.
    #[arg(long)]
    clickhouse: bool,
    /// Measure these sets.
    #[arg(long, value_delimiter = ',', default_value = "year,burst,links", value_name = "SET[,SET…]")]
    sets: Vec<Set>,
}

/// A set of visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Set {
    /// One link, over a year.
    Year,
    /// One link, within a quarter hour.
    Burst,
    /// Many links, within 90 days.
    Links,
}

impl Set {
    fn name(self) -> &'static str {
        match self {
            Self::Year => "one link, a year",
            Self::Burst => "one link, a quarter hour",
            Self::Links => "many links, 90 days",
        }
    }
}

/// The servers, and what they hold.
struct Platform {
    postgres: Postgres,
    clickhouse: Option<Clickhouse>,
    resolver: Resolver,
    key: String,
    sql: Client,
}

/// The figures of a question.
struct Row {
    set: Set,
    question: Question,
    cold: Duration,
    latencies: Latencies,
    raw: Duration,
    wrong: Option<String>,
}

impl Row {
    fn holds(&self) -> bool {
        self.latencies.percentile_ms(99) <= self.question.kind.most_ms()
    }
}

/// The memory that a list of all visits took.
struct Unpaged {
    visits: u64,
    expected: u64,
    grown_mib: u64,
    seconds: f64,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, or does not answer.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let (mut rows, mut unpaged, mut loaded) = (Vec::new(), None, Vec::new());
    for set in &args.sets {
        crate::on_runtime(async {
            let platform = load::start(args, *set).await?;
            let stored = load::fill(&platform, args, *set).await?;
            for question in question::all(*set, &stored) {
                progress::show(&format!("{}: {}", set.name(), question.name));
                rows.push(ask(&platform, args, *set, question).await?);
            }
            if *set == Set::Year {
                unpaged = Some(memory::list_all(&platform, &stored).await?);
            }
            loaded.push((*set, stored));
            Ok(())
        })?;
    }
    progress::clear();
    Ok(report(args, &rows, unpaged.as_ref(), &loaded))
}

async fn ask(platform: &Platform, args: &Args, set: Set, question: Question) -> anyhow::Result<Row> {
    let (raw, expected) = question.ask_rows(&platform.sql).await?;
    let http = reqwest::Client::new();
    let url = format!("{}/rest/v3/{}", platform.resolver.api.url(), question.path(&expected));
    let answer = async || {
        let begun = tokio::time::Instant::now();
        let answer = http.get(&url).header("X-Api-Key", &platform.key).send().await?.error_for_status()?;
        let body = answer.bytes().await?;
        Ok::<_, anyhow::Error>((begun.elapsed(), body))
    };
    let (cold, body) = answer().await?;
    let answered = serde_json::from_slice(&body)
        .with_context(|| format!("{}: {}", question.name, platform.resolver.process.tail()))?;
    let wrong = question.compare(&answered, &expected).err();
    let mut times = Vec::new();
    for _ in 0..args.requests {
        times.push(answer().await?.0);
    }
    Ok(Row {
        set,
        question,
        cold,
        latencies: Latencies::new(times),
        raw,
        wrong: wrong.map(|why| why.to_string()),
    })
}

fn report(args: &Args, rows: &[Row], unpaged: Option<&Unpaged>, loaded: &[(Set, Loaded)]) -> Report {
    let mut table = Table::new(&["set", "question", "p50 ms", "p99 ms", "first ms", "rows ms", "× rows", ""]);
    for row in rows {
        let (p50, p99) = (row.latencies.percentile_ms(50), row.latencies.percentile_ms(99));
        let verdict = match (&row.wrong, row.holds()) {
            (Some(why), _) => format!("WRONG: {why}"),
            (None, true) => "holds".to_owned(),
            (None, false) => format!("MISSED: ≤ {} ms", row.question.kind.most_ms()),
        };
        let raw = row.raw.as_secs_f64() * 1e3;
        let cold = row.cold.as_secs_f64() * 1e3;
        table.row(vec![
            row.set.name().to_owned(),
            row.question.name.clone(),
            format!("{p50:.1}"),
            format!("{p99:.1}"),
            format!("{cold:.1}"),
            format!("{raw:.0}"),
            format!("{:.0}", raw / p50.max(0.001)),
            verdict,
        ]);
    }
    let mut text =
        format!("{} visits in each set; each question {} times.\n\n{table}\n", args.visits, args.requests);
    for kind in Kind::ALL {
        let worst =
            rows.iter().filter(|row| row.question.kind == kind).map(|row| row.latencies.percentile_ms(99));
        let worst = worst.fold(0.0, f64::max);
        text.push_str(&format!("{}: worst p99 {worst:.1} ms, bound {} ms\n", kind.name(), kind.most_ms()));
    }
    for (set, Loaded { bytes, .. }) in loaded {
        let each: Vec<String> = bytes
            .iter()
            .map(|(what, bytes)| format!("{what} {:.2} B", *bytes as f64 / args.visits as f64))
            .collect();
        text.push_str(&format!("{}: a visit takes {}\n", set.name(), each.join(", ")));
    }
    let wrong = rows.iter().filter(|row| row.wrong.is_some()).count();
    text.push_str(&format!("answers that differ from the rows: {wrong} of {}\n", rows.len()));
    if let Some(unpaged) = unpaged {
        text.push_str(&format!(
            "unpaged: {} of {} visits in {:.1} s; memory grown by {} MiB, bound {} MiB\n",
            unpaged.visits,
            unpaged.expected,
            unpaged.seconds,
            unpaged.grown_mib,
            memory::MOST_MIB
        ));
    }
    let json = json!({
        "bench": "visits pages",
        "visits": args.visits,
        "loaded_seconds": loaded.iter().map(|(set, loaded)| json!({ "set": set.name(), "seconds": loaded.seconds, "bytes": loaded.bytes })).collect::<Vec<_>>(),
        "questions": rows.iter().map(|row| json!({
            "set": row.set.name(), "question": row.question.name, "p50_ms": row.latencies.percentile_ms(50),
            "p99_ms": row.latencies.percentile_ms(99), "rows_ms": row.raw.as_secs_f64() * 1e3, "wrong": row.wrong,
        })).collect::<Vec<_>>(),
        "unpaged": unpaged.map(|unpaged| json!({ "visits": unpaged.visits, "grown_mib": unpaged.grown_mib })),
    });
    Report { text, json }
}
