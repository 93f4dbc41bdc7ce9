//! The report on the rounds: medians, and ratios of this build to the other.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Args, Way};
use crate::{
    Report,
    stats::median,
    table::{Table, grouped},
};

/// The least rate of this build, as a fraction of the other's: on the same database, and on nodes
/// beside one Postgres, all on one machine.
const LEAST: f64 = 0.97;
const LEAST_ON_NODES: f64 = 0.5;

/// The figures of one side in one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) rate: f64,
    /// The processor time per request of the resolver and its Postgres, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) p99_ms: f64,
}

/// All rounds of one workload with one number of connections: this build, then the other.
pub(super) struct Level {
    pub(super) way: Way,
    pub(super) threads: usize,
    pub(super) connections: usize,
    pub(super) rounds: Vec<[Figures; 2]>,
}

impl Level {
    fn median(&self, side: usize, figure: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().map(|round| figure(&round[side])))
    }

    /// Returns the median of the per-round ratios of this build to the other.
    fn ratio(&self, figure: fn(&Figures) -> f64) -> f64 {
        median(self.rounds.iter().map(|[ours, theirs]| figure(ours) / figure(theirs)))
    }

    fn name(&self) -> String {
        format!("{:?}", self.way).to_lowercase()
    }
}

/// Returns the report as a table and as JSON.
pub(super) fn report(args: &Args, levels: &[Level]) -> Report {
    let columns = [
        "way",
        "threads",
        "connections",
        "per second",
        "other",
        "× rate",
        "CPU µs",
        "other",
        "× CPU",
        "× p99",
    ];
    let mut table = Table::new(&columns);
    let mut wanted = String::new();
    let least = if args.nodes > args.other_nodes { LEAST_ON_NODES } else { LEAST };
    for level in levels {
        let (rate, cpu) = (level.ratio(|f| f.rate), level.ratio(|f| f.cpu_us));
        table.row(vec![
            level.name(),
            level.threads.to_string(),
            level.connections.to_string(),
            grouped(level.median(0, |f| f.rate)),
            grouped(level.median(1, |f| f.rate)),
            format!("{rate:.3}"),
            format!("{:.2}", level.median(0, |f| f.cpu_us)),
            format!("{:.2}", level.median(1, |f| f.cpu_us)),
            format!("{cpu:.3}"),
            format!("{:.2}", level.ratio(|f| f.p99_ms)),
        ]);
        let met = if rate >= least { "met" } else { "NOT MET" };
        let _ = writeln!(
            wanted,
            "{met}: {}, {} threads, {} connections: at least {:.2} × the other's rate: {rate:.3}",
            level.name(),
            level.threads,
            level.connections,
            least
        );
    }
    let text = format!(
        "This build on {} beside {} on {}; {} rounds of {} s in turns.\n\n{table}\n{wanted}",
        database(args.nodes),
        args.resolver.as_ref().map_or_else(|| "itself".to_owned(), |binary| binary.display().to_string()),
        database(args.other_nodes),
        args.rounds,
        args.seconds
    );
    Report { text, json: json!({ "bench": "beside", "levels": levels.iter().map(told).collect::<Vec<_>>() }) }
}

fn database(nodes: u8) -> String {
    if nodes == 0 { "one Postgres".to_owned() } else { format!("{nodes} nodes of Citus") }
}

fn told(level: &Level) -> Value {
    let side = |f: &Figures| json!({ "per_second": f.rate, "cpu_us": f.cpu_us, "p99_ms": f.p99_ms });
    let rounds =
        level.rounds.iter().map(|[ours, theirs]| json!({ "ours": side(ours), "theirs": side(theirs) }));
    json!({
        "way": level.name(), "threads": level.threads, "connections": level.connections,
        "rounds": rounds.collect::<Vec<_>>(),
    })
}
