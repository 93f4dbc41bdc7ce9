//! Indexes of links that creates do not write: of long URLs, and of the texts that searches look
//! through.
//!
//! 1. A background task for each (`link_indexer.rs`) goes through the links in the order of their
//!    creation. Entries arrive at random places of an index, so a create that wrote them would
//!    change other pages each time.
//! 2. The task stays behind every transaction that may still store a link with an earlier time
//!    ([`Dialect::settled`](super::Dialect::settled)). A link stored behind the task would never be
//!    indexed.
//! 3. A lookup reads the index, and the links created since, which the index on creation times
//!    finds.
//! 4. Edits and imports index their links in their own transactions, because those links' times lie
//!    behind the task. An entry may be stale, so a lookup compares the link itself.
//!
//! Rejected: an index on an expression of `link`. It would cost each insert a random page for a
//! digest, and 14 µs for the trigrams of its texts, where all else takes Postgres 20.

use std::time::Duration;

use codes::LinkId;
use jiff::Timestamp;
use links::LongUrl;

use super::{Dialect, Sql, Value, long_urls::note_long_urls};
use crate::{Indexed, LinkIndex, Result, StoreError};

/// Maximum number of links in one step. A statement has three seconds, even if each entry reads
/// another page from disk.
const STEP: usize = 500;
/// Maximum size of the texts of a step, in bytes, unless they are of one link.
const STEP_BYTES: usize = 256 * 1024;

/// Maximum number of entries that are removed at once.
const REMOVED_AT_ONCE: usize = 5_000;

/// The creation time and the id of the last link of a step, and how many it had.
type Step = Option<(usize, Timestamp, i64)>;

pub(crate) async fn index_links(
    sql: &mut dyn Sql,
    index: LinkIndex,
    holder: &str,
    held_for: Duration,
) -> Result<Indexed> {
    let dialect = sql.dialect();
    // SQLite has no index of texts.
    if (index, dialect) == (LinkIndex::Texts, Dialect::Sqlite) {
        return Ok(Indexed::Done);
    }
    let table = state(index);
    if index == LinkIndex::Texts && waits_for_older_releases(sql).await? {
        return Ok(Indexed::NotOurs);
    }
    let settled = sql
        .first(dialect.settled(sql.is_distributed()), &[])
        .await?
        .ok_or_else(|| corrupt("no time"))?
        .time(0)?;
    // Without new links nothing is written, not even the lease.
    let look = format!("SELECT indexed_until, after_id FROM {table}");
    let row = sql.first(&look, &[]).await?.ok_or_else(|| corrupt("no state"))?;
    let (until, after) = (row.time(0)?, row.int(1)?);
    let next = format!("SELECT id {NEXT} LIMIT 1");
    let values = [Value::Time(until), Value::Int(after), Value::Time(settled)];
    if until <= settled && sql.query(&next, &values).await?.is_empty() {
        return Ok(Indexed::Done);
    }
    let now = dialect.now();
    let hold = format!(
        "UPDATE {table} SET holder = $1, held_until = {} WHERE holder = $1 OR held_until < {now}
         RETURNING indexed_until, after_id",
        dialect.now_plus("$2")
    );
    let values = [Value::Text(holder.to_owned()), Value::milliseconds(held_for)];
    let Some(row) = sql.first(&hold, &values).await? else { return Ok(Indexed::NotOurs) };
    let (until, after) = (row.time(0)?, row.int(1)?);
    if until > settled {
        // The database's clock was set back, or another server took over: new links may have
        // earlier times.
        come_to(sql, table, Value::Time(settled), 0).await?;
        return Ok(Indexed::Some(0));
    }
    if index == LinkIndex::Texts && until == Timestamp::UNIX_EPOCH && remove_texts(sql).await? {
        return Ok(Indexed::Some(0));
    }
    let values = [Value::Time(until), Value::Int(after), Value::Time(settled)];
    let step = match index {
        LinkIndex::LongUrls => note_urls(sql, &values).await?,
        LinkIndex::Texts => note_texts(sql, &values).await?,
    };
    let Some((count, time, id)) = step else { return Ok(Indexed::Done) };
    come_to(sql, table, Value::Time(time), id).await?;
    Ok(Indexed::Some(count))
}

/// Returns the creation time of the oldest link that is not in an index.
pub(crate) async fn unindexed_since(sql: &mut dyn Sql, index: LinkIndex) -> Result<Option<Timestamp>> {
    if (index, sql.dialect()) == (LinkIndex::Texts, Dialect::Sqlite) {
        return Ok(None);
    }
    let look = format!("SELECT indexed_until, after_id FROM {}", state(index));
    let row = sql.first(&look, &[]).await?.ok_or_else(|| corrupt("no state"))?;
    let next =
        "SELECT created_at FROM link WHERE (created_at, id) > ($1, $2) ORDER BY created_at, id LIMIT 1";
    let values = [Value::Time(row.time(0)?), Value::Int(row.int(1)?)];
    sql.first(next, &values).await?.map(|row| row.time(0)).transpose()
}

/// Returns the table with the state of an index.
pub(super) fn state(index: LinkIndex) -> &'static str {
    match index {
        LinkIndex::LongUrls => "long_url_index_state",
        LinkIndex::Texts => "link_text_state",
    }
}

/// The links after a creation time and id, and before another time.
const NEXT: &str = "FROM link WHERE (created_at, id) > ($1, $2) AND created_at < $3 ORDER BY created_at, id";

async fn note_urls(sql: &mut dyn Sql, values: &[Value]) -> Result<Step> {
    let next = format!("SELECT id, long_url, created_at {NEXT} LIMIT {STEP}");
    let rows = sql.query(&next, values).await?;
    let Some(last) = rows.last() else { return Ok(None) };
    let entries: Vec<_> = rows
        .iter()
        .map(|row| Ok((LinkId::from_stored(row.int(0)?), LongUrl::from_stored(row.text(1)?))))
        .collect::<Result<_>>()?;
    note_long_urls(sql, entries.iter().map(|(id, url)| (*id, url))).await?;
    Ok(Some((rows.len(), last.time(2)?, last.int(0)?)))
}

async fn note_texts(sql: &mut dyn Sql, values: &[Value]) -> Result<Step> {
    // An edit that was committed meanwhile has noted the later text.
    let next = format!(
        "WITH first AS (SELECT id, created_at, link_search_text(long_url, title, details) AS text {NEXT} LIMIT {STEP}),
              sized AS (SELECT *, sum(octet_length(text)) OVER (ORDER BY created_at, id) - octet_length(text) AS before FROM first),
              next AS MATERIALIZED (SELECT * FROM sized WHERE before < {STEP_BYTES}),
              noted AS (INSERT INTO link_text (link_id, text) SELECT id, text FROM next ON CONFLICT DO NOTHING)
         SELECT count(*) OVER (), created_at, id FROM next ORDER BY created_at DESC, id DESC LIMIT 1"
    );
    let Some(last) = sql.first(&next, values).await? else { return Ok(None) };
    let count = usize::try_from(last.int(0)?).unwrap_or(STEP);
    Ok(Some((count, last.time(1)?, last.int(2)?)))
}

/// How long the index of texts waits after the first start of this release, in which resolvers of
/// the release before may still edit and import links. They do not note them.
const OLDER_FOR: Duration = Duration::from_secs(3_600);

/// Begins that wait if it has not begun, and returns whether it has begun just now.
async fn waits_for_older_releases(sql: &mut dyn Sql) -> Result<bool> {
    let wait = format!(
        "UPDATE link_text_state SET holder = 'waits', held_until = {}
         WHERE holder = 'upgrade' RETURNING one",
        sql.dialect().now_plus("$1")
    );
    Ok(sql.first(&wait, &[Value::milliseconds(OLDER_FOR)]).await?.is_some())
}

/// Removes texts that were noted before the index began: resolvers of the release before may have
/// changed them since. Returns whether more may be left.
async fn remove_texts(sql: &mut dyn Sql) -> Result<bool> {
    let remove =
        "DELETE FROM link_text WHERE link_id IN (SELECT link_id FROM link_text LIMIT $1) RETURNING link_id";
    let most = REMOVED_AT_ONCE;
    let removed = sql.query(remove, &[Value::count(most as u64)]).await?;
    Ok(removed.len() == most)
}

/// Indexes the texts of links that were edited or imported.
pub(super) async fn renew_texts(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<()> {
    if sql.dialect() == Dialect::Sqlite {
        return Ok(());
    }
    // Sorted, because two transactions with different orders could deadlock.
    let renew = format!(
        "INSERT INTO link_text (link_id, text)
         SELECT id, link_search_text(long_url, title, details) FROM link WHERE {} ORDER BY id
         ON CONFLICT (link_id) DO UPDATE SET text = excluded.text",
        sql.dialect().among("id", "$1")
    );
    sql.query(&renew, &[Value::ids(ids)]).await.map(drop)
}

/// Stores the position of an index: all links up to this creation time and id are in it.
async fn come_to(sql: &mut dyn Sql, table: &str, time: Value, id: i64) -> Result<()> {
    let keep = format!("UPDATE {table} SET indexed_until = $1, after_id = $2");
    sql.query(&keep, &[time, Value::Int(id)]).await.map(drop)
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("index of links: {what}"))
}
