//! Redirects per second of a real resolver, beside nginx's `return 302` and a bare hyper server with a map.
//!
//! 1. On one core, the servers share core 0 and take turns; the load has core 1. On two, each server has one thread per core and shares
//!    them with the load, alike for all.
//! 2. The load asks for every link in turn, on connections that stay open; nginx answers any path with the same line, so for it the
//!    links make no difference.
//! 3. The resolver is as it is in service: metrics on, an event per redirect handed over and consumed.

mod bare;
mod report;
mod server;

use anyhow::Context;
use harness::{Load, Scratch};

use crate::{Report, cores, progress, wrk::Wrk};
use report::{Figures, Level};
use server::{Kind, Server};

pub(crate) use bare::Args as BareArgs;
pub(crate) use bare::serve as serve_bare;

/// Seconds before the first round of a server: caches fill, and connections open.
const WARM_UP: u64 = 1;

/// How to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Connections that are open at the same time; each number is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "64,512", value_name = "N[,N…]")]
    connections: Vec<usize>,
    /// Links that are asked for in turn.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    links: u32,
    /// Rounds, of which the median is told: many short ones, because machines change their speed from one second to the next.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How long each server is measured in each round, in seconds.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Threads of each server; each number is measured by itself.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N[,N…]")]
    threads: Vec<usize>,
    /// Measure the resolver only, without the two it is compared with: for profiling.
    #[arg(long)]
    resolver_only: bool,
}

/// Starts everything, measures and reports.
///
/// # Errors
/// A server does not start, a program is not installed, or a request was not answered with a redirect.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(measure(args))?;
    Ok(report::report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Level>> {
    let mut levels = Vec::new();
    for threads in &args.threads {
        progress::show("building the resolver and starting the servers …");
        let scratch = Scratch::new()?;
        let resolver = server::resolver(&scratch, *threads).await?;
        let links = usize::try_from(args.links).context("count the links")?;
        let created = Load::on([&resolver]).clients(64).creates(links).run().await?;
        let paths: Vec<_> = created.iter().map(|link| format!("/{}", link.code)).collect();
        let mut servers = vec![Server::of_resolver(resolver)];
        if !args.resolver_only {
            servers.push(Server::nginx(&scratch, *threads).await?);
            servers.push(Server::bare(&scratch, *threads, &paths).await?);
        }
        let wrk = Wrk::getting(&scratch, &paths)?;
        for connections in &args.connections {
            levels.push(level(args, &mut servers, &wrk, (*threads, *connections)).await?);
        }
    }
    progress::clear();
    Ok(levels)
}

/// All rounds with that many threads of each server and that many connections.
async fn level(
    args: &Args,
    servers: &mut [Server],
    wrk: &Wrk,
    (threads, connections): (usize, usize),
) -> anyhow::Result<Level> {
    let mut level = Level::new(threads, connections);
    // With one thread the load has the second core; with more it takes what there is.
    let cores = if threads == 1 { "1".to_owned() } else { cores::list(0..=threads - 1) };
    for server in servers.iter() {
        wrk.load(&server.url, &cores, connections, WARM_UP).await?;
    }
    for round in 1..=args.rounds {
        for server in servers.iter_mut() {
            let name = server.kind.name();
            progress::show(&format!(
                "{threads} threads, {connections} connections, round {round} of {}: {name}",
                args.rounds
            ));
            let events = server.events().await;
            let before = server.cpu();
            let load = wrk.load(&server.url, &cores, connections, args.seconds).await?;
            let cpu = server.cpu() - before;
            level.add(server.kind, Figures::new(&load, cpu, server.resident()));
            if server.kind == Kind::Resolver {
                level.expect_events(load.requests, server.events().await - events);
            }
        }
    }
    Ok(level)
}
