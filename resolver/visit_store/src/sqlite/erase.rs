//! Erasure of visits by their addresses, a day at a time.
//!
//! 1. Batches, erasures and deletions take turns, so each row moves its visit once.
//! 2. Rows that were deleted on request are overwritten in the file. The write-ahead log has copies
//!    until it begins anew.
//! 3. No index is on addresses: such a request is rare, and each visit would pay for it.

use std::collections::HashMap;

use codes::LinkId;
use links::DomainId;
use rusqlite::{Connection, OptionalExtension as _, Row, TransactionBehavior, params};
use store::StoreError;
use visits::{AddressNetwork, Day, Flags, TextKey, VisitId};

use super::{
    days,
    delete::{delete_rows as delete_some_rows, outdate, tags_of},
    int, secrets, within,
};
use crate::{
    DeletionStep, Erased, Erasure, ErasureId, MERGED, VisitStoreError,
    erased_rows::{ErasedRow, STEP, condition, first_day, hex, remove_texts, unlisted},
};

/// Stores an erasure. Returns `None` if there are too many.
pub(super) fn erase(
    transaction: &Connection,
    erasure: &Erasure,
) -> Result<Option<ErasureId>, VisitStoreError> {
    let count: i64 = transaction.query_row("SELECT count(*) FROM visit_erasure", [], |row| row.get(0))?;
    if count >= int(Erasure::MOST) {
        return Ok(None);
    }
    let version = outdate(transaction)?;
    let insert = "INSERT INTO visit_erasure (version, network, before_id) VALUES (?1, ?2, ?3)";
    transaction.execute(insert, params![version, erasure.network.to_string(), erasure.before.get()])?;
    Ok(Some(ErasureId(version)))
}

/// Returns the erasures after a version.
pub(super) fn after(connection: &Connection, version: i64) -> Result<Vec<Erasure>, VisitStoreError> {
    let query = "SELECT network, before_id FROM visit_erasure WHERE version > ?1";
    let mut query = connection.prepare_cached(query)?;
    let mut rows = query.query([version])?;
    let mut erasures = Vec::new();
    while let Some(row) = rows.next()? {
        let before = VisitId::from_stored(row.get(1)?);
        erasures.push(Erasure { network: network(&row.get::<_, String>(0)?)?, before });
    }
    Ok(erasures)
}

/// Returns how far an erasure has come. One that was forgotten is done.
pub(super) fn erased(connection: &Connection, id: ErasureId) -> Result<Erased, VisitStoreError> {
    let query = "SELECT deleted, NOT has_rows FROM visit_erasure WHERE version = ?1";
    let erased =
        |row: &Row<'_>| Ok(Erased { deleted: row.get::<_, i64>(0)?.unsigned_abs(), is_done: row.get(1)? });
    let found = connection.query_row(query, [id.0], erased).optional()?;
    Ok(found.unwrap_or(Erased { deleted: 0, is_done: true }))
}

/// Forgets erasures of visits that would have no rows for their age.
pub(super) fn forget(transaction: &Connection, rows_from: Day) -> Result<(), VisitStoreError> {
    let forget = "DELETE FROM visit_erasure WHERE before_id < ?1 AND NOT has_rows";
    transaction.execute(forget, [VisitId::floor(rows_from.start()).get()])?;
    Ok(())
}

fn network(text: &str) -> Result<AddressNetwork, StoreError> {
    let corrupt = || StoreError::Corrupt(format!("expected a network to erase, found {text:?}"));
    AddressNetwork::parse(text).ok_or_else(corrupt)
}

/// Returns bytes as SQL.
fn literal(bytes: &[u8]) -> String {
    format!("x'{}'", hex(bytes))
}

/// Deletes some of the rows that deletions and erasures have left, and overwrites them.
pub(super) fn delete_securely(connection: &mut Connection) -> Result<DeletionStep, VisitStoreError> {
    connection.pragma_update(None, "secure_delete", true)?;
    let deleted = within(connection, TransactionBehavior::Immediate, delete_some_rows);
    connection.pragma_update(None, "secure_delete", false)?;
    deleted
}

/// Deletes some rows of the oldest erasure: those of the first day that is left, or some of them.
pub(super) fn delete_rows(transaction: &Connection) -> Result<DeletionStep, VisitStoreError> {
    let oldest = "SELECT version, network, before_id, next_id FROM visit_erasure WHERE has_rows
         ORDER BY version LIMIT 1";
    let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?, row.get(3)?));
    let found = transaction.query_row(oldest, [], read).optional()?;
    let Some((version, text, before, next)) = found else {
        return Ok(DeletionStep { deleted: 0, has_more: false });
    };
    let version: i64 = version;
    let erasure = Erasure { network: network(&text)?, before: VisitId::from_stored(before) };
    let (key, _) = secrets::of_deployment(transaction)?;
    let (next, deleted) = step(transaction, &erasure, VisitId::from_stored(next), &key)?;
    let update = "UPDATE visit_erasure SET next_id = coalesce(?2, next_id), deleted = deleted + ?3,
             has_rows = ?2 IS NOT NULL WHERE version = ?1";
    transaction.execute(update, params![version, next.map(VisitId::get), int(deleted)])?;
    Ok(DeletionStep { deleted, has_more: true })
}

/// Deletes some rows from an id on. Returns the id below which none is left, or `None` if there are
/// no more days, and their number.
fn step(
    transaction: &Connection,
    erasure: &Erasure,
    next: VisitId,
    key: &TextKey,
) -> Result<(Option<VisitId>, u64), VisitStoreError> {
    let Erasure { network, before } = *erasure;
    let first = first_day(Day::of(next.micros()));
    let day: Option<i32> = transaction.query_row(&first, [], |row| row.get(0))?;
    let from = |day: &Day| next.max(VisitId::floor(day.start()));
    let Some(day) = day.map(Day::from_stored).filter(|day| from(day) < before) else {
        // The addresses themselves: no row refers to them any more.
        if let Some(remove) = remove_texts(erasure, literal) {
            transaction.execute(&remove, [])?;
        }
        return Ok((None, 0));
    };
    let end = before.min(VisitId::floor(day.next().start()));
    let remove = format!(
        "DELETE FROM visit WHERE id IN
             (SELECT id FROM visit WHERE id >= {} AND id < {} AND {} ORDER BY id LIMIT {STEP})
         RETURNING link_id, id, domain, flags",
        from(&day).get(),
        end.get(),
        condition(network, key, day.month(), literal)
    );
    let rows: Vec<ErasedRow> =
        transaction.prepare(&remove)?.query_map([], erased_row)?.collect::<Result<_, _>>()?;
    let last = rows.iter().map(|row| row.id).max().filter(|_| rows.len() == STEP);
    if !rows.is_empty() {
        count_without_rows(transaction, &rows)?;
    }
    let next = last.map_or(end, |last| VisitId::from_stored(last.get() + 1));
    Ok((Some(next), rows.len() as u64))
}

/// Moves the visits of deleted rows to those without a row.
fn count_without_rows(transaction: &Connection, rows: &[ErasedRow]) -> Result<(), VisitStoreError> {
    let mut links: Vec<Option<LinkId>> = rows.iter().map(|row| row.link).collect();
    links.sort_unstable();
    links.dedup();
    let mut query = transaction.prepare_cached("SELECT before_id FROM visit_cut WHERE link_id = ?1")?;
    let mut cuts = HashMap::new();
    for link in &links {
        let before = query.query_row([link.map_or(0, LinkId::get)], |row| row.get(0)).optional()?;
        cuts.extend(before.map(|before| (*link, VisitId::from_stored(before))));
    }
    let links: Vec<LinkId> = links.into_iter().flatten().collect();
    let tags = tags_of(transaction, &links)?;
    days::add(transaction, MERGED, &unlisted(rows, &cuts, &tags))
}

fn erased_row(row: &Row<'_>) -> Result<ErasedRow, rusqlite::Error> {
    let link: i64 = row.get(0)?;
    Ok(ErasedRow {
        link: (link != 0).then(|| LinkId::from_stored(link)),
        id: VisitId::from_stored(row.get(1)?),
        domain: DomainId::from_stored(row.get(2)?),
        flags: Flags::from_stored(row.get(3)?),
    })
}
