//! Arguments of the subcommands that use the database, and of `resolver config`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Subcommand, ValueEnum};
use daemon::{parse_duration, parse_duration_or_zero};
use links::scope::Scopes;
use transfer::Source;
use url::Url;

use super::Config;

/// Arguments of `resolver import`.
#[derive(Clone, Debug, Args)]
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
    /// Store them disabled: their codes are kept, and they do not redirect until somebody enables
    /// them.
    Disable,
    /// Refuse them.
    Refuse,
    /// Publish them without their protection.
    Open,
}

/// Arguments of `resolver export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Format of the export. Only ndjson carries everything: passwords as their hashes, rules and
    /// deleted links.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: ExportFormat,
    /// File to write. Defaults to the standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Continue an unfinished file.
    #[arg(long, requires = "out")]
    pub resume: bool,
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

/// Subcommands of `resolver api-key`.
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Create an API key and print it. Only its hash is stored, so it cannot be shown again.
    Create {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// Scopes of the key, separated by commas: create, read, edit, delete, visits, reserve,
        /// domains (to add domains), or admin for everything.
        #[arg(long, default_value = "admin")]
        scopes: Scopes,
        /// Let the key expire after this time, such as 90d. Never if absent.
        #[arg(long, value_parser = parse_duration, value_name = "TIME")]
        expires_in: Option<Duration>,
        /// Limit the key to the links of this domain.
        #[arg(long, value_name = "DOMAIN")]
        domain: Option<String>,
        /// Limit the key to the links that it has created.
        #[arg(long)]
        own_links_only: bool,
        /// Maximum number of calls per minute with this key, instead of --calls-per-key; 0 for no
        /// limit.
        #[arg(long, value_name = "COUNT")]
        calls_per_minute: Option<u32>,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List all API keys.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Replace the secret of an API key and print the new one. Its links and limits stay.
    Rotate {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// Keep the old secret valid for this long, so that clients can be changed one after the
        /// other.
        #[arg(long, default_value = "0s", value_parser = parse_duration_or_zero, value_name = "TIME")]
        keep_old_for: Duration,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke an API key. Resolvers refuse it within a second.
    Revoke {
        /// Name of the key.
        #[arg(long)]
        name: String,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// Subcommands of `resolver config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Validate flags and environment, and print the resulting settings with their sources.
    Check(Box<ConfigCheckArgs>),
}

/// Arguments of `resolver config check`.
#[derive(Clone, Debug, Args)]
pub struct ConfigCheckArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The flags of the server.
    #[command(flatten)]
    pub config: Config,
}

/// The database, for all subcommands that use it.
#[derive(Clone, Debug, Args)]
pub struct DatabaseArgs {
    /// URL of the database: postgres://USER@HOST/NAME or sqlite:PATH.
    #[arg(
        long,
        env = "RESOLVER_DATABASE",
        default_value = "sqlite:./data/shortmint.db",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database: Database,
    /// Wait for the database for at most this long at start.
    #[arg(long, env = "RESOLVER_START_DEADLINE", default_value = "30s", value_parser = parse_duration)]
    pub start_deadline: Duration,
}

/// Arguments of `resolver migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Adopt the ledger of the issuer that the next resolver registers with. Use it if the former
    /// ledger is lost for good, or to change to another issuer on purpose, and only while no
    /// resolver of the former issuer runs.
    #[arg(long)]
    pub forget_ledger: bool,
    /// Begin a new history after the database and the issuer's ledger were both restored from
    /// backups. This many numbers of each keyspace are skipped: choose more than were allocated to
    /// resolvers and reservations since the older backup. Stop all resolvers and issuers first.
    #[arg(long, value_name = "NUMBERS", conflicts_with = "forget_ledger")]
    pub put_back: Option<u64>,
}

/// The address of a database.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// A Postgres URL, including its password.
    Postgres(String),
    /// The path of a SQLite file.
    Sqlite(PathBuf),
}

impl DatabaseArgs {
    /// Returns the folder for a resolver's own files: that of the SQLite file, or ./data.
    #[must_use]
    pub fn data_folder(&self) -> PathBuf {
        match &self.database {
            Database::Sqlite(path) => path.parent().unwrap_or(Path::new("")).to_owned(),
            Database::Postgres(_) => "./data".into(),
        }
    }
}

impl std::str::FromStr for Database {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(text.to_owned()));
        }
        match text.strip_prefix("sqlite:") {
            Some(path) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            _ => Err("expected postgres://USER@HOST/NAME or sqlite:PATH".to_owned()),
        }
    }
}

impl std::fmt::Display for Database {
    /// Formats the address without the password and without the parameters of the URL.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(text) => match Url::parse(text) {
                Ok(mut url) => {
                    if url.password().is_some() {
                        // Cannot fail: a URL with a password has a host, and so may have another
                        // password.
                        let _ = url.set_password(Some("***"));
                    }
                    url.set_query(None);
                    write!(f, "{url}")
                }
                Err(_) => f.write_str("postgres://***"),
            },
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_printed() {
        let database: Database =
            "postgres://me:secret@db/links?sslmode=disable&password=secret".parse().unwrap();
        assert_eq!(database.to_string(), "postgres://me:***@db/links");
        assert!(!format!("{database:?}").contains("secret"));
    }
}
