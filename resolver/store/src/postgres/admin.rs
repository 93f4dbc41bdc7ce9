//! The identity of a Postgres server, and the database's history.

use std::sync::LazyLock;

use numbers::StoreEpoch;
use tokio_postgres::{Client, GenericClient};

use crate::{Result, StoreError};

/// SQL query for the identity of the answering server as text: the cluster's system identifier and
/// the timeline that it writes. A promoted standby begins a new timeline. The timeline is read from
/// the name of the current log file, because the control file has that of the last checkpoint.
pub(super) const SERVER: &str = "SELECT system_identifier::text || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()";

/// The session setting in which [`NOTE_SERVER`] stores the server's identity.
const NOTED_SERVER: &str = "shortmint.server";

/// Stores the server's identity in its session. Neither part changes while a session that can write
/// lives. Asking each time reads the control file, which costs a batch of 32 links 5 µs of its 200
/// (2026-11-23).
pub(super) static NOTE_SERVER: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT CASE WHEN NOT pg_is_in_recovery() THEN set_config('{NOTED_SERVER}', ({SERVER}), false) END"
    )
});

/// SQL query for the database's history as text: the server's identity, and the number of the
/// history unless it is the first. A database that was restored from an older copy has the same
/// server as before, but another number.
///
/// A session that has stored no identity, as those of the pools have not, asks the server.
static EPOCH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT coalesce(nullif(current_setting('{NOTED_SERVER}', true), ''), ({SERVER}))
         || coalesce((SELECT ':' || history FROM deployment WHERE history > 0), '')"
    )
});

/// The same query for writes under a number. It is NULL until the mark has been compared with the
/// ledger's since the server's start. A database is restored while its server is down, and until
/// that comparison it may lack links whose codes are public.
pub(super) static COMPARED_EPOCH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT coalesce(nullif(current_setting('{NOTED_SERVER}', true), ''), ({SERVER}))
         || (SELECT CASE history WHEN 0 THEN '' ELSE ':' || history END FROM deployment
             WHERE compared_start = pg_postmaster_start_time() AND compared_table = tableoid)"
    )
});

fn epoch_in(text: String) -> Result<StoreEpoch> {
    StoreEpoch::new(text).map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Returns the history of the database that this connection writes to.
pub(super) async fn epoch(client: &Client) -> Result<StoreEpoch> {
    epoch_in(client.query_one(EPOCH.as_str(), &[]).await?.try_get(0)?)
}

/// Returns the history of the database, in a transaction that writes under a number. Without a
/// comparison since the server's start it is [`StoreError::NotCompared`].
pub(super) async fn compared_epoch(client: &impl GenericClient) -> Result<StoreEpoch> {
    let text: Option<String> = client.query_one(COMPARED_EPOCH.as_str(), &[]).await?.try_get(0)?;
    epoch_in(text.ok_or(StoreError::NotCompared)?)
}

/// Returns the same history, and how many of these ids have a link. Deleted links count.
pub(super) async fn taken(client: &Client, ids: &[i64]) -> Result<(StoreEpoch, usize)> {
    let sql = format!("SELECT ({}), (SELECT count(*) FROM link WHERE id = ANY($1))", *COMPARED_EPOCH);
    let row = client.query_one(&sql, &[&ids]).await?;
    let epoch = row.try_get::<_, Option<String>>(0)?.ok_or(StoreError::NotCompared)?;
    let taken = usize::try_from(row.try_get::<_, i64>(1)?).unwrap_or_default();
    Ok((epoch_in(epoch)?, taken))
}
