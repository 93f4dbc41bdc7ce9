//! Popular links under load while another client scans random codes, as fast as responses arrive.

use std::{fmt::Write as _, time::Duration};

use anyhow::Context;
use codes::{KeyspaceIndex, LinkId};
use harness::{Load, Postgres, Resolver, Scratch, procfs, secret};
use serde_json::json;

use crate::{
    Report, cores, create, progress,
    redirect::create_prefix_links,
    stats::median,
    table::{Table, grouped},
    wrk::{Loaded, Wrk},
};

const LINKS: usize = 1_000;
const WARM_UP: u64 = 1;
/// The target: the fraction of the rate that is left during a scan, with the default budget for
/// unknown codes.
const STAYS: f64 = 0.9;
const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The flags of `bench scan`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Args {
    /// Request popular links on this many connections.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4_000))]
    connections: u16,
    /// Scan on this many connections.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4_000))]
    scanning: u16,
    /// Scan on behalf of this many clients; each value is measured separately.
    #[arg(long, value_delimiter = ',', default_value = "1,1000", value_name = "N[,N…]", value_parser = clap::value_parser!(u16).range(1..=50_000))]
    clients: Vec<u16>,
    /// Fill the database with this many other links first.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=1_000_000_000))]
    links: u64,
    /// Measure everything again with this many prefix links.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=10_000))]
    prefix_links: u16,
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run each round for this many seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// The figures of one round: the popular links' rates and latencies alone and during the scan, the
/// scan's rate, the processor time that Postgres used during the scan, and the lookup counts.
struct Round {
    alone: Loaded,
    beside: Loaded,
    scanned: f64,
    postgres: Duration,
    counts: Counts,
}

/// Who scans: how many clients, with which budget of unknown codes a minute, 0 for none; and how
/// many prefix links there are.
#[derive(Clone, Copy, Debug)]
struct Way {
    clients: u16,
    budget: &'static str,
    prefix_links: u16,
}

/// Lookup counts: codes not found, links requested from the database, and queries.
#[derive(Clone, Copy, Debug)]
struct Counts {
    not_found: f64,
    asked: f64,
    queries: f64,
}

impl Counts {
    async fn now(resolver: &Resolver) -> anyhow::Result<Self> {
        let metric = async |name| resolver.metric(name).await.context("read a metric");
        Ok(Self {
            not_found: metric("resolver_not_found_total").await?,
            asked: metric("resolver_links_asked_total").await?,
            queries: metric("resolver_link_reads_total").await?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            not_found: self.not_found - before.not_found,
            asked: self.asked - before.asked,
            queries: self.queries - before.queries,
        }
    }
}

impl Way {
    fn allowance(self) -> String {
        if self.budget == "0" { "no limit".to_owned() } else { format!("{} a minute each", self.budget) }
    }
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a popular link does
/// not redirect.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(measure(args))?;
    progress::clear();
    Ok(report(args, &levels))
}

async fn measure(args: &Args) -> anyhow::Result<Vec<(Way, Vec<Round>)>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    fill(&postgres, args.links).await?;
    let (mut levels, key) = (Vec::new(), secret::random_hex()?);
    let prefix_links = if args.prefix_links > 0 { vec![0, args.prefix_links] } else { vec![0] };
    // Without a budget, every code is looked up.
    for budget in ["600", "0"] {
        for clients in args.clients.iter().copied() {
            for prefix_links in prefix_links.iter().copied() {
                let way = Way { clients, budget, prefix_links };
                levels.push((way, measure_way(args, &scratch, (&postgres, &key), way).await?));
            }
        }
    }
    Ok(levels)
}

/// Inserts links without their numbers having been issued, far behind the first ones that a
/// resolver gets.
async fn fill(postgres: &Postgres, links: u64) -> anyhow::Result<()> {
    const AT_ONCE: u64 = 1_000_000;
    const FIRST: u64 = 1_000_000_000;
    let client = postgres.client().await?;
    for begun in (0..links).step_by(usize::try_from(AT_ONCE)?) {
        progress::show(&format!("{} of {} links", grouped_count(begun), grouped_count(links)));
        let (first, last) = (FIRST + begun, FIRST + links.min(begun + AT_ONCE) - 1);
        let of = |number| LinkId::new(KeyspaceIndex::new(1).expect("1 is an index"), number).get();
        let rows = format!(
            "INSERT INTO link (id, long_url, crawlable, forward_query, created_by)
             SELECT id, 'https://example.org/some/where/' || id, false, true, 1
             FROM generate_series({}::bigint, {}::bigint) AS id",
            of(first),
            of(last)
        );
        client.batch_execute(&rows).await.context("fill the table of links")?;
    }
    client.batch_execute("VACUUM ANALYZE link").await.context("vacuum")?;
    client.batch_execute("CHECKPOINT").await.context("write a checkpoint")
}

fn grouped_count(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "counts of rows stay far below 2^52")]
    grouped(count as f64)
}

async fn measure_way(
    args: &Args,
    scratch: &Scratch,
    (postgres, key): (&Postgres, &str),
    way: Way,
) -> anyhow::Result<Vec<Round>> {
    let name = format!("resolver-{}-{}-{}", way.clients, way.budget, way.prefix_links);
    let builder = Resolver::builder(scratch, &name, key)?.database(&postgres.url());
    let limit = format!("unknown-codes-per-minute={}", way.budget);
    let resolver = builder.args(["--limit", &limit, "--trusted-proxies", "127.0.0.0/8"]).start().await?;
    create_prefix_links(&resolver, &name, way.prefix_links).await?;
    let created = Load::on([&resolver]).clients(64).creates(LINKS).run().await?;
    let popular: Vec<_> = created.iter().map(|link| format!("/{}", link.code)).collect();
    let popular = Wrk::getting(scratch, &popular)?;
    let random = Wrk::forwarding_at_random(scratch, &random_paths(100_000), way.clients.into())?;
    let all = cores::all();
    let (url, hot, scanning) =
        (resolver.api.url(), usize::from(args.connections), usize::from(args.scanning));
    popular.load(url, &all, hot, WARM_UP).await?;
    random.load_whatever_is_answered(url, &all, scanning, WARM_UP).await?;
    let mut rounds = Vec::new();
    for round in 1..=args.rounds {
        progress::show(&format!("{way:?}, round {round} of {}", args.rounds));
        let alone = popular.load(url, &all, hot, args.seconds).await?;
        let (before, used) = (Counts::now(&resolver).await?, cpu_time(postgres));
        let (beside, scan) = tokio::try_join!(
            popular.load(url, &all, hot, args.seconds),
            random.load_whatever_is_answered(url, &all, scanning, args.seconds),
        )?;
        let counts = Counts::now(&resolver).await?.since(before);
        let (scanned, postgres) = (scan.requests / scan.seconds, cpu_time(postgres).saturating_sub(used));
        rounds.push(Round { alone, beside, scanned, postgres, counts });
    }
    Ok(rounds)
}

/// Returns the processor time that the processes of Postgres have used so far.
fn cpu_time(postgres: &Postgres) -> Duration {
    let children = procfs::children(postgres.pid());
    children.iter().filter_map(|child| procfs::cpu_time(child.pid)).sum()
}

/// Returns paths of codes spread over the keyspace, the same in every run (Knuth's multiplicative
/// hash).
fn random_paths(count: u64) -> Vec<String> {
    let code = |number: u64| {
        let mut rest = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
        let digit = |_| {
            let place = usize::try_from(rest % 62).unwrap_or(0);
            rest /= 62;
            char::from(ALPHABET[place])
        };
        format!("/{}", (0..6).map(digit).collect::<String>())
    };
    (1..=count).map(code).collect()
}

fn report(args: &Args, levels: &[(Way, Vec<Round>)]) -> Report {
    let columns = [
        "clients",
        "unknown codes",
        "prefix links",
        "alone/s",
        "stays",
        "p99 alone, ms",
        "beside a scan",
        "scanned/s",
        "looked up",
        "asked of the database",
        "queries",
        "Postgres, cores",
    ];
    let mut table = Table::new(&columns);
    let (mut wanted, mut told) = (String::new(), Vec::new());
    for (way, rounds) in levels {
        let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
        let stays = of(|round| rate(round.beside) / rate(round.alone));
        let sum = |count: fn(&Counts) -> f64| rounds.iter().map(|round| count(&round.counts)).sum::<f64>();
        let (looked_up, asked, queries) = (sum(|c| c.not_found), sum(|c| c.asked), sum(|c| c.queries));
        let cores = of(|round| round.postgres.as_secs_f64() / round.beside.seconds);
        table.row(vec![
            way.clients.to_string(),
            way.allowance(),
            way.prefix_links.to_string(),
            grouped(of(|round| rate(round.alone))),
            format!("{stays:.2}"),
            format!("{:.2}", of(|round| round.alone.p99_us) / 1e3),
            format!("{:.2}", of(|round| round.beside.p99_us) / 1e3),
            grouped(of(|round| round.scanned)),
            grouped(looked_up),
            grouped(asked),
            grouped(queries),
            format!("{cores:.3}"),
        ]);
        if way.clients == 1 && way.budget != "0" {
            let met = if stays >= STAYS { "met" } else { "NOT MET" };
            let _ = writeln!(
                wanted,
                "{met}: a client that scans slows popular links down by less than 10 %: {stays:.2} stays"
            );
        }
        let rounds = rounds.iter().map(|round| {
            json!({ "alone": rate(round.alone), "beside": rate(round.beside), "scanned": round.scanned, "alone_p99_us": round.alone.p99_us, "beside_p99_us": round.beside.p99_us, "postgres_seconds": round.postgres.as_secs_f64(), "queries": round.counts.queries, "not_found": round.counts.not_found, "asked": round.counts.asked })
        });
        let rounds = rounds.collect::<Vec<_>>();
        told.push(json!({ "clients": way.clients, "unknown_codes": way.budget, "prefix_links": way.prefix_links, "rounds": rounds }));
    }
    let text = format!(
        "{} connections ask for {LINKS} links, {} for codes at random, beside {} other links; {} rounds of {} s.\n\n{table}\n{wanted}",
        args.connections,
        args.scanning,
        grouped_count(args.links),
        args.rounds,
        args.seconds
    );
    Report { text, json: json!({ "bench": "scan", "levels": told }) }
}

fn rate(load: Loaded) -> f64 {
    load.requests / load.seconds
}
