//! The effect of attacks on other clients: redirects at a steady rate during each attack alone, and
//! during all at once.
//!
//! 1. The resolver has as many file descriptors as most systems give a process by default.
//!    Attackers connect from their own loopback addresses, so that per-client limits treat them
//!    like remote attackers.
//! 2. Bystanders send requests at fixed times, whether or not the last response has arrived. A
//!    latency counts from the time at which a request was due, so a server that stalls for a second
//!    is measured as such.
//! 3. Memory is sampled ten times a second, and the report shows the peak.

mod bystander;
mod mount;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use harness::{Launch, Resolver, Scratch, binaries, procfs, secret};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{Report, links, progress, stats::Latencies, table::Table};
use bystander::Bystanders;
use mount::{Aim, Attack};

/// The default limit on open files of a process.
const DESCRIPTORS: u32 = 1_024;
/// The bystanders' rate in redirects per second.
const RATE: u32 = 1_000;
/// The target for the bystanders' 99th percentile.
const P99_MS: f64 = 20.0;
/// The budgets that a full resolver may hold in addition to twice its idle memory, in MiB: bodies
/// and cached links (`resolver/web/README.md`, "Budgets").
const BUDGETS_MIB: f64 = 128.0;
const LOOK: Duration = Duration::from_millis(100);
/// The pause between two attacks, in which the resolver frees what it held.
const REST: Duration = Duration::from_secs(2);
const KEY_WITHIN: Duration = Duration::from_secs(30);

/// The flags of `bench attack`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Mount each attack alone; both kinds of rounds run unless one of --each and --all is given.
    #[arg(long)]
    each: bool,
    /// Mount all attacks at once.
    #[arg(long)]
    all: bool,
    /// Run each attack for this many seconds.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

/// The bystanders' figures and the resolver's peak memory in one round.
struct Round {
    name: &'static str,
    redirects: usize,
    failed: usize,
    latencies: Latencies,
    peak: u64,
    /// The number of completed attacks: requests, connections or calls.
    strokes: u64,
}

/// Starts the resolver, measures and reports.
///
/// # Errors
/// Returns an error if the resolver does not start, or ends.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let (idle, rounds) = crate::on_runtime(measure(args))?;
    progress::clear();
    Ok(report(args, idle, &rounds))
}

async fn measure(args: &Args) -> anyhow::Result<(u64, Vec<Round>)> {
    progress::show("building and starting the resolver …");
    let scratch = Scratch::new()?;
    let builder = Resolver::builder(&scratch, "resolver", &secret::random_hex()?)?;
    let resolver = builder.descriptors(DESCRIPTORS).start().await?;
    let paths = links::create(&resolver, 100).await?;
    let idle = procfs::resident(resolver.process.pid()).context("look at the resolver's memory")?;
    let aim = Arc::new(prepare(&scratch, &resolver).await?);
    let length = Duration::from_secs(args.seconds);
    let alone = round("nothing", &resolver, &paths, length, &aim, &[]).await?;
    let mut rounds = vec![alone];
    if args.each || !args.all {
        for attack in Attack::ALL {
            rounds.push(round(attack.name(), &resolver, &paths, length, &aim, &[attack]).await?);
        }
    }
    if args.all || !args.each {
        rounds.push(round("all at once", &resolver, &paths, length, &aim, &Attack::ALL).await?);
    }
    Ok((idle, rounds))
}

/// Creates what the attacks need: links with long texts, and an API key for the attacker.
async fn prepare(scratch: &Scratch, resolver: &Resolver) -> anyhow::Result<Aim> {
    let launch = Launch::new(scratch, "api-key", binaries::resolver().await?);
    let scopes = ["api-key", "create", "--name", "attacker", "--scopes", "create,read,reserve"];
    let key = launch.args(scopes).run(KEY_WITHIN).await?.success()?.stdout.trim().to_owned();
    for part in 0..6 {
        progress::show(&format!("creating links with long texts: {} of 6,000", part * 1_000));
        let line = |number: u32| {
            let (path, title) = ("x".repeat(7_900), "t".repeat(250));
            format!("{{\"longUrl\":\"https://example.org/{part}/{number}/{path}\",\"title\":\"{title}\"}}\n")
        };
        let made = links::bulk(resolver, (0..1_000).map(line).collect()).await?;
        anyhow::ensure!(made.len() == 1_000, "a link was not created");
    }
    let parameters: String = (0..1_900).map(|number| format!("&{:x}", number % 256)).collect();
    let long_url = format!("https://example.org/?a{parameters}");
    let forwarding = json!({ "longUrl": long_url, "forwardQuery": true });
    let forwarding = resolver.api.create_with(&forwarding).await?.code;
    let repeating =
        json!({ "longUrl": format!("https://example.org/?{}", "a&".repeat(4_080)), "forwardQuery": true });
    let repeating = resolver.api.create_with(&repeating).await?.code;
    let locked = json!({ "longUrl": "https://example.org/", "password": "right" });
    let locked = resolver.api.create_with(&locked).await?.code;
    Ok(Aim::new(resolver.addr(), key, [forwarding, repeating, locked]))
}

async fn round(
    name: &'static str,
    resolver: &Resolver,
    paths: &[String],
    length: Duration,
    aim: &Arc<Aim>,
    attacks: &[Attack],
) -> anyhow::Result<Round> {
    progress::show(&format!("redirects beside an attack: {name}"));
    sleep(REST).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let mounted = mount::mount(Arc::clone(aim), attacks.to_vec(), Arc::clone(&is_over))?;
    // Gives the attackers time to take what they can before the bystanders are measured.
    sleep(REST).await;
    let before = aim.strokes();
    let bystanders = Bystanders::start(resolver.addr(), paths.to_vec(), RATE, length)?;
    let (until, mut peak) = (Instant::now() + length, 0);
    while Instant::now() < until {
        peak = peak.max(procfs::resident(resolver.process.pid()).context("look at the resolver's memory")?);
        sleep(LOOK).await;
    }
    let (samples, failed) = bystanders.end()?;
    let strokes = aim.strokes() - before;
    is_over.store(true, Ordering::Relaxed);
    mounted.join().map_err(|_| anyhow::anyhow!("the attackers' thread failed"))??;
    Ok(Round { name, redirects: samples.len(), failed, latencies: Latencies::new(samples), peak, strokes })
}

#[expect(clippy::cast_precision_loss, reason = "bytes of memory, shown in MiB")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

fn report(args: &Args, idle: u64, rounds: &[Round]) -> Report {
    let columns = ["attack", "redirects", "failed", "p50 ms", "p99 ms", "peak MiB", "strokes/s"];
    let (mut table, mut wanted) = (Table::new(&columns), String::new());
    let allowed = 2.0 * mib(idle) + BUDGETS_MIB;
    let mut line = |met: bool, what: String| {
        wanted.push_str(&format!("{}: {what}\n", if met { "met" } else { "NOT MET" }));
    };
    for round in rounds {
        let (p50, p99) = (round.latencies.percentile_ms(50), round.latencies.percentile_ms(99));
        table.row(vec![
            round.name.to_owned(),
            round.redirects.to_string(),
            round.failed.to_string(),
            format!("{p50:.2}"),
            format!("{p99:.2}"),
            format!("{:.0}", mib(round.peak)),
            (round.strokes / args.seconds).to_string(),
        ]);
        line(
            p99 <= P99_MS && round.failed == 0,
            format!("{}: 99 of 100 bystanders within {P99_MS} ms, none refused: {p99:.1}", round.name),
        );
        line(
            mib(round.peak) <= allowed,
            format!("{}: at most {allowed:.0} MiB: {:.0}", round.name, mib(round.peak)),
        );
    }
    let text = format!(
        "{RATE} redirects a second, {DESCRIPTORS} descriptors, {} s each; idle {:.0} MiB.\n\n{table}\n{wanted}",
        args.seconds,
        mib(idle)
    );
    let told = rounds.iter().map(|round| {
        json!({
            "attack": round.name, "redirects": round.redirects, "failed": round.failed, "strokes": round.strokes,
            "p50_ms": round.latencies.percentile_ms(50), "p99_ms": round.latencies.percentile_ms(99), "peak_bytes": round.peak,
        })
    });
    let json = json!({ "bench": "attack", "seconds": args.seconds, "idle_bytes": idle, "rounds": told.collect::<Vec<_>>() });
    Report { text, json }
}
