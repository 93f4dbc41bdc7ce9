//! Merging of counters: the chunks of a row, and the days of a month.

use tokio_postgres::{
    Client, IsolationLevel, Row, Transaction,
    types::{ToSql, Type},
};

use crate::{VisitStoreError, columns::ByteColumns};

/// Months whose days are merged, back from the current one.
const MONTHS: i32 = 13;
/// Months merged in one step.
const STEP: i64 = 50;
/// Bytes of a month's days from which a merged row is worth its space.
const WORTHWHILE: i64 = 16 * 1024;
/// Visits from which a link's months are merged.
const BUSY: i64 = 1_000;
/// Key of the advisory lock of this chore.
const LOCK: i64 = 0x5348_4f52_564d_5247;

/// The key of a row of counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct DayKey {
    kind: i16,
    subject: i64,
    part: i64,
    day: i32,
    slot: i16,
}

impl DayKey {
    /// Reads a key from the first five columns.
    pub(super) fn of(row: &Row) -> Self {
        Self { kind: row.get(0), subject: row.get(1), part: row.get(2), day: row.get(3), slot: row.get(4) }
    }

    fn parameters(&self) -> [(&(dyn ToSql + Sync), Type); 5] {
        [
            (&self.kind, Type::INT2),
            (&self.subject, Type::INT8),
            (&self.part, Type::INT8),
            (&self.day, Type::INT4),
            (&self.slot, Type::INT2),
        ]
    }
}

/// Merges the chunks of rows that have grown long. What is read from them stays the same.
pub(super) async fn compact(transaction: &Transaction<'_>, keys: &[DayKey]) -> Result<(), VisitStoreError> {
    let select = "SELECT quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day = $4 AND slot = $5 FOR UPDATE";
    let update =
        "UPDATE visit_day SET quarters = $6, dimensions = $7, visitors = $8, addresses = $9, appended = 0
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day = $4 AND slot = $5";
    for key in keys {
        let rows = transaction.query_typed(select, &key.parameters()).await?;
        let Some(row) = rows.first() else { continue };
        let merged = byte_columns(row, 0).merged()?;
        let mut parameters = key.parameters().to_vec();
        parameters.extend(column_parameters(&merged));
        transaction.execute_typed(update, &parameters).await?;
    }
    Ok(())
}

/// Reads byte columns from four columns of a row.
pub(super) fn byte_columns(row: &Row, from: usize) -> ByteColumns {
    ByteColumns {
        quarters: row.get(from),
        dimensions: row.get(from + 1),
        visitors: row.get(from + 2),
        addresses: row.get(from + 3),
    }
}

fn column_parameters(columns: &ByteColumns) -> [(&(dyn ToSql + Sync), Type); 4] {
    [
        (&columns.quarters, Type::BYTEA),
        (&columns.dimensions, Type::BYTEA),
        (&columns.visitors, Type::BYTEA),
        (&columns.addresses, Type::BYTEA),
    ]
}

/// SQL query for months of busy subjects whose merged rows are missing or outdated. The current
/// month is left out.
const OUTDATED: &str = "WITH month AS (
     SELECT kind, subject, part,
            (extract(year FROM date '1970-01-01' + day) * 12 + extract(month FROM date '1970-01-01' + day) - 1)::integer AS month,
            sum(version)::bigint AS version,
            sum(octet_length(dimensions) + octet_length(visitors) + octet_length(addresses) + octet_length(quarters)) AS bytes
     FROM visit_day
     WHERE (kind > 0 OR (kind = 0 AND subject IN (SELECT link_id FROM link_seen WHERE total >= $1)))
       AND day >= extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC') - $2 * interval '1 month') / 86400
       AND day < extract(epoch FROM date_trunc('month', now() AT TIME ZONE 'UTC')) / 86400
     GROUP BY 1, 2, 3, 4
 )
 SELECT month.kind, month.subject, month.part, month.month
 FROM month LEFT JOIN visit_month AS merged USING (kind, subject, part, month)
 WHERE month.bytes > $3 AND merged.version IS DISTINCT FROM month.version
 ORDER BY 1, 2, 3, 4 LIMIT $4";

/// Merges the days of some months. Returns whether there are more.
pub(super) async fn merge(client: &mut Client) -> Result<bool, VisitStoreError> {
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).start().await?;
    transaction.batch_execute("SET LOCAL statement_timeout = '55s'").await?;
    let lock = format!("SELECT pg_try_advisory_xact_lock({LOCK})");
    let is_ours = transaction.query_typed(&lock, &[]).await?;
    if !is_ours.first().is_some_and(|row| row.get(0)) {
        return Ok(false);
    }
    let months = transaction
        .query_typed(
            OUTDATED,
            &[(&BUSY, Type::INT8), (&MONTHS, Type::INT4), (&WORTHWHILE, Type::INT8), (&STEP, Type::INT8)],
        )
        .await?;
    for month in &months {
        merge_month(&transaction, month).await?;
    }
    transaction.commit().await?;
    Ok(months.len() == usize::try_from(STEP).unwrap_or(usize::MAX))
}

async fn merge_month(transaction: &Transaction<'_>, month: &Row) -> Result<(), VisitStoreError> {
    let (kind, subject, part): (i16, i64, i64) = (month.get(0), month.get(1), month.get(2));
    let month = visits::Month::from_stored(month.get(3));
    let (first, end) = (month.first_day().get(), month.next().first_day().get());
    let days = "SELECT version, total, bots, quarters, dimensions, visitors, addresses FROM visit_day
         WHERE kind = $1 AND subject = $2 AND part = $3 AND day >= $4 AND day < $5";
    let rows = transaction
        .query_typed(
            days,
            &[
                (&kind, Type::INT2),
                (&subject, Type::INT8),
                (&part, Type::INT8),
                (&first, Type::INT4),
                (&end, Type::INT4),
            ],
        )
        .await?;
    let (mut all, mut sums) = (ByteColumns::default(), [0_i64; 3]);
    for row in &rows {
        all.append(&byte_columns(row, 3));
        sums.iter_mut().enumerate().for_each(|(column, sum)| *sum += row.get::<_, i64>(column));
    }
    // Quarter hours of different days cannot be told apart in one value; days keep them.
    let merged = ByteColumns { quarters: Vec::new(), ..all.merged()? };
    let number = month.get();
    let insert = "INSERT INTO visit_month (kind, subject, part, month, version, total, bots,
                                  quarters, dimensions, visitors, addresses)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
         ON CONFLICT (kind, subject, part, month) DO UPDATE SET version = excluded.version, total = excluded.total,
             bots = excluded.bots, quarters = excluded.quarters, dimensions = excluded.dimensions,
             visitors = excluded.visitors, addresses = excluded.addresses";
    let [version, total, bots] = sums;
    let mut values: Vec<(&(dyn ToSql + Sync), Type)> = vec![
        (&kind, Type::INT2),
        (&subject, Type::INT8),
        (&part, Type::INT8),
        (&number, Type::INT4),
        (&version, Type::INT8),
        (&total, Type::INT8),
        (&bots, Type::INT8),
    ];
    values.extend(column_parameters(&merged));
    transaction.execute_typed(insert, &values).await?;
    Ok(())
}
