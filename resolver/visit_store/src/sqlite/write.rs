//! The transaction that stores a batch.

use futures_executor::block_on;
use rusqlite::Connection;
use store::sqlite::SqliteSql;
use visits::{VisitId, VisitRow};

use super::events;
use crate::{
    Batch, Producer, Result, VisitStoreError, WriteError,
    link_visits::insert_links,
    sql::{days, producers::begin, rows::insert_texts},
};

/// Ids that are tried for a row, one for each microsecond.
const IDS_TRIED: i64 = 1_000;

pub(super) fn write(
    connection: &mut Connection,
    producer: &Producer,
    batch: &Batch,
    known: i64,
) -> Result<(), WriteError> {
    connection.execute_batch("BEGIN IMMEDIATE").map_err(failed)?;
    let prepared = block_on(prepare(&mut SqliteSql(connection), producer, batch, known));
    let stored = prepared.and_then(|()| commit(connection));
    if stored.is_err() && !connection.is_autocommit() {
        // If this fails as well, the next BEGIN does.
        let _ = connection.execute_batch("ROLLBACK");
    }
    stored
}

/// Commits. An error that leaves the transaction open stored nothing, and it can be rolled back.
/// After any other error the pages may have reached the log, and a restart would find them there.
fn commit(connection: &Connection) -> Result<(), WriteError> {
    let Err(error) = connection.execute_batch("COMMIT") else { return Ok(()) };
    if connection.is_autocommit() { Err(WriteError::Unknown(error.into())) } else { Err(failed(error)) }
}

fn failed(error: impl Into<VisitStoreError>) -> WriteError {
    WriteError::Failed(error.into())
}

async fn prepare(
    sql: &mut SqliteSql<'_>,
    producer: &Producer,
    batch: &Batch,
    known: i64,
) -> Result<(), WriteError> {
    begin(sql, producer, batch, known).await?;
    let rest = async {
        insert_rows(sql.0, &batch.rows)?;
        insert_texts(sql, batch.texts.iter().chain(&batch.addresses)).await?;
        days::add(sql, producer.slot.get().into(), &batch.days).await?;
        insert_links(sql, &batch.links).await?;
        events::insert(sql.0, &batch.events)
    };
    rest.await.map_err(WriteError::Failed)
}

/// Inserts rows. After its clock was set back, a process may give an id for the second time. Such a
/// visit is listed under the next one that is free, a few microseconds later.
fn insert_rows(transaction: &Connection, rows: &[VisitRow]) -> Result<()> {
    let insert = format!(
        "INSERT INTO visit ({}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
         ON CONFLICT (id) DO NOTHING",
        VisitRow::COLUMNS
    );
    let mut insert = transaction.prepare_cached(&insert)?;
    for row in rows {
        let mut is_listed = false;
        for id in ids_from(row.id) {
            is_listed = insert.execute(VisitRow { id, ..*row }.numbers())? > 0;
            if is_listed {
                break;
            }
        }
        if !is_listed {
            tracing::warn!(id = row.id.get(), "a visit is counted and not listed: its id is taken");
        }
    }
    Ok(())
}

/// Returns an id and those that differ from it only by a later time.
fn ids_from(first: VisitId) -> impl Iterator<Item = VisitId> {
    let below = first.get() - VisitId::floor(first.micros()).get();
    let at = move |later| VisitId::from_stored(VisitId::floor(first.micros() + later).get() + below);
    (0..IDS_TRIED).map(at)
}

#[cfg(test)]
mod tests {
    use rusqlite::TransactionBehavior;

    use super::*;

    #[test]
    fn a_commit_that_leaves_its_transaction_open_stored_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        let tables = "PRAGMA foreign_keys = ON; CREATE TABLE one (id INTEGER PRIMARY KEY);
             CREATE TABLE other (one INTEGER REFERENCES one (id) DEFERRABLE INITIALLY DEFERRED)";
        connection.execute_batch(tables).unwrap();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        transaction.execute("INSERT INTO other VALUES (7)", []).unwrap();
        let outcome = commit(&transaction);
        assert!(matches!(outcome, Err(WriteError::Failed(_))), "{outcome:?}");
        drop(transaction);
        let count: i64 = connection.query_row("SELECT count(*) FROM other", [], |row| row.get(0)).unwrap();
        assert_eq!((count, connection.is_autocommit()), (0, true));
    }

    #[test]
    fn a_commit_whose_transaction_is_gone_is_in_doubt() {
        let connection = Connection::open_in_memory().unwrap();
        let outcome = commit(&connection);
        assert!(matches!(outcome, Err(WriteError::Unknown(_))), "{outcome:?}");
    }
}
