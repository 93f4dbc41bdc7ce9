//! Merging of the days of a month into one row.

use store::{Row, Sql, Value};
use visits::{Month, tally::Counters};

use super::take_counters;
use crate::Result;

/// Months whose days are merged, back from the current one.
pub(crate) const MONTHS: i32 = 13;
pub(crate) const STEP: usize = 50;
/// Bytes of a month's days from which a merged row is worth its space.
pub(crate) const WORTHWHILE: i64 = 16 * 1024;
/// Visits from which a link's months are merged.
pub(crate) const BUSY: i64 = 1_000;

#[derive(Clone, Copy, Debug)]
pub(crate) struct MonthKey {
    kind: i16,
    subject: i64,
    part: i64,
    month: Month,
}

impl MonthKey {
    pub(crate) fn of(row: &Row) -> Result<Self> {
        let month = Month::from_stored(row.number(3)?);
        Ok(Self { kind: row.number(0)?, subject: row.int(1)?, part: row.int(2)?, month })
    }
}

pub(crate) async fn merge(sql: &mut dyn Sql, key: &MonthKey) -> Result<()> {
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
        return Ok(());
    }
    // Quarter hours of different days cannot be told apart in one value; days keep them.
    let Counters { dimensions, visitors, addresses, .. } = all.merged()?;
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
    Ok(())
}
