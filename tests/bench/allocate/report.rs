//! The report on the rounds: medians, ratios, and whether the targets are met.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Args;
use crate::{
    Report,
    load::Round,
    named::named_values,
    stats::median,
    table::{Table, grouped},
};

/// The targets with 256 holders: rates as multiples of the other variants' rates, and the 99th
/// percentile.
const TIMES_GUARDED: f64 = 4.0;
const TIMES_SEGMENT: f64 = 15.0;
const P99_MS: f64 = 20.0;
/// The target with one holder, as a multiple of a guarded put's median latency.
const TIMES_LATENCY: f64 = 1.3;

named_values! {
    /// The variants compared.
    pub(super) enum Way {
        /// This build's issuer, with one call per allocation.
        Issuer => "issuer",
        /// Another build's issuer.
        Beside => "the other issuer",
        GuardedPut => "etcd guarded put",
        Segment => "Postgres segment row",
    }
}

/// The figures of one variant in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// The issuer's own transactions per second, and the allocations per transaction.
    transactions: Option<(f64, f64)>,
}

impl Figures {
    pub(super) fn new(round: &Round) -> Self {
        let percentile = |percent| round.latencies.percentile_ms(percent);
        Self { rate: round.rate, p50_ms: percentile(50), p99_ms: percentile(99), transactions: None }
    }

    /// Adds the number of transactions in which the allocations of the round were committed,
    /// warm-up included.
    #[must_use]
    pub(super) fn with_transactions(self, count: f64, round: &Round) -> Self {
        let operations = u32::try_from(round.operations).map_or(f64::INFINITY, f64::from);
        let each = operations / count;
        Self { transactions: Some((self.rate / each, each)), ..self }
    }

    fn json(&self) -> Value {
        json!({
            "per_second": self.rate,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "transactions_per_second": self.transactions.map(|(rate, _)| rate),
            "allocations_per_transaction": self.transactions.map(|(_, each)| each),
        })
    }
}

/// All rounds with one number of holders.
#[derive(Clone, Debug)]
pub(super) struct Level {
    holders: usize,
    rounds: Vec<(Way, Figures)>,
}

impl Level {
    pub(super) fn new(holders: usize) -> Self {
        Self { holders, rounds: Vec::new() }
    }

    pub(super) fn add(&mut self, way: Way, figures: Figures) {
        self.rounds.push((way, figures));
    }

    fn of(&self, way: Way) -> Vec<Figures> {
        self.rounds.iter().filter(|(other, _)| *other == way).map(|(_, figures)| *figures).collect()
    }

    /// Returns the median of each figure over the rounds; `None` if the variant was not measured.
    fn median(&self, way: Way) -> Option<Figures> {
        let rounds = self.of(way);
        rounds.first()?;
        let over = |figure: fn(&Figures) -> f64| median(rounds.iter().map(figure));
        let part =
            |part: fn((f64, f64)) -> f64| median(rounds.iter().filter_map(|f| f.transactions).map(part));
        Some(Figures {
            rate: over(|f| f.rate),
            p50_ms: over(|f| f.p50_ms),
            p99_ms: over(|f| f.p99_ms),
            transactions: rounds
                .iter()
                .any(|f| f.transactions.is_some())
                .then(|| (part(|(rate, _)| rate), part(|(_, each)| each))),
        })
    }

    /// Returns the median of the per-round ratios of the issuer to another variant. A slow round
    /// slows both, so the ratio holds.
    fn ratio(&self, way: Way, figure: fn(&Figures) -> f64) -> Option<f64> {
        let (ours, theirs) = (self.of(Way::Issuer), self.of(way));
        theirs.first()?;
        Some(median(ours.iter().zip(&theirs).map(|(ours, theirs)| figure(ours) / figure(theirs))))
    }
}

/// Returns the report as a table and as JSON.
pub(super) fn report(args: &Args, cores: usize, levels: &[Level]) -> Report {
    let mut text = heading(args, cores);
    for part in [rates(args, levels), ratios(levels)] {
        let _ = write!(text, "\n{part}");
    }
    let wanted = wanted(levels);
    if !wanted.is_empty() {
        text.push('\n');
    }
    for (what, got, met) in &wanted {
        let _ = writeln!(text, "{}: {what}: {got:.2}", if *met { "met" } else { "NOT MET" });
    }
    Report { text, json: json(args, levels, &wanted) }
}

fn heading(args: &Args, cores: usize) -> String {
    let placed = match cores {
        1 => "all share one core".to_owned(),
        _ => format!("the issuer has one core; load, etcd and Postgres share {}", cores - 1),
    };
    format!(
        "Durable allocations on one etcd member; {placed}.\n\
         Medians of {} rounds of {} s in turns; blocks of {} numbers; {} per ReturnBlocks call, whose time is in the rate.\n",
        args.rounds,
        args.seconds,
        grouped(args.block_len.into()),
        args.return_after,
    )
}

fn rates(args: &Args, levels: &[Level]) -> Table {
    let columns = ["way", "holders", "per second", "numbers/s", "p50 ms", "p99 ms", "txn/s", "per txn"];
    let mut table = Table::new(&columns);
    for level in levels {
        for way in Way::ALL {
            let Some(median) = level.median(way) else { continue };
            table.row(rate_row(args, level.holders, way, &median));
        }
    }
    table
}

fn rate_row(args: &Args, holders: usize, way: Way, median: &Figures) -> Vec<String> {
    // A guarded put hands out no numbers.
    let numbers = (way != Way::GuardedPut).then(|| grouped(median.rate * f64::from(args.block_len)));
    let (transactions, each) = median
        .transactions
        .map_or_else(Default::default, |(rate, each)| (grouped(rate), format!("{each:.1}")));
    vec![
        way.name().to_owned(),
        holders.to_string(),
        grouped(median.rate),
        numbers.unwrap_or_default(),
        format!("{:.2}", median.p50_ms),
        format!("{:.2}", median.p99_ms),
        transactions,
        each,
    ]
}

fn ratios(levels: &[Level]) -> Table {
    let mut table = Table::new(&["issuer beside", "holders", "× its rate", "× its p50"]);
    for level in levels {
        for way in [Way::Beside, Way::GuardedPut, Way::Segment] {
            let (Some(rate), Some(p50)) = (level.ratio(way, |f| f.rate), level.ratio(way, |f| f.p50_ms))
            else {
                continue;
            };
            let holders = level.holders.to_string();
            table.row(vec![way.name().to_owned(), holders, format!("{rate:.2}"), format!("{p50:.2}")]);
        }
    }
    table
}

/// Returns the targets, the measured values, and whether each target is met.
fn wanted(levels: &[Level]) -> Vec<(&'static str, f64, bool)> {
    let level = |holders| levels.iter().find(move |level| level.holders == holders);
    let mut lines = Vec::new();
    if let Some(many) = level(256) {
        let rate = |way| many.ratio(way, |f| f.rate);
        let p99 = many.median(Way::Issuer).map(|figures| figures.p99_ms);
        lines.extend(
            rate(Way::GuardedPut).map(|x| ("256 holders, at least 4 × guarded puts", x, x >= TIMES_GUARDED)),
        );
        lines.extend(
            rate(Way::Segment).map(|x| ("256 holders, at least 15 × the segment row", x, x >= TIMES_SEGMENT)),
        );
        if rate(Way::GuardedPut).is_some() {
            lines.extend(p99.map(|ms| ("256 holders, p99 at most 20 ms", ms, ms <= P99_MS)));
        }
    }
    if let Some(one) = level(1) {
        let p50 = one.ratio(Way::GuardedPut, |f| f.p50_ms);
        lines.extend(p50.map(|x| ("one holder, p50 at most 1.3 × a guarded put's", x, x <= TIMES_LATENCY)));
    }
    lines
}

fn json(args: &Args, levels: &[Level], wanted: &[(&str, f64, bool)]) -> Value {
    let of = |level: &Level, way: Way| {
        json!({
            "way": way.name(),
            "median": level.median(way).map(|figures| figures.json()),
            "rounds": level.of(way).iter().map(Figures::json).collect::<Vec<_>>(),
        })
    };
    let level =
        |level: &Level| json!({ "holders": level.holders, "ways": Way::ALL.map(|way| of(level, way)) });
    let wanted = wanted.iter().map(|(what, got, met)| json!({ "what": what, "got": got, "met": met }));
    json!({
        "bench": "allocate",
        "block_len": args.block_len,
        "return_after": args.return_after,
        "rounds": args.rounds,
        "seconds": args.seconds,
        "levels": levels.iter().map(level).collect::<Vec<_>>(),
        "wanted": wanted.collect::<Vec<_>>(),
    })
}
