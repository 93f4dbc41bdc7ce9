//! The version of the settings that each resolver keeps a copy of.

use super::Sql;
use crate::Result;

/// Raises the settings' version: once the transaction is committed, all resolvers read them again.
pub(super) async fn note_change(sql: &mut dyn Sql) -> Result<()> {
    sql.query("UPDATE settings_version SET version = version + 1", &[]).await.map(drop)
}
