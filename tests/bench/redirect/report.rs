//! The report on the rounds: medians, ratios to nginx, and whether the targets are met.

use std::{fmt::Write as _, time::Duration};

use serde_json::{Value, json};

use super::{Args, server::Kind};
use crate::{
    Report,
    stats::median,
    table::{Table, grouped},
    wrk::Loaded,
};

/// The targets as multiples of nginx's figures.
const RATE_ONE_CORE: f64 = 0.97;
const RATE_TWO_CORES: f64 = 0.95;
const CPU: f64 = 1.05;
/// The target of a resolver with prefix links, as a multiple of one without.
const RATE_PREFIXES: f64 = 0.98;
const P99: f64 = 1.5;

/// The figures of one server in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    p999_us: f64,
    cpu_us: f64,
    resident_mib: f64,
}

impl Figures {
    pub(super) fn new(load: &Loaded, cpu: Duration, resident: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "bytes of memory, shown in MiB")]
        let resident_mib = resident as f64 / 1_048_576.0;
        Self {
            rate: load.requests / load.seconds,
            p50_us: load.p50_us,
            p99_us: load.p99_us,
            p999_us: load.p999_us,
            cpu_us: cpu.as_secs_f64() * 1e6 / load.requests,
            resident_mib,
        }
    }

    fn json(&self) -> Value {
        json!({
            "per_second": self.rate, "p50_us": self.p50_us, "p99_us": self.p99_us, "p999_us": self.p999_us,
            "cpu_us_per_request": self.cpu_us, "resident_mib": self.resident_mib,
        })
    }
}

/// All rounds with one number of threads and connections.
#[derive(Clone, Debug)]
pub(super) struct Level {
    threads: usize,
    connections: usize,
    rounds: Vec<(Kind, Figures)>,
    redirects: f64,
    events: f64,
}

impl Level {
    pub(super) fn new(threads: usize, connections: usize) -> Self {
        Self { threads, connections, rounds: Vec::new(), redirects: 0.0, events: 0.0 }
    }

    pub(super) fn add(&mut self, kind: Kind, figures: Figures) {
        self.rounds.push((kind, figures));
    }

    /// Adds the redirects of a round and the events consumed for them.
    pub(super) fn expect_events(&mut self, redirects: f64, events: f64) {
        self.redirects += redirects;
        self.events += events;
    }

    fn of(&self, kind: Kind) -> Vec<Figures> {
        self.rounds.iter().filter(|(other, _)| *other == kind).map(|(_, figures)| *figures).collect()
    }

    fn median(&self, kind: Kind, figure: fn(&Figures) -> f64) -> Option<f64> {
        let rounds = self.of(kind);
        rounds.first()?;
        Some(median(rounds.iter().map(figure)))
    }

    /// Returns the median of the per-round ratios to nginx. A slow round slows both, so the ratio
    /// holds.
    fn ratio(&self, kind: Kind, figure: fn(&Figures) -> f64) -> Option<f64> {
        self.ratio_to(Kind::Nginx, kind, figure)
    }

    fn ratio_to(&self, peer: Kind, kind: Kind, figure: fn(&Figures) -> f64) -> Option<f64> {
        let (ours, theirs) = (self.of(kind), self.of(peer));
        ours.first().and(theirs.first())?;
        Some(median(ours.iter().zip(&theirs).map(|(ours, theirs)| figure(ours) / figure(theirs))))
    }
}

/// Returns the report as a table and as JSON.
pub(super) fn report(args: &Args, levels: &[Level]) -> Report {
    let mut text = format!(
        "Redirects over {} links, {} rounds of {} s in turns; the load has a core of its own beside one thread, and shares the cores with two.\n\n{}",
        grouped(args.links.into()),
        args.rounds,
        args.seconds,
        table(levels),
    );
    for level in levels {
        let _ = writeln!(
            text,
            "events consumed with {} threads, {} connections: {} of {} redirects",
            level.threads,
            level.connections,
            grouped(level.events),
            grouped(level.redirects)
        );
    }
    let wanted = wanted(levels);
    for (what, got, met) in &wanted {
        let _ = writeln!(text, "{}: {what}: {got:.2}", if *met { "met" } else { "NOT MET" });
    }
    Report { text, json: json(args, levels, &wanted) }
}

fn table(levels: &[Level]) -> Table {
    let mut table = Table::new(&[
        "server",
        "threads",
        "conns",
        "per second",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "CPU µs",
        "MiB",
        "× nginx",
        "× CPU",
        "× p99",
    ]);
    for level in levels {
        for kind in Kind::ALL {
            let Some(rate) = level.median(kind, |f| f.rate) else { continue };
            let of = |figure: fn(&Figures) -> f64| level.median(kind, figure).unwrap_or_default();
            let ratio = |figure| level.ratio(kind, figure).map_or_else(String::new, |x| format!("{x:.2}"));
            table.row(vec![
                kind.name().to_owned(),
                level.threads.to_string(),
                level.connections.to_string(),
                grouped(rate),
                grouped(of(|f| f.p50_us)),
                grouped(of(|f| f.p99_us)),
                grouped(of(|f| f.p999_us)),
                format!("{:.2}", of(|f| f.cpu_us)),
                format!("{:.1}", of(|f| f.resident_mib)),
                ratio(|f| f.rate),
                ratio(|f| f.cpu_us),
                ratio(|f| f.p99_us),
            ]);
        }
    }
    table
}

/// Returns the targets, the measured values, and whether each target is met.
fn wanted(levels: &[Level]) -> Vec<(String, f64, bool)> {
    let mut lines = Vec::new();
    for level in levels {
        let place = format!("{} threads, {} connections", level.threads, level.connections);
        let rate = if level.threads == 1 { RATE_ONE_CORE } else { RATE_TWO_CORES };
        let ratio = |figure| level.ratio(Kind::Resolver, figure);
        lines.extend(
            ratio(|f| f.rate).map(|x| (format!("{place}, rate at least {rate} × nginx's"), x, x >= rate)),
        );
        if level.threads == 1 {
            lines.extend(
                ratio(|f| f.cpu_us).map(|x| (format!("{place}, CPU at most {CPU} × nginx's"), x, x <= CPU)),
            );
            lines.extend(
                ratio(|f| f.p99_us).map(|x| (format!("{place}, p99 at most {P99} × nginx's"), x, x <= P99)),
            );
        }
        lines.extend(level.ratio_to(Kind::Resolver, Kind::Prefixes, |f| f.rate).map(|x| {
            (format!("{place}, with prefix links at least {RATE_PREFIXES} × without"), x, x >= RATE_PREFIXES)
        }));
        let share = level.events / level.redirects;
        lines.push((format!("{place}, an event consumed per redirect"), share, share >= 1.0));
    }
    lines
}

fn json(args: &Args, levels: &[Level], wanted: &[(String, f64, bool)]) -> Value {
    let server = |level: &Level, kind: Kind| json!({ "server": kind.name(), "rounds": level.of(kind).iter().map(Figures::json).collect::<Vec<_>>() });
    let level = |level: &Level| {
        json!({
            "threads": level.threads, "connections": level.connections,
            "redirects": level.redirects, "events": level.events,
            "servers": Kind::ALL.map(|kind| server(level, kind)),
        })
    };
    let wanted = wanted.iter().map(|(what, got, met)| json!({ "what": what, "got": got, "met": met }));
    json!({
        "bench": "redirect", "links": args.links, "rounds": args.rounds, "seconds": args.seconds,
        "levels": levels.iter().map(level).collect::<Vec<_>>(), "wanted": wanted.collect::<Vec<_>>(),
    })
}
