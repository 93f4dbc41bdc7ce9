//! Visits: recording, storing and reading them.

mod garbage;
mod load;
mod pages;
mod record;
mod redirect;
mod store;

use clap::Subcommand;

use crate::Report;

/// The measurement of visits to make.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Args {
    /// Send visits made of garbage, and measure the space that they take.
    Garbage(garbage::Args),
    /// Measure pages and statistics of many visits, and compare them with the rows.
    Pages(pages::Args),
    /// Measure nanoseconds per recorded visit.
    Record(record::Args),
    /// Measure redirects with visits on and off, and check that each is stored.
    Redirect(redirect::Args),
    /// Measure visits stored per second of Postgres' processor time, and their space.
    Store(store::Args),
}

/// Runs one of the benchmarks.
///
/// # Errors
/// Returns the errors of the benchmark.
pub(crate) fn run(args: &Args) -> anyhow::Result<Report> {
    match args {
        Args::Garbage(args) => garbage::run(args),
        Args::Pages(args) => pages::run(args),
        Args::Record(args) => record::run(args),
        Args::Redirect(args) => redirect::run(args),
        Args::Store(args) => store::run(args),
    }
}
