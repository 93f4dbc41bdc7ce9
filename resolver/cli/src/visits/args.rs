//! Arguments of `resolver visits`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValue};

use crate::args::{ServerArgs, ShowArgs, TableArgs};

#[derive(Debug, Subcommand)]
pub enum VisitsCommand {
    /// List visits, the latest first.
    List(Box<VisitsListArgs>),
    /// Count visits: over time, and by browser, place and the like.
    Stats(Box<VisitsStatsArgs>),
    /// Write all visits, the latest first, to a file or the standard output.
    Export(Box<VisitsExportArgs>),
    /// Delete the visits of a link, or those that no link redirected.
    Delete(VisitsDeleteArgs),
}

/// Whose visits to select: link, tag, domain or all.
#[derive(Clone, Debug, Args)]
pub struct VisitsOf {
    /// Code or custom slug of a link, without the domain.
    #[arg(conflicts_with_all = ["tag", "orphans"])]
    pub code: Option<String>,
    /// Domain of the link; or only visits of this domain, DEFAULT for the server's own.
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Only visits of links with this tag.
    #[arg(long, conflicts_with = "orphans")]
    pub tag: Option<String>,
    /// Visits that no link redirected.
    #[arg(long)]
    pub orphans: bool,
    /// Only orphan visits of this kind.
    #[arg(long = "type", requires = "orphans", value_name = "KIND", value_parser = [
        PossibleValue::new("base-url").help("Visits to the domain itself"),
        PossibleValue::new("invalid-short-url").help("Visits to a code or slug without a live link"),
        PossibleValue::new("regular-404").help("Visits to a path that cannot be a short code"),
    ])]
    pub kind: Option<String>,
    /// Only visits from this time on, such as 2026-11-25 or 2026-11-25T10:00:00+01:00. Without an
    /// offset it is in the server's time zone; in that of --time-zone for statistics.
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Only visits until this time, which is included.
    #[arg(long, value_name = "TIME")]
    pub until: Option<String>,
    /// Leave out visits of bots.
    #[arg(long)]
    pub no_bots: bool,
}

#[derive(Clone, Debug, Args)]
pub struct VisitsListArgs {
    #[command(flatten)]
    pub of: VisitsOf,
    /// Page, from 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub page: u64,
    /// Visits on a page.
    #[arg(long, default_value_t = 20, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub limit: u64,
    #[command(flatten)]
    pub table: TableArgs,
}

#[derive(Clone, Debug, Args)]
pub struct VisitsStatsArgs {
    #[command(flatten)]
    pub of: VisitsOf,
    /// Distance between two points of the series. Defaults to one that fits the range.
    #[arg(long, value_parser = [
        PossibleValue::new("15min").help("A quarter of an hour"),
        PossibleValue::new("hour").help("An hour"),
        PossibleValue::new("day").help("A day"),
        PossibleValue::new("week").help("A week, which begins on Monday"),
        PossibleValue::new("month").help("A month"),
    ])]
    pub by: Option<String>,
    /// Time zone of days and weeks, such as Europe/Berlin. Defaults to that of the server.
    #[arg(long, value_name = "ZONE")]
    pub time_zone: Option<String>,
    /// Values of each dimension.
    #[arg(long, default_value_t = 5, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1_000))]
    pub top: u64,
    #[command(flatten)]
    pub table: TableArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum VisitsFormat {
    /// A table for spreadsheets, with the names of its columns in the first line.
    Csv,
    /// One JSON object per line, as the API has it.
    Ndjson,
}

#[derive(Clone, Debug, Args)]
pub struct VisitsExportArgs {
    #[command(flatten)]
    pub of: VisitsOf,
    /// Format of the export.
    #[arg(long, value_enum, default_value = "csv")]
    pub format: VisitsFormat,
    /// File to write; it is there only once it is complete. Defaults to the standard output, as
    /// does -.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print the summary of a written file as JSON instead of text.
    #[arg(long, requires = "out")]
    pub json: bool,
    #[command(flatten)]
    pub server: ServerArgs,
}

#[derive(Clone, Debug, Args)]
pub struct VisitsDeleteArgs {
    /// Code or custom slug of the link, without the domain.
    #[arg(required_unless_present = "orphans", conflicts_with = "orphans")]
    pub code: Option<String>,
    /// Domain of the link. Defaults to the server's default domain.
    #[arg(long, value_name = "NAME", requires = "code")]
    pub domain: Option<String>,
    /// Delete all visits that no link redirected, of all domains.
    #[arg(long)]
    pub orphans: bool,
    #[command(flatten)]
    pub show: ShowArgs,
}
