//! The subcommands other than `serve`.

mod audit;
mod client;
mod completions;
mod config_check;
mod domain;
mod export;
mod import;
mod keys;
mod link;
mod migrate;
mod open_mint;
mod table;
mod target;

pub use client::ClientError;

use std::{path::Path, sync::Arc};

use store::{Store, StoreError, Witness, postgres::PostgresStore, sqlite::SqliteStore};
use tokio::time::{Instant, sleep};

use crate::{
    Error,
    config::{Command, ConfigCommand, Database, DatabaseArgs},
};

/// Runs a subcommand, and returns its output.
///
/// # Errors
/// Returns an error if the configuration is wrong, the database or the server is unreachable, or
/// the subcommand fails.
pub async fn run(command: Command) -> Result<String, Error> {
    match command {
        Command::Serve(_) => Ok(String::new()),
        Command::Migrate(args) => migrate::run(&args).await,
        Command::ApiKey(command) => keys::run(command).await,
        Command::Link(command) => link::run(command).await,
        Command::Domain(command) => domain::run(command).await,
        Command::Target(command) => target::run(command).await,
        Command::Audit(args) => audit::run(args).await,
        Command::Completions { shell } => Ok(completions::script(shell)),
        Command::Import(args) => import::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Config(ConfigCommand::Check(args)) => config_check::run(&args),
    }
}

/// Opens the database without a query.
pub(crate) async fn open(database: &Database, replica: Option<&Database>) -> Result<Arc<dyn Store>, Error> {
    open_witnessed(database, replica, None).await
}

/// Opens the database, with the witness file that survives a restore of the database if there is
/// one.
pub(crate) async fn open_witnessed(
    database: &Database,
    replica: Option<&Database>,
    witness: Option<Witness>,
) -> Result<Arc<dyn Store>, Error> {
    let witness = witness.map(Arc::new);
    let malformed = |error: &dyn std::fmt::Display| Error::Config {
        flag: "--database",
        value: database.to_string(),
        reason: error.to_string(),
    };
    let replica = match replica {
        Some(Database::Postgres(url)) => Some(url.as_str()),
        Some(Database::Sqlite(_)) | None => None,
    };
    match database {
        Database::Postgres(url) => {
            let store = PostgresStore::new(url, replica).await.map_err(|error| malformed(&error))?;
            Ok(match witness {
                Some(witness) => Arc::new(store.witnessed_by(witness)),
                None => Arc::new(store),
            })
        }
        Database::Sqlite(path) => {
            let store = open_sqlite(path).await.map_err(|error| malformed(&error))?;
            Ok(match witness {
                Some(witness) => Arc::new(store.witnessed_by(witness)),
                None => Arc::new(store),
            })
        }
    }
}

async fn open_sqlite(path: &Path) -> Result<SqliteStore, StoreError> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await.unwrap_or(Err(StoreError::Stopped))
}

/// Opens an existing database. A command that only reads or fills a database must not create one: a
/// mistyped path would leave an empty database behind.
async fn open_existing(database: &Database) -> Result<Arc<dyn Store>, Error> {
    if let Database::Sqlite(path) = database
        && !path.exists()
    {
        let reason = "there is no such file: start `resolver` on it first, or name another with --database";
        return Err(Error::Config {
            flag: "--database",
            value: database.to_string(),
            reason: reason.to_owned(),
        });
    }
    open(database, None).await
}

/// Waits until the database answers. Returns an error at once if it lacks this version's schema,
/// because waiting would not add it.
async fn ready(args: &DatabaseArgs) -> Result<Arc<dyn Store>, Error> {
    let store = open_existing(&args.database).await?;
    let checked = wait_for(args, async || match store.check().await {
        Err(behind @ StoreError::SchemaBehind { .. }) => Ok(Err(behind)),
        other => other.map(Ok),
    });
    checked.await?.map_err(|behind| Error::Config {
        flag: "--database",
        value: args.database.to_string(),
        reason: behind.to_string(),
    })?;
    Ok(store)
}

/// Returns the error for a file that cannot be opened, read or written: its path and the system's
/// message.
pub(crate) fn file_error(flag: &'static str, path: &Path, error: &std::io::Error) -> Error {
    Error::Config { flag, value: path.display().to_string(), reason: error.to_string() }
}

/// Prints a warning on the standard error, so that it does not mix with output that a script reads.
#[expect(clippy::print_stderr, reason = "warnings go to the standard error")]
fn warn(text: &str) {
    eprintln!("resolver: warning: {text}");
}

/// Calls `ask` until the database answers, at most until the deadline for the start.
pub(crate) async fn wait_for<T>(
    args: &DatabaseArgs,
    ask: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<T, Error> {
    let until = Instant::now() + args.start_deadline;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            // Waiting does not fix these errors.
            Err(
                error @ (StoreError::Keyspace(_)
                | StoreError::Corrupt(_)
                | StoreError::Migration(_)
                | StoreError::Sqlite(_)
                | StoreError::Stopped),
            ) => return Err(error.into()),
            Err(source) if Instant::now() >= until => {
                let (database, seconds) = (args.database.to_string(), args.start_deadline.as_secs());
                return Err(Error::Unreachable { database, seconds, source });
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "wait for the database");
                sleep(std::time::Duration::from_millis(200)).await;
            }
        }
    }
}
