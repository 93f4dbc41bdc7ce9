//! Gauges and logs while a server is away, beside the truth: files on disk, rows in the stores,
//! answers that clients got, and the clock.
//!
//! The truth never comes from the resolver's own metrics. A figure is compared once it is large
//! enough for its share of what happens between two looks to be small.

use std::{fmt::Write as _, path::Path, time::Duration};

use anyhow::Context as _;
use clap::Parser;
use harness::{Load, Pipeline, Proxy, load::Running, wait};
use serde_json::{Value, json};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, interval, sleep, sleep_until},
};

use crate::{
    report::Report,
    stage::{Setup, Stage},
    visits::segments,
};

/// The time between two batches of redirects.
const BATCH_EVERY: Duration = Duration::from_millis(100);
/// Creates a second.
const CREATES: u32 = 10;
/// How far a gauge may be off.
const TOLERANCE: f64 = 0.05;
/// Seconds of an outage in which the few before it do not matter: those since the oldest visit that
/// was not stored yet when it began, and those since the server was last asked.
const UNSTORED: f64 = 100.0;
const UNASKED: f64 = 200.0;
/// How long a resolver may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(60);
/// How long everything may take to be as before.
const RECOVERED_WITHIN: Duration = Duration::from_secs(900);

/// The flags of `alerts outages`.
#[derive(Debug, Parser)]
pub(crate) struct Args {
    /// Let each server be away for this many minutes.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    minutes: u64,
    /// Send this many redirects a second.
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    rate: u32,
    /// Look this often, in seconds.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=300))]
    every: u64,
}

/// A server that goes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Server {
    Postgres,
    Clickhouse,
    Etcd,
    Issuers,
}

impl Server {
    const ALL: [Self; 4] = [Self::Postgres, Self::Clickhouse, Self::Etcd, Self::Issuers];

    /// Returns the value of the label `server`, if resolvers themselves call it.
    const fn label(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some("database"),
            Self::Clickhouse => Some("clickhouse"),
            Self::Issuers => Some("issuer"),
            Self::Etcd => None,
        }
    }
}

/// One gauge at one time.
struct Look {
    server: Server,
    after: Duration,
    gauge: String,
    said: f64,
    truth: f64,
    /// The truth has to reach this value for the comparison to mean something.
    least: f64,
}

impl Look {
    fn is_compared(&self) -> bool {
        self.truth >= self.least
    }

    /// Returns how far the gauge is off, as a share of the truth.
    fn off(&self) -> f64 {
        (self.said - self.truth).abs() / self.truth.max(f64::MIN_POSITIVE)
    }

    fn is_good(&self) -> bool {
        !self.is_compared() || self.off() <= TOLERANCE
    }
}

/// Lets each server be away in turn, and returns the report.
///
/// # Errors
/// Returns an error if a server does not start, or the platform does not recover.
pub(crate) async fn run(args: &Args, as_json: bool, tell: &dyn Fn(&str)) -> anyhow::Result<Report> {
    let mut stage = Stage::start(Setup::default(), 1).await?;
    stage.traffic.to([]);
    recovered(&stage).await?;
    let mut looks = Vec::new();
    for server in Server::ALL {
        tell(&format!("{server:?} is away for {} min", args.minutes));
        looks.extend(outage(&mut stage, server, args).await.with_context(|| format!("{server:?}"))?);
    }
    let compared: Vec<&Look> = looks.iter().filter(|look| look.is_compared()).collect();
    let bad = compared.iter().filter(|look| !look.is_good()).count();
    let text = if as_json { json_of(&looks) } else { table_of(&looks) };
    Ok(Report { text, bad, of: compared.len() })
}

async fn outage(stage: &mut Stage, server: Server, args: &Args) -> anyhow::Result<Vec<Look>> {
    let redirects = Redirects::start(stage, args.rate).await?;
    let creates = Load::on(&stage.cluster.resolvers).creates(usize::MAX).per_second(CREATES);
    let creates = creates.retries_unavailable().start();
    sleep(Duration::from_secs(5)).await;
    let before = Before::look(stage, &creates).await?;
    close(stage, server).await;
    let (began, mut looks) = (Instant::now(), Vec::new());
    let end = began + Duration::from_secs(args.minutes * 60);
    let mut next = began + Duration::from_secs(args.every);
    while next <= end {
        sleep_until(next).await;
        looks.extend(look(stage, server, began, &before, &creates).await?);
        next += Duration::from_secs(args.every);
    }
    let (sent, before) = redirects.stop().await?;
    let of = |gauge: &str, said, truth| {
        let after = began.elapsed();
        Look { server, after, gauge: gauge.to_owned(), said, truth, least: 1.0 }
    };
    looks.push(of(RECORDED, sum(stage, RECORDED).await? - before.recorded, sent));
    if server == Server::Postgres {
        let (said, truth) = end_one(stage).await?;
        looks.push(of("bytes left, by the log", said, truth));
    }
    creates.wind_down();
    open(stage, server).await?;
    if server == Server::Postgres {
        let last = stage.cluster.resolvers.last_mut().context("the resolver that has ended")?;
        last.restart().await?;
    }
    recovered(stage).await?;
    looks.push(of("visits counted afterwards", counted(stage).await? - before.counted, sent));
    Ok(looks)
}

/// Ends a resolver whose visits cannot be stored. Returns how many bytes it leaves in its spool by
/// its log, and by its files.
async fn end_one(stage: &mut Stage) -> anyhow::Result<(f64, f64)> {
    let last = stage.cluster.resolvers.last_mut().context("a resolver")?;
    last.stop(ENDS_WITHIN).await?;
    let log = last.process.stderr();
    let line = log.lines().rfind(|line| line.contains("stopped: ")).context("the log tells of no visits")?;
    let said = line.split("bytes=").nth(1).and_then(|rest| rest.split(' ').next()?.parse().ok());
    let said = said.with_context(|| format!("it counts no bytes: {line}"))?;
    Ok((said, bytes(stage.spools.last().context("a spool")?)?))
}

/// The state before a server went away.
struct Before {
    in_hand: f64,
    acknowledged: usize,
}

impl Before {
    async fn look(stage: &Stage, creates: &Running) -> anyhow::Result<Self> {
        let in_hand = sum(stage, "resolver_numbers_in_hand").await?;
        Ok(Self { in_hand, acknowledged: creates.acknowledged() })
    }
}

async fn look(
    stage: &Stage,
    server: Server,
    began: Instant,
    before: &Before,
    creates: &Running,
) -> anyhow::Result<Vec<Look>> {
    let after = began.elapsed();
    let of = |gauge: String, said, truth, least| Look { server, after, gauge, said, truth, least };
    let mut looks = Vec::new();
    for (spool, resolver) in stage.spools.iter().zip(&stage.cluster.resolvers) {
        let page = resolver.metrics().await?;
        let gauge = |name: &str| harness::metrics::sum(&page, name).unwrap_or(f64::NAN);
        let said = gauge("resolver_visit_spool_bytes");
        looks.push(of(format!("{}: spool_bytes", resolver.holder_id()), said, bytes(spool)?, 100_000.0));
        if server == Server::Postgres {
            let said = gauge("resolver_visit_oldest_waiting_seconds");
            let truth = began.elapsed().as_secs_f64();
            looks.push(of(format!("{}: oldest_waiting", resolver.holder_id()), said, truth, UNSTORED));
        }
        if let Some(label) = server.label() {
            let label = format!("server=\"{label}\"");
            let said = harness::metrics::sum_where(&page, SILENCE, &label).unwrap_or(f64::NAN);
            let truth = began.elapsed().as_secs_f64();
            looks.push(of(format!("{}: silence", resolver.holder_id()), said, truth, UNASKED));
        }
    }
    if server == Server::Clickhouse {
        let said = sum(stage, "resolver_visit_rows_waiting").await?;
        let (counted, stored) = (counted(stage).await?, stored(stage).await?);
        looks.push(of("rows_waiting".to_owned(), said, counted - stored, 1_000.0));
    }
    if matches!(server, Server::Etcd | Server::Issuers) {
        let used = f64::from(u32::try_from(creates.acknowledged() - before.acknowledged)?);
        let said = sum(stage, "resolver_numbers_in_hand").await?;
        looks.push(of("numbers_in_hand".to_owned(), said, before.in_hand - used, 100.0));
    }
    Ok(looks)
}

/// Seconds since a server last answered a resolver.
const SILENCE: &str = "resolver_last_success_age_seconds";
/// Visits that were recorded.
const RECORDED: &str = "resolver_visits_total";

async fn sum(stage: &Stage, name: &str) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for resolver in &stage.cluster.resolvers {
        sum += resolver.metric(name).await.with_context(|| format!("{name} is missing"))?;
    }
    Ok(sum)
}

fn bytes(spool: &Path) -> anyhow::Result<f64> {
    let mut bytes = 0;
    for segment in segments(spool)? {
        // A segment may have been stored and removed by now.
        bytes += segment.metadata().map_or(0, |file| file.len());
    }
    Ok(f64::from(u32::try_from(bytes)?))
}

/// Returns how many visits Postgres has counted.
async fn counted(stage: &Stage) -> anyhow::Result<f64> {
    let count = "SELECT coalesce(sum(total), 0)::float8 FROM visit_day WHERE kind = 0";
    Ok(stage.cluster.postgres.client().await?.query_one(count, &[]).await?.get(0))
}

/// Returns how many rows ClickHouse has, which answers at its own address throughout.
async fn stored(stage: &Stage) -> anyhow::Result<f64> {
    Ok(stage.clickhouse.query("SELECT count() FROM visits.visit").await?.parse()?)
}

/// Returns the proxies in front of a server.
fn in_front(stage: &Stage, server: Server) -> Vec<&Proxy> {
    match server {
        Server::Postgres => vec![stage.postgres_proxy()],
        Server::Clickhouse => vec![&stage.clickhouse_proxy],
        Server::Etcd => stage.etcd_proxies.iter().collect(),
        Server::Issuers => stage.cluster.issuer_proxies.iter().collect(),
    }
}

async fn close(stage: &Stage, server: Server) {
    for proxy in in_front(stage, server) {
        proxy.refuse().await;
        proxy.reset_all();
    }
}

async fn open(stage: &Stage, server: Server) -> anyhow::Result<()> {
    for proxy in in_front(stage, server) {
        proxy.accept().await?;
    }
    Ok(())
}

/// Waits until no visit waits in a spool, and none for ClickHouse.
async fn recovered(stage: &Stage) -> anyhow::Result<()> {
    wait::until(RECOVERED_WITHIN, "all visits are stored", async || {
        let waiting = sum(stage, "resolver_visit_blocks_waiting").await;
        let rows = sum(stage, "resolver_visit_rows_waiting").await;
        matches!((waiting, rows), (Ok(0.0), Ok(0.0)))
    })
    .await
}

/// Visits so far, by the resolvers and by Postgres.
struct Visits {
    recorded: f64,
    counted: f64,
}

/// Redirects at a steady rate, half of them through each resolver. Each has to be answered.
struct Redirects {
    is_over: watch::Sender<bool>,
    tasks: Vec<JoinHandle<anyhow::Result<u32>>>,
    before: Visits,
}

impl Redirects {
    async fn start(stage: &Stage, rate: u32) -> anyhow::Result<Self> {
        let before = Visits { recorded: sum(stage, RECORDED).await?, counted: counted(stage).await? };
        let code = stage.cluster.resolvers[0].api.create("https://example.com/").await?.code;
        let is_over = watch::Sender::new(false);
        let mut tasks = Vec::new();
        let each = rate / u32::try_from(stage.cluster.resolvers.len())?;
        for resolver in &stage.cluster.resolvers {
            let mut connection = Pipeline::connect(resolver.addr(), &code).await?;
            // The cache has the link from now on.
            connection.follow(1).await?;
            tasks.push(tokio::spawn(send(connection, each, is_over.subscribe())));
        }
        Ok(Self { is_over, tasks, before })
    }

    /// Stops them, and returns how many were answered, and the visits before the first one.
    async fn stop(self) -> anyhow::Result<(f64, Visits)> {
        self.is_over.send_replace(true);
        let mut sent = 0.0;
        for task in self.tasks {
            sent += f64::from(task.await.context("a sender ended early")??);
        }
        Ok((sent, self.before))
    }
}

async fn send(mut connection: Pipeline, rate: u32, is_over: watch::Receiver<bool>) -> anyhow::Result<u32> {
    let mut ticks = interval(BATCH_EVERY);
    let (begun, mut sent) = (Instant::now(), 0);
    while !*is_over.borrow() {
        ticks.tick().await;
        // Requests that a late tick left out are sent with the next one.
        let due = u32::try_from(begun.elapsed().as_millis() * u128::from(rate) / 1_000)?;
        connection.follow(usize::try_from(due - sent)?).await?;
        sent = due;
    }
    Ok(sent + 1)
}

fn json_of(looks: &[Look]) -> String {
    let looks = looks.iter().map(|look| {
        json!({
            "away": format!("{:?}", look.server), "after_s": look.after.as_secs_f64(), "gauge": look.gauge,
            "said": look.said, "truth": look.truth, "off": look.off(), "is_compared": look.is_compared(),
            "is_good": look.is_good(),
        })
    });
    format!("{:#}", json!({ "tolerance": TOLERANCE, "looks": looks.collect::<Vec<Value>>() }))
}

fn table_of(looks: &[Look]) -> String {
    let mut text = "| away | after | gauge | said | truth | off |\n|---|---|---|---|---|---|\n".to_owned();
    for look in looks {
        let off = match (look.is_compared(), look.is_good()) {
            (false, _) => "too small".to_owned(),
            (true, true) => format!("{:.2} %", look.off() * 100.0),
            (true, false) => format!("**{:.2} %**", look.off() * 100.0),
        };
        let (server, after, gauge) = (look.server, look.after.as_secs_f64(), &look.gauge);
        let _ = writeln!(
            text,
            "| {server:?} | {after:.0} s | {gauge} | {:.0} | {:.0} | {off} |",
            look.said, look.truth
        );
    }
    text
}
