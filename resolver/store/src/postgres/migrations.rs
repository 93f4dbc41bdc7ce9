//! The schema's migrations for Postgres.
//!
//! 1. One process at a time, by an advisory lock of the session. Others ask for it again and again:
//!    one that waited in a statement would hold a snapshot, and a concurrent index build waits for
//!    all snapshots.
//! 2. A statement that needs a table waits half a second for it, and is tried again. Other
//!    statements on the table queue behind it, so a transaction that takes minutes delays the
//!    migration only.
//! 3. Indexes of tables that may be large are built concurrently, while rows are written. Their
//!    files contain nothing else, so a file whose indexes stand is noted as applied.

use std::time::Duration;

use refinery_core::{Report, Target, error::Kind};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_postgres::{Client, error::SqlState};

use super::{citus::distribute, connect::Address};
use crate::{Result, Schema, StoreError, migrations::runner};

#[derive(rust_embed::Embed)]
#[folder = "../../schema/postgres"]
struct Files;

/// Key of the advisory lock. Any number that nothing else locks will do; refinery itself takes no
/// lock.
const LOCK: i64 = 0x5348_4f52_544d_494e;
/// How long another process may migrate.
const TURN_WITHIN: Duration = Duration::from_secs(6 * 3_600);
/// Pause before the advisory lock is asked for again.
const TURN_PAUSE: Duration = Duration::from_millis(200);
/// How long a statement waits for a table.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '500ms'";
/// How long a migration is tried again.
pub(super) const LOCKED_WITHIN: Duration = Duration::from_secs(480);
/// Pause before a migration is tried again: others have the table for most of the time.
pub(super) const PAUSE: Duration = Duration::from_secs(2);
/// The migrations, in order, whose files create or drop indexes of large tables and do nothing
/// else.
const INDEXES: [i32; 8] = [3, 6, 29, 30, 33, 35, 36, 38];

/// Runs pending migrations, one process at a time: all, or up to a version. The advisory lock ends
/// with the connection.
///
/// Each migration is a transaction of its own, so what was applied stays.
pub(super) async fn run(address: &Address, last: Option<i32>) -> Result<()> {
    let (mut client, connection) = in_turn(address).await?;
    let Schema { found, needed } = schema(&client).await?;
    if found > needed {
        // A release that was rolled back: it serves on the newer schema, which stays.
        tracing::info!(found, needed, "the schema is newer than this version's, and stays as it is");
        return Ok(());
    }
    let is_pending = |version: i32| i64::from(version) > found && last.is_none_or(|last| version <= last);
    for version in INDEXES.into_iter().filter(|version| is_pending(*version)) {
        apply(&mut client, Target::Version(version - 1)).await?;
        build_indexes(&client, version).await?;
        apply(&mut client, Target::FakeVersion(version)).await?;
        tracing::info!(version, "built indexes, while rows could be written");
    }
    apply(&mut client, last.map_or(Target::Latest, Target::Version)).await?;
    if last.is_none() {
        distribute(&client, false).await?;
    }
    drop(client);
    // The lock ends with the connection; an error of the connection no longer matters.
    let _ = connection.await;
    Ok(())
}

/// Divides the tables of links among the database's nodes. Returns false if it has none.
pub(super) async fn run_distribute(address: &Address) -> Result<bool> {
    let (client, connection) = in_turn(address).await?;
    client.batch_execute(LOCK_TIMEOUT).await?;
    let is_distributed = distribute(&client, true).await?;
    drop(client);
    let _ = connection.await;
    Ok(is_distributed)
}

/// Connects, and waits until no other process migrates.
async fn in_turn(address: &Address) -> Result<(Client, JoinHandle<Result<(), tokio_postgres::Error>>)> {
    let (client, connection) = address.connect().await?;
    let connection = tokio::spawn(connection);
    take_turn(&client).await?;
    Ok((client, connection))
}

/// Waits until no other process migrates.
async fn take_turn(client: &Client) -> Result<()> {
    let until = Instant::now() + TURN_WITHIN;
    loop {
        let row = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?;
        if row.try_get(0)? {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(StoreError::TimedOut);
        }
        sleep(TURN_PAUSE).await;
    }
}

/// Applies migrations, and tries again while another transaction uses a table.
async fn apply(client: &mut Client, target: Target) -> Result<()> {
    client.batch_execute(LOCK_TIMEOUT).await?;
    let until = Instant::now() + LOCKED_WITHIN;
    loop {
        let error = match runner::<Files>()?.set_target(target).run_async(client).await {
            Ok(report) => {
                tell(&report);
                return Ok(());
            }
            Err(error) => error,
        };
        error.report().into_iter().for_each(tell);
        if !is_locked(&error) || Instant::now() >= until {
            return Err(Box::new(error).into());
        }
        // It names the migration.
        tracing::warn!(%error, "another transaction uses a table that is to change: trying again");
        sleep(PAUSE).await;
    }
}

/// Builds the indexes of a file that do not stand yet, while rows are written.
///
/// CREATE INDEX in a transaction keeps writers out until the last row is read: 1.9 s with four
/// million links (2026-11-22). Concurrently it reads the table twice, and keeps nobody out. The
/// files stay as they are, for databases that were migrated by them.
async fn build_indexes(client: &Client, version: i32) -> Result<()> {
    // Building concurrently waits for transactions, and keeps nobody waiting meanwhile.
    client.batch_execute("SET lock_timeout = 0").await?;
    for statement in statements(version)? {
        if let Some(index) = statement.strip_prefix("DROP INDEX ") {
            client.batch_execute(&format!("DROP INDEX CONCURRENTLY IF EXISTS {index}")).await?;
            continue;
        }
        let index = statement.strip_prefix("CREATE INDEX ").unwrap_or_default();
        let name = index.split(' ').next().unwrap_or_default();
        let stands = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1)";
        match client.query_opt(stands, &[&name]).await?.map(|row| row.try_get(0)).transpose()? {
            Some(true) => continue,
            // An invalid index is the rest of a build that was broken off.
            Some(false) => client.batch_execute(&format!("DROP INDEX CONCURRENTLY {name}")).await?,
            None => {}
        }
        client.batch_execute(&format!("CREATE INDEX CONCURRENTLY {index}")).await?;
    }
    Ok(())
}

/// Returns the statements of a migration's file, each of which is on one line.
fn statements(version: i32) -> Result<Vec<String>> {
    let runner = runner::<Files>()?;
    let file = runner.get_migrations().iter().find(|file| file.version() == version);
    let sql = file.and_then(|file| file.sql()).unwrap_or_default();
    let lines = sql.lines().filter(|line| !line.is_empty() && !line.starts_with("--"));
    Ok(lines.map(|line| line.trim_end_matches(';').to_owned()).collect())
}

fn tell(report: &Report) {
    for migration in report.applied_migrations() {
        tracing::info!(%migration, "migrated");
    }
}

/// Returns whether a migration did nothing because it could not have a table in time.
fn is_locked(error: &refinery_core::Error) -> bool {
    let Kind::Connection(_, source) = error.kind() else { return false };
    let error = source.downcast_ref::<tokio_postgres::Error>();
    error.and_then(tokio_postgres::Error::code) == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

/// Returns the newest migration that has run, and the newest that this version has.
pub(super) async fn schema(client: &Client) -> Result<Schema> {
    let runner = runner::<Files>()?;
    let needed =
        runner.get_migrations().iter().map(|migration| i64::from(migration.version())).max().unwrap_or(0);
    let found =
        client.query_one("SELECT coalesce(max(version), 0)::bigint FROM refinery_schema_history", &[]).await;
    let found: i64 = match found {
        Ok(row) => row.try_get(0)?,
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => 0,
        Err(error) => return Err(error.into()),
    };
    Ok(Schema { found, needed })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A migration that is noted as applied must have had the effect of its file.
    #[test]
    fn the_files_of_indexes_contain_nothing_else() {
        for version in INDEXES {
            let statements = statements(version).unwrap();
            assert!(!statements.is_empty(), "V{version}");
            let is_of_index =
                |one: &String| one.starts_with("CREATE INDEX ") || one.starts_with("DROP INDEX ");
            assert!(statements.iter().all(is_of_index), "{statements:?}");
        }
    }
}
