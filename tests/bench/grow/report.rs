//! The report on a run: rates on the grown and the small table, and whether the target is met.

use std::fmt::Write as _;

use serde_json::json;

use super::Args;
use crate::{
    Report,
    named::named_values,
    stats::median,
    table::{Table, grouped},
};

/// The target: the fraction of its rate on a small table that each of our workloads keeps.
const KEPT: f64 = 0.9;

named_values! {
    /// The workloads.
    #[derive(clap::ValueEnum)]
    pub(super) enum Way {
        /// Links created over HTTP.
        Create => "resolver, POST",
        /// Redirects of links that are not cached.
        Miss => "resolver, GET of what is not cached",
        /// Inserts into a table keyed by number.
        InsertByNumber => "INSERT, keyed by number",
        /// Reads from the table keyed by number.
        ReadByNumber => "SELECT, keyed by number",
        /// Inserts into a table keyed by text.
        InsertByText => "INSERT, keyed by text",
        /// Reads from the table keyed by text.
        ReadByText => "SELECT, keyed by text",
    }
}

impl Way {
    pub(super) fn reads(self) -> bool {
        matches!(self, Self::Miss | Self::ReadByNumber | Self::ReadByText)
    }

    fn is_ours(self) -> bool {
        !matches!(self, Self::InsertByText | Self::ReadByText)
    }
}

/// All rounds at one number of rows: the rates on the grown and on the small table.
pub(super) struct Level {
    rows: u64,
    rounds: Vec<(Way, f64, f64)>,
}

impl Level {
    pub(super) fn new(rows: u64) -> Self {
        Self { rows, rounds: Vec::new() }
    }

    pub(super) fn add(&mut self, way: Way, grown: f64, small: f64) {
        self.rounds.push((way, grown, small));
    }

    /// Returns the medians of both rates and of their ratio; `None` if the workload was not
    /// measured.
    fn of(&self, way: Way) -> Option<(f64, f64, f64)> {
        let rounds: Vec<_> = self.rounds.iter().filter(|round| round.0 == way).collect();
        if rounds.is_empty() {
            return None;
        }
        let middle = |figure: fn(&(Way, f64, f64)) -> f64| median(rounds.iter().map(|round| figure(round)));
        Some((middle(|round| round.1), middle(|round| round.2), middle(|round| round.1 / round.2)))
    }
}

pub(super) fn report(args: &Args, levels: &[Level]) -> Report {
    let mut table = Table::new(&["way", "rows", "links/s", "on a small table", "ratio"]);
    let mut wanted = String::new();
    let mut told = Vec::new();
    for way in Way::ALL {
        for level in levels {
            let Some((grown, small, ratio)) = level.of(way) else { continue };
            #[expect(clippy::cast_precision_loss, reason = "the number of rows is only shown")]
            let rows = grouped(level.rows as f64);
            table.row(vec![
                way.name().to_owned(),
                rows.clone(),
                grouped(grown),
                grouped(small),
                format!("{ratio:.2}"),
            ]);
            if way.is_ours() {
                let met = if ratio >= KEPT { "met" } else { "NOT MET" };
                let _ = writeln!(
                    wanted,
                    "{met}: {}, {rows} rows, at least {KEPT} × a small table's: {ratio:.2}",
                    way.name()
                );
            }
            told.push(json!({ "way": way.name(), "rows": level.rows, "grown": grown, "small": small, "ratio": ratio }));
        }
    }
    let text = format!(
        "Links created and read while the table grows; {} rounds of {} s in turns with a small table, {} clients.\n\
         Postgres has {} of buffers in {} pages.\n\n{table}\n{wanted}",
        args.rounds,
        args.seconds,
        args.clients,
        args.shared_buffers,
        if args.huge_pages { "huge" } else { "small" },
    );
    Report { text, json: json!({ "bench": "grow", "ways": told }) }
}
