//! What a deployment is: the code key and the ledger that its numbers come from.

use super::{Sql, Value};
use crate::StoreError;

/// Returns the fingerprint of the adopted code key.
pub(crate) async fn fingerprint(sql: &mut dyn Sql) -> Result<Option<String>, StoreError> {
    let rows = sql.query("SELECT code_key_fingerprint FROM deployment", &[]).await?;
    rows.first().map(|row| Ok(row.text(0)?.to_owned())).transpose()
}

/// Adopts the fingerprint if none is stored, and returns the stored one. The first insert wins.
pub(crate) async fn adopt_fingerprint(sql: &mut dyn Sql, mine: &str) -> Result<String, StoreError> {
    let adopt = "INSERT INTO deployment (code_key_fingerprint)
                 SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM deployment) ON CONFLICT DO NOTHING";
    sql.query(adopt, &[Value::Text(mine.to_owned())]).await?;
    fingerprint(sql).await?.ok_or_else(is_empty)
}

/// Adopts the ledger if none is stored, and returns the stored one. The first update wins.
pub(crate) async fn adopt_ledger(sql: &mut dyn Sql, mine: &str) -> Result<String, StoreError> {
    let adopt = "UPDATE deployment SET ledger = $1 WHERE ledger IS NULL";
    sql.query(adopt, &[Value::Text(mine.to_owned())]).await?;
    let rows = sql.query("SELECT ledger FROM deployment", &[]).await?;
    Ok(rows.first().ok_or_else(is_empty)?.text(0)?.to_owned())
}

/// Clears the adopted ledger.
pub(crate) async fn forget_ledger(sql: &mut dyn Sql) -> Result<(), StoreError> {
    sql.query("UPDATE deployment SET ledger = NULL", &[]).await.map(drop)
}

fn is_empty() -> StoreError {
    StoreError::Corrupt("table deployment is empty".to_owned())
}
