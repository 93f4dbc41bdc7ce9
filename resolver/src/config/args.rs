//! What the subcommands beside the server take.

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

/// `resolver import`
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// The file: what the other system exports, or what its API answers.
    pub file: PathBuf,
    /// Which system it is of: shortmint for what `resolver export` writes, shlink, kutt, yourls, or csv for a table with shortCode and
    /// longUrl in its first line.
    #[arg(long, value_name = "SYSTEM", default_value = "shortmint")]
    pub from: Source,
    /// What to call this import. One of the same name goes on where it was; the digest of the file, when absent.
    #[arg(long)]
    pub name: Option<String>,
    /// Domains of the other system that are the default domain here.
    #[arg(long, value_name = "HOST[,HOST…]", value_delimiter = ',')]
    pub default_domain: Vec<String>,
    /// What becomes of links whose password or other protection does not come along.
    #[arg(long, value_enum, default_value = "disable")]
    pub unprotected: Unprotected,
    /// The schemes that long URLs and URLs of rules may have, as the server has it.
    #[arg(
        long,
        env = "RESOLVER_ALLOWED_SCHEMES",
        default_value = "http,https,mailto,tel",
        value_name = "SCHEME[,SCHEME…]",
        value_delimiter = ','
    )]
    pub allowed_schemes: Vec<String>,
    /// A file for the links that cannot be kept, each with the reason.
    #[arg(long, value_name = "FILE")]
    pub rejects: Option<PathBuf>,
    /// The file with the key that orders codes; beside the SQLite file, or in ./data, when absent.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// Print JSON instead of sentences.
    #[arg(long)]
    pub json: bool,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// What becomes of imported links that were protected where they come from and would be open here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Unprotected {
    /// Store them disabled: their codes are kept, and they lead nowhere until somebody enables them.
    Disable,
    /// Refuse them.
    Refuse,
    /// Publish them without their protection.
    Open,
}

/// `resolver export`
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// In which form. Only ndjson carries everything: passwords as their hashes, rules and deleted links.
    #[arg(long, value_enum, default_value = "ndjson")]
    pub format: ExportFormat,
    /// Where to; the standard output, when absent.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Go on with a file that was not finished.
    #[arg(long, requires = "out")]
    pub resume: bool,
    /// The file with the key that orders codes; beside the SQLite file, or in ./data, when absent.
    #[arg(long, env = "RESOLVER_CODE_KEY_FILE", value_name = "FILE")]
    pub code_key_file: Option<PathBuf>,
    /// The database.
    #[command(flatten)]
    pub database: DatabaseArgs,
}

/// In which form links are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// A table for spreadsheets, with the names of its columns in the first line.
    Csv,
    /// One JSON object in each line, between a first and a last line that say what it is: what `resolver import` reads.
    Ndjson,
}

/// `resolver api-key …`
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// Make a key and print it; it is stored only as a hash and cannot be shown again.
    Create {
        /// What to call it.
        #[arg(long)]
        name: String,
        /// What it may do: create, read, edit, delete, visits, reserve, domains (to add domains),
        /// or admin for everything. Several are separated by commas.
        #[arg(long, default_value = "admin")]
        scopes: Scopes,
        /// After how long it expires, for example 90d; never, when absent.
        #[arg(long, value_parser = parse_duration, value_name = "TIME")]
        expires_in: Option<Duration>,
        /// The one domain whose links it may see and make.
        #[arg(long, value_name = "DOMAIN")]
        domain: Option<String>,
        /// Let it see links of its own only.
        #[arg(long)]
        own_links_only: bool,
        /// Calls that it may make in a minute, instead of what --calls-per-key says; 0 for any number.
        #[arg(long, value_name = "COUNT")]
        calls_per_minute: Option<u32>,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// List the keys.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Give a key another secret and print it; its links and limits stay.
    Rotate {
        /// Which.
        #[arg(long)]
        name: String,
        /// How long the old secret is still good, so that clients can be changed one after the other.
        #[arg(long, default_value = "0s", value_parser = parse_duration_or_zero, value_name = "TIME")]
        keep_old_for: Duration,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
    /// Revoke a key; resolvers refuse it within a second.
    Revoke {
        /// Which.
        #[arg(long)]
        name: String,
        /// The database.
        #[command(flatten)]
        database: DatabaseArgs,
    },
}

/// `resolver config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check flags and environment, and print what they come to.
    Check(Box<ConfigCheckArgs>),
}

/// `resolver config check`
#[derive(Clone, Debug, Args)]
pub struct ConfigCheckArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
    /// The server's flags.
    #[command(flatten)]
    pub config: Config,
}

/// Which database.
#[derive(Clone, Debug, Args)]
pub struct DatabaseArgs {
    /// postgres://USER@HOST/NAME, or sqlite:PATH.
    #[arg(
        long,
        env = "RESOLVER_DATABASE",
        default_value = "sqlite:./data/shortmint.db",
        hide_env_values = true,
        value_name = "URL"
    )]
    pub database: Database,
    /// How long to wait for the database at start.
    #[arg(long, env = "RESOLVER_START_DEADLINE", default_value = "30s", value_parser = parse_duration)]
    pub start_deadline: Duration,
}

/// Flags of `resolver migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// Which database.
    #[command(flatten)]
    pub database: DatabaseArgs,
    /// Adopt the ledger of the issuer that the next resolver registers with. Use it when the former ledger is lost for good, or
    /// when numbers come from another issuer on purpose, and only while no resolver of the former one runs.
    #[arg(long)]
    pub forget_ledger: bool,
    /// Begin a new history after the database and the issuer's ledger were both restored from backups. Leaves out this many numbers of each
    /// keyspace: choose more than were allocated to resolvers and reservations since the older backup. Stop all resolvers and issuers first.
    #[arg(long, value_name = "NUMBERS", conflicts_with = "forget_ledger")]
    pub put_back: Option<u64>,
}

/// A database's address.
#[derive(Clone, PartialEq, Eq)]
pub enum Database {
    /// A URL, with its password.
    Postgres(String),
    /// A file.
    Sqlite(PathBuf),
}

impl DatabaseArgs {
    /// Where a resolver of this database keeps what is its own: beside the SQLite file, or in ./data.
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
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(text) => match Url::parse(text) {
                Ok(mut url) => {
                    if url.password().is_some() {
                        // A URL that has a password has a host, and then a password may be set.
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
