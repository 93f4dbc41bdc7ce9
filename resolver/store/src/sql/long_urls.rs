//! The index of long URLs: which links lead to a URL. Creates do not write it.
//!
//! 1. A background task (`url_indexer.rs`) goes through the links in the order of their creation,
//!    and stores a digest of each long URL. Digests arrive at random places of the index, so a
//!    create that wrote one would change another page each time.
//! 2. The task stays behind every transaction that may still store a link with an earlier time
//!    ([`Dialect::settled`](super::Dialect::settled)). A link stored behind the task would never be
//!    indexed.
//! 3. A lookup reads the index, and the links created since, which the index on creation times
//!    finds. It reads no more than the last [`TAIL`] of them. While the task is further behind, as
//!    after the upgrade or under the heaviest load, links that it has not reached are not found.
//! 4. Edits and imports index their links in their own transactions, because those links' times lie
//!    behind the task. An entry may be stale, so a lookup compares the long URL itself.
//!
//! Rejected: an index on a digest in `link`, which would cost each insert a random page, and the
//! same by a trigger or in the create's batch.

use std::time::Duration;

use codes::LinkId;
use jiff::Timestamp;
use links::{LongUrl, Record};

use super::{
    Sql, Value,
    details::DELETED_AT,
    insert_rows,
    tags::{visible, with_tags},
};
use crate::{Indexed, Result, StoreError, Visible};

/// Maximum number of links in one step. A statement has three seconds, even if each entry reads
/// another page from disk.
const STEP: usize = 500;
/// Maximum number of index entries of one URL that a lookup examines.
const LOOKED_AT: usize = 5_000;
/// Age limit of links that a lookup reads although they are not indexed yet.
pub(super) const TAIL: Duration = Duration::from_secs(60);

pub(crate) async fn index_long_urls(sql: &mut dyn Sql, holder: &str, held_for: Duration) -> Result<Indexed> {
    let dialect = sql.dialect();
    let settled = sql.first(dialect.settled(), &[]).await?.ok_or_else(|| corrupt("no time"))?.time(0)?;
    // Without new links nothing is written, not even the lease.
    let look = "SELECT indexed_until > $1, EXISTS (SELECT 1 FROM link WHERE created_at < $1 AND (created_at, id) > (indexed_until, after_id))
                FROM long_url_index_state";
    let row = sql.first(look, &[Value::Time(settled)]).await?.ok_or_else(|| corrupt("no state"))?;
    let (went_back, is_more) = (row.flag(0)?, row.flag(1)?);
    if !went_back && !is_more {
        return Ok(Indexed::Done);
    }
    let now = dialect.now();
    let hold = format!(
        "UPDATE long_url_index_state SET holder = $1, held_until = {} WHERE holder = $1 OR held_until < {now}
         RETURNING indexed_until, after_id",
        dialect.now_plus("$2")
    );
    let values = [Value::Text(holder.to_owned()), Value::milliseconds(held_for)];
    let Some(row) = sql.first(&hold, &values).await? else { return Ok(Indexed::NotOurs) };
    let (until, after) = (row.time(0)?, row.int(1)?);
    if until > settled {
        // The database's clock was set back, or another server took over: new links may have
        // earlier times.
        come_to(sql, Value::Time(settled), 0).await?;
        return Ok(Indexed::Some(0));
    }
    let values = [Value::Time(until), Value::Int(after), Value::Time(settled)];
    let Some((count, time, id)) = note_next(sql, &values).await? else { return Ok(Indexed::Done) };
    come_to(sql, Value::Time(time), id).await?;
    Ok(Indexed::Some(count))
}

/// Indexes the next links. Returns how many there were, and the creation time and id of the last
/// one.
async fn note_next(sql: &mut dyn Sql, values: &[Value]) -> Result<Option<(usize, Timestamp, i64)>> {
    let next = format!(
        "SELECT id, long_url, created_at FROM link WHERE (created_at, id) > ($1, $2) AND created_at < $3
         ORDER BY created_at, id LIMIT {STEP}"
    );
    let rows = sql.query(&next, values).await?;
    let Some(last) = rows.last() else { return Ok(None) };
    let entries: Vec<_> = rows
        .iter()
        .map(|row| Ok((LinkId::from_stored(row.int(0)?), LongUrl::from_stored(row.text(1)?))))
        .collect::<Result<_>>()?;
    note_long_urls(sql, entries.iter().map(|(id, url)| (*id, url))).await?;
    Ok(Some((rows.len(), last.time(2)?, last.int(0)?)))
}

/// Stores the position of the index: all links up to this creation time and id are in it.
async fn come_to(sql: &mut dyn Sql, time: Value, id: i64) -> Result<()> {
    let keep = "UPDATE long_url_index_state SET indexed_until = $1, after_id = $2";
    sql.query(keep, &[time, Value::Int(id)]).await.map(drop)
}

/// Indexes the long URLs of links. Idempotent.
pub(super) async fn note_long_urls(
    sql: &mut dyn Sql,
    links: impl Iterator<Item = (LinkId, &LongUrl)>,
) -> Result<()> {
    // Sorted, because two transactions with different orders could deadlock.
    let mut entries: Vec<(i64, i64)> = links.map(|(id, url)| (url.digest(), id.get())).collect();
    entries.sort_unstable();
    let rows: Vec<_> = entries.into_iter().map(|(digest, id)| [Value::Int(digest), Value::Int(id)]).collect();
    let then = "ON CONFLICT (digest, link_id) DO NOTHING";
    insert_rows(sql, "INSERT INTO long_url_index (digest, link_id)", &rows, then).await
}

/// SQL query for candidate ids of links that lead to a long URL. The caller must compare the URL as
/// well, because other links are among them.
///
/// `digest` and `url` are the placeholders of its parameters, which must be numbered in this order.
/// With `most`, only the first entries of the index are read.
pub(super) fn candidates(dialect: super::Dialect, digest: &str, url: &str, most: Option<usize>) -> String {
    let since = dialect.later("indexed_until", &dialect.now_minus(TAIL));
    let bound = most.map_or_else(String::new, |most| format!("ORDER BY link_id LIMIT {most}"));
    format!(
        "SELECT link_id FROM (SELECT link_id FROM long_url_index WHERE digest = {digest} {bound}) AS noted UNION
         SELECT id FROM link WHERE created_at >= (SELECT {since} FROM long_url_index_state) AND long_url = {url}"
    )
}

/// Only the first [`LOOKED_AT`] index entries of the URL are examined, so that a client that
/// creates a million links to one URL does not make each lookup as expensive.
pub(crate) async fn links_of_url(
    sql: &mut dyn Sql,
    url: &LongUrl,
    of: &Visible,
    most: usize,
) -> Result<Vec<Record>> {
    let mut values = vec![Value::Int(url.digest()), Value::Text(url.as_str().to_owned())];
    let conditions = visible(of, &mut values);
    values.push(Value::count(most));
    let select = format!(
        "SELECT {} FROM link WHERE link.id IN ({}) AND link.long_url = $2
           AND {DELETED_AT} IS NULL{conditions} ORDER BY link.id LIMIT ${}",
        sql.dialect().link(),
        candidates(sql.dialect(), "$1", "$2", Some(LOOKED_AT)),
        values.len()
    );
    let rows = sql.query(&select, &values).await?;
    let links = rows.iter().map(super::Row::link).collect::<Result<Vec<_>>>()?;
    with_tags(sql, links).await
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("index of long URLs: {what}"))
}
