//! How long the platform needs after a fault until it works as before, without help.
//!
//! 1. Creates, redirects of uncached links and redirects of cached ones are sent to one resolver at
//!    fixed times, whether or not earlier ones are answered, before, during and after each fault.
//! 2. The time counts from the end of the fault to the first answer after which no request failed.
//!    A fault that makes no request fail has no such time.
//! 3. A 404, or another URL than the link's own, is not a failure but a broken promise, and ends
//!    the run. So does an acknowledged link that does not resolve in the end.

mod fault;
mod probes;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use clap::ValueEnum as _;
use harness::{Cluster, checks};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{Report, links, progress, table::Table};
use fault::{Fault, Platform};
use probes::{Kind, Probes, Seen};

/// How long the probes run before a fault.
const BEFORE: Duration = Duration::from_secs(1);
/// For this long no request may fail before the platform is said to have recovered.
const STEADY: Duration = Duration::from_secs(2);
/// The time limit for a recovery.
const RECOVERY_WITHIN: Duration = Duration::from_secs(90);
const LOOK: Duration = Duration::from_millis(100);
/// Links that are created first and followed once each. More than all probes of a run need.
const UNCACHED: usize = 100_000;

/// The flags of `bench recovery`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Cause only these faults.
    #[arg(long, value_delimiter = ',', value_enum, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Let each fault last this many seconds.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// Send one request of each kind this often, in milliseconds.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    every: u64,
}

/// Observations of one fault.
struct Outcome {
    fault: Fault,
    seen: Vec<(Kind, Seen)>,
}

/// Starts the platform, causes the faults one after another, and reports.
///
/// # Errors
/// Returns an error if a server does not start, the platform does not recover, or a link is lost.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let outcomes = runtime.block_on(measure(args))?;
    progress::clear();
    Ok(report(args, &outcomes))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Outcome>> {
    progress::show("building and starting the platform …");
    let cluster = Cluster::builder().etcd(3).issuers(3).resolvers(2).behind_proxies().lease_ttl("2s");
    let cluster = cluster.postgres_setting("max_connections", fault::CONNECTIONS).start().await?;
    let uncached = links::create(&cluster.resolvers[0], UNCACHED).await?;
    let api = cluster.resolvers[1].api.clone();
    let mut platform = Platform::new(cluster);
    let probes = Arc::new(Probes::new(api, uncached).await?);
    let sending = tokio::spawn(Arc::clone(&probes).send(Duration::from_millis(args.every)));
    let faults = if args.fault.is_empty() { Fault::value_variants() } else { &args.fault };
    let (faults, without): (Vec<Fault>, Vec<Fault>) =
        faults.iter().partition(|fault| fault.applies_to(&platform.cluster));
    anyhow::ensure!(args.fault.is_empty() || without.is_empty(), "{without:?}: Postgres has no nodes");
    let mut outcomes = Vec::new();
    for fault in faults {
        let (number, text) = fault.number_and_text();
        progress::show(&format!("fault {number}: {text}"));
        let outcome = outcome(&mut platform, &probes, fault, Duration::from_secs(args.seconds)).await;
        outcomes.push(outcome.with_context(|| format!("fault {number}: {text}"))?);
    }
    sending.abort();
    let acknowledged = probes.acknowledged();
    progress::show(&format!("following all {} acknowledged links", acknowledged.len()));
    checks::all_distinct(&acknowledged)?;
    checks::all_resolve(&acknowledged, &platform.cluster.resolvers).await?;
    Ok(outcomes)
}

async fn outcome(
    platform: &mut Platform,
    probes: &Probes,
    fault: Fault,
    lasts: Duration,
) -> anyhow::Result<Outcome> {
    probes.forget();
    sleep(BEFORE).await;
    let struck = Instant::now();
    platform.strike(fault).await.context("cause it")?;
    sleep(lasts).await;
    let end = platform.mend(fault).await.context("end it")?;
    while !probes.are_steady(STEADY)? {
        anyhow::ensure!(end.elapsed() < RECOVERY_WITHIN, "it did not recover");
        sleep(LOOK).await;
    }
    let seen = Kind::ALL.map(|kind| (kind, probes.seen(kind, struck..end)));
    Ok(Outcome { fault, seen: seen.into() })
}

fn report(args: &Args, outcomes: &[Outcome]) -> Report {
    let mut table = Table::new(&["fault", "kind", "failed", "after 1 s", "slowest", "again after"]);
    for Outcome { fault, seen } in outcomes {
        let (number, text) = fault.number_and_text();
        for (index, (kind, seen)) in seen.iter().enumerate() {
            let name = format!("{number} {text}");
            table.row(vec![
                if index == 0 { name } else { String::new() },
                kind.name().to_owned(),
                format!("{} of {}", seen.failed, seen.sent),
                format!("{} of {}", seen.later.0, seen.later.1),
                format!("{} ms", seen.slowest.as_millis()),
                again(seen),
            ]);
        }
    }
    let text = format!(
        "Each fault lasts {} s; a request of each kind every {} ms. Times count from the fault's end.\n\
         After 1 s: the failures of what was sent later in the fault.\n\n{table}",
        args.seconds, args.every
    );
    let told = outcomes.iter().map(|Outcome { fault, seen }| {
        let kinds = seen.iter().map(|(kind, seen)| {
            let again_ms = seen.recovered.map(|time| time.as_millis());
            let slowest_ms = seen.slowest.as_millis();
            let told = json!({
                "sent": seen.sent, "failed": seen.failed, "later": seen.later, "slowest_ms": slowest_ms, "recovery_ms": again_ms,
            });
            (kind.name().to_owned(), told)
        });
        let kinds: serde_json::Map<_, _> = kinds.collect();
        let (number, text) = fault.number_and_text();
        json!({ "fault": number, "what": text, "kinds": kinds })
    });
    let told: Vec<_> = told.collect();
    let json = json!({ "bench": "recovery", "seconds": args.seconds, "faults": told });
    Report { text, json }
}

fn again(seen: &Seen) -> String {
    match seen.recovered {
        None => "not interrupted".to_owned(),
        Some(Duration::ZERO) => "before its end".to_owned(),
        Some(time) => format!("{:.2} s", time.as_secs_f64()),
    }
}
