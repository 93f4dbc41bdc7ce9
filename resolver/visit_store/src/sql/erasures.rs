//! Erasure of visits by their addresses, a part of a day at a time.
//!
//! 1. An erasure and the batches are ordered like a deletion and the batches ([`LOCK`]): every
//!    batch after it gives the visits no row.
//! 2. A step finds rows without a lock, and deletes them and moves their visits in one transaction
//!    that has it. So a row that two steps find moves its visit once, and links change their tags
//!    and lose their visits before or after it.
//! 3. No index is on addresses: such a request is rare, and each visit would pay for it.
//!
//! Deleted rows are in the files of Postgres until it is vacuumed, and in its backups. Those of
//! SQLite are overwritten; the write-ahead log has copies until it begins anew.

use std::{collections::HashMap, time::Duration};

use codes::LinkId;
use links::DomainId;
use store::{Dialect, Row, Sql, StoreError, Value};
use tokio::time::Instant;
use visits::{AddressNetwork, Day, Flags, QUARTER, Subject, SubjectKey, TextKey, VisitId};

use super::{
    changes::{outdate, stored_link, tags_of},
    days, int, lock, secrets,
};
use crate::{
    Erased, Erasure, ErasureId, MERGED, Result,
    erased_rows::{ErasedRow, STEP, condition, remove_texts, unlisted},
    postgres::LOCK,
};

/// Time for which a step looks for rows.
const SEARCH: Duration = Duration::from_secs(2);

pub(crate) async fn erase(sql: &mut dyn Sql, erasure: &Erasure) -> Result<Option<ErasureId>> {
    lock(sql, LOCK).await?;
    if sql.number("SELECT count(*) FROM visit_erasure", &[]).await? >= Some(int(Erasure::MOST)) {
        return Ok(None);
    }
    let version = outdate(sql).await?;
    let insert = "INSERT INTO visit_erasure (version, network, before_id) VALUES ($1, $2, $3)";
    let network = Value::Text(erasure.network.to_string());
    sql.execute(insert, &[version.into(), network, erasure.before.get().into()]).await?;
    Ok(Some(ErasureId(version)))
}

pub(crate) async fn after(sql: &mut dyn Sql, version: i64) -> Result<Vec<Erasure>> {
    let query = "SELECT network, before_id FROM visit_erasure WHERE version > $1";
    sql.query(query, &[version.into()]).await?.iter().map(|row| erasure(row, 0)).collect()
}

/// Reads an erasure from its network and the id before which it erases.
pub(crate) fn erasure(row: &Row, from: usize) -> Result<Erasure> {
    let (text, before) = (row.text(from)?, VisitId::from_stored(row.int(from + 1)?));
    let network = AddressNetwork::parse(text)
        .ok_or_else(|| StoreError::Corrupt(format!("not a network to erase: {text:?}")))?;
    Ok(Erasure { network, before })
}

/// Returns how far an erasure has come. One that was forgotten is done.
pub(crate) async fn erased(sql: &mut dyn Sql, id: ErasureId) -> Result<Erased> {
    let query = "SELECT deleted, has_rows FROM visit_erasure WHERE version = $1";
    let Some(row) = sql.first(query, &[id.0.into()]).await? else {
        return Ok(Erased { deleted: 0, is_done: true });
    };
    Ok(Erased { deleted: row.int(0)?.unsigned_abs(), is_done: !row.flag(1)? })
}

pub(crate) async fn forget(sql: &mut dyn Sql, rows_from: Day) -> Result<()> {
    let forget = "DELETE FROM visit_erasure WHERE before_id < $1 AND NOT has_rows";
    sql.execute(forget, &[VisitId::floor(rows_from.start()).get().into()]).await?;
    Ok(())
}

/// Deletes some rows of the oldest erasure. The transaction is the only one that does.
pub(crate) async fn delete_rows(sql: &mut dyn Sql) -> Result<Option<u64>> {
    let (key, _) = secrets::of_deployment(sql).await?;
    let oldest = format!(
        "SELECT version, next_id, network, before_id FROM visit_erasure WHERE has_rows
         ORDER BY version LIMIT 1 {}",
        sql.dialect().skip_locked()
    );
    let Some(row) = sql.first(&oldest, &[]).await? else { return Ok(None) };
    let (version, next) = (row.int(0)?, VisitId::from_stored(row.int(1)?));
    let (next, deleted) = step(sql, &erasure(&row, 2)?, next, &key).await?;
    let update = "UPDATE visit_erasure SET next_id = coalesce($1, next_id), deleted = deleted + $2,
             has_rows = $1 IS NOT NULL WHERE version = $3";
    let values = [Value::OptInt(next.map(VisitId::get)), Value::count(deleted), version.into()];
    sql.execute(update, &values).await?;
    Ok(Some(deleted))
}

/// Deletes some rows from an id on. Returns the id below which none is left, or `None` if there are
/// no more days, and their number.
async fn step(
    sql: &mut dyn Sql,
    erasure: &Erasure,
    next: VisitId,
    key: &TextKey,
) -> Result<(Option<VisitId>, u64)> {
    let Erasure { network, before } = *erasure;
    let from = |day: &Day| next.max(VisitId::floor(day.start()));
    let day = next_day(sql, next).await?;
    let Some(day) = day.filter(|day| from(day) < before) else {
        // The addresses themselves: no row refers to them any more.
        if let Some(remove) = remove_texts(erasure, sql.dialect()) {
            // No batch stores a later visit from there meanwhile.
            lock(sql, LOCK).await?;
            sql.execute(&remove, &[]).await?;
        }
        return Ok((None, 0));
    };
    let end = before.min(VisitId::floor(day.next().start()));
    let condition = condition(network, key, day.month(), sql.dialect());
    let (found, next) = find(sql, (from(&day), end), &condition).await?;
    let deleted = if found.is_empty() { 0 } else { delete(sql, &found, day).await? };
    Ok((Some(next), deleted))
}

/// Returns the first day from an id on that has visits.
async fn next_day(sql: &mut dyn Sql, next: VisitId) -> Result<Option<Day>> {
    let from = Day::of(next.micros()).get();
    let of_kind = |subject: Subject| {
        let SubjectKey { kind, subject, part } = subject.key();
        format!(
            "SELECT min(day) AS day FROM visit_day
             WHERE kind = {kind} AND subject = {subject} AND part = {part} AND day >= {from}"
        )
    };
    let (links, orphans) = (of_kind(Subject::All(None)), of_kind(Subject::Orphans(None, None)));
    let first = format!("SELECT min(day) FROM ({links} UNION ALL {orphans}) AS days");
    let day = sql.number(&first, &[]).await?.and_then(|day| i32::try_from(day).ok());
    Ok(day.map(Day::from_stored))
}

/// Finds the links and ids of some rows between two ids of a day, and returns the id below which
/// there are no others.
///
/// No index is on addresses, and a day may have more rows than can be read in time. So it reads a
/// part of the day after the other, until it has found rows or its time is over.
async fn find(
    sql: &mut dyn Sql,
    (mut from, end): (VisitId, VisitId),
    condition: &str,
) -> Result<(Vec<(i64, i64)>, VisitId)> {
    let (began, mut part) = (Instant::now(), QUARTER);
    loop {
        let until = end.min(VisitId::floor(from.micros().saturating_add(part)));
        let find = format!(
            "SELECT link_id, id FROM visit WHERE id >= {} AND id < {} AND {condition} ORDER BY id LIMIT {STEP}",
            from.get(),
            until.get()
        );
        let found = sql.query(&find, &[]).await?;
        let found: Vec<(i64, i64)> =
            found.iter().map(|row| Ok((row.int(0)?, row.int(1)?))).collect::<Result<_, StoreError>>()?;
        if let Some((_, last)) = found.last().filter(|_| found.len() == STEP) {
            let next = VisitId::from_stored(last + 1);
            return Ok((found, next));
        }
        if !found.is_empty() || until >= end || began.elapsed() >= SEARCH {
            return Ok((found, until));
        }
        // Quiet days are read in a few parts.
        (from, part) = (until, part.saturating_mul(2));
    }
}

/// Deletes rows, and moves their visits to those without one. Returns how many there still were.
async fn delete(sql: &mut dyn Sql, found: &[(i64, i64)], day: Day) -> Result<u64> {
    lock(sql, LOCK).await?;
    let (first, end) = (VisitId::floor(day.start()).get(), VisitId::floor(day.next().start()).get());
    let ids = Value::numbers(found.iter().map(|(_, id)| *id));
    // On Postgres two links may have rows with one id. The day is for its planner.
    let (delete, values) = match sql.dialect() {
        Dialect::Postgres => (
            format!(
                "DELETE FROM visit USING unnest(CAST(string_to_array($1, ',') AS bigint[]),
                                                CAST(string_to_array($2, ',') AS bigint[])) AS found (link_id, id)
                 WHERE visit.link_id = found.link_id AND visit.id = found.id
                   AND visit.id >= {first} AND visit.id < {end}
                 RETURNING visit.link_id, visit.id, visit.domain, visit.flags"
            ),
            vec![Value::numbers(found.iter().map(|(link, _)| *link)), ids],
        ),
        Dialect::Sqlite => (
            format!(
                "DELETE FROM visit WHERE {} RETURNING link_id, id, domain, flags",
                Dialect::Sqlite.among("id", "$1")
            ),
            vec![ids],
        ),
    };
    let rows: Vec<ErasedRow> =
        sql.query(&delete, &values).await?.iter().map(erased_row).collect::<Result<_, _>>()?;
    unlist(sql, &rows, MERGED).await?;
    Ok(rows.len() as u64)
}

/// Moves the visits of deleted rows of a day to those without one, in counters of a slot. The
/// caller holds [`LOCK`].
pub(crate) async fn unlist(sql: &mut dyn Sql, rows: &[ErasedRow], slot: i16) -> Result<()> {
    let mut links: Vec<Option<LinkId>> = rows.iter().map(|row| row.link).collect();
    links.sort_unstable();
    links.dedup();
    let query =
        format!("SELECT link_id, before_id FROM visit_cut WHERE {}", sql.dialect().among("link_id", "$1"));
    let numbers = Value::numbers(links.iter().map(|link| link.map_or(0, LinkId::get)));
    let mut cuts = HashMap::new();
    for row in sql.query(&query, &[numbers]).await? {
        cuts.insert(stored_link(row.int(0)?), VisitId::from_stored(row.int(1)?));
    }
    let links: Vec<LinkId> = links.into_iter().flatten().collect();
    let tags = tags_of(sql, &links).await?;
    days::add(sql, slot, &unlisted(rows, &cuts, &tags)).await
}

fn erased_row(row: &Row) -> Result<ErasedRow> {
    Ok(ErasedRow {
        link: stored_link(row.int(0)?),
        id: VisitId::from_stored(row.int(1)?),
        domain: DomainId::from_stored(row.int(2)?),
        flags: Flags::from_stored(row.number(3)?),
    })
}
