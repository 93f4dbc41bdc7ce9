//! The interruption of allocations when the leading issuer crashes or hands over.
//!
//! Three issuers run on three etcd members. One caller per follower requests a block repeatedly
//! over an open connection, so the measurement covers the fail-over and not a connect: from the
//! signal to the first block that a successor allocated, its transaction committed. A crash must be
//! over within the lease's TTL plus one second, a hand-over within 100 ms.

mod caller;

use std::{fmt::Write as _, time::Duration};

use anyhow::Context;
use harness::{Cluster, wait};
use serde::Serialize;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use crate::Report;
use caller::Caller;

const SOON: Duration = Duration::from_secs(60);

/// The grace period after a crash, beyond the lease's TTL, that an operator may rely on.
const CRASH_GRACE: Duration = Duration::from_secs(1);
const HAND_OVER_WITHIN: Duration = Duration::from_millis(100);

/// The flags of `bench failover`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure each kind of fail-over this many times per TTL.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=30))]
    runs: u32,
    /// Measure with these TTLs of the leader lease, in seconds.
    #[arg(long, value_delimiter = ',', default_value = "2,5")]
    lease_ttl: Vec<u64>,
}

/// The cause of a fail-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Cause {
    /// SIGKILL: the lease must expire.
    Crash,
    /// SIGTERM: the leader resigns.
    HandOver,
}

/// All runs with one cause and one TTL.
#[derive(Debug, Serialize)]
struct Series {
    cause: Cause,
    lease_ttl_seconds: u64,
    /// The duration of each run, in run order.
    milliseconds: Vec<f64>,
    median_milliseconds: f64,
    worst_milliseconds: f64,
    /// The promised limit: on the worst run for crashes, on the median for hand-overs.
    promised_milliseconds: f64,
    kept: bool,
}

/// Measures and reports.
///
/// # Errors
/// Returns an error if a server does not start or no issuer leads in time.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let all = runtime.block_on(measure_all(args))?;
    Ok(Report { text: table(&all)?, json: serde_json::to_value(&all).context("write the figures as JSON")? })
}

async fn measure_all(args: &Args) -> anyhow::Result<Vec<Series>> {
    let mut all = Vec::new();
    for ttl in &args.lease_ttl {
        // No resolver: only the issuers' part is measured.
        let cluster = Cluster::builder().etcd(3).issuers(3).resolvers(0).lease_ttl(&format!("{ttl}s"));
        let mut cluster = cluster.start().await?;
        cluster.wait_leader(SOON).await?;
        let mut callers = Caller::one_for_each(&cluster).await?;
        for cause in [Cause::Crash, Cause::HandOver] {
            let mut times = Vec::new();
            for run in 0..args.runs {
                // Each kill falls at another point between two keep-alives of the lease.
                sleep(Duration::from_secs(*ttl) / 4 * run / args.runs).await;
                times.push(fail_over(&mut cluster, &mut callers, cause).await?);
            }
            all.push(Series::new(cause, *ttl, &times));
        }
    }
    Ok(all)
}

/// Measures one fail-over and restarts the former leader as a follower.
async fn fail_over(cluster: &mut Cluster, callers: &mut [Caller], cause: Cause) -> anyhow::Result<Duration> {
    let leader = cluster.wait_leader(SOON).await?;
    let mut asking = JoinSet::new();
    for (issuer, caller) in callers.iter_mut().enumerate().filter(|(issuer, _)| *issuer != leader) {
        caller.reaches_a_follower().await.with_context(|| format!("issuer {issuer} must follow"))?;
        asking.spawn(caller.clone().allocate_at_last());
    }
    let process = &mut cluster.issuers[leader].process;
    let went = Instant::now();
    match cause {
        Cause::Crash => process.kill_now()?,
        Cause::HandOver => process.terminate()?,
    }
    let first = timeout(SOON, asking.join_next()).await.context("nobody allocates any more")?;
    let allocated = first.context("nobody asked")?.context("a caller's task ended early")??;
    cluster.issuers[leader].process.wait_exit(SOON).await?;
    cluster.issuers[leader].restart().await?;
    // The connection to the former leader ended with it.
    for caller in callers.iter_mut() {
        caller.catch_up().await?;
    }
    wait::until(SOON, "one issuer leads", async || cluster.leader().await.is_some()).await?;
    Ok(allocated - went)
}

impl Series {
    fn new(cause: Cause, ttl: u64, times: &[Duration]) -> Self {
        let milliseconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e3).collect();
        let mut sorted = milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        } else {
            sorted[middle]
        };
        let worst = sorted[sorted.len() - 1];
        let (measured, promised) = match cause {
            Cause::Crash => (worst, Duration::from_secs(ttl) + CRASH_GRACE),
            Cause::HandOver => (median, HAND_OVER_WITHIN),
        };
        let promised = promised.as_secs_f64() * 1e3;
        Self {
            cause,
            lease_ttl_seconds: ttl,
            milliseconds,
            median_milliseconds: median,
            worst_milliseconds: worst,
            promised_milliseconds: promised,
            kept: measured <= promised,
        }
    }
}

fn table(all: &[Series]) -> anyhow::Result<String> {
    let mut text = String::new();
    let head = ["cause", "TTL", "median", "worst", "promised"];
    let [cause, ttl, median, worst, promised] = head;
    writeln!(text, "{cause:9} {ttl:>5} {median:>10} {worst:>10} {promised:>22}  each run, in ms")?;
    for series in all {
        let Series { cause, lease_ttl_seconds, median_milliseconds, worst_milliseconds, .. } = series;
        let (cause, of) = match cause {
            Cause::Crash => ("crash", "worst"),
            Cause::HandOver => ("hand-over", "median"),
        };
        let kept = if series.kept { "ok" } else { "LATE" };
        let promised = format!("{of} <= {:.0} {kept}", series.promised_milliseconds);
        let each: Vec<String> = series.milliseconds.iter().map(|time| format!("{time:.0}")).collect();
        let each = each.join(" ");
        writeln!(
            text,
            "{cause:9} {lease_ttl_seconds:>3} s {median_milliseconds:>7.1} ms {worst_milliseconds:>7.1} ms {promised:>22}  {each}"
        )?;
    }
    Ok(text)
}
