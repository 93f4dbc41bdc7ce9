//! Erasure of visits by their addresses, a part of a day at a time.
//!
//! 1. An erasure and the batches are ordered like a deletion and the batches ([`LOCK`]): every batch
//!    after it gives the visits no row.
//! 2. A step finds rows without a lock, and deletes them and moves their visits in one transaction
//!    that has it. So a row that two steps find moves its visit once, and links change their tags
//!    and lose their visits before or after it.
//! 3. No index is on addresses: such a request is rare, and each visit would pay for it.
//!
//! Deleted rows are in the files of the database until it is vacuumed, and in its backups.

use std::{collections::HashMap, time::Duration};

use codes::LinkId;
use links::DomainId;
use store::StoreError;
use tokio::time::Instant;
use tokio_postgres::{Client, GenericClient, Row, Transaction, types::Type};
use visits::{AddressNetwork, Day, Flags, QUARTER, TextKey, VisitId};

use super::{LOCK, delete::outdate, int, secrets, write::add_merged};
use crate::{
    DeletionStep, Erased, Erasure, ErasureId, VisitStoreError,
    erased_rows::{ErasedRow, STEP, condition, first_day, hex, remove_texts, unlisted},
};

/// Time for which a step looks for rows.
const SEARCH: Duration = Duration::from_secs(2);
/// Limits on the server's side, so that a process that stands still keeps no locks.
pub(super) const LIMITS: &str = "SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '50s'; \
     SET LOCAL idle_in_transaction_session_timeout = '10s'";

/// Stores an erasure. Returns `None` if there are too many.
pub(super) async fn erase(
    client: &mut Client,
    erasure: &Erasure,
) -> Result<Option<ErasureId>, VisitStoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let count = transaction.query_typed("SELECT count(*) FROM visit_erasure", &[]).await?;
    if count.first().is_some_and(|row| row.get::<_, i64>(0) >= int(Erasure::MOST)) {
        return Ok(None);
    }
    let version = outdate(&transaction).await?;
    let insert = "INSERT INTO visit_erasure (version, network, before_id) VALUES ($1, $2, $3)";
    let network = erasure.network.to_string();
    transaction
        .execute_typed(
            insert,
            &[(&version, Type::INT8), (&network, Type::TEXT), (&erasure.before.get(), Type::INT8)],
        )
        .await?;
    transaction.commit().await?;
    Ok(Some(ErasureId(version)))
}

/// Returns the erasures after a version.
pub(super) async fn after(
    client: &impl GenericClient,
    version: i64,
) -> Result<Vec<Erasure>, VisitStoreError> {
    let query = "SELECT network, before_id FROM visit_erasure WHERE version > $1";
    let rows = client.query_typed(query, &[(&version, Type::INT8)]).await?;
    let erasure =
        |row: &Row| Ok(Erasure { network: network(row.get(0))?, before: VisitId::from_stored(row.get(1)) });
    rows.iter().map(erasure).collect()
}

/// Returns how far an erasure has come. One that was forgotten is done.
pub(super) async fn erased(client: &Client, id: ErasureId) -> Result<Erased, VisitStoreError> {
    let query = "SELECT deleted, NOT has_rows FROM visit_erasure WHERE version = $1";
    let rows = client.query_typed(query, &[(&id.0, Type::INT8)]).await?;
    let erased = |row: &Row| Erased { deleted: row.get::<_, i64>(0).unsigned_abs(), is_done: row.get(1) };
    Ok(rows.first().map_or(Erased { deleted: 0, is_done: true }, erased))
}

/// Forgets erasures, and erased visits, that would have no rows for their age.
pub(super) async fn forget(client: &Client, oldest: VisitId) -> Result<(), VisitStoreError> {
    let forget = "DELETE FROM visit_erasure WHERE before_id < $1 AND NOT has_rows";
    client.execute_typed(forget, &[(&oldest.get(), Type::INT8)]).await?;
    let forget = "DELETE FROM visit_erased WHERE id < $1 AND NOT has_row";
    client.execute_typed(forget, &[(&oldest.get(), Type::INT8)]).await?;
    Ok(())
}

pub(super) fn network(text: &str) -> Result<AddressNetwork, StoreError> {
    let corrupt = || StoreError::Corrupt(format!("expected a network to erase, found {text:?}"));
    AddressNetwork::parse(text).ok_or_else(corrupt)
}

/// Returns bytes as SQL.
pub(super) fn literal(bytes: &[u8]) -> String {
    format!("'\\x{}'::bytea", hex(bytes))
}

/// An erasure that has rows left.
struct Open {
    version: i64,
    erasure: Erasure,
    next: VisitId,
}

/// Deletes some rows of the oldest erasure: those of the first day that is left, or some of them.
pub(super) async fn delete_rows(client: &mut Client) -> Result<DeletionStep, VisitStoreError> {
    let (key, _) = secrets::of_deployment(client).await?;
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    let oldest = "SELECT version, network, before_id, next_id FROM visit_erasure WHERE has_rows
         ORDER BY version LIMIT 1 FOR UPDATE SKIP LOCKED";
    let rows = transaction.query_typed(oldest, &[]).await?;
    let Some(row) = rows.first() else { return Ok(DeletionStep { deleted: 0, has_more: false }) };
    let open = Open {
        version: row.get(0),
        erasure: Erasure { network: network(row.get(1))?, before: VisitId::from_stored(row.get(2)) },
        next: VisitId::from_stored(row.get(3)),
    };
    let Step { next, deleted } = step(&transaction, &open, &key).await?;
    let update = "UPDATE visit_erasure SET next_id = coalesce($2, next_id), deleted = deleted + $3,
             has_rows = $2 IS NOT NULL WHERE version = $1";
    let next = next.map(VisitId::get);
    transaction
        .execute_typed(
            update,
            &[(&open.version, Type::INT8), (&next, Type::INT8), (&int(deleted), Type::INT8)],
        )
        .await?;
    transaction.commit().await?;
    Ok(DeletionStep { deleted, has_more: true })
}

/// What a step did.
struct Step {
    /// The id below which no row is left; `None` if there are no more days.
    next: Option<VisitId>,
    deleted: u64,
}

/// Deletes some rows.
async fn step(transaction: &Transaction<'_>, open: &Open, key: &TextKey) -> Result<Step, VisitStoreError> {
    let Erasure { network, before } = open.erasure;
    let first = first_day(Day::of(open.next.micros()));
    let day = transaction.query_typed(&first, &[]).await?;
    let day = day.first().and_then(|row| row.get::<_, Option<i32>>(0)).map(Day::from_stored);
    let from = |day: &Day| open.next.max(VisitId::floor(day.start()));
    let Some(day) = day.filter(|day| from(day) < before) else {
        // The addresses themselves: no row refers to them any more.
        if let Some(remove) = remove_texts(&open.erasure, literal) {
            // No batch stores a later visit from there meanwhile.
            transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
            transaction.batch_execute(&remove).await?;
        }
        return Ok(Step { next: None, deleted: 0 });
    };
    let end = before.min(VisitId::floor(day.next().start()));
    let condition = condition(network, key, day.month(), literal);
    let (found, next) = find(transaction, (from(&day), end), &condition).await?;
    let deleted = if found.is_empty() { 0 } else { delete(transaction, &found, day).await? };
    Ok(Step { next: Some(next), deleted })
}

/// Finds some rows between two ids of a day, and returns the id below which there are no others. No
/// index is on addresses, and a day may have more rows than can be read in time. So it reads a part
/// of the day after the other, until it has found rows or its time is over.
async fn find(
    transaction: &Transaction<'_>,
    (mut from, end): (VisitId, VisitId),
    condition: &str,
) -> Result<(Vec<Row>, VisitId), VisitStoreError> {
    let (began, mut part) = (Instant::now(), QUARTER);
    loop {
        let until = end.min(VisitId::floor(from.micros().saturating_add(part)));
        let find = format!(
            "SELECT link_id, id FROM visit WHERE id >= {} AND id < {} AND {condition} ORDER BY id LIMIT {STEP}",
            from.get(),
            until.get()
        );
        let found = transaction.query_typed(&find, &[]).await?;
        if let Some(last) = found.last().filter(|_| found.len() == STEP) {
            let next = VisitId::from_stored(last.get::<_, i64>(1) + 1);
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
async fn delete(transaction: &Transaction<'_>, found: &[Row], day: Day) -> Result<u64, VisitStoreError> {
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let column = |place: usize| found.iter().map(|row| row.get(place)).collect::<Vec<i64>>();
    let (links, ids) = (column(0), column(1));
    let remove = format!(
        "DELETE FROM visit USING unnest($1, $2) AS found (link_id, id)
         WHERE visit.link_id = found.link_id AND visit.id = found.id AND visit.id >= {} AND visit.id < {}
         RETURNING visit.link_id, visit.id, visit.domain, visit.flags",
        VisitId::floor(day.start()).get(),
        VisitId::floor(day.next().start()).get()
    );
    let rows =
        transaction.query_typed(&remove, &[(&links, Type::INT8_ARRAY), (&ids, Type::INT8_ARRAY)]).await?;
    let rows: Vec<ErasedRow> = rows.iter().map(erased_row).collect();
    unlist(transaction, &rows).await?;
    Ok(rows.len() as u64)
}

/// Moves the visits of deleted rows to those without one. The caller holds [`LOCK`].
pub(super) async fn unlist(transaction: &Transaction<'_>, rows: &[ErasedRow]) -> Result<(), VisitStoreError> {
    let links: Vec<i64> = rows.iter().map(|row| row.link.map_or(0, LinkId::get)).collect();
    let cuts =
        by_link(transaction, "SELECT link_id, before_id FROM visit_cut WHERE link_id = ANY($1)", &links);
    let cuts = cuts.await?.into_iter();
    let cuts = cuts
        .map(|(link, before)| ((link != 0).then(|| LinkId::from_stored(link)), VisitId::from_stored(before)));
    let counted = "SELECT link_id, tag_id FROM visit_tag WHERE link_id = ANY($1)";
    let mut tags: HashMap<LinkId, Vec<i64>> = HashMap::new();
    for (link, tag) in by_link(transaction, counted, &links).await? {
        tags.entry(LinkId::from_stored(link)).or_default().push(tag);
    }
    add_merged(transaction, &unlisted(rows, &cuts.collect(), &tags)).await
}

fn erased_row(row: &Row) -> ErasedRow {
    let link: i64 = row.get(0);
    ErasedRow {
        link: (link != 0).then(|| LinkId::from_stored(link)),
        id: VisitId::from_stored(row.get(1)),
        domain: DomainId::from_stored(row.get::<_, i32>(2).into()),
        flags: Flags::from_stored(row.get(3)),
    }
}

/// Reads pairs of a link and a number.
async fn by_link(
    transaction: &Transaction<'_>,
    query: &str,
    links: &[i64],
) -> Result<Vec<(i64, i64)>, VisitStoreError> {
    let rows = transaction.query_typed(query, &[(&links, Type::INT8_ARRAY)]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
