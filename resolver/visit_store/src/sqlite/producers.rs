//! Producers: the processes that store visits, one for each spool.

use rusqlite::{Connection, OptionalExtension as _, params};
use visits::Slot;

use super::{NOW, int};
use crate::{Producer, SILENT, SpoolId, Standing, VisitStoreError, port::stored_slot};

/// Registers a spool, with a slot and a higher incarnation than before.
pub(super) fn register(
    connection: &Connection,
    spool: SpoolId,
    holder: &str,
) -> Result<Producer, VisitStoreError> {
    let known = "SELECT slot FROM visit_producer WHERE spool = ?1 AND slot IS NOT NULL";
    let own = connection.query_row(known, [spool.0.to_be_bytes()], |row| row.get(0)).optional()?;
    let slot = match own.and_then(Slot::new) {
        Some(slot) => slot,
        None => free_slot(connection)?,
    };
    let register = format!(
        "INSERT INTO visit_producer AS old (spool, slot, holder, incarnation, position, seen_at)
         VALUES (?1, ?2, ?3, 1, 0, {NOW})
         ON CONFLICT (spool) DO UPDATE SET slot = excluded.slot, holder = excluded.holder,
             incarnation = old.incarnation + 1, seen_at = excluded.seen_at
         RETURNING incarnation, position"
    );
    let values = params![spool.0.to_be_bytes(), stored_slot(slot), holder];
    let (incarnation, position): (i64, i64) =
        connection.query_row(&register, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(Producer { spool, slot, incarnation, position: position.unsigned_abs() })
}

/// Returns a slot that no spool has, or takes the one of the spool that has been silent for
/// longest.
fn free_slot(connection: &Connection) -> Result<Slot, VisitStoreError> {
    let mut taken = connection.prepare("SELECT slot FROM visit_producer WHERE slot IS NOT NULL")?;
    let taken: Vec<u8> = taken.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    if let Some(slot) = (0..Slot::COUNT).filter(|slot| !taken.contains(slot)).find_map(Slot::new) {
        return Ok(slot);
    }
    let silent = format!(
        "SELECT slot, spool FROM visit_producer WHERE slot IS NOT NULL AND seen_at < {NOW} - {}
         ORDER BY seen_at LIMIT 1",
        SILENT.as_millis()
    );
    let silent = connection.query_row(&silent, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (slot, spool): (u8, Vec<u8>) = silent.ok_or(VisitStoreError::NoSlot)?;
    let take = "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1 WHERE spool = ?1";
    connection.execute(take, [spool])?;
    Slot::new(slot).ok_or(VisitStoreError::NoSlot)
}

/// Returns the position of a producer that still has its slot and incarnation, and notes that it
/// lives.
pub(super) fn standing(connection: &Connection, producer: &Producer) -> Result<Standing, VisitStoreError> {
    let position = format!(
        "UPDATE visit_producer SET seen_at = {NOW}
         WHERE spool = ?1 AND incarnation = ?2 AND slot = ?3 RETURNING position"
    );
    let values = params![producer.spool.0.to_be_bytes(), producer.incarnation, stored_slot(producer.slot)];
    let position: Option<i64> = connection.query_row(&position, values, |row| row.get(0)).optional()?;
    if let Some(position) = position {
        return Ok(Standing::At(position.unsigned_abs()));
    }
    // The reasons stand in `postgres/producers.rs`.
    let later = "SELECT incarnation > ?2 AND NOT (slot IS NULL AND incarnation = ?2 + 1) FROM visit_producer WHERE spool = ?1";
    let values = params![producer.spool.0.to_be_bytes(), producer.incarnation];
    let is_later = connection.query_row(later, values, |row| row.get(0)).optional()?;
    Ok(if is_later.unwrap_or(false) { Standing::Replaced } else { Standing::Unregistered })
}

/// Gives the slot of a producer back. Its row stays, because its position must not be forgotten.
pub(super) fn release(connection: &Connection, producer: &Producer) -> Result<(), VisitStoreError> {
    let release = "UPDATE visit_producer SET slot = NULL, incarnation = incarnation + 1
         WHERE spool = ?1 AND incarnation = ?2 AND position = ?3";
    let values = params![producer.spool.0.to_be_bytes(), producer.incarnation, int(producer.position)];
    connection.execute(release, values)?;
    Ok(())
}
