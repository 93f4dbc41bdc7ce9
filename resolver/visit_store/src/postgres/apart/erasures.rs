//! The steps of an erasure whose rows are in another database.
//!
//! 1. Rows are found there, day by day. One transaction here notes their ids, moves those visits to
//!    the ones without a row that no erasure had noted before, and moves the erasure on. So a row
//!    that is found twice, or by two processes, moves its visit once.
//! 2. Rows are deleted by the noted ids and by nothing else: one that arrives in between stays
//!    until it was found as well.
//! 3. Rows that arrive raise the erasure's generation ([`reopen`](super::reopen)). What a step has
//!    read before is then outdated, and it changes nothing.

use std::collections::HashSet;

use futures_util::future::BoxFuture;
use store::{Dialect, Sql, Value, postgres::PostgresSql};
use tokio_postgres::{Client, types::Type};
use visits::{AddressNetwork, VisitId};

use crate::{
    Erasure, Result, StoredText,
    erased_rows::{ErasedRow, texts},
    postgres::{LOCK, transfers::CHANGED},
    sql::{
        erasures::{erasure, unlist},
        int, lock, rows,
    },
};

/// An erasure that has rows left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenErasure {
    version: i64,
    generation: i64,
    pub(crate) erasure: Erasure,
    /// The visits of rows before it are moved already.
    pub(crate) next: VisitId,
}

/// Visits that were moved and may have rows still, each with how often its row was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ErasedIds {
    pub(crate) ids: Vec<i64>,
    found: Vec<i32>,
}

/// Returns the oldest erasure that has rows left.
pub(crate) async fn open(client: &Client) -> Result<Option<OpenErasure>> {
    let oldest = "SELECT version, generation, next_id, network, before_id FROM visit_erasure WHERE has_rows
         ORDER BY version LIMIT 1";
    let sql = &mut PostgresSql(client);
    let rows = sql.query(oldest, &[]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (version, generation) = (row.int(0)?, row.int(1)?);
    let (next, erasure) = (VisitId::from_stored(row.int(2)?), erasure(row, 3)?);
    Ok(Some(OpenErasure { version, generation, erasure, next }))
}

/// Returns the stored numbers of the whole addresses in a network, which are texts.
pub(crate) async fn address_texts(client: &Client, network: AddressNetwork) -> Result<Vec<i64>> {
    let Some(condition) = texts(network, Dialect::Postgres) else { return Ok(Vec::new()) };
    let query = format!("SELECT DISTINCT hash FROM visit_text WHERE {condition}");
    Ok(client.query_typed(&query, &[]).await?.iter().map(|row| row.get(0)).collect())
}

/// Moves the visits of an erasure's rows to those without one, and the erasure on to
/// `next`. Does nothing if another process did, or if rows have arrived since.
pub(crate) async fn move_on(
    sql: &mut dyn Sql,
    open: &OpenErasure,
    rows: &[ErasedRow],
    next: VisitId,
) -> Result<()> {
    lock(sql, LOCK).await?;
    let update = "UPDATE visit_erasure SET next_id = $1 WHERE version IN
         (SELECT version FROM visit_erasure
          WHERE version = $2 AND generation = $3 AND next_id = $4 AND has_rows FOR UPDATE SKIP LOCKED)";
    let values = [next.get(), open.version, open.generation, open.next.get()].map(Value::Int);
    if sql.execute(update, &values).await? == 0 {
        return Ok(());
    }
    let note =
        "INSERT INTO visit_erased AS old (id, version) SELECT DISTINCT id, $2 FROM unnest($1) AS new (id)
         ON CONFLICT (id) DO UPDATE SET found = old.found + 1, has_row = true
         RETURNING id, found = 1";
    let ids = Value::IntArray(rows.iter().map(|row| row.id.get()).collect());
    let mut new = HashSet::new();
    for row in sql.query(note, &[ids, Value::Int(open.version)]).await? {
        if row.flag(1)? {
            new.insert(row.int(0)?);
        }
    }
    let moved: Vec<ErasedRow> = rows.iter().filter(|row| new.contains(&row.id.get())).copied().collect();
    unlist(sql, &moved, CHANGED).await?;
    let count = "UPDATE visit_erasure SET deleted = deleted + $1 WHERE version = $2";
    sql.execute(count, &[Value::count(moved.len()), Value::Int(open.version)]).await?;
    Ok(())
}

/// Returns visits that were moved and may have rows still.
pub(crate) async fn with_rows(client: &Client, most: usize) -> Result<ErasedIds> {
    let query = "SELECT id, found FROM visit_erased WHERE has_row ORDER BY id LIMIT $1";
    let rows = client.query_typed(query, &[(&int(most), Type::INT8)]).await?;
    Ok(ErasedIds {
        ids: rows.iter().map(|row| row.get(0)).collect(),
        found: rows.iter().map(|row| row.get(1)).collect(),
    })
}

/// Notes that the rows of visits are deleted, but not of those whose rows were found again since.
pub(crate) async fn rows_are_gone(client: &Client, erased: &ErasedIds) -> Result<()> {
    let update = "UPDATE visit_erased SET has_row = false FROM unnest($1, $2) AS done (id, found)
         WHERE visit_erased.id = done.id AND visit_erased.found = done.found";
    let ErasedIds { ids, found } = erased;
    client.execute_typed(update, &[(ids, Type::INT8_ARRAY), (found, Type::INT4_ARRAY)]).await?;
    Ok(())
}

/// Asks which of some whole addresses, given by their stored numbers, are those of later visits. It
/// must be quick: a batch with one of them waits for it.
pub(crate) type LaterVisits<'a> =
    Box<dyn FnOnce(Vec<i64>) -> BoxFuture<'a, Result<HashSet<i64>>> + Send + 'a>;

/// Notes that an erasure has no row left, and removes the addresses themselves, except those of
/// later visits. Does nothing if rows have arrived since.
pub(crate) async fn close(sql: &mut dyn Sql, open: &OpenErasure, later: LaterVisits<'_>) -> Result<()> {
    let close = "UPDATE visit_erasure SET has_rows = false WHERE version IN
         (SELECT version FROM visit_erasure WHERE version = $1 AND generation = $2 FOR UPDATE SKIP LOCKED)
         AND NOT EXISTS (SELECT 1 FROM visit_erased WHERE has_row)";
    if sql.execute(close, &[open.version, open.generation].map(Value::Int)).await? == 0 {
        return Ok(());
    }
    if let Some(texts) = texts(open.erasure.network, Dialect::Postgres) {
        let remove = format!("DELETE FROM visit_text WHERE {texts} RETURNING month, hash, text");
        let mut removed = sql.query(&remove, &[]).await?;
        let removed: Vec<StoredText> = removed.iter_mut().map(rows::text).collect::<Result<_, _>>()?;
        if !removed.is_empty() {
            // Removed first: whoever stores one from now on waits for the end of this transaction,
            // and what was stored before is found.
            let kept = later(removed.iter().map(|text| text.at.hash.get()).collect()).await?;
            let kept: Vec<StoredText> =
                removed.into_iter().filter(|text| kept.contains(&text.at.hash.get())).collect();
            rows::insert_texts(sql, &kept).await?;
        }
    }
    Ok(())
}
