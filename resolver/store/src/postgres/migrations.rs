//! The schema's migrations for Postgres.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, error::SqlState};

use super::connect::Address;
use crate::StoreError;

mod files {
    refinery::embed_migrations!("../../schema/postgres");
}

/// Key of the advisory lock. Any number that nothing else locks will do; refinery itself takes no
/// lock.
const LOCK: i64 = 0x5348_4f52_544d_494e;

/// How long a statement waits for a table. Other statements on the table queue behind it, so it
/// gives up soon and tries again: a transaction that takes minutes delays the migration only.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '500ms'";
/// How long a migration is tried again.
const LOCKED_WITHIN: Duration = Duration::from_secs(480);
/// Pause before a migration is tried again: others have the table for most of the time.
const PAUSE: Duration = Duration::from_secs(2);

/// Runs all pending migrations, one process at a time. The advisory lock ends with the connection.
///
/// Each migration is a transaction of its own, so what was applied stays.
pub(super) async fn run(address: &Address) -> Result<(), StoreError> {
    let (mut client, connection) = address.connect().await?;
    let connection = tokio::spawn(connection);
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    client.batch_execute(LOCK_TIMEOUT).await?;
    let until = Instant::now() + LOCKED_WITHIN;
    loop {
        match files::migrations::runner().run_async(&mut client).await {
            Ok(report) => {
                tell(&report);
                break;
            }
            Err(error) => {
                error.report().into_iter().for_each(tell);
                if !is_locked(&error) || Instant::now() >= until {
                    return Err(Box::new(error).into());
                }
                // It names the migration.
                tracing::warn!(%error, "another transaction uses a table that is to change: trying again");
                sleep(PAUSE).await;
            }
        }
    }
    drop(client);
    // The lock ends with the connection; an error of the connection no longer matters.
    let _ = connection.await;
    Ok(())
}

fn tell(report: &refinery::Report) {
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
}

/// Returns whether a migration did nothing because it could not have a table in time.
fn is_locked(error: &refinery::Error) -> bool {
    let refinery::error::Kind::Connection(_, source) = error.kind() else { return false };
    let error = source.downcast_ref::<tokio_postgres::Error>();
    error.and_then(tokio_postgres::Error::code) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Checks that all migrations have run.
///
/// # Errors
/// Returns [`StoreError::SchemaBehind`] if a migration is missing.
pub(super) async fn check(client: &Client) -> Result<(), StoreError> {
    let runner = files::migrations::runner();
    let needed =
        runner.get_migrations().iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0);
    let found =
        client.query_one("SELECT coalesce(max(version), 0)::bigint FROM refinery_schema_history", &[]).await;
    let found: i64 = match found {
        Ok(row) => row.try_get(0)?,
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => 0,
        Err(error) => return Err(error.into()),
    };
    if found < needed { Err(StoreError::SchemaBehind { found, needed }) } else { Ok(()) }
}
