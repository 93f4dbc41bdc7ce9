//! The address of the database.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, builder::BoolishValueParser};
use daemon::{parse_duration, reasons};
use store::postgres::hosts_in_plaintext;
use url::Url;
use visit_store::ClickhouseAddress;

use crate::{Error, wrong_value};

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
    /// Wait for the database for at most this long at start. A server with --role all or api is not
    /// ready before it has numbers for new links either, within the same time; with --role all it
    /// waits for them for at most 2m, since redirects need none.
    #[arg(long, env = "RESOLVER_START_DEADLINE", default_value = "30s", value_parser = parse_duration)]
    pub start_deadline: Duration,
    /// Allow connections beyond this machine without TLS: to Postgres, and to issuers. Without this
    /// flag, the URL of a Postgres elsewhere needs sslmode=verify-full, or at least require.
    #[arg(long, env = "RESOLVER_INSECURE", value_parser = BoolishValueParser::new())]
    pub insecure: bool,
}

/// Where visits are kept.
#[derive(Clone, Debug, Args)]
pub struct VisitsStoreArgs {
    /// Keep visits in ClickHouse:
    /// clickhouse+http://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]…]/DATABASE[?cluster=NAME].
    /// --database has to be Postgres, which counts the last days. Without this flag, visits are
    /// beside the links. Single visits that are in the one database are not moved to the other.
    #[arg(long, env = "RESOLVER_VISITS_STORE", hide_env_values = true, value_name = "URL")]
    pub visits_store: Option<ClickhouseAddress>,
}

impl VisitsStoreArgs {
    /// Returns the address, if there is one, which requires a Postgres database.
    pub fn of(&self, database: &Database) -> Result<Option<ClickhouseAddress>, Error> {
        let Some(address) = &self.visits_store else { return Ok(None) };
        if matches!(database, Database::Postgres(_)) {
            return Ok(Some(address.clone()));
        }
        let reason = format!("expected a Postgres database as --database, found {database}");
        Err(wrong_value("--visits-store", address, reason))
    }
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
    pub fn data_folder(&self) -> PathBuf {
        match &self.database {
            Database::Sqlite(path) => path.parent().unwrap_or(Path::new("")).to_owned(),
            Database::Postgres(_) => "./data".into(),
        }
    }

    /// Returns the file of the code key: the given one, or the default one beside those files.
    pub fn code_key(&self, given: Option<&Path>) -> PathBuf {
        given.map_or_else(|| self.data_folder().join("code.key"), Path::to_owned)
    }

    /// Checks that no database is reached in plaintext beyond this machine, unless that is allowed.
    pub fn check_plaintext(&self, replica: Option<&Database>) -> Result<(), Error> {
        for (flag, database) in [("--database", Some(&self.database)), ("--read-database", replica)] {
            let Some(database @ Database::Postgres(url)) = database else { continue };
            let wrong = |reason: String| Err(wrong_value(flag, database, reason));
            match hosts_in_plaintext(url) {
                Err(error) => return wrong(reasons(&error)),
                Ok(hosts) if self.insecure || hosts.is_empty() => {}
                Ok(hosts) => {
                    let hosts = hosts.join(", ");
                    let expected = "expected sslmode=verify-full in the URL, or --insecure";
                    return wrong(format!("{hosts} is beyond this machine: {expected}"));
                }
            }
        }
        Ok(())
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
            Self::Postgres(text) => match without_secrets(text) {
                Some(url) => write!(f, "{url}"),
                None => f.write_str("postgres://***"),
            },
        }
    }
}

/// Returns a Postgres URL without its password and its parameters. Returns `None` if it is unclear
/// where these are.
///
/// For [`Url`], user and password end at the first slash: in `postgres://me:4711/abc@db` it sees a
/// port and a path. The Postgres driver reads on to the `@`, as do people who write such a URL.
fn without_secrets(text: &str) -> Option<Url> {
    let (scheme, rest) = text.split_once("://")?;
    let (address, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    if parameters.contains('@') {
        // It belongs to a parameter, or the question mark to the password.
        return None;
    }
    let login = address.rsplit_once('@').and_then(|(login, place)| Some((login.split_once(':')?.0, place)));
    let shown = login.map_or_else(|| address.to_owned(), |(user, place)| format!("{user}:***@{place}"));
    Url::parse(&format!("{scheme}://{shown}")).ok()
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
    fn a_password_is_not_printed_even_if_a_url_parser_does_not_see_it() {
        for (text, shown) in [
            ("postgres://me:secret@db/links?sslmode=disable&password=secret", "postgres://me:***@db/links"),
            ("postgres://me:4711/abc@db/links", "postgres://me:***@db/links"),
            ("postgres://me:a@b:c@db:5432/links", "postgres://me:***@db:5432/links"),
            ("postgres://me:a#b@db/links", "postgres://me:***@db/links"),
            ("postgres://me@a:b@db/links", "postgres://me%40a:***@db/links"),
            ("postgres://me:a?b@db/links", "postgres://***"),
            ("postgres://db/links?user=me&password=a@b", "postgres://***"),
            ("postgres://me:abc", "postgres://***"),
            ("postgresql://me@db/links", "postgresql://me@db/links"),
            ("postgres://db:5432/links?sslmode=disable", "postgres://db:5432/links"),
        ] {
            let database: Database = text.parse().unwrap();
            assert_eq!(database.to_string(), shown, "{text}");
            assert_eq!(format!("{database:?}"), shown, "{text}");
        }
    }
}
