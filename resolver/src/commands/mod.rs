//! The subcommands that are not the server.

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

use tokio::time::{Instant, sleep};

use crate::{
    Error,
    config::{Command, ConfigCommand, Database, DatabaseArgs},
    store::{LinkStore, StoreError, postgres::PostgresStore, sqlite::SqliteStore},
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
        Command::Completions { shell } => Ok(completions::script(shell)),
        Command::Import(args) => import::run(args).await,
        Command::Export(args) => export::run(args).await,
        Command::Config(ConfigCommand::Check(config)) => config_check::run(&config),
    }
}

/// Opens the database without asking it anything.
pub(crate) async fn open(
    database: &Database,
    replica: Option<&Database>,
) -> Result<Arc<dyn LinkStore>, Error> {
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
            let store = PostgresStore::new(url, replica).await;
            Ok(Arc::new(store.map_err(|error| malformed(&error))?))
        }
        Database::Sqlite(path) => Ok(Arc::new(open_sqlite(path).await.map_err(|error| malformed(&error))?)),
    }
}

async fn open_sqlite(path: &Path) -> Result<SqliteStore, StoreError> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await.unwrap_or(Err(StoreError::Stopped))
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
