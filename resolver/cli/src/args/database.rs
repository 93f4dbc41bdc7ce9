//! The address of the database, and arguments of `resolver migrate`.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use daemon::parse_duration;
use url::Url;

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
