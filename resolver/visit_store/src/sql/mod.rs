//! Statements on visits that Postgres and SQLite share: each has one text, as in `store/src/sql/`.
//!
//! Rows are written by each database in its own way: by COPY on Postgres, and by prepared
//! statements on SQLite.

pub(crate) mod changes;
pub(crate) mod closing;
pub(crate) mod counters;
pub(crate) mod days;
pub(crate) mod deletion;
pub(crate) mod erasures;
pub(crate) mod months;
pub(crate) mod old_counters;
pub(crate) mod producers;
pub(crate) mod rows;
pub(crate) mod secrets;
mod sums;
pub(crate) mod tags;
pub(crate) mod transferred;

use store::{Dialect, Row, Sql};
use visits::{Day, tally::Counters};

use crate::Result;

/// Waits for an advisory lock until the transaction ends. SQLite has one writer.
pub(crate) async fn lock(sql: &mut dyn Sql, key: i64) -> Result<()> {
    if sql.dialect() == Dialect::Postgres {
        sql.query(&format!("SELECT 1 FROM pg_advisory_xact_lock({key})"), &[]).await?;
    }
    Ok(())
}

/// Deletes at most `most` rows of a table whose key are these columns, and that fit a condition on
/// `$1`. Returns their number.
async fn delete_some(
    sql: &mut dyn Sql,
    (table, key): (&str, &str),
    condition: &str,
    bound: i64,
    most: i64,
) -> Result<u64> {
    let some = match sql.dialect() {
        Dialect::Postgres => {
            format!("ctid = ANY(ARRAY(SELECT ctid FROM {table} WHERE {condition} LIMIT $2))")
        }
        Dialect::Sqlite => format!("({key}) IN (SELECT {key} FROM {table} WHERE {condition} LIMIT $2)"),
    };
    Ok(sql.execute(&format!("DELETE FROM {table} WHERE {some}"), &[bound.into(), most.into()]).await?)
}

/// Returns the current day by the database's clock.
pub(crate) async fn today(sql: &mut dyn Sql) -> Result<Day> {
    let today = format!("SELECT {} / 86400000", sql.dialect().now_millis());
    let today = sql.number(&today, &[]).await?.and_then(|day| i32::try_from(day).ok());
    Ok(Day::from_stored(today.unwrap_or(0)))
}

pub(crate) fn literal(dialect: Dialect, bytes: &[u8]) -> String {
    let hex = codes::hex(bytes);
    match dialect {
        Dialect::Postgres => format!("'\\x{hex}'::bytea"),
        Dialect::Sqlite => format!("x'{hex}'"),
    }
}

pub(crate) fn take_counters(row: &mut Row, from: usize) -> Result<Counters> {
    Ok(Counters {
        total: row.int(from)?,
        bots: row.int(from + 1)?,
        quarters: row.take_bytes(from + 2)?,
        dimensions: row.take_bytes(from + 3)?,
        visitors: row.take_bytes(from + 4)?,
        addresses: row.take_bytes(from + 5)?,
    })
}

pub(crate) fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}
