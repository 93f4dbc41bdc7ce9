//! The version of the settings that each resolver keeps a copy of.

use super::Sql;
use crate::StoreError;

/// SQL statement that raises the settings' version, so that all resolvers read them again.
pub(crate) const NOTE_SETTINGS: &str = "UPDATE settings_version SET version = version + 1";

/// Raises the settings' version: once the transaction is committed, all resolvers read them again.
pub(super) async fn note_change<S: Sql>(sql: &mut S) -> Result<(), StoreError> {
    sql.query(NOTE_SETTINGS, &[]).await.map(drop)
}
