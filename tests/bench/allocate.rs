//! Durable allocations through a real issuer on a single real etcd member, compared with what etcd
//! and Postgres do on their own.
//!
//! 1. Three variants take turns in every round: the issuer over gRPC with one call per allocation,
//!    as resolvers make them; guarded puts directly on etcd, one key per client; a segment row in
//!    Postgres, as in Leaf. All are durable before they respond. With `--beside` another build of
//!    the issuer, with its own etcd, replaces the last two.
//! 2. The issuer has its own core, because in production it has its own machine. etcd, Postgres and
//!    the load share the other cores. On few cores the load is part of the measurement, equally for
//!    all. If the scheduler places the three processes, the cores on which they wake each other
//!    differ from run to run, and an allocation's latency by a fifth.
//! 3. A holder returns its blocks after every few allocations. The rate counts only allocations,
//!    and the time for returns lowers it.
//! 4. etcd's history is compacted before each round, so that no round pays for an earlier one.

mod etcd;
mod issuer;
mod postgres;
mod report;

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use harness::{EtcdCluster, Issuer, Postgres, Scratch, wait};

use crate::{
    Report, cores,
    load::{self, Round, Span, drive},
    progress,
};
use report::{Figures, Level, Way};

/// etcd's flag for a database quota of 8 GiB: between two compactions a round may write more than
/// the default of 2 GiB.
const QUOTA: &str = "--quota-backend-bytes=8589934592";
const LEADS_WITHIN: Duration = Duration::from_secs(30);

/// The flags of `bench allocate`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Measure with this many concurrent holders; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256", value_name = "N[,N…]")]
    holders: Vec<usize>,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Measure each variant for this many seconds per round, after a warm-up of a fifth of that.
    #[arg(long, default_value_t = 3.0, value_parser = positive)]
    seconds: f64,
    /// Allocate blocks of this many numbers, and advance the segment row by as many. A rate in
    /// numbers is the rate in blocks times this value.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    block_len: u32,
    /// Return the blocks after this many allocations, in one call; a holder may have 64 open.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=64))]
    return_after: u8,
    /// Share this many HTTP/2 connections among all holders, to the issuer and to etcd.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    connections: u8,
    /// Generate the load on this many threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    threads: u8,
    /// Measure only the issuer, without etcd and Postgres, for profiling.
    #[arg(long)]
    issuer_only: bool,
    /// Measure another build of the issuer in turns with this one, instead of etcd and Postgres.
    #[arg(long, value_name = "FILE")]
    beside: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("expected seconds, got {text:?}"))?;
    if seconds > 0.0 && seconds < 3_600.0 { Ok(seconds) } else { Err("expected more than 0".to_owned()) }
}

/// The servers of a run.
struct Ground {
    /// This build's issuer with its etcd, then the build that it is compared with, if any.
    issuers: Vec<(Issuer, EtcdCluster)>,
    postgres: Postgres,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start or a call fails: an error is not an outcome to
/// average.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    // Counted before this process is pinned to some of them.
    let cores = cores::count();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(usize::from(args.threads)).enable_all().build();
    let levels = runtime.context("start the runtime")?.block_on(measure(args))?;
    Ok(report::report(args, cores, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    progress::show("building the issuer and starting the servers …");
    let ground = Ground::start(args).await?;
    let mut levels = Vec::new();
    for holders in &args.holders {
        levels.push(ground.level(args, *holders).await?);
    }
    progress::clear();
    Ok(levels)
}

impl Ground {
    async fn start(args: &Args) -> anyhow::Result<Self> {
        let scratch = Scratch::new()?;
        let cores = cores::count();
        // The build may use all cores, so it runs before the pinning.
        harness::binaries::issuer().await?;
        if cores > 1 {
            cores::keep_on(&scratch, nix::unistd::Pid::this(), 0..=cores - 2).await?;
        }
        let postgres = Postgres::builder().scratch(&scratch).start().await?;
        postgres::prepare(&postgres, args.block_len.into()).await?;
        let mut issuers = vec![start_issuer(&scratch, args, None, cores).await?];
        if let Some(binary) = &args.beside {
            issuers.push(start_issuer(&scratch, args, Some(binary), cores).await?);
        }
        Ok(Self { issuers, postgres })
    }

    /// Measures all rounds with one number of holders.
    async fn level(&self, args: &Args, holders: usize) -> anyhow::Result<Level> {
        let connections = usize::from(args.connections);
        let blocks = (args.block_len.into(), usize::from(args.return_after));
        let mut calling = Vec::new();
        for (issuer, _) in &self.issuers {
            calling.push(issuer::holders(&issuer.url(), holders, connections, blocks).await?);
        }
        let endpoint = self.issuers[0].1.endpoints();
        let mut putting = etcd::clients(&endpoint, holders, connections).await?;
        let mut raising = postgres::clients(&self.postgres, holders).await?;
        let mut level = Level::new(holders);
        for round in 1..=args.rounds {
            let show = |way: Way| {
                progress::show(&format!(
                    "{holders} holders, round {round} of {}: {}",
                    args.rounds,
                    way.name()
                ));
            };
            for (index, way) in [Way::Issuer, Way::Beside].into_iter().take(self.issuers.len()).enumerate() {
                show(way);
                let (issuer, etcd) = &self.issuers[index];
                etcd::compact(&etcd.endpoints()).await?;
                let before = transactions(issuer).await?;
                let measured = turn(&mut calling[index], args).await?;
                let transactions = transactions(issuer).await? - before;
                level.add(way, Figures::new(&measured).with_transactions(transactions, &measured));
            }
            if args.issuer_only || args.beside.is_some() {
                continue;
            }
            show(Way::GuardedPut);
            etcd::compact(&endpoint).await?;
            level.add(Way::GuardedPut, Figures::new(&turn(&mut putting, args).await?));
            show(Way::Segment);
            level.add(Way::Segment, Figures::new(&turn(&mut raising, args).await?));
        }
        Ok(level)
    }
}

/// Starts an issuer of this build, or of another one, on its own etcd. The last of the machine's
/// `cores` is the issuer's alone. They are counted by the caller, before it is pinned itself.
async fn start_issuer(
    scratch: &Scratch,
    args: &Args,
    binary: Option<&PathBuf>,
    cores: usize,
) -> anyhow::Result<(Issuer, EtcdCluster)> {
    let etcd = EtcdCluster::builder(1).scratch(scratch).arg(QUOTA).start().await?;
    let len = args.block_len.to_string();
    let name = if binary.is_some() { "beside" } else { "issuer" };
    let builder = Issuer::builder(scratch, name, &etcd.endpoints())?
        .args(["--block-min", &len, "--block-max", &len])
        .lease_ttl("5s")
        // Longer than any holder is silent between its rounds.
        .holder_ttl("10h");
    let builder = match binary {
        Some(binary) => builder.binary(binary),
        None => builder,
    };
    let issuer = builder.start().await?;
    if cores > 1 {
        cores::keep_on(scratch, issuer.process.pid(), cores - 1..=cores - 1).await?;
    }
    wait::until(LEADS_WITHIN, "the issuer leads", async || issuer.says_it_leads().await).await?;
    Ok((issuer, etcd))
}

/// Returns the number of transactions that an issuer has committed.
async fn transactions(issuer: &Issuer) -> anyhow::Result<f64> {
    let count = issuer.metric_where("issuer_transactions_total", "result=\"ok\"").await;
    count.context("the issuer tells how many transactions it committed")
}

async fn turn<C: load::Client>(clients: &mut Vec<C>, args: &Args) -> anyhow::Result<Round> {
    let length = Duration::from_secs_f64(args.seconds);
    let (back, round) = drive(std::mem::take(clients), Span { warm_up: length / 5, length }).await?;
    *clients = back;
    Ok(round)
}
