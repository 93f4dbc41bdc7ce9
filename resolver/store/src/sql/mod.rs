//! SQL statements that both stores share: all statements on links except batch inserts and reads
//! for redirects.
//!
//! 1. Each statement has one text for both dialects. Parameters are numbered `$1`, `$2` in the
//!    order in which they first appear: SQLite takes them as names, and numbers names by their
//!    first appearance.
//! 2. The method of a port that runs an operation (`operation.rs`) says what it does, and its
//!    function here how.
//! 3. Times are `timestamptz` on Postgres and milliseconds on SQLite; [`Row::time`] reads both.
//!
//! Rejected: a query builder. It would express the same statements in more words; the one statement
//! that is composed at run time (`list`) has a dozen parts.

pub(super) mod audit;
pub(super) mod blocks;
pub(super) mod bulk;
mod chores;
pub(super) mod create;
pub(super) mod deployment;
mod details;
mod dialect;
pub(super) mod domains;
pub(super) mod edits;
pub(super) mod history;
mod idempotency;
pub(super) mod import;
pub(super) mod keys;
pub(super) mod keyspaces;
pub(super) mod link_index;
pub(super) mod list;
pub(super) mod long_urls;
pub(super) mod reservations;
pub(super) mod restore;
pub(super) mod schedule;
mod search;
pub(super) mod sessions;
pub(super) mod slugs;
pub(super) mod sweep;
pub(super) mod tags;
pub(super) mod targets;
pub(super) mod together;
mod transaction;
pub(super) mod uses;
pub(super) mod visits;
pub(super) mod walk;
mod wanted;
pub(super) mod webhooks;

use super::{Result, StoreError};
use codes::LinkId;
use links::{Details, Link, LongUrl, StoredObject as _, api_key::ApiKeyId};

pub(super) use blocks::reservation_of;
pub(super) use create::former_of;
pub use dialect::Dialect;
pub(super) use transaction::Cell;
pub use transaction::{Notice, Row, Sql, Value};
pub use visits::{add_to_links, counted_visits, tag_changes};
pub use webhooks::add_webhook_events;

const ROWS_AT_ONCE: usize = 500;

impl Row {
    /// Reads a link from the columns of [`Dialect::link`].
    pub(super) fn link(&self) -> Result<Link> {
        Ok(Link {
            id: LinkId::from_stored(self.int(0)?),
            long_url: LongUrl::from_stored(self.text(1)?),
            title: self.opt_text(2)?.map(str::to_owned),
            crawlable: self.flag(3)?,
            forward_query: self.flag(4)?,
            created_at: self.time(5)?,
            created_by: ApiKeyId(self.int(6)?),
            details: self.opt_text(7)?.map(|text| Box::new(Details::from_stored(text))),
        })
    }
}

/// Raises the settings' version: once the transaction is committed, all resolvers read them again.
async fn note_change(sql: &mut dyn Sql) -> Result<()> {
    sql.query("UPDATE settings_version SET version = version + 1", &[]).await.map(drop)
}

pub(super) fn details_text(details: Option<&Details>) -> Result<Option<String>> {
    let write =
        |details| serde_json::to_string(details).map_err(|error| StoreError::Corrupt(error.to_string()));
    details.map(write).transpose()
}

/// Runs a statement for rows, mostly an insert, up to 500 at a time. `into` is what stands before
/// VALUES, and `then` what stands after the rows.
pub async fn insert_rows<const N: usize>(
    sql: &mut dyn Sql,
    into: &str,
    rows: &[[Value; N]],
    then: &str,
) -> Result<()> {
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let row = |row: usize| format!("({})", places(N * row + 1, N));
        let all = (0..rows.len()).map(row).collect::<Vec<_>>().join(", ");
        sql.query(&format!("{into} VALUES {all} {then}"), &rows.concat()).await?;
    }
    Ok(())
}

/// Does the same for rows of numbers. Postgres takes a parameter for each column of them, where it
/// would parse a thousand.
async fn insert_numbers<const N: usize>(
    sql: &mut dyn Sql,
    into: &str,
    rows: &[[i64; N]],
    then: &str,
) -> Result<()> {
    if sql.dialect() == Dialect::Sqlite || sql.is_distributed() {
        let rows: Vec<[Value; N]> = rows.iter().map(|row| row.map(Value::Int)).collect();
        return insert_rows(sql, into, &rows, then).await;
    }
    let arrays: Vec<String> = (1..=N).map(|column| format!("${column}::bigint[]")).collect();
    let names: Vec<String> = (1..=N).map(|column| format!("column{column}")).collect();
    let (arrays, names) = (arrays.join(", "), names.join(", "));
    let insert = format!("{into} SELECT * FROM unnest({arrays}) AS many ({names}) {then}");
    for rows in rows.chunks(ROWS_AT_ONCE) {
        let column = |column: usize| Value::IntArray(rows.iter().map(|row| row[column]).collect());
        let columns: Vec<Value> = (0..N).map(column).collect();
        sql.query(&insert, &columns).await?;
    }
    Ok(())
}

/// Returns `count` placeholders from `$from` on, separated by commas.
fn places(from: usize, count: usize) -> String {
    (from..from + count).map(|place| format!("${place}")).collect::<Vec<_>>().join(", ")
}
