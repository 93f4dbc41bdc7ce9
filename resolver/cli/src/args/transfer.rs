//! Arguments of `resolver import` and `resolver export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use transfer::Source;

use super::DatabaseArgs;

/// Arguments of `resolver import`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Exit code: 0 if every link of the file is here; 65 if links were refused, now or by an earlier run, \
                        or the file has none or cannot be read to its end. The right ones are stored nevertheless."
)]
pub struct ImportArgs {
    /// File to import: an export of the other system, or an answer of its API.
    pub file: PathBuf,
    /// System that the file comes from: shortmint for a file of `resolver export`, shlink, kutt,
    /// yourls, or csv for a table with shortCode and longUrl in its first line.
    #[arg(long, value_name = "SYSTEM", default_value = "shortmint")]
    pub from: Source,
    /// Name of this import. An import with the name of an earlier one continues it. Defaults to the
    /// digest of the file.
    #[arg(long)]
    pub name: Option<String>,
    /// Domains of the other system that become the default domain here.
    #[arg(long, value_name = "HOST[,HOST…]", value_delimiter = ',')]
    pub default_domain: Vec<String>,
    /// Treatment of links whose password or other protection is not part of the file.
    #[arg(long, value_enum, default_value = "disable")]
    pub unprotected: Unprotected,
    /// Schemes that long URLs and URLs of redirect rules may have, as for the server.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ','
    )]
    pub allowed_schemes: Vec<String>,
    /// Time zone of times without an offset in the file, as for the server. Files of Kutt and YOURLS
    /// are in UTC.
    #[arg(long, env = "RESOLVER_TIME_ZONE", default_value = "UTC", value_name = "NAME")]
    pub time_zone: String,
    /// File for the links that cannot be imported, each with the reason.
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// File with the code key. Defaults to code.key beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Print JSON instead of text.
    #[arg(long)]
    pub json: bool,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// The treatment of imported links whose protection is not part of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unprotected {
    /// Store them disabled: their codes are kept, and they do not redirect until they are
    /// enabled.
    Disable,
    /// Refuse them.
    Refuse,
    /// Publish them without their protection.
    Open,
}

/// Arguments of `resolver export`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Exit code: 0 if every link is in the export; 65 if links had to be left out.")]
pub struct ExportArgs {
    /// Format of the export. Only ndjson carries everything: passwords as their hashes, rules and
    /// deleted links.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: ExportFormat,
    /// File to write. Defaults to the standard output, as does -.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Continue an unfinished file.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// Print the summary of a written file as JSON instead of text.
    #[arg(long, requires = "out")]
    pub json: bool,
    /// File with the code key. Defaults to code.key beside the SQLite file, or in ./data.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// The formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A table for spreadsheets, with the names of its columns in the first line.
    Csv,
    /// One JSON object per line, between a header and an end line: the format that
    /// `resolver import` reads.
    Ndjson,
}
