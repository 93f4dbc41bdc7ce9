//! The subcommands that are not the server.

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

/// Runs a subcommand; what it has to say.
///
/// # Errors
/// When the configuration is wrong or the database is not to be had.
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

/// Opens the database without asking it anything.
pub(crate) async fn open(database: &Database, replica: Option<&Database>) -> Result<Arc<dyn Store>, Error> {
    open_witnessed(database, replica, None).await
}

/// The same with the file that outlasts the database, if there is one.
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

/// Opens a database that somebody has set up. A command that only reads or fills one must not create it: a mistyped path would leave an empty
/// database behind.
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

/// The database, once it answers. One without this version's schema is refused at once: waiting would not bring it.
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

/// For a file that cannot be opened, read or written: its name and what the system says.
pub(crate) fn file_error(flag: &'static str, path: &Path, error: &std::io::Error) -> Error {
    Error::Config { flag, value: path.display().to_string(), reason: error.to_string() }
}

/// Warns a person without mixing with what a script reads.
#[expect(clippy::print_stderr, reason = "warnings go beside the answer")]
fn warn(text: &str) {
    eprintln!("resolver: warning: {text}");
}

/// Asks the database until it answers, at most for the start's deadline.
pub(crate) async fn wait_for<T>(
    args: &DatabaseArgs,
    ask: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<T, Error> {
    let until = Instant::now() + args.start_deadline;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            // These do not change by waiting.
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
