//! The schema's migrations for Postgres.

use tokio_postgres::{Client, error::SqlState};

use super::connect::Address;
use crate::StoreError;

mod files {
    refinery::embed_migrations!("../../schema/postgres");
}

/// Key of the advisory lock. Any number that nothing else locks will do; refinery itself takes no
/// lock.
const LOCK: i64 = 0x5348_4f52_544d_494e;

/// Runs all pending migrations, one process at a time. The advisory lock ends with the connection.
pub(super) async fn run(address: &Address) -> Result<(), StoreError> {
    let (mut client, connection) = address.connect().await?;
    let connection = tokio::spawn(connection);
    client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    let report = files::migrations::runner().run_async(&mut client).await.map_err(Box::new)?;
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
    drop(client);
    // The lock ends with the connection; an error of the connection no longer matters.
    let _ = connection.await;
    Ok(())
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
