//! The report on the rounds: medians, ratios to pgbench, and whether the targets are met.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Args, Figures};
use crate::{
    Report,
    named::named_values,
    stats::median,
    table::{Table, grouped},
};

/// The targets as multiples of pgbench's figures: the rate by the number of clients, and the 99th
/// percentile.
const RATES: [(usize, f64); 2] = [(64, 1.3), (256, 1.8)];
const P99: f64 = 3.0;

/// The target for creates with a slug, as a multiple of the median of those without.
const SLUG_P50: f64 = 1.3;

named_values! {
    /// The variants compared.
    pub(super) enum Way {
        Resolver => "resolver, POST",
        /// The same, with slugs that are codes.
        Slugs => "resolver, POST with a slug",
        Pgbench => "pgbench, INSERT",
    }
}

/// All rounds with one number of clients and one flush delay.
pub(super) struct Level {
    clients: usize,
    flush_ms: u32,
    rounds: Vec<(Way, Figures)>,
}

impl Level {
    pub(super) fn new(clients: usize, flush_ms: u32) -> Self {
        Self { clients, flush_ms, rounds: Vec::new() }
    }

    pub(super) fn add(&mut self, way: Way, figures: Figures) {
        self.rounds.push((way, figures));
    }

    fn of(&self, way: Way) -> Vec<Figures> {
        self.rounds.iter().filter(|(other, _)| *other == way).map(|(_, figures)| *figures).collect()
    }

    fn median(&self, way: Way, figure: fn(&Figures) -> f64) -> Option<f64> {
        let rounds = self.of(way);
        rounds.first()?;
        Some(median(rounds.iter().map(figure)))
    }

    /// Returns the median of the resolver's per-round ratios to pgbench.
    fn ratio(&self, figure: fn(&Figures) -> f64) -> Option<f64> {
        self.ratio_of(Way::Resolver, Way::Pgbench, figure)
    }

    fn ratio_of(&self, one: Way, other: Way, figure: fn(&Figures) -> f64) -> Option<f64> {
        let (ours, theirs) = (self.of(one), self.of(other));
        theirs.first()?;
        Some(median(ours.iter().zip(&theirs).map(|(ours, theirs)| figure(ours) / figure(theirs))))
    }
}

/// Returns the report as a table and as JSON.
pub(super) fn report(args: &Args, levels: &[Level]) -> Report {
    let mut text = format!(
        "Links created, each durable before its answer; {} rounds of {} s in turns.\n\n{}",
        args.rounds,
        args.seconds,
        table(levels)
    );
    let wanted = wanted(levels);
    if !wanted.is_empty() {
        text.push('\n');
    }
    for (what, got, met) in &wanted {
        let _ = writeln!(text, "{}: {what}: {got:.2}", if *met { "met" } else { "NOT MET" });
    }
    Report { text, json: json(args, levels, &wanted) }
}

fn table(levels: &[Level]) -> Table {
    let mut table =
        Table::new(&["way", "clients", "flush ms", "per second", "p50 ms", "p99 ms", "× pgbench", "× p99"]);
    for level in levels {
        for way in Way::ALL {
            let Some(rate) = level.median(way, |f| f.rate) else { continue };
            let of = |figure: fn(&Figures) -> f64| level.median(way, figure).unwrap_or_default();
            let ratio = |figure: fn(&Figures) -> f64| {
                let ratio = level.ratio(figure).filter(|_| way == Way::Resolver);
                ratio.map_or_else(String::new, |x| format!("{x:.2}"))
            };
            table.row(vec![
                way.name().to_owned(),
                level.clients.to_string(),
                level.flush_ms.to_string(),
                grouped(rate),
                format!("{:.2}", of(|f| f.p50_ms)),
                format!("{:.2}", of(|f| f.p99_ms)),
                ratio(|f| f.rate),
                ratio(|f| f.p99_ms),
            ]);
        }
    }
    table
}

/// Returns the targets, the measured values, and whether each target is met. There are no targets
/// for a slower disk.
fn wanted(levels: &[Level]) -> Vec<(String, f64, bool)> {
    let mut lines = Vec::new();
    for level in levels.iter().filter(|level| level.flush_ms == 0) {
        let clients = level.clients;
        let p50 = level.ratio_of(Way::Slugs, Way::Resolver, |f| f.p50_ms);
        lines.extend(p50.map(|x| {
            (format!("{clients} clients, p50 with a slug at most {SLUG_P50} × without"), x, x <= SLUG_P50)
        }));
        let Some((clients, least)) = RATES.into_iter().find(|(clients, _)| *clients == level.clients) else {
            continue;
        };
        let rate = level.ratio(|f| f.rate);
        lines.extend(
            rate.map(|x| (format!("{clients} clients, rate at least {least} × pgbench's"), x, x >= least)),
        );
        let p99 = level.ratio(|f| f.p99_ms);
        lines.extend(p99.map(|x| (format!("{clients} clients, p99 at most {P99} × pgbench's"), x, x <= P99)));
    }
    lines
}

fn json(args: &Args, levels: &[Level], wanted: &[(String, f64, bool)]) -> Value {
    let round = |figures: Figures| json!({ "per_second": figures.rate, "p50_ms": figures.p50_ms, "p99_ms": figures.p99_ms });
    let way = |level: &Level, way: Way| json!({ "way": way.name(), "rounds": level.of(way).into_iter().map(round).collect::<Vec<_>>() });
    let level = |level: &Level| {
        json!({
            "clients": level.clients, "flush_ms": level.flush_ms,
            "ways": Way::ALL.map(|one| way(level, one)),
        })
    };
    let wanted = wanted.iter().map(|(what, got, met)| json!({ "what": what, "got": got, "met": met }));
    json!({
        "bench": "create", "rounds": args.rounds, "seconds": args.seconds,
        "levels": levels.iter().map(level).collect::<Vec<_>>(), "wanted": wanted.collect::<Vec<_>>(),
    })
}
