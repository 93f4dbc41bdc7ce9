//! Postgres beside a store that keeps rows and past counters elsewhere: texts and positions stay
//! here, and so do deletions that are not done yet.
//!
//! 1. A step of a deletion is read here, done there, and closed here only if it is still the one
//!    that was read: a row that arrived late opens it again ([`reopen`]).
//! 2. An erasure has steps of its own ([`erasures`]).

pub(crate) mod erasures;

use store::postgres::PostgresSql;
use tokio_postgres::{Client, Row, types::Type};
use visits::VisitId;

use super::{LIMITS, LOCK};
use crate::{
    Result, RowsRecord,
    sql::{changes::outdate, rows::insert_texts},
};

/// A deletion that has rows left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenCut {
    /// The link; 0 for orphan visits.
    pub(crate) link: i64,
    /// Rows with lower ids are deleted.
    pub(crate) before: VisitId,
    /// Counters of transfers up to this one are deleted.
    pub(crate) transferred: i64,
    /// Names this state of the deletion.
    version: i64,
}

pub(crate) async fn links_of_tag(client: &Client, tag: i64) -> Result<Vec<i64>> {
    let query = "SELECT link_id FROM visit_tag WHERE tag_id = $1";
    let rows = client.query_typed(query, &[(&tag, Type::INT8)]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

pub(crate) async fn open_cuts(client: &Client, most: i64) -> Result<Vec<OpenCut>> {
    let query = "SELECT link_id, before_id, version, transferred FROM visit_cut WHERE has_rows
         ORDER BY version LIMIT $1";
    let rows = client.query_typed(query, &[(&most, Type::INT8)]).await?;
    let cut = |row: &Row| OpenCut {
        link: row.get(0),
        before: VisitId::from_stored(row.get(1)),
        transferred: row.get(3),
        version: row.get(2),
    };
    Ok(rows.iter().map(cut).collect())
}

/// Notes that deletions have no row left, unless they were opened again meanwhile.
pub(crate) async fn close_cuts(client: &Client, cuts: &[OpenCut]) -> Result<()> {
    let links: Vec<i64> = cuts.iter().map(|cut| cut.link).collect();
    let versions: Vec<i64> = cuts.iter().map(|cut| cut.version).collect();
    let close = "UPDATE visit_cut SET has_rows = false FROM unnest($1, $2) AS done (link_id, version)
         WHERE visit_cut.link_id = done.link_id AND visit_cut.version = done.version";
    client.execute_typed(close, &[(&links, Type::INT8_ARRAY), (&versions, Type::INT8_ARRAY)]).await?;
    Ok(())
}

/// Opens deletions and erasures again that were made after the batch of a record, and that may
/// concern its rows: they have arrived only now. Whole addresses are stored again, because an
/// erasure in between has removed them.
pub(crate) async fn reopen(client: &mut Client, record: &RowsRecord) -> Result<()> {
    let RowsRecord { known, rows, addresses, .. } = record;
    let Some(first) = rows.iter().map(|row| row.id.get()).min() else { return Ok(()) };
    if !addresses.is_empty() {
        // There before the version is read: an erasure after that finds them.
        let transaction = client.transaction().await?;
        transaction.batch_execute(LIMITS).await?;
        insert_texts(&mut PostgresSql(&transaction), addresses).await?;
        transaction.commit().await?;
    }
    let version = client.query_typed("SELECT version FROM visit_state", &[]).await?;
    if version.first().is_some_and(|row| row.get::<_, i64>(0) == *known) {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.batch_execute(LIMITS).await?;
    let mut links: Vec<i64> = rows.iter().map(|row| row.link.map_or(0, codes::LinkId::get)).collect();
    links.dedup();
    transaction.batch_execute(&format!("SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let cuts = "SELECT link_id FROM visit_cut WHERE version > $1 AND before_id > $2 AND link_id = ANY($3)";
    let values = [(known as _, Type::INT8), (&first as _, Type::INT8), (&links as _, Type::INT8_ARRAY)];
    let cuts: Vec<i64> = transaction.query_typed(cuts, &values).await?.iter().map(|row| row.get(0)).collect();
    if !cuts.is_empty() {
        let version = outdate(&mut PostgresSql(&transaction)).await?;
        let open = "UPDATE visit_cut SET has_rows = true, version = $1 WHERE link_id = ANY($2)";
        transaction.execute_typed(open, &[(&version, Type::INT8), (&cuts, Type::INT8_ARRAY)]).await?;
    }
    let open = "UPDATE visit_erasure
         SET has_rows = true, next_id = least(next_id, $2), generation = generation + 1
         WHERE version > $1 AND before_id > $2";
    transaction.execute_typed(open, &[(known, Type::INT8), (&first, Type::INT8)]).await?;
    // Rows that were found before may be there again, in one table or in both.
    let ids: Vec<i64> = rows.iter().map(|row| row.id.get()).collect();
    let found = "UPDATE visit_erased SET found = found + 1, has_row = true WHERE id = ANY($1)";
    transaction.execute_typed(found, &[(&ids, Type::INT8_ARRAY)]).await?;
    transaction.commit().await?;
    Ok(())
}
