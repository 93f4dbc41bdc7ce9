//! Merging of the days of months.

use store::postgres::PostgresSql;
use tokio_postgres::{Client, IsolationLevel};

use super::try_lock;
use crate::{Result, sql::months};

/// Key of the advisory lock of this chore.
const LOCK: i64 = 0x5348_4f52_564d_5247;

pub(super) async fn merge(client: &mut Client) -> Result<bool> {
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    transaction.batch_execute("SET LOCAL statement_timeout = '55s'").await?;
    if !try_lock(&transaction, LOCK).await? {
        return Ok(false);
    }
    let sql = &mut PostgresSql(&transaction);
    let months = months::outdated(sql).await?;
    for month in &months {
        months::merge(sql, month).await?;
    }
    transaction.commit().await?;
    Ok(months.len() == months::STEP)
}
