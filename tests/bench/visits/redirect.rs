//! Redirects with visits on and off, in turns, and whether every answered redirect is stored.
//!
//! 1. Both resolvers and their databases run throughout; the one without a turn is idle. A turn
//!    begins only after everything that the last one recorded is stored.
//! 2. Then all visits are made in one go, and the time until the last one is stored is measured.
//! 3. At the end rows, counters and each dimension are added up, and compared with the redirects
//!    that the resolver itself counted. wrk cuts its connections off at the end of a run, so its
//!    own count may be lower by one for each connection.

use std::time::Duration;

use anyhow::Context as _;
use harness::{Load, Postgres, Resolver, Scratch, procfs, resolver, secret, wait};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    Report, cores, progress,
    stats::median,
    table::{Table, grouped},
    wrk::Wrk,
};

/// The metric that counts redirects.
const REDIRECTS: &str = "resolver_visits_total";
/// The lowest ratio of redirects with visits to those without.
const RATIO: f64 = 0.95;
/// The longest time until all visits are stored.
const DRAINED: Duration = Duration::from_secs(60);
/// The time that the check waits for that before it gives up.
const GIVE_UP: Duration = Duration::from_secs(600);
const WARM_UP: u64 = 2;
/// The tag of all links.
const TAG: &str = "campaign";

/// The flags of `bench visits redirect`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Make at least this many visits in one go, after the turns.
    #[arg(long, default_value_t = 2_000_000)]
    visits: u32,
    /// Take this many turns and report the median.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Measure each resolver for this many seconds in a turn.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Keep this many connections open.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// Request this many links in turn.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    links: u32,
}

/// A resolver with a database of its own, and the load on it.
struct Side {
    postgres: Postgres,
    resolver: Resolver,
    key: String,
    wrk: Wrk,
    answered: f64,
}

/// The measurements.
struct Measured {
    rates: [Vec<f64>; 2],
    in_one_go: f64,
    drained: Duration,
    cpu: [Duration; 2],
    answered: f64,
    stored: Stored,
}

/// The visits in the database.
#[derive(Clone, Debug)]
struct Stored {
    rows: i64,
    /// Counters by subject.
    counters: Vec<(&'static str, i64)>,
    /// The sums of the values of each dimension.
    dimensions: Vec<(String, u64)>,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, or a request fails.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let measured = crate::on_runtime(measure(args))?;
    Ok(report(args, &measured))
}

async fn measure(args: &Args) -> anyhow::Result<Measured> {
    progress::show("starting Postgres and the resolvers …");
    let mut sides = [Side::start(args, "on").await?, Side::start(args, "off").await?];
    let mut rates = [Vec::new(), Vec::new()];
    for side in &mut sides {
        side.load(args, WARM_UP).await?;
    }
    sides[0].drained().await?;
    for round in 1..=args.rounds {
        for (place, side) in sides.iter_mut().enumerate() {
            progress::show(&format!("round {round} of {}: visits {}", args.rounds, ["on", "off"][place]));
            rates[place].push(side.load(args, args.seconds).await?);
        }
        sides[0].drained().await?;
    }
    let [on, _] = &mut sides;
    let rate = median(rates[0].clone());
    let mut in_one_go = 0.0;
    let before = on.cpu();
    while in_one_go < f64::from(args.visits) {
        progress::show(&format!("{} of {} visits", grouped(in_one_go), grouped(f64::from(args.visits))));
        let left = (f64::from(args.visits) - in_one_go) / rate * 1.05;
        let seconds = Duration::from_secs_f64(left.clamp(1.0, 300.0)).as_secs() + 1;
        in_one_go += on.load(args, seconds).await? * seconds_of(seconds);
    }
    let begun = Instant::now();
    on.drained().await?;
    let drained = begun.elapsed();
    let cpu = on.cpu();
    progress::show("adding up what is stored …");
    let answered = on.resolver.metric(REDIRECTS).await.context("read the number of redirects")?;
    let stored = on.stored().await?;
    anyhow::ensure!(
        (0.0..=1_000.0).contains(&(answered - on.answered)),
        "wrk counted {} answers, the resolver {answered}",
        on.answered
    );
    progress::clear();
    let cpu = [cpu[0].saturating_sub(before[0]), cpu[1].saturating_sub(before[1])];
    Ok(Measured { rates, in_one_go, drained, cpu, answered, stored })
}

fn seconds_of(seconds: u64) -> f64 {
    Duration::from_secs(seconds).as_secs_f64()
}

impl Side {
    async fn start(args: &Args, visits: &str) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let postgres = Postgres::builder().scratch(&scratch).start().await?;
        resolver::migrate(&scratch, &postgres.url()).await?.success()?;
        let key = secret::random_hex()?;
        let spool = scratch.path().join("spool").display().to_string();
        let builder =
            Resolver::builder(&scratch, &format!("visits-{visits}"), &key)?.database(&postgres.url());
        let skipped: &[&str] = if visits == "off" { &["--visits-skip", "all"] } else { &[] };
        let flags = ["--limit", "threads=1", "--visits-spool", &spool];
        let resolver = builder.args(flags).args(skipped.iter().copied()).start().await?;
        let links = usize::try_from(args.links).context("count the links")?;
        let created = Load::on([&resolver]).clients(16).creates(links).run().await?;
        let paths: Vec<_> = created.iter().map(|link| format!("/{}", link.code)).collect();
        let tagged = json!({ "longUrl": "https://example.org/tagged", "tags": [TAG] });
        let tagged = resolver.api.create_with(&tagged).await?;
        let wrk = Wrk::visiting(&scratch, &[paths, vec![format!("/{}", tagged.code)]].concat())?;
        Ok(Self { postgres, resolver, key, wrk, answered: 0.0 })
    }

    /// Runs the load, and returns redirects per second.
    async fn load(&mut self, args: &Args, seconds: u64) -> anyhow::Result<f64> {
        let url = self.resolver.api.url();
        let loaded = self.wrk.load(url, &cores::all(), args.connections, seconds).await?;
        self.answered += loaded.requests;
        Ok(loaded.requests / loaded.seconds)
    }

    /// Waits until all redirects so far are stored.
    async fn drained(&self) -> anyhow::Result<()> {
        let client = self.postgres.client().await?;
        let sum = "SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE kind = 0";
        let is_stored = async || {
            let Some(answered) = self.resolver.metric(REDIRECTS).await else { return false };
            let counted = client.query_one(sum, &[]).await.map(|row| row.get::<_, i64>(0));
            counted.is_ok_and(|counted| as_count(counted) >= answered)
        };
        wait::until(GIVE_UP, "all visits are stored", is_stored).await
    }

    /// Returns the processor time of the resolver and of Postgres.
    fn cpu(&self) -> [Duration; 2] {
        let postgres = self.postgres.pid();
        let pids = procfs::children(postgres).into_iter().map(|child| child.pid);
        let postgres = pids.chain([postgres]).filter_map(procfs::cpu_time).sum();
        [procfs::cpu_time(self.resolver.process.pid()).unwrap_or_default(), postgres]
    }

    async fn stored(&self) -> anyhow::Result<Stored> {
        let client = self.postgres.client().await?;
        let rows = client.query_one("SELECT count(*) FROM visit WHERE link_id <> 0", &[]).await?.get(0);
        let mut counters = Vec::new();
        for (name, condition) in [("links", "kind = 0"), ("everything", "kind = 2 AND part = 0")] {
            let sum = format!("SELECT coalesce(sum(total), 0)::bigint FROM visit_day WHERE {condition}");
            counters.push((name, client.query_one(&sum, &[]).await?.get(0)));
        }
        let url = format!("{}/rest/v3/stats?top=1000", self.resolver.api.url());
        let answer = reqwest::Client::new().get(url).header("X-Api-Key", &self.key).send().await?;
        let stats: Value = answer.error_for_status()?.json().await?;
        let sum = |values: &Value| {
            let values = values.as_array().into_iter().flatten();
            values.filter_map(|value| value["total"].as_u64()).sum()
        };
        let dimensions = stats["dimensions"].as_object().context("the statistics have dimensions")?;
        let dimensions = dimensions.iter().map(|(name, values)| (name.clone(), sum(values))).collect();
        Ok(Stored { rows, counters, dimensions })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn as_count(count: i64) -> f64 {
    count as f64
}

fn report(args: &Args, measured: &Measured) -> Report {
    let [on, off] = measured.rates.clone().map(median);
    let ratios: Vec<f64> =
        measured.rates[0].iter().zip(&measured.rates[1]).map(|(on, off)| on / off).collect();
    let ratio = median(ratios);
    let Stored { rows, counters, dimensions } = &measured.stored;
    let mut sums = vec![("rows".to_owned(), as_count(*rows))];
    sums.extend(counters.iter().map(|(name, sum)| (format!("counters, {name}"), as_count(*sum))));
    let dimension = |(name, sum): &(String, u64)| {
        (format!("dimension {name}"), as_count(i64::try_from(*sum).unwrap_or(i64::MAX)))
    };
    sums.extend(dimensions.iter().map(dimension));
    let is_exact = |sum: f64| (sum - measured.answered).abs() < 0.5;
    let mut table = Table::new(&["", "figure", "expected", ""]);
    let mut line = |name: &str, figure: String, expected: String, holds: bool| {
        let verdict = if holds { "holds" } else { "MISSED" };
        table.row(vec![name.to_owned(), figure, expected, verdict.to_owned()]);
    };
    line("redirects/s, visits on / off", format!("{ratio:.3}"), format!("≥ {RATIO}"), ratio >= RATIO);
    let drained = measured.drained;
    line(
        "all stored after",
        format!("{:.1} s", drained.as_secs_f64()),
        format!("≤ {} s", DRAINED.as_secs()),
        drained <= DRAINED,
    );
    for (name, sum) in &sums {
        line(name, grouped(*sum), grouped(measured.answered), is_exact(*sum));
    }
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e6 / measured.in_one_go;
    let text = format!(
        "Redirects with visits on ({}/s) and off ({}/s), {} connections, {} links; medians of {} turns.\n\
         {} visits in one go: {:.2} µs of the resolver and {:.2} µs of Postgres each, storing included.\n\n{table}",
        grouped(on),
        grouped(off),
        args.connections,
        args.links,
        args.rounds,
        grouped(measured.in_one_go),
        each(measured.cpu[0]),
        each(measured.cpu[1]),
    );
    let json = json!({
        "bench": "visits redirect",
        "rounds": args.rounds,
        "per_second": { "on": on, "off": off },
        "ratio": ratio,
        "drained_seconds": drained.as_secs_f64(),
        "answered": measured.answered,
        "stored": sums.iter().map(|(name, sum)| json!({ "name": name, "visits": sum })).collect::<Vec<_>>(),
    });
    Report { text, json }
}
