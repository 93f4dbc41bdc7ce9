//! Merging of the days of a month into one row.

use store::{Dialect, Row, Sql, Value};
use visits::{Month, tally::Counters};

use super::{old_counters::first_kept, take_counters, today};
use crate::{Result, sqlite::LINKS};

/// Months whose days are merged, back from the current one.
const MONTHS: i32 = 13;
pub(crate) const STEP: usize = 50;
/// Bytes of a month's days from which a merged row is worth its space.
const WORTHWHILE: i64 = 16 * 1024;
/// Visits from which a link's months are merged.
const BUSY: i64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MonthKey {
    kind: i16,
    subject: i64,
    part: i64,
    month: Month,
}

impl MonthKey {
    fn of(row: &Row) -> Result<Self> {
        let month = Month::from_stored(row.number(3)?);
        Ok(Self { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)?, month })
    }
}

/// Returns months of busy subjects whose merged rows are missing or outdated. The current month is
/// left out. Links have too many days to look through, so only the links that are known to have
/// many visits are asked for.
pub(crate) async fn outdated(sql: &mut dyn Sql) -> Result<Vec<MonthKey>> {
    let end = today(sql).await?.month();
    let first = Month::from_stored(end.get() - MONTHS);
    let (month, link_seen) = match sql.dialect() {
        Dialect::Postgres => (
            "CAST(extract(year FROM date '1970-01-01' + day) * 12
                + extract(month FROM date '1970-01-01' + day) - 1 AS integer)",
            "link_seen".to_owned(),
        ),
        Dialect::Sqlite => (
            "CAST(strftime('%Y', day * 86400, 'unixepoch') AS INTEGER) * 12
                + CAST(strftime('%m', day * 86400, 'unixepoch') AS INTEGER) - 1",
            format!("{LINKS}.link_seen"),
        ),
    };
    let first_kept = first_kept(sql.dialect());
    let days = |whose: &str| {
        format!(
            "SELECT kind, subject, part, version, {month} AS month,
                    octet_length(quarters) + octet_length(dimensions) + octet_length(visitors)
                        + octet_length(addresses) AS bytes
             FROM visit_day WHERE {whose} AND day >= {} AND day < {} AND day >= {first_kept}",
            first.first_day().get(),
            end.first_day().get()
        )
    };
    let busy = format!("kind = 0 AND subject IN (SELECT link_id FROM {link_seen} WHERE total >= {BUSY})");
    let query = format!(
        "WITH days AS ({} UNION ALL {}),
              sums AS (SELECT kind, subject, part, month, sum(version) AS version, sum(bytes) AS bytes
                       FROM days GROUP BY 1, 2, 3, 4)
         SELECT sums.kind, sums.subject, sums.part, sums.month
         FROM sums LEFT JOIN visit_month AS merged USING (kind, subject, part, month)
         WHERE sums.bytes > {WORTHWHILE} AND merged.version IS DISTINCT FROM sums.version
         ORDER BY 1, 2, 3, 4 LIMIT {STEP}",
        days("kind > 0"),
        days(&busy)
    );
    sql.query(&query, &[]).await?.iter().map(MonthKey::of).collect()
}

/// Merges the days of a month. Returns whether it did: damaged counters are logged and left as they
/// are.
pub(crate) async fn merge(sql: &mut dyn Sql, key: &MonthKey) -> Result<bool> {
    let query = "SELECT version, total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day >= $4 AND day < $5";
    let MonthKey { kind, subject, part, month } = *key;
    let mut values: Vec<Value> = vec![kind.into(), subject.into(), part.into()];
    values.extend([month.first_day().get().into(), month.next().first_day().get().into()]);
    let (mut all, mut version) = (Counters::default(), 0);
    for mut row in sql.query(query, &values).await? {
        version += row.int(0)?;
        all.append(&take_counters(&mut row, 1)?);
    }
    if version == 0 {
        // The visits were deleted since the month was found.
        return Ok(true);
    }
    // Quarter hours of different days cannot be told apart in one value; days keep them.
    let Counters { dimensions, visitors, addresses, .. } = match all.merged() {
        Ok(merged) => merged,
        Err(error) => {
            tracing::error!(%error, ?key, "counters of visits cannot be merged");
            return Ok(false);
        }
    };
    let insert = "INSERT INTO visit_month (kind, subject, part, month, version, total, bots,
                                  quarters, dimensions, visitors, addresses)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (kind, subject, part, month) DO UPDATE SET version = excluded.version,
             total = excluded.total, bots = excluded.bots, quarters = excluded.quarters,
             dimensions = excluded.dimensions, visitors = excluded.visitors, addresses = excluded.addresses";
    values.truncate(3);
    values.extend([month.get().into(), version.into(), all.total.into(), all.bots.into()]);
    values.extend([Vec::new(), dimensions, visitors, addresses].map(Value::Bytes));
    sql.execute(insert, &values).await?;
    Ok(true)
}
