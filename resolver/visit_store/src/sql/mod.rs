//! Statements on visits that Postgres and SQLite share: each has one text, as in `store/src/sql/`.
//!
//! Rows and texts are written by each database in its own way, because batches are: by COPY and
//! arrays on Postgres, and by prepared statements on SQLite.

pub(crate) mod changes;
pub(crate) mod counters;
pub(crate) mod days;
pub(crate) mod deletion;
pub(crate) mod erasures;
pub(crate) mod months;
pub(crate) mod producers;
pub(crate) mod rows;
pub(crate) mod secrets;
mod sums;
pub(crate) mod tags;

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

/// Returns the current day by the database's clock.
pub(crate) async fn today(sql: &mut dyn Sql) -> Result<Day> {
    let today = format!("SELECT {} / 86400000", sql.dialect().now_millis());
    let today = sql.number(&today, &[]).await?.and_then(|day| i32::try_from(day).ok());
    Ok(Day::from_stored(today.unwrap_or(0)))
}

pub(crate) fn literal(dialect: Dialect, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match dialect {
        Dialect::Postgres => format!("'\\x{hex}'::bytea"),
        Dialect::Sqlite => format!("x'{hex}'"),
    }
}

fn take_counters(row: &mut Row, from: usize) -> Result<Counters> {
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
