//! The shared statements on SQLite. A transaction borrows the connection of one thread, and nothing
//! else runs on that thread: an executor that blocks it runs an asynchronous operation to its end.

use async_trait::async_trait;
use futures_executor::block_on;
use jiff::Timestamp;
use rusqlite::{
    Connection, ToSql, params_from_iter,
    types::{ToSqlOutput, ValueRef},
};

use crate::{
    Result, StoreError,
    sql::{Cell, Dialect, Notice, Row, Sql, Value},
};

/// A transaction on SQLite. It sends no notifications: this process alone uses the file, and knows
/// its own changes.
pub struct SqliteSql<'a>(pub &'a mut Connection);

/// Runs an operation in a transaction that writes, and commits it. Blocks the thread. After an
/// error of the operation or of SQLite, the transaction was rolled back.
pub fn write<T, E: From<StoreError>>(
    connection: &mut Connection,
    operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, E>,
) -> Result<T, E> {
    // Takes the write lock at once, so that writers conflict here and not at COMMIT.
    run(connection, "BEGIN IMMEDIATE", operation)
}

/// Runs an operation in a transaction that begins in this way. Blocks the thread.
pub(super) fn run<T, E: From<StoreError>>(
    connection: &mut Connection,
    begin: &str,
    operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, E>,
) -> Result<T, E> {
    connection.execute_batch(begin).map_err(StoreError::from)?;
    let done = block_on(operation(&mut SqliteSql(connection)));
    let end = done.and_then(|done| {
        connection.execute_batch("COMMIT").map_err(StoreError::from)?;
        Ok(done)
    });
    if end.is_err() && !connection.is_autocommit() {
        // If this fails as well, the next BEGIN does.
        let _ = connection.execute_batch("ROLLBACK");
    }
    end
}

#[async_trait]
impl Sql for SqliteSql<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn query(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>> {
        let mut statement = self.0.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let cells = (0..columns).map(|column| cell(row.get_ref(column)?)).collect::<Result<_>>()?;
            found.push(Row(cells));
        }
        Ok(found)
    }

    async fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64> {
        let mut statement = self.0.prepare_cached(sql)?;
        Ok(u64::try_from(statement.execute(params_from_iter(values))?).unwrap_or(u64::MAX))
    }

    async fn notify(&mut self, _notice: Notice<'_>) -> Result<()> {
        Ok(())
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        match self {
            Self::Int(value) => value.to_sql(),
            Self::OptInt(value) => value.to_sql(),
            Self::Bool(value) => value.to_sql(),
            Self::Text(value) => value.to_sql(),
            Self::OptText(value) => value.to_sql(),
            Self::Time(value) => Ok(value.as_millisecond().into()),
            Self::OptTime(value) => Ok(ToSqlOutput::Owned(value.map(Timestamp::as_millisecond).into())),
            Self::Bytes(value) => value.to_sql(),
            Self::IntArray(_) | Self::TextArray(_) | Self::TimeArray(_) | Self::BytesArray(_) => {
                Err(rusqlite::Error::ToSqlConversionFailure("SQLite takes no arrays".into()))
            }
        }
    }
}

fn cell(value: ValueRef<'_>) -> Result<Cell> {
    match value {
        ValueRef::Null => Ok(Cell::Null),
        ValueRef::Integer(value) => Ok(Cell::Int(value)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(text.to_owned())),
            Err(error) => Err(StoreError::Corrupt(error.to_string())),
        },
        ValueRef::Blob(bytes) => Ok(Cell::Bytes(bytes.to_vec())),
        ValueRef::Real(_) => Err(StoreError::Corrupt("a value of type REAL".to_owned())),
    }
}
