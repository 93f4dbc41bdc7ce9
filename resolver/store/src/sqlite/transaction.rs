//! The shared statements on SQLite.
//!
//! The shared operations are asynchronous. Here a transaction borrows the connection of one thread,
//! and nothing else runs on that thread: an executor that blocks it runs an operation to its end.

use futures_executor::block_on;
use rusqlite::{Connection, ToSql, Transaction, TransactionBehavior, types::ValueRef};

use crate::{
    InsertError, StoreError,
    sql::{Cell, Dialect, Row, Sql, Told, Value},
};

/// A transaction on SQLite. It sends no notifications: this process alone uses the file, and knows
/// its own changes.
pub(super) struct SqliteSql<'a> {
    transaction: Transaction<'a>,
}

/// Runs an operation in a transaction that writes, and commits it. Blocks the thread.
pub(super) fn write<T>(
    connection: &mut Connection,
    operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    // Takes the write lock at once, so that writers conflict here and not at COMMIT.
    run(connection, TransactionBehavior::Immediate, operation)
}

/// Runs an operation in a transaction that reads. Blocks the thread.
pub(super) fn read<T>(
    connection: &mut Connection,
    operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    run(connection, TransactionBehavior::Deferred, operation)
}

fn run<T>(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    operation: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut sql = SqliteSql { transaction: connection.transaction_with_behavior(behavior)? };
    let done = block_on(operation(&mut sql))?;
    sql.transaction.commit()?;
    Ok(done)
}

/// Classifies the error of an insert. After any error of SQLite the transaction was rolled back;
/// only a writer thread that ended leaves the outcome unknown.
pub(super) fn insert_error(error: StoreError) -> InsertError {
    match error {
        StoreError::Stopped => InsertError::Unknown(error),
        error => InsertError::Failed(error),
    }
}

impl Sql for SqliteSql<'_> {
    const DIALECT: Dialect = Dialect::Sqlite;

    fn query(
        &mut self,
        sql: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        std::future::ready(query(&self.transaction, sql, values))
    }

    fn tell(&mut self, _news: Told<'_>) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }
}

fn query(connection: &Connection, sql: &str, values: &[Value]) -> Result<Vec<Row>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let columns = statement.column_count();
    let params: Vec<Box<dyn ToSql>> = values.iter().map(param).collect();
    let mut rows = statement.query(rusqlite::params_from_iter(params.iter()))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let cells =
            (0..columns).map(|column| cell(row.get_ref(column)?)).collect::<Result<_, StoreError>>()?;
        found.push(Row(cells));
    }
    Ok(found)
}

fn param(value: &Value) -> Box<dyn ToSql> {
    match value.clone() {
        Value::Int(value) => Box::new(value),
        Value::OptInt(value) => Box::new(value),
        Value::Bool(value) => Box::new(value),
        Value::Text(value) => Box::new(value),
        Value::OptText(value) => Box::new(value),
        Value::Time(value) => Box::new(value.as_millisecond()),
        Value::OptTime(value) => Box::new(value.map(jiff::Timestamp::as_millisecond)),
        Value::Bytes(value) => Box::new(value),
    }
}

fn cell(value: ValueRef<'_>) -> Result<Cell, StoreError> {
    match value {
        ValueRef::Null => Ok(Cell::Null),
        ValueRef::Integer(value) => Ok(Cell::Int(value)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cell::Text(text.to_owned())),
            Err(error) => Err(StoreError::Corrupt(error.to_string())),
        },
        other => Err(StoreError::Corrupt(format!("a value of type {}", other.data_type()))),
    }
}
