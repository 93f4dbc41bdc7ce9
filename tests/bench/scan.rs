//! Popular links under load while another client scans random codes, as fast as responses arrive.

use std::fmt::Write as _;

use anyhow::Context;
use harness::{Load, Resolver, Scratch, secret};
use serde_json::json;

use crate::{
    Report, cores, create, progress,
    stats::median,
    table::{Table, grouped},
    wrk::Wrk,
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
    /// Run this many rounds and report the median.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Run each round for this many seconds.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
}

/// The figures of one round: the popular links' rate alone and during the scan, the scan's rate,
/// and the lookup counts of the scan.
struct Round {
    alone: f64,
    beside: f64,
    scanned: f64,
    counts: Counts,
}

/// Lookup counts: codes not found, those of them above the ceiling, links requested from the
/// database, and queries.
#[derive(Clone, Copy, Debug)]
struct Counts {
    not_found: f64,
    ruled_out: f64,
    asked: f64,
    queries: f64,
}

impl Counts {
    async fn now(resolver: &Resolver) -> anyhow::Result<Self> {
        let metric = async |name| resolver.metric(name).await.context("read a metric");
        Ok(Self {
            not_found: metric("resolver_not_found_total").await?,
            ruled_out: metric("resolver_codes_ruled_out_total").await?,
            asked: metric("resolver_links_asked_total").await?,
            queries: metric("resolver_link_reads_total").await?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            not_found: self.not_found - before.not_found,
            ruled_out: self.ruled_out - before.ruled_out,
            asked: self.asked - before.asked,
            queries: self.queries - before.queries,
        }
    }
}

/// Starts the servers, measures and reports.
///
/// # Errors
/// Returns an error if a server does not start, a program is not installed, or a popular link does
/// not redirect.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    let levels = crate::on_runtime(async {
        // The second level has no budget, so every code is looked up.
        anyhow::Ok([
            ("600 a minute", measure(args, "600").await?),
            ("without end", measure(args, "0").await?),
        ])
    })?;
    progress::clear();
    Ok(report(args, &levels))
}

async fn measure(args: &Args, budget: &str) -> anyhow::Result<Vec<Round>> {
    progress::show("building the resolver and starting the servers …");
    let scratch = Scratch::new()?;
    let postgres = create::database(&scratch, 0).await?;
    let builder = Resolver::builder(&scratch, "resolver", &secret::random_hex()?)?.database(&postgres.url());
    let resolver = builder.args(["--limit", &format!("unknown-codes-per-minute={budget}")]).start().await?;
    let created = Load::on([&resolver]).clients(64).creates(LINKS).run().await?;
    let popular: Vec<_> = created.iter().map(|link| format!("/{}", link.code)).collect();
    let (popular, random) =
        (Wrk::getting(&scratch, &popular)?, Wrk::getting_at_random(&scratch, &random_paths(100_000))?);
    let all = cores::all();
    let (url, hot, scanning) =
        (resolver.api.url(), usize::from(args.connections), usize::from(args.scanning));
    popular.load(url, &all, hot, WARM_UP).await?;
    random.load_whatever_is_answered(url, &all, scanning, WARM_UP).await?;
    let mut rounds = Vec::new();
    for round in 1..=args.rounds {
        progress::show(&format!("budget {budget}, round {round} of {}", args.rounds));
        let alone = popular.load(url, &all, hot, args.seconds).await?;
        let before = Counts::now(&resolver).await?;
        let (beside, scan) = tokio::try_join!(
            popular.load(url, &all, hot, args.seconds),
            random.load_whatever_is_answered(url, &all, scanning, args.seconds),
        )?;
        let counts = Counts::now(&resolver).await?.since(before);
        rounds.push(Round {
            alone: alone.requests / alone.seconds,
            beside: beside.requests / beside.seconds,
            scanned: scan.requests / scan.seconds,
            counts,
        });
    }
    Ok(rounds)
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

fn report(args: &Args, levels: &[(&str, Vec<Round>)]) -> Report {
    let columns = [
        "unknown codes",
        "alone/s",
        "beside a scan/s",
        "stays",
        "scanned/s",
        "looked up",
        "above the ceiling",
        "asked of the database",
    ];
    let mut table = Table::new(&columns);
    let (mut wanted, mut told) = (String::new(), Vec::new());
    for (index, (name, rounds)) in levels.iter().enumerate() {
        let of = |figure: fn(&Round) -> f64| median(rounds.iter().map(figure));
        let stays = of(|round| round.beside / round.alone);
        let sum = |count: fn(&Counts) -> f64| rounds.iter().map(|round| count(&round.counts)).sum::<f64>();
        let (looked_up, above, asked) = (sum(|c| c.not_found), sum(|c| c.ruled_out), sum(|c| c.asked));
        table.row(vec![
            (*name).to_owned(),
            grouped(of(|round| round.alone)),
            grouped(of(|round| round.beside)),
            format!("{stays:.2}"),
            grouped(of(|round| round.scanned)),
            grouped(looked_up),
            grouped(above),
            grouped(asked),
        ]);
        let mut line = |met: bool, what: &str| {
            let _ = writeln!(wanted, "{}: {what}", if met { "met" } else { "NOT MET" });
        };
        if index == 0 {
            line(
                stays >= STAYS,
                &format!("a scan slows popular links down by less than 10 %: {stays:.2} stays"),
            );
        }
        // Concurrent requests for the same code cause one database lookup, so this is an upper
        // bound.
        let met = above > 0.0 && asked <= looked_up - above;
        line(met, &format!("{name}: codes above the ceiling are not asked of the database"));
        let rounds = rounds.iter().map(|round| {
            json!({ "alone": round.alone, "beside": round.beside, "scanned": round.scanned, "queries": round.counts.queries, "not_found": round.counts.not_found, "ruled_out": round.counts.ruled_out, "asked": round.counts.asked })
        });
        told.push(json!({ "unknown_codes": name, "rounds": rounds.collect::<Vec<_>>() }));
    }
    let text = format!(
        "{} connections ask for {LINKS} links, {} for codes at random; {} rounds of {} s.\n\n{table}\n{wanted}",
        args.connections, args.scanning, args.rounds, args.seconds
    );
    Report { text, json: json!({ "bench": "scan", "levels": told }) }
}
