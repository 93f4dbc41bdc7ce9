//! Months whose days are to be merged.

use store::{Sql as _, sqlite::SqliteSql};
use visits::{Day, Month};

use super::LINKS;
use crate::{
    Result,
    sql::months::{BUSY, MONTHS, MonthKey, STEP, WORTHWHILE},
};

/// Returns months of busy subjects whose merged rows are missing or outdated. The current month is
/// left out. Links have too many days to look through, so only the links that are known to have
/// many visits are asked for.
pub(super) async fn outdated(sql: &mut SqliteSql<'_>) -> Result<Vec<MonthKey>> {
    let today = sql.query("SELECT unixepoch() / 86400", &[]).await?;
    let today = today.first().map_or(Ok(0), |row| row.number(0))?;
    let end = Day::from_stored(today).month();
    let first = Month::from_stored(end.get() - MONTHS);
    let days = |whose: &str| {
        format!(
            "SELECT kind, subject, part, version,
                    CAST(strftime('%Y', day * 86400, 'unixepoch') AS INTEGER) * 12
                        + CAST(strftime('%m', day * 86400, 'unixepoch') AS INTEGER) - 1 AS month,
                    octet_length(quarters) + octet_length(dimensions) + octet_length(visitors)
                        + octet_length(addresses) AS bytes
             FROM visit_day WHERE {whose} AND day >= {} AND day < {}",
            first.first_day().get(),
            end.first_day().get()
        )
    };
    let busy =
        format!("kind = 0 AND subject IN (SELECT link_id FROM {LINKS}.link_seen WHERE total >= {BUSY})");
    let query = format!(
        "WITH days AS ({} UNION ALL {}),
              sums AS (SELECT kind, subject, part, month, sum(version) AS version, sum(bytes) AS bytes
                       FROM days GROUP BY 1, 2, 3, 4)
         SELECT sums.kind, sums.subject, sums.part, sums.month
         FROM sums LEFT JOIN visit_month AS merged USING (kind, subject, part, month)
         WHERE sums.bytes > {WORTHWHILE} AND merged.version IS NOT sums.version
         ORDER BY 1, 2, 3, 4 LIMIT {STEP}",
        days("kind > 0"),
        days(&busy)
    );
    sql.query(&query, &[]).await?.iter().map(MonthKey::of).collect()
}
