//! Producers: the processes that store visits, one for each spool.

use store::{Sql, Value};
use visits::Slot;

use super::{changes::is_outdated, lock};
use crate::{Batch, Producer, Result, SILENT, SpoolId, Standing, VisitStoreError, WriteError};

const REGISTRATIONS: i64 = 0x5348_4f52_5652_4547;

fn bytes(spool: SpoolId) -> Value {
    Value::Bytes(spool.0.to_be_bytes().to_vec())
}

pub(crate) async fn register(sql: &mut dyn Sql, spool: SpoolId, holder: &str) -> Result<Producer> {
    // Registrations are rare, and two of them must not choose the same slot. Batches, which lock
    // one row each, go on beside them.
    lock(sql, REGISTRATIONS).await?;
    let known = "SELECT slot FROM visit_producer WHERE spool = $1 AND slot IS NOT NULL";
    let own = sql.number(known, &[bytes(spool)]).await?.and_then(|slot| u8::try_from(slot).ok());
    let slot = match own.and_then(Slot::new) {
        Some(slot) => slot,
        None => free_slot(sql).await?,
    };
    let register = format!(
        "INSERT INTO visit_producer AS old (spool, slot, holder, incarnation, position, seen_at)
         VALUES ($1, $2, $3, 1, 0, {})
         ON CONFLICT (spool) DO UPDATE SET slot = excluded.slot, holder = excluded.holder,
             incarnation = old.incarnation + 1, seen_at = excluded.seen_at
         RETURNING incarnation, position",
        sql.dialect().now()
    );
    let values = [bytes(spool), slot.get().into(), Value::Text(holder.to_owned())];
    let row = sql.first(&register, &values).await?.expect("an upsert returns its row");
    Ok(Producer { spool, slot, incarnation: row.int(0)?, position: row.int(1)?.unsigned_abs() })
}

/// Returns a slot that no spool has, or takes the one of the spool that has been silent for
/// longest.
async fn free_slot(sql: &mut dyn Sql) -> Result<Slot> {
    // One that is locked is storing a batch.
    let take = format!(
        "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1 WHERE spool =
             (SELECT spool FROM visit_producer WHERE slot IS NOT NULL AND seen_at < {}
              ORDER BY seen_at LIMIT 1 {})",
        sql.dialect().now_minus(SILENT),
        sql.dialect().skip_locked()
    );
    loop {
        let taken = sql.query("SELECT slot FROM visit_producer WHERE slot IS NOT NULL", &[]).await?;
        let taken: Vec<u8> = taken.iter().map(|row| row.number(0)).collect::<Result<_, _>>()?;
        if let Some(slot) = (0..Slot::COUNT).filter(|slot| !taken.contains(slot)).find_map(Slot::new) {
            return Ok(slot);
        }
        if sql.execute(&take, &[]).await? == 0 {
            return Err(VisitStoreError::NoSlot);
        }
    }
}

/// Returns how many slots no other spool can take.
pub(crate) async fn slots_used(sql: &mut dyn Sql) -> Result<u32> {
    let used = format!(
        "SELECT count(*) FROM visit_producer WHERE slot IS NOT NULL AND seen_at >= {}",
        sql.dialect().now_minus(SILENT)
    );
    Ok(sql.number(&used, &[]).await?.and_then(|used| u32::try_from(used).ok()).unwrap_or(0))
}

/// Returns the position of a producer that still has its slot and incarnation, and notes that it
/// lives.
pub(crate) async fn standing(sql: &mut dyn Sql, producer: &Producer) -> Result<Standing> {
    let position = format!(
        "UPDATE visit_producer SET seen_at = {}
         WHERE spool = $1 AND incarnation = $2 AND slot = $3 RETURNING position",
        sql.dialect().now()
    );
    let Producer { spool, slot, incarnation, .. } = *producer;
    let values = [bytes(spool), incarnation.into(), slot.get().into()];
    if let Some(position) = sql.number(&position, &values).await? {
        return Ok(Standing::At(position.unsigned_abs()));
    }
    let present = "SELECT incarnation, slot FROM visit_producer WHERE spool = $1";
    let row = sql.first(present, &[bytes(spool)]).await?;
    let Some(row) = row else { return Ok(Standing::Unregistered) };
    // The next incarnation without a slot is a slot that was taken: a later process that registers,
    // and gives its slot back, is two incarnations ahead. An earlier incarnation, or none, is that
    // of a database that was put back from an older copy.
    let present = row.int(0)?;
    let was_taken = row.is_null(1) && present == incarnation + 1;
    Ok(if present > incarnation && !was_taken { Standing::Replaced } else { Standing::Unregistered })
}

/// Gives the slot of a producer back. Its row stays, because its position must not be forgotten.
pub(crate) async fn release(sql: &mut dyn Sql, producer: &Producer) -> Result<()> {
    let release = "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1
         WHERE spool = $1 AND incarnation = $2 AND position = $3";
    let values = [bytes(producer.spool), producer.incarnation.into(), Value::count(producer.position)];
    sql.execute(release, &values).await?;
    Ok(())
}

/// Begins to store a batch: moves the position of its producer, unless something has changed since
/// the batch was made, or the position is another one.
pub(crate) async fn begin(
    sql: &mut dyn Sql,
    producer: &Producer,
    batch: &Batch,
    known: i64,
) -> Result<(), WriteError> {
    if is_outdated(sql, batch, known).await.map_err(WriteError::Failed)? {
        return Err(WriteError::Outdated);
    }
    let advance = format!(
        "UPDATE visit_producer SET position = $1, seen_at = {}
         WHERE spool = $2 AND incarnation = $3 AND slot = $4 AND position = $5",
        sql.dialect().now()
    );
    let values = [
        Value::count(batch.to),
        bytes(producer.spool),
        producer.incarnation.into(),
        producer.slot.get().into(),
        Value::count(batch.from),
    ];
    match sql.execute(&advance, &values).await {
        Ok(1) => Ok(()),
        Ok(_) => Err(WriteError::Fenced),
        Err(error) => Err(WriteError::Failed(error.into())),
    }
}
