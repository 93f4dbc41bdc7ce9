//! The transaction that stores a batch.

use codes::LinkId;
use futures_util::SinkExt as _;
use store::{
    StoreError,
    postgres::{add_webhook_events, rolled_back},
};
use tokio::time::timeout;
use tokio_postgres::{
    Client, Transaction,
    types::{ToSql, Type},
};

use visits::tally::Delta;

use super::{DEADLINE, LOCK, copy, delete, int, merge};
use crate::{
    Batch, Changes, DayDelta, LinkVisits, MERGED, Producer, StoredText, VisitStoreError, WriteError,
    link_visits::encode_links, port::stored_slot,
};

/// Limits on the server's side, so that a writer that disappears keeps no locks.
const LIMITS: &str = "SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '10s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// Appended bytes at which the columns of a row are merged into one chunk each.
const APPENDED_MAX: i32 = 32 * 1024;

/// Where the rows of a batch go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    /// Into the same transaction.
    Here,
    /// To another database, later.
    Elsewhere,
}

/// Stores a batch. Its COMMIT is the last statement, and is awaited.
pub(super) async fn write(
    client: &mut Client,
    producer: &Producer,
    batch: &Batch,
    known: i64,
    rows: Rows,
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
    rows: Rows,
) -> Result<(), WriteError> {
    transaction.batch_execute(LIMITS).await.map_err(failed)?;
    let lock = format!("SELECT pg_advisory_xact_lock_shared({LOCK})");
    transaction.batch_execute(&lock).await.map_err(failed)?;
    if is_outdated(transaction, batch, known).await.map_err(failed)? {
        return Err(WriteError::Outdated);
    }
    move_position(transaction, producer, batch).await?;
    let rest = async {
        if rows == Rows::Here {
            copy_rows(transaction, batch).await?;
        }
        insert_texts(transaction, batch.texts.iter().chain(&batch.addresses)).await?;
        let long = add(transaction, stored_slot(producer.slot), &batch.days).await?;
        merge::compact(transaction, &long).await?;
        insert_links(transaction, &batch.links).await?;
        Ok(add_webhook_events(transaction, &batch.events).await?)
    };
    rest.await.map_err(WriteError::Failed)
}

/// Returns whether something has changed since a batch was made that concerns its visits. All else
/// goes on beside it: a deletion of other visits, or a change of the tags of other links.
async fn is_outdated(
    transaction: &Transaction<'_>,
    batch: &Batch,
    known: i64,
) -> Result<bool, VisitStoreError> {
    let version = transaction.query_typed("SELECT version FROM visit_state", &[]).await?;
    if version.first().map_or(0, |row| row.get::<_, i64>(0)) != known {
        let Changes { cuts, erasures, .. } = delete::changes(transaction, known).await?;
        if !erasures.is_empty() || cuts.iter().any(|cut| batch.has_visits_of(cut.link)) {
            return Ok(true);
        }
    }
    let links: Vec<LinkId> = batch.tags.keys().copied().collect();
    if links.is_empty() {
        return Ok(false);
    }
    Ok(!batch.has_tags(&delete::tags_of(transaction, &links).await?))
}

/// Moves the position of the producer, if it is still where the batch begins.
async fn move_position(
    transaction: &Transaction<'_>,
    producer: &Producer,
    batch: &Batch,
) -> Result<(), WriteError> {
    let advance = "UPDATE visit_producer SET position = $1, seen_at = now()
         WHERE spool = $2 AND incarnation = $3 AND slot = $4 AND position = $5";
    let spool = producer.spool.0.to_be_bytes();
    let moved = transaction
        .execute_typed(
            advance,
            &[
                (&int(batch.to), Type::INT8),
                (&&spool[..], Type::BYTEA),
                (&producer.incarnation, Type::INT8),
                (&stored_slot(producer.slot), Type::INT2),
                (&int(batch.from), Type::INT8),
            ],
        )
        .await
        .map_err(failed)?;
    if moved == 1 { Ok(()) } else { Err(WriteError::Fenced) }
}

async fn copy_rows(transaction: &Transaction<'_>, batch: &Batch) -> Result<(), VisitStoreError> {
    if batch.rows.is_empty() {
        return Ok(());
    }
    let sink = transaction.copy_in(copy::COPY).await?;
    let mut sink = std::pin::pin!(sink);
    sink.send(copy::encode(&batch.rows)).await?;
    sink.finish().await?;
    Ok(())
}

/// Stores texts that are not there.
pub(super) async fn insert_texts(
    transaction: &Transaction<'_>,
    texts: impl IntoIterator<Item = &StoredText>,
) -> Result<(), VisitStoreError> {
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

/// The counters of a batch, by column.
#[derive(Default)]
struct DayColumns<'a> {
    kinds: Vec<i16>,
    subjects: Vec<i64>,
    parts: Vec<i64>,
    days: Vec<i32>,
    totals: Vec<i64>,
    bots: Vec<i64>,
    sizes: Vec<i32>,
    quarters: Vec<&'a [u8]>,
    dimensions: Vec<&'a [u8]>,
    visitors: Vec<&'a [u8]>,
    addresses: Vec<&'a [u8]>,
}

impl<'a> DayColumns<'a> {
    fn of(days: &'a [DayDelta]) -> Self {
        let mut columns = Self::default();
        for DayDelta { subject, day, delta } in days {
            columns.kinds.push(subject.kind);
            columns.subjects.push(subject.subject);
            columns.parts.push(subject.part);
            columns.days.push(day.get());
            columns.totals.push(delta.total);
            columns.bots.push(delta.bots);
            columns.sizes.push(i32::try_from(delta_len(delta)).unwrap_or(i32::MAX));
            columns.quarters.push(&delta.quarters);
            columns.dimensions.push(&delta.dimensions);
            columns.visitors.push(&delta.visitors);
            columns.addresses.push(&delta.addresses);
        }
        columns
    }
}

/// Returns the bytes that a delta appends.
fn delta_len(delta: &Delta) -> usize {
    [&delta.quarters, &delta.dimensions, &delta.visitors, &delta.addresses].map(Vec::len).iter().sum()
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
     RETURNING kind, subject, part, day, slot, appended
 )
 SELECT kind, subject, part, day, slot FROM stored WHERE appended > $13";

/// Adds to counters in rows that belong to no slot: for deletions and other changes.
pub(super) async fn add_merged(
    transaction: &Transaction<'_>,
    days: &[DayDelta],
) -> Result<(), VisitStoreError> {
    let long = add(transaction, MERGED, days).await?;
    merge::compact(transaction, &long).await
}

/// Adds the counters of a batch, and returns the rows that have grown too long.
async fn add(
    transaction: &Transaction<'_>,
    slot: i16,
    days: &[DayDelta],
) -> Result<Vec<merge::DayKey>, VisitStoreError> {
    if days.is_empty() {
        return Ok(Vec::new());
    }
    let columns = DayColumns::of(days);
    let values: [(&(dyn ToSql + Sync), Type); 13] = [
        (&columns.kinds, Type::INT2_ARRAY),
        (&columns.subjects, Type::INT8_ARRAY),
        (&columns.parts, Type::INT8_ARRAY),
        (&columns.days, Type::INT4_ARRAY),
        (&columns.totals, Type::INT8_ARRAY),
        (&columns.bots, Type::INT8_ARRAY),
        (&columns.sizes, Type::INT4_ARRAY),
        (&columns.quarters, Type::BYTEA_ARRAY),
        (&columns.dimensions, Type::BYTEA_ARRAY),
        (&columns.visitors, Type::BYTEA_ARRAY),
        (&columns.addresses, Type::BYTEA_ARRAY),
        (&slot, Type::INT2),
        (&APPENDED_MAX, Type::INT4),
    ];
    let long = transaction.query_typed(ADD_DAYS, &values).await?;
    Ok(long.iter().map(merge::DayKey::of).collect())
}

async fn insert_links(transaction: &Transaction<'_>, links: &[LinkVisits]) -> Result<(), VisitStoreError> {
    if links.is_empty() {
        return Ok(());
    }
    let links = encode_links(links);
    let insert = "INSERT INTO visit_link_batch (links) VALUES ($1)";
    transaction.execute_typed(insert, &[(&links, Type::BYTEA)]).await?;
    Ok(())
}
