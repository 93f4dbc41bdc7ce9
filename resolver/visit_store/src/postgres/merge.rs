//! Merging of the days of months.

use store::{Sql as _, postgres::PostgresSql};
use tokio_postgres::{Client, IsolationLevel};

use super::try_lock;
use crate::{
    Result,
    sql::months::{self, BUSY, MONTHS, MonthKey, STEP, WORTHWHILE},
};

/// Key of the advisory lock of this chore.
const LOCK: i64 = 0x5348_4f52_564d_5247;

/// SQL query for months of busy subjects whose merged rows are missing or outdated. The current
/// month is left out.
fn outdated() -> String {
    format!(
        "WITH month AS (
     SELECT kind, subject, part,
            (extract(year FROM date '1970-01-01' + day) * 12 + extract(month FROM date '1970-01-01' + day) - 1)::integer AS month,
            sum(version)::bigint AS version,
            sum(octet_length(dimensions) + octet_length(visitors) + octet_length(addresses) + octet_length(quarters)) AS bytes
     FROM visit_day
     WHERE (kind > 0 OR (kind = 0 AND subject IN (SELECT link_id FROM link_seen WHERE total >= {BUSY})))
       AND day >= extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') - {MONTHS} * interval '1 month') / 86400
       AND day < extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC')) / 86400
     GROUP BY 1, 2, 3, 4
 )
 SELECT month.kind, month.subject, month.part, month.month
 FROM month LEFT JOIN visit_month AS merged USING (kind, subject, part, month)
 WHERE month.bytes > {WORTHWHILE} AND merged.version IS DISTINCT FROM month.version
 ORDER BY 1, 2, 3, 4 LIMIT {STEP}"
    )
}

pub(super) async fn merge(client: &mut Client) -> Result<bool> {
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    transaction.batch_execute("SET LOCAL statement_timeout = '55s'").await?;
    if !try_lock(&transaction, LOCK).await? {
        return Ok(false);
    }
    let sql = &mut PostgresSql(&transaction);
    let months = sql.query(&outdated(), &[]).await?;
    for month in &months {
        months::merge(sql, &MonthKey::of(month)?).await?;
    }
    transaction.commit().await?;
    Ok(months.len() == STEP)
}
