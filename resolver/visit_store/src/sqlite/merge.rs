//! Merging of days into months.

use rusqlite::{Connection, params};
use visits::{Day, Month};

use super::{LINKS, days::byte_columns};
use crate::{VisitStoreError, columns::ByteColumns};

/// Months whose days are merged, back from the current one.
const MONTHS: i32 = 13;
/// Months merged in one step.
pub(super) const STEP: usize = 50;
/// Bytes of a month's days from which a merged row is worth its space.
const WORTHWHILE: i64 = 16 * 1024;
/// Visits from which a link's months are merged.
const BUSY: i64 = 1_000;

/// The key of a month's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct MonthKey {
    kind: i16,
    subject: i64,
    part: i64,
    month: Month,
}

/// Returns months of busy subjects whose merged rows are missing or outdated. The current month is
/// left out. Links have too many days to look through, so only the links that are known to have
/// many visits are asked for.
pub(super) fn outdated(connection: &Connection, has_links: bool) -> Result<Vec<MonthKey>, VisitStoreError> {
    let today = connection.query_row("SELECT unixepoch() / 86400", [], |row| row.get(0))?;
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
    let links = if has_links { format!("UNION ALL {}", days(&busy)) } else { String::new() };
    let query = format!(
        "WITH days AS ({} {links}),
              sums AS (SELECT kind, subject, part, month, sum(version) AS version, sum(bytes) AS bytes
                       FROM days GROUP BY 1, 2, 3, 4)
         SELECT sums.kind, sums.subject, sums.part, sums.month
         FROM sums LEFT JOIN visit_month AS merged USING (kind, subject, part, month)
         WHERE sums.bytes > {WORTHWHILE} AND merged.version IS NOT sums.version
         ORDER BY 1, 2, 3, 4 LIMIT {STEP}",
        days("kind > 0")
    );
    let mut query = connection.prepare(&query)?;
    let months = query.query_map([], |row| {
        let month = Month::from_stored(row.get(3)?);
        Ok(MonthKey { kind: row.get(0)?, subject: row.get(1)?, part: row.get(2)?, month })
    })?;
    Ok(months.collect::<Result<_, _>>()?)
}

/// Merges the days of a month into its row.
pub(super) fn merge_month(transaction: &Connection, key: &MonthKey) -> Result<(), VisitStoreError> {
    let query = "SELECT version, total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = ?1 AND subject = ?2 AND part = ?3 AND day >= ?4 AND day < ?5";
    let (first, end) = (key.month.first_day(), key.month.next().first_day());
    let mut query = transaction.prepare_cached(query)?;
    let mut rows = query.query(params![key.kind, key.subject, key.part, first.get(), end.get()])?;
    let (mut all, mut sums) = (ByteColumns::default(), [0_i64; 3]);
    while let Some(row) = rows.next()? {
        all.append(&byte_columns(row, 3)?);
        for (column, sum) in sums.iter_mut().enumerate() {
            *sum += row.get::<_, i64>(column)?;
        }
    }
    let [version, total, bots] = sums;
    if version == 0 {
        // The visits were deleted since the month was found.
        return Ok(());
    }
    // Quarter hours of different days cannot be told apart in one value; days keep them.
    let merged = ByteColumns { quarters: Vec::new(), ..all.merged()? };
    let insert = "INSERT INTO visit_month (kind, subject, part, month, version, total, bots,
                                  quarters, dimensions, visitors, addresses)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
         ON CONFLICT (kind, subject, part, month) DO UPDATE SET version = excluded.version,
             total = excluded.total, bots = excluded.bots, quarters = excluded.quarters,
             dimensions = excluded.dimensions, visitors = excluded.visitors, addresses = excluded.addresses";
    let values = params![
        key.kind,
        key.subject,
        key.part,
        key.month.get(),
        version,
        total,
        bots,
        merged.quarters,
        merged.dimensions,
        merged.visitors,
        merged.addresses
    ];
    transaction.prepare_cached(insert)?.execute(values)?;
    Ok(())
}
