//! Durable allocations through a real issuer on one real etcd, beside what the same etcd and Postgres can do without it.
//!
//! 1. Four ways take turns in every round: the issuer over gRPC with a stream for the holders of each connection, and with
//!    a call for each allocation; etcd's own guarded puts, one key per client; a segment row in Postgres, as Leaf does it. All are durable before they answer.
//! 2. The issuer has a core of its own, as it has a machine of its own where it is used; etcd, Postgres and the load share the
//!    others. On few cores the load is part of what is measured, alike for all. Left to the scheduler, the cores that three
//!    processes wake each other on differ from run to run, and an allocation's latency by a fifth.
//! 3. A holder returns its blocks after every few allocations; the rate counts allocations only, and the time of returning
//!    lowers it.
//! 4. etcd's history is dropped before each round, so that no round pays for another's.

mod etcd;
mod issuer;
mod postgres;
mod report;

use std::time::Duration;

use anyhow::Context;
use harness::{EtcdCluster, Issuer, Postgres, Scratch, wait};

use crate::{
    Report, cores,
    load::{self, Round, Span, drive},
    progress,
};
use issuer::Manner;
use report::{Figures, Level, Way};

/// Eight gigabytes: between two compactions a round may write more than the two that etcd allows by default.
const QUOTA: &str = "--quota-backend-bytes=8589934592";
const LEADS_WITHIN: Duration = Duration::from_secs(30);

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// How many holders ask at the same time; each number is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256", value_name = "N[,N…]")]
    holders: Vec<usize>,
    /// Rounds, of which the median is told.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How long each way is measured in each round, in seconds; a fifth of it more is warm-up.
    #[arg(long, default_value_t = 3.0, value_parser = positive)]
    seconds: f64,
    /// How many numbers a block has, and how far the segment row moves. Rates of numbers are rates of blocks times this.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    block_len: u32,
    /// After how many allocations a holder returns them, in one call; it may have 64 open.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u8).range(1..=64))]
    return_after: u8,
    /// HTTP/2 connections that all holders share, with the issuer and with etcd.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..))]
    connections: u8,
    /// Threads that make the load.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    threads: u8,
    /// Measure the issuer only, without the two it is compared with: for profiling.
    #[arg(long)]
    issuer_only: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("expected seconds, got {text:?}"))?;
    if seconds > 0.0 && seconds < 3_600.0 { Ok(seconds) } else { Err("expected more than 0".to_owned()) }
}

/// The servers of one run, with what all clients need to know.
struct Ground {
    issuer: Issuer,
    postgres: Postgres,
    etcd: EtcdCluster,
}

/// Starts everything, measures and reports.
///
/// # Errors
/// A server does not start, or a call fails: an error is not an outcome to be averaged.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    // Before this process is kept on some of them.
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
        // Building it may use them all.
        harness::binaries::issuer().await?;
        if cores > 1 {
            cores::keep_on(&scratch, nix::unistd::Pid::this(), 0..=cores - 2).await?;
        }
        let etcd = EtcdCluster::builder(1).scratch(&scratch).arg(QUOTA).start().await?;
        let postgres = Postgres::builder().scratch(&scratch).start().await?;
        postgres::prepare(&postgres, args.block_len.into()).await?;
        let len = args.block_len.to_string();
        let issuer = Issuer::builder(&scratch, "issuer", &etcd.endpoints())?
            .args(["--block-min", &len, "--block-max", &len])
            .lease_ttl("5s")
            // No holder is silent for so long between its rounds.
            .holder_ttl("10h");
        let issuer = issuer.start().await?;
        if cores > 1 {
            cores::keep_on(&scratch, issuer.process.pid(), cores - 1..=cores - 1).await?;
        }
        wait::until(LEADS_WITHIN, "the issuer leads", async || issuer.says_it_leads().await).await?;
        Ok(Self { issuer, postgres, etcd })
    }

    /// All rounds with that many holders.
    async fn level(&self, args: &Args, holders: usize) -> anyhow::Result<Level> {
        let (url, endpoint, connections) =
            (self.issuer.url(), self.etcd.endpoints(), usize::from(args.connections));
        let blocks = (args.block_len.into(), usize::from(args.return_after));
        let mut streaming = issuer::holders(&url, holders, connections, Manner::Stream, blocks).await?;
        let mut calling = issuer::holders(&url, holders, connections, Manner::Calls, blocks).await?;
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
            for (way, allocating) in [(Way::Issuer, &mut streaming), (Way::Calls, &mut calling)] {
                show(way);
                etcd::compact(&endpoint).await?;
                let before = self.transactions().await?;
                let measured = turn(allocating, args).await?;
                let transactions = self.transactions().await? - before;
                level.add(way, Figures::new(&measured).with_transactions(transactions, &measured));
            }
            if args.issuer_only {
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

    /// Transactions that the issuer has committed.
    async fn transactions(&self) -> anyhow::Result<f64> {
        let count = self.issuer.metric_where("issuer_transactions_total", "result=\"ok\"").await;
        count.context("the issuer tells how many transactions it committed")
    }
}

async fn turn<C: load::Client>(clients: &mut Vec<C>, args: &Args) -> anyhow::Result<Round> {
    let length = Duration::from_secs_f64(args.seconds);
    let (back, round) = drive(std::mem::take(clients), Span { warm_up: length / 5, length }).await?;
    *clients = back;
    Ok(round)
}
