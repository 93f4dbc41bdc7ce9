//! The transaction that stores a batch.

use futures_util::SinkExt as _;
use store::{
    StoreError,
    postgres::{PostgresSql, add_webhook_events, rolled_back},
};
use tokio::time::timeout;
use tokio_postgres::{
    Client, GenericClient, Row, Transaction,
    types::{ToSql, Type},
};

use visits::{Day, SubjectKey, VisitRow};

use super::{DEADLINE, LOCK, copy};
use crate::{
    Batch, DayDelta, Producer, Result, StoredText, VisitStoreError, WriteError,
    link_visits::insert_links,
    port::stored_slot,
    sql::{
        VisitSql as _,
        changes::is_outdated,
        days::{APPENDED_MAX, DayKey},
        producers::move_position,
    },
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
    if is_outdated(sql, batch, known).await.map_err(WriteError::Failed)? {
        return Err(WriteError::Outdated);
    }
    if !move_position(sql, producer, batch).await.map_err(WriteError::Failed)? {
        return Err(WriteError::Fenced);
    }
    let rest = async {
        copy_rows(transaction, rows).await?;
        insert_texts(transaction, batch.texts.iter().chain(&batch.addresses)).await?;
        sql.add_days(stored_slot(producer.slot), &batch.days).await?;
        insert_links(sql, &batch.links).await?;
        Ok(add_webhook_events(transaction, &batch.events).await?)
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

pub(super) async fn insert_texts(
    transaction: &Transaction<'_>,
    texts: impl IntoIterator<Item = &StoredText>,
) -> Result<()> {
    let mut texts: Vec<&StoredText> = texts.into_iter().collect();
    if texts.is_empty() {
        return Ok(());
    }
    // In the order of their keys, so that two resolvers do not wait for each other in a circle.
    texts.sort_unstable_by_key(|text| text.at);
    let months: Vec<i32> = texts.iter().map(|text| text.at.month.get()).collect();
    let hashes: Vec<i64> = texts.iter().map(|text| text.at.hash.get()).collect();
    let texts: Vec<&[u8]> = texts.iter().map(|text| &text.text[..]).collect();
    let insert =
        "INSERT INTO visit_text (month, hash, text) SELECT * FROM unnest($1, $2, $3) ON CONFLICT DO NOTHING";
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&months, Type::INT4_ARRAY), (&hashes, Type::INT8_ARRAY), (&texts, Type::BYTEA_ARRAY)];
    transaction.execute_typed(insert, &values).await?;
    Ok(())
}

/// Adds to counters, in rows of the producer's own slot. Rows without a conflict are new.
const ADD_DAYS: &str = "WITH stored AS (
     INSERT INTO visit_day AS old (kind, subject, part, day, slot, total, bots, version, appended,
                                   quarters, dimensions, visitors, addresses)
     SELECT kind, subject, part, day, $12, total, bots, 1, size, quarters, dimensions, visitors, addresses
     FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
          AS new (kind, subject, part, day, total, bots, size, quarters, dimensions, visitors, addresses)
     ON CONFLICT (kind, subject, part, day, slot) DO UPDATE SET
         total = old.total + excluded.total, bots = old.bots + excluded.bots,
         version = old.version + 1, appended = old.appended + excluded.appended,
         quarters = old.quarters || excluded.quarters, dimensions = old.dimensions || excluded.dimensions,
         visitors = old.visitors || excluded.visitors, addresses = old.addresses || excluded.addresses
     RETURNING kind, subject, part, day, appended
 )
 SELECT kind, subject, part, day FROM stored WHERE appended > $13";

pub(super) async fn add_days(
    client: &(impl GenericClient + Sync),
    slot: i16,
    days: &[DayDelta],
) -> Result<Vec<DayKey>> {
    if days.is_empty() {
        return Ok(Vec::new());
    }
    let kinds: Vec<i16> = days.iter().map(|day| day.subject.kind).collect();
    let subjects: Vec<i64> = days.iter().map(|day| day.subject.subject).collect();
    let parts: Vec<i64> = days.iter().map(|day| day.subject.part).collect();
    let numbers: Vec<i32> = days.iter().map(|day| day.day.get()).collect();
    let totals: Vec<i64> = days.iter().map(|day| day.delta.total).collect();
    let bots: Vec<i64> = days.iter().map(|day| day.delta.bots).collect();
    let size = |day: &DayDelta| i32::try_from(day.delta.bytes()).unwrap_or(i32::MAX);
    let sizes: Vec<i32> = days.iter().map(size).collect();
    let quarters: Vec<&[u8]> = days.iter().map(|day| &day.delta.quarters[..]).collect();
    let dimensions: Vec<&[u8]> = days.iter().map(|day| &day.delta.dimensions[..]).collect();
    let visitors: Vec<&[u8]> = days.iter().map(|day| &day.delta.visitors[..]).collect();
    let addresses: Vec<&[u8]> = days.iter().map(|day| &day.delta.addresses[..]).collect();
    let values: [(&(dyn ToSql + Sync), Type); 13] = [
        (&kinds, Type::INT2_ARRAY),
        (&subjects, Type::INT8_ARRAY),
        (&parts, Type::INT8_ARRAY),
        (&numbers, Type::INT4_ARRAY),
        (&totals, Type::INT8_ARRAY),
        (&bots, Type::INT8_ARRAY),
        (&sizes, Type::INT4_ARRAY),
        (&quarters, Type::BYTEA_ARRAY),
        (&dimensions, Type::BYTEA_ARRAY),
        (&visitors, Type::BYTEA_ARRAY),
        (&addresses, Type::BYTEA_ARRAY),
        (&slot, Type::INT2),
        (&APPENDED_MAX, Type::INT4),
    ];
    let long = client.query_typed(ADD_DAYS, &values).await?;
    let key = |row: &Row| {
        let subject = SubjectKey { kind: row.get(0), subject: row.get(1), part: row.get(2) };
        DayKey { subject, day: Day::from_stored(row.get(3)), slot }
    };
    Ok(long.iter().map(key).collect())
}
