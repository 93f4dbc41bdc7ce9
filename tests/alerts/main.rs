//! Proves every alert by its fault: real daemons, real stores, a real Prometheus with the shipped
//! rules.
//!
//! 1. A case causes a fault, waits until its alert fires, ends the fault, and sees that the alert
//!    clears and that no other one wakes somebody up.
//! 2. All times of the rules are shortened by one factor: see [`rules`].
//! 3. Cases of a part share a platform, one after another. After a case that failed, the next one
//!    has a new platform.
//! 4. What fires while operators restart and scale on purpose is reported as well.

mod case;
mod database;
mod issuers;
mod numbers;
mod objectives;
mod outages;
mod processes;
mod quiet;
mod report;
mod rules;
mod run;
mod server;
mod stage;
mod traffic;
mod visits;
mod watcher;

use std::io::Write as _;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use report::Report;
use run::{Part, Row};

/// Prove every alert by its fault, on real daemons
#[derive(Debug, Parser)]
#[command(name = "alerts", version)]
struct Cli {
    #[command(subcommand)]
    what: Option<What>,
    /// Run only the cases of alerts whose names contain one of these.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Divide all times of the rules by this number.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=15), global = true)]
    factor: u32,
    /// Print JSON instead of tables.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Restart and scale everything on purpose, and report what fires.
    Quiet,
    /// Compare the gauges with what is on disk while each server is away.
    Outages(outages::Args),
}

/// Returns all cases, by part.
fn parts() -> Vec<Part> {
    [issuers::parts(), numbers::parts(), processes::parts(), objectives::parts(), database::parts()]
        .into_iter()
        .flatten()
        .chain(visits::parts())
        .collect()
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    let report = runtime.block_on(async {
        match &cli.what {
            None => prove(&cli).await,
            Some(What::Quiet) => Ok(report::of_calms(&quiet::run(cli.factor, &tell).await?, cli.json)),
            Some(What::Outages(args)) => outages::run(args, cli.json, &tell).await,
        }
    })?;
    writeln!(std::io::stdout(), "{}", report.text).context("print the report")?;
    anyhow::ensure!(report.bad == 0, "{} of {} are not as they should be", report.bad, report.of);
    Ok(())
}

async fn prove(cli: &Cli) -> anyhow::Result<Report> {
    let mut rows: Vec<Row> = Vec::new();
    for mut part in parts() {
        part.cases.retain(|case| case.is_among(&cli.only));
        rows.extend(run::run(part, cli.factor, &tell).await?);
    }
    anyhow::ensure!(!rows.is_empty(), "no alert's name contains {}: see the rules", cli.only.join(" or "));
    Ok(report::of_rows(&rows, cli.json))
}

/// Says what is done, for whoever waits.
fn tell(text: &str) {
    // A closed terminal is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{parts, rules};

    #[test]
    fn every_alert_of_the_rules_has_a_case_and_every_case_an_alert() {
        let shipped: BTreeSet<rules::Name> = rules::alerts().unwrap().into_iter().collect();
        let cases = parts().into_iter().flat_map(|part| part.cases);
        let proven: BTreeSet<rules::Name> = cases.map(|case| case.name()).collect();
        let without: Vec<_> = shipped.difference(&proven).collect();
        assert!(without.is_empty(), "alerts without a case in tests/alerts: {without:#?}");
        let stray: Vec<_> = proven.difference(&shipped).collect();
        assert!(stray.is_empty(), "cases of alerts that the rules do not have: {stray:#?}");
    }
}
