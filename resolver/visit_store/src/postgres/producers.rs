//! Producers: the processes that store visits, one for each spool.

use tokio_postgres::{
    Client, Transaction,
    types::{ToSql, Type},
};
use visits::Slot;

use super::int;
use crate::{Producer, SILENT, SpoolId, Standing, VisitStoreError, port::stored_slot};

/// Limits on the server's side: a registration waits for no process that stands still in a batch,
/// and one that stands still itself holds up no other for long.
const LIMITS: &str = "SET LOCAL lock_timeout = '5s'; SET LOCAL idle_in_transaction_session_timeout = '10s'";
/// Key of the advisory lock of registrations.
const LOCK: i64 = 0x5348_4f52_5652_4547;

/// Registers a spool, with a slot and a higher incarnation than before.
pub(super) async fn register(
    client: &mut Client,
    spool: SpoolId,
    holder: &str,
) -> Result<Producer, VisitStoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    // Registrations are rare, and two of them must not choose the same slot. Batches, which lock
    // one row each, go on beside them.
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let id = spool.0.to_be_bytes();
    let known = "SELECT slot FROM visit_producer WHERE spool = $1";
    let known = transaction.query_typed(known, &[(&&id[..], Type::BYTEA)]).await?;
    let own: Option<i16> = known.first().and_then(|row| row.get(0));
    let slot = match own.and_then(stored) {
        Some(slot) => slot,
        None => free_slot(&transaction).await?,
    };
    let register = "INSERT INTO visit_producer AS old (spool, slot, holder, incarnation, position)
         VALUES ($1, $2, $3, 1, 0)
         ON CONFLICT (spool) DO UPDATE SET
             slot = excluded.slot, holder = excluded.holder, incarnation = old.incarnation + 1, seen_at = now()
         RETURNING incarnation, position";
    let row = transaction
        .query_typed(
            register,
            &[(&&id[..], Type::BYTEA), (&stored_slot(slot), Type::INT2), (&holder, Type::TEXT)],
        )
        .await?;
    let row = row.first().expect("an upsert returns its row");
    let (incarnation, position): (i64, i64) = (row.get(0), row.get(1));
    transaction.commit().await?;
    Ok(Producer { spool, slot, incarnation, position: position.unsigned_abs() })
}

/// Returns a slot that no spool has, or takes the one of the spool that has been silent for
/// longest.
async fn free_slot(transaction: &Transaction<'_>) -> Result<Slot, VisitStoreError> {
    // One that is locked is storing a batch.
    let silent = format!(
        "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1 WHERE spool =
             (SELECT spool FROM visit_producer
              WHERE slot IS NOT NULL AND seen_at < now() - interval '{} seconds'
              ORDER BY seen_at LIMIT 1 FOR UPDATE SKIP LOCKED)
         RETURNING 1::bigint",
        SILENT.as_secs()
    );
    loop {
        let free = "SELECT free.slot::smallint FROM generate_series(0, 127) AS free (slot)
             WHERE free.slot NOT IN (SELECT slot FROM visit_producer WHERE slot IS NOT NULL)
             ORDER BY free.slot LIMIT 1";
        let free = transaction.query_typed(free, &[]).await?;
        if let Some(slot) = free.first().and_then(|row| stored(row.get(0))) {
            return Ok(slot);
        }
        if transaction.query_typed(&silent, &[]).await?.is_empty() {
            return Err(VisitStoreError::NoSlot);
        }
    }
}

/// Returns how many slots no other spool can take.
pub(super) async fn slots_used(client: &Client) -> Result<u32, VisitStoreError> {
    let used = format!(
        "SELECT count(*) FROM visit_producer
         WHERE slot IS NOT NULL AND seen_at >= now() - interval '{} seconds'",
        SILENT.as_secs()
    );
    let rows = client.query_typed(&used, &[]).await?;
    Ok(rows.first().map_or(0, |row| u32::try_from(row.get::<_, i64>(0)).unwrap_or(0)))
}

fn stored(slot: i16) -> Option<Slot> {
    u8::try_from(slot).ok().and_then(Slot::new)
}

/// Returns the position of a producer that still has its slot and incarnation, and notes that it
/// lives.
pub(super) async fn standing(client: &mut Client, producer: &Producer) -> Result<Standing, VisitStoreError> {
    let position = "UPDATE visit_producer SET seen_at = now()
         WHERE spool = $1 AND incarnation = $2 AND slot = $3 RETURNING position";
    let (id, slot) = (producer.spool.0.to_be_bytes(), stored_slot(producer.slot));
    let values: [(&(dyn ToSql + Sync), Type); 3] =
        [(&&id[..], Type::BYTEA), (&producer.incarnation, Type::INT8), (&slot, Type::INT2)];
    if let Some(row) = client.query_typed(position, &values).await?.first() {
        return Ok(Standing::At(row.get::<_, i64>(0).unsigned_abs()));
    }
    // The next incarnation without a slot is a slot that was taken: a later process that registers,
    // and gives its slot back, is two incarnations ahead. An earlier incarnation, or none, is that
    // of a database that was put back from an older copy.
    let later = "SELECT incarnation > $2 AND NOT (slot IS NULL AND incarnation = $2 + 1) FROM visit_producer WHERE spool = $1";
    let rows = client.query_typed(later, &values[..2]).await?;
    let is_later = rows.first().is_some_and(|row| row.get(0));
    Ok(if is_later { Standing::Replaced } else { Standing::Unregistered })
}

/// Gives the slot of a producer back. Its row stays, because its position must not be forgotten.
pub(super) async fn release(client: &mut Client, producer: &Producer) -> Result<(), VisitStoreError> {
    let release = "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1
         WHERE spool = $1 AND incarnation = $2 AND position = $3";
    let id = producer.spool.0.to_be_bytes();
    client
        .execute_typed(
            release,
            &[
                (&&id[..], Type::BYTEA),
                (&producer.incarnation, Type::INT8),
                (&int(producer.position), Type::INT8),
            ],
        )
        .await?;
    Ok(())
}
