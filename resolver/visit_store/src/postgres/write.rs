//! The transaction that stores a batch.

use futures_util::SinkExt as _;
use store::{
    StoreError, add_webhook_events,
    postgres::{PostgresSql, rolled_back},
};
use tokio::time::timeout;
use tokio_postgres::{Client, Transaction};
use visits::VisitRow;

use super::{DEADLINE, LOCK, copy};
use crate::{
    Batch, Producer, Result, VisitStoreError, WriteError,
    link_visits::insert_links,
    sql::{days, producers::begin, rows::insert_texts},
};

/// Limits on the server's side, so that a writer that disappears keeps no locks.
const LIMITS: &str = "SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '10s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// Stores a batch with these rows. Its COMMIT is the last statement, and is awaited.
pub(super) async fn write(
    client: &mut Client,
    producer: &Producer,
    batch: &Batch,
    known: i64,
    rows: &[VisitRow],
) -> Result<(), WriteError> {
    let prepare = async {
        let transaction = client.transaction().await.map_err(failed)?;
        prepare(&transaction, producer, batch, known, rows).await?;
        Ok(transaction)
    };
    let transaction = timeout(DEADLINE, prepare)
        .await
        .unwrap_or_else(|_| Err(WriteError::Failed(StoreError::TimedOut.into())))?;
    match timeout(DEADLINE, transaction.commit()).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if rolled_back(&error) => Err(failed(error)),
        Ok(Err(error)) => Err(WriteError::Unknown(error.into())),
        Err(_) => Err(WriteError::Unknown(StoreError::TimedOut.into())),
    }
}

fn failed(error: impl Into<VisitStoreError>) -> WriteError {
    WriteError::Failed(error.into())
}

async fn prepare(
    transaction: &Transaction<'_>,
    producer: &Producer,
    batch: &Batch,
    known: i64,
    rows: &[VisitRow],
) -> Result<(), WriteError> {
    transaction.batch_execute(LIMITS).await.map_err(failed)?;
    let lock = format!("SELECT pg_advisory_xact_lock_shared({LOCK})");
    transaction.batch_execute(&lock).await.map_err(failed)?;
    let sql = &mut PostgresSql(transaction);
    begin(sql, producer, batch, known).await?;
    let rest = async {
        copy_rows(transaction, rows).await?;
        insert_texts(sql, batch.texts.iter().chain(&batch.addresses)).await?;
        days::add(sql, producer.slot.get().into(), &batch.days).await?;
        insert_links(sql, &batch.links).await?;
        Ok(add_webhook_events(sql, &batch.events).await?)
    };
    rest.await.map_err(WriteError::Failed)
}

async fn copy_rows(transaction: &Transaction<'_>, rows: &[VisitRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let sink = transaction.copy_in(copy::statement().as_str()).await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(copy::encode(rows)).await?;
    sink.finish().await?;
    Ok(())
}
