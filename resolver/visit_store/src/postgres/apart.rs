//! What a store needs of Postgres that keeps the rows elsewhere: counters, texts and positions stay
//! here, and so does what is left to delete.
//!
//! 1. A step of a deletion is read here, done there, and closed here only if it is still the one
//!    that was read: a row that arrived late opens it again ([`reopen`]).
//! 2. An erasure finds its rows day by day, and moves their visits to those without a row in the
//!    transaction that moves the erasure on. Two processes that find the same rows move them once.
//!
//! Known limits, all of rows that are on their way while an erasure goes on. A visit may be moved
//! twice, or not at all, if its row arrives between the steps or a replica lacks it; lists then tell a
//! wrong number of pages. A row with a whole IPv6 address that arrives after its network was erased
//! stays: the text that it would be found by is gone.

use tokio_postgres::{Client, Row, types::Type};
use visits::{AddressNetwork, Day, VisitId, VisitRow};

use super::{LOCK, delete::outdate, erase, int};
use crate::{
    Erasure, VisitStoreError,
    erased_rows::{ErasedRow, first_day, texts},
};

/// A deletion that has rows left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenCut {
    /// The link; 0 for orphan visits.
    pub(crate) link: i64,
    /// Rows with lower ids are deleted.
    pub(crate) before: VisitId,
    /// Names this state of the deletion.
    version: i64,
}

/// An erasure that has rows left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenErasure {
    version: i64,
    pub(crate) erasure: Erasure,
    /// The visits of rows before it are moved already.
    pub(crate) next: VisitId,
}

/// Returns the links of a tag, whose rows count for it.
pub(super) async fn links_of_tag(client: &Client, tag: i64) -> Result<Vec<i64>, VisitStoreError> {
    let query = "SELECT link_id FROM visit_tag WHERE tag_id = $1";
    let rows = client.query_typed(query, &[(&tag, Type::INT8)]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// Returns the oldest deletions that have rows left.
pub(super) async fn open_cuts(client: &Client, most: i64) -> Result<Vec<OpenCut>, VisitStoreError> {
    let query = "SELECT link_id, before_id, version FROM visit_cut WHERE has_rows ORDER BY version LIMIT $1";
    let rows = client.query_typed(query, &[(&most, Type::INT8)]).await?;
    let cut = |row: &Row| OpenCut {
        link: row.get(0),
        before: VisitId::from_stored(row.get(1)),
        version: row.get(2),
    };
    Ok(rows.iter().map(cut).collect())
}

/// Notes that deletions have no row left, unless they were opened again meanwhile.
pub(super) async fn close_cuts(client: &Client, cuts: &[OpenCut]) -> Result<(), VisitStoreError> {
    let links: Vec<i64> = cuts.iter().map(|cut| cut.link).collect();
    let versions: Vec<i64> = cuts.iter().map(|cut| cut.version).collect();
    let close = "UPDATE visit_cut SET has_rows = false FROM unnest($1, $2) AS done (link_id, version)
         WHERE visit_cut.link_id = done.link_id AND visit_cut.version = done.version";
    client.execute_typed(close, &[(&links, Type::INT8_ARRAY), (&versions, Type::INT8_ARRAY)]).await?;
    Ok(())
}

/// Opens deletions and erasures again that were made after version `known`, and that may concern
/// these rows: they have arrived only now.
pub(super) async fn reopen(
    client: &mut Client,
    known: i64,
    rows: &[VisitRow],
) -> Result<(), VisitStoreError> {
    let Some(first) = rows.iter().map(|row| row.id.get()).min() else { return Ok(()) };
    let version = client.query_typed("SELECT version FROM visit_state", &[]).await?;
    if version.first().is_some_and(|row| row.get::<_, i64>(0) == known) {
        return Ok(());
    }
    let mut links: Vec<i64> = rows.iter().map(|row| row.link.map_or(0, codes::LinkId::get)).collect();
    links.dedup();
    let transaction = client.transaction().await?;
    transaction.batch_execute("SET LOCAL lock_timeout = '10s'; SET LOCAL statement_timeout = '50s'").await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let cuts = "SELECT link_id FROM visit_cut WHERE version > $1 AND before_id > $2 AND link_id = ANY($3)";
    let values = [(&known as _, Type::INT8), (&first as _, Type::INT8), (&links as _, Type::INT8_ARRAY)];
    let cuts: Vec<i64> = transaction.query_typed(cuts, &values).await?.iter().map(|row| row.get(0)).collect();
    if !cuts.is_empty() {
        let version = outdate(&transaction).await?;
        let open = "UPDATE visit_cut SET has_rows = true, version = $1 WHERE link_id = ANY($2)";
        transaction.execute_typed(open, &[(&version, Type::INT8), (&cuts, Type::INT8_ARRAY)]).await?;
    }
    let open = "UPDATE visit_erasure SET has_rows = true, next_id = least(next_id, $2)
         WHERE version > $1 AND before_id > $2";
    transaction.execute_typed(open, &[(&known, Type::INT8), (&first, Type::INT8)]).await?;
    transaction.commit().await?;
    Ok(())
}

/// Returns the oldest erasure that has rows left.
pub(super) async fn open_erasure(client: &Client) -> Result<Option<OpenErasure>, VisitStoreError> {
    let oldest = "SELECT version, network, before_id, next_id FROM visit_erasure WHERE has_rows
         ORDER BY version LIMIT 1";
    let rows = client.query_typed(oldest, &[]).await?;
    let open = |row: &Row| {
        let erasure =
            Erasure { network: erase::network(row.get(1))?, before: VisitId::from_stored(row.get(2)) };
        Ok(OpenErasure { version: row.get(0), erasure, next: VisitId::from_stored(row.get(3)) })
    };
    rows.first().map(open).transpose()
}

/// Returns the first day from an erasure's next row on that has visits; `None` if all are moved.
pub(super) async fn next_day(client: &Client, open: &OpenErasure) -> Result<Option<Day>, VisitStoreError> {
    let day = client.query_typed(&first_day(Day::of(open.next.micros())), &[]).await?;
    let day = day.first().and_then(|row| row.get::<_, Option<i32>>(0)).map(Day::from_stored);
    Ok(day.filter(|day| open.next.max(VisitId::floor(day.start())) < open.erasure.before))
}

/// Returns the stored numbers of the whole addresses in a network, which are texts.
pub(super) async fn address_texts(
    client: &Client,
    network: AddressNetwork,
) -> Result<Vec<i64>, VisitStoreError> {
    let Some(condition) = texts(network, erase::literal) else { return Ok(Vec::new()) };
    let query = format!("SELECT DISTINCT hash FROM visit_text WHERE {condition}");
    Ok(client.query_typed(&query, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Moves the visits of an erasure's rows of a day to those without one, and the erasure on to
/// `next`. Does nothing if another process did.
pub(super) async fn move_on(
    client: &mut Client,
    open: &OpenErasure,
    rows: &[ErasedRow],
    day: Day,
    next: VisitId,
) -> Result<(), VisitStoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(erase::LIMITS).await?;
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let update = "UPDATE visit_erasure SET next_id = $1, deleted = deleted + $2
         WHERE version = $3 AND next_id = $4 AND has_rows";
    let values = [
        (&next.get() as _, Type::INT8),
        (&int(rows.len()) as _, Type::INT8),
        (&open.version as _, Type::INT8),
        (&open.next.get() as _, Type::INT8),
    ];
    if transaction.execute_typed(update, &values).await? == 1 {
        erase::unlist(&transaction, rows, day).await?;
        transaction.commit().await?;
    }
    Ok(())
}

/// Notes that an erasure has no row left, and removes the addresses themselves, unless it was opened
/// again meanwhile.
pub(super) async fn close_erasure(client: &mut Client, open: &OpenErasure) -> Result<(), VisitStoreError> {
    let transaction = client.transaction().await?;
    transaction.batch_execute(erase::LIMITS).await?;
    let close = "UPDATE visit_erasure SET has_rows = false WHERE version = $1 AND next_id = $2";
    let values = [(&open.version as _, Type::INT8), (&open.next.get() as _, Type::INT8)];
    if transaction.execute_typed(close, &values).await? == 1 {
        if let Some(texts) = texts(open.erasure.network, erase::literal) {
            transaction.batch_execute(&format!("DELETE FROM visit_text WHERE {texts}")).await?;
        }
        transaction.commit().await?;
    }
    Ok(())
}
