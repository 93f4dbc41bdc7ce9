//! Identity of a deployment: the code key and the ledger that its numbers come from.

use super::{Sql, Value};
use crate::{Result, StoreError};

pub(crate) async fn fingerprint(sql: &mut dyn Sql) -> Result<Option<String>> {
    let row = sql.first("SELECT code_key_fingerprint FROM deployment", &[]).await?;
    row.map(|row| Ok(row.text(0)?.to_owned())).transpose()
}

pub(crate) async fn adopt_fingerprint(sql: &mut dyn Sql, mine: &str) -> Result<String> {
    let adopt = "INSERT INTO deployment (code_key_fingerprint)
                 SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM deployment) ON CONFLICT DO NOTHING";
    sql.query(adopt, &[Value::Text(mine.to_owned())]).await?;
    fingerprint(sql).await?.ok_or_else(is_empty)
}

pub(crate) async fn adopt_ledger(sql: &mut dyn Sql, mine: &str) -> Result<String> {
    let adopt = "UPDATE deployment SET ledger = $1 WHERE ledger IS NULL";
    sql.query(adopt, &[Value::Text(mine.to_owned())]).await?;
    let row = sql.first("SELECT ledger FROM deployment", &[]).await?.ok_or_else(is_empty)?;
    Ok(row.text(0)?.to_owned())
}

pub(crate) async fn forget_ledger(sql: &mut dyn Sql) -> Result<()> {
    sql.query("UPDATE deployment SET ledger = NULL", &[]).await.map(drop)
}

fn is_empty() -> StoreError {
    StoreError::Corrupt("table deployment is empty".to_owned())
}
