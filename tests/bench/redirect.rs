//! Redirects per second of a real resolver, compared with nginx's `return 302` and a bare hyper
//! server with a map.
//!
//! 1. With one thread the servers share core 0 in turns, and the load has core 1. With two, each
//!    server has one thread per core and shares the cores with the load, equally for all.
//! 2. The load requests every link in turn on persistent connections. nginx gives the same response
//!    for any path, so the links make no difference to it.
//! 3. The resolver runs as in production: metrics on, an event per redirect produced and consumed.

mod bare;
mod report;
mod server;

use anyhow::Context;
use harness::{Load, Resolver, Scratch};
use serde_json::json;

use crate::{Report, cores, progress, wrk::Wrk};
use report::{Figures, Level};
use server::{Kind, Server};

pub(crate) use bare::Args as BareArgs;
pub(crate) use bare::serve as serve_bare;

/// The warm-up before the first round of a server, in seconds: caches fill, and connections open.
const WARM_UP: u64 = 1;

/// The flags of `bench redirect`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep this many connections open; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "64,512", value_name = "N[,N…]")]
    connections: Vec<usize>,
    /// Request this many links in turn.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    links: u32,
    /// Run this many rounds and report the median: many short ones, because a machine's speed
    /// changes from second to second.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Measure each server for this many seconds per round.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Run each server with this many threads; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "1,2", value_name = "N[,N…]")]
    threads: Vec<usize>,
    /// Measure a second resolver, which has this many prefix links beside the links requested.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=10_000))]
    prefix_links: u16,
    /// Measure only the resolver, without nginx and the bare server, for profiling.
    #[arg(long)]
    resolver_only: bool,
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a request fails.
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
        let paths = create_links(&resolver, args.links).await?;
        let mut servers = vec![Server::of_resolver(Kind::Resolver, resolver)];
        let mut loads = vec![Wrk::getting(&scratch, &paths)?];
        // A folder of its own, because its links have other codes.
        let beside = Scratch::new()?;
        if args.prefix_links > 0 {
            let resolver = server::resolver(&beside, *threads).await?;
            create_prefix_links(&resolver, "go", args.prefix_links).await?;
            loads.push(Wrk::getting(&beside, &create_links(&resolver, args.links).await?)?);
            servers.push(Server::of_resolver(Kind::Prefixes, resolver));
        }
        if !args.resolver_only {
            servers.push(Server::nginx(&scratch, *threads).await?);
            servers.push(Server::bare(&scratch, *threads, &paths).await?);
        }
        for connections in &args.connections {
            levels.push(level(args, &mut servers, &loads, (*threads, *connections)).await?);
        }
    }
    progress::clear();
    Ok(levels)
}

/// Creates links, and returns their paths.
async fn create_links(resolver: &Resolver, links: u32) -> anyhow::Result<Vec<String>> {
    let links = usize::try_from(links).context("count the links")?;
    let created = Load::on([resolver]).clients(64).creates(links).run().await?;
    Ok(created.iter().map(|link| format!("/{}", link.code)).collect())
}

/// Creates links into whose URLs the path behind their names is filled.
pub(crate) async fn create_prefix_links(resolver: &Resolver, name: &str, links: u16) -> anyhow::Result<()> {
    for number in 0..links {
        let long_url = format!("https://example.org/{number}/{{1}}/{{rest}}");
        let link =
            json!({ "longUrl": long_url, "customSlug": format!("{name}-{number}"), "extraPath": "fill" });
        resolver.api.create_with(&link).await?;
    }
    Ok(())
}

/// Measures all rounds with one number of threads per server and one number of connections.
async fn level(
    args: &Args,
    servers: &mut [Server],
    loads: &[Wrk],
    (threads, connections): (usize, usize),
) -> anyhow::Result<Level> {
    let mut level = Level::new(threads, connections);
    // With one thread the load has the second core; with more it shares the servers' cores.
    let cores = if threads == 1 { "1".to_owned() } else { cores::list(0..=threads - 1) };
    // Only the second resolver has other links than the first.
    let wrk = |kind| &loads[usize::from(kind == Kind::Prefixes)];
    for server in servers.iter() {
        wrk(server.kind).load(&server.url, &cores, connections, WARM_UP).await?;
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
            let load = wrk(server.kind).load(&server.url, &cores, connections, args.seconds).await?;
            let cpu = server.cpu() - before;
            level.add(server.kind, Figures::new(&load, cpu, server.resident()));
            if server.kind == Kind::Resolver {
                level.expect_events(load.requests, server.events().await - events);
            }
        }
    }
    Ok(level)
}
