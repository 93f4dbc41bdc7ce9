//! Last visits of links, and the removal of unvisited links.

use codes::LinkId;
use jiff::{SignedDuration, Timestamp};
use links::{Precondition, api_key::OPERATOR};

use super::{
    Sql, Value,
    chores::{hold, rest},
    details::{BLOCKED, DELETED_AT, VALID_SINCE},
    edits::delete,
    insert_numbers, insert_rows,
};
use crate::{Result, StoreError, Sweep};

/// Name of the removal in table `chore`.
const CHORE: &str = "remove unvisited links";
/// Maximum number of links examined in one step.
const LOOKED_AT: i64 = 2_000;
/// Maximum number of links removed in one step.
const REMOVED: i64 = 200;

pub(crate) async fn note_visits(sql: &mut dyn Sql, seen: &[(LinkId, Timestamp)]) -> Result<()> {
    let rows: Vec<_> = seen.iter().map(|(id, at)| [Value::Int(id.get()), Value::Time(*at)]).collect();
    let then = "ON CONFLICT (link_id) DO UPDATE SET seen_at = excluded.seen_at
                WHERE link_seen.seen_at < excluded.seen_at";
    insert_rows(sql, "INSERT INTO link_seen (link_id, seen_at)", &rows, then).await
}

/// Records imported or restored links as visited now, because they may be old, and adds their
/// imported visits to them.
pub(super) async fn note_arrived(sql: &mut dyn Sql, arrived: &mut [(LinkId, u64)]) -> Result<()> {
    arrived.sort_unstable();
    let row = |(id, visits): &(LinkId, u64)| [id.get(), i64::try_from(*visits).unwrap_or(i64::MAX)];
    let rows: Vec<[i64; 2]> = arrived.iter().map(row).collect();
    let now = sql.dialect().now();
    let into =
        format!("INSERT INTO link_seen (link_id, imported, seen_at) SELECT column1, column2, {now} FROM (");
    let then = format!(
        ") AS arrived WHERE true ON CONFLICT (link_id) DO UPDATE SET seen_at = {},
             imported = link_seen.imported + excluded.imported",
        sql.dialect().later("link_seen.seen_at", "excluded.seen_at")
    );
    insert_numbers(sql, &into, &rows, &then).await
}

/// Only the process that holds the lease examines links. The deletions and the position are one
/// transaction.
pub(crate) async fn sweep(sql: &mut dyn Sql, sweep: &Sweep) -> Result<Option<Vec<LinkId>>> {
    let Some(row) = hold(sql, CHORE, sweep).await? else { return Ok(None) };
    let (position, begun, now) = (row.int(0)?, row.time(1)?, row.time(2)?);
    let span = SignedDuration::try_from(sweep.kept_for).unwrap_or(SignedDuration::MAX);
    let Some(before) = now.checked_sub(span).ok().filter(|before| begun <= *before) else {
        // Visits have been recorded for a shorter time than that.
        return rest(sql, CHORE, sweep).await.map(|()| None);
    };
    let last = "SELECT max(id) FROM (SELECT id FROM link WHERE id > $1 ORDER BY id LIMIT $2) AS next";
    let last = sql.number(last, &[Value::Int(position), Value::Int(LOOKED_AT)]).await?;
    let Some(last) = last else { return rest(sql, CHORE, sweep).await.map(|()| None) };
    let unvisited = format!(
        "SELECT link.id FROM link LEFT JOIN link_seen ON link_seen.link_id = link.id
         WHERE link.id > $1 AND link.id <= $2 AND link.created_at < $3 AND {DELETED_AT} IS NULL
           AND {BLOCKED} IS NULL
           AND (link_seen.seen_at IS NULL OR link_seen.seen_at < $3)
           AND ({VALID_SINCE} IS NULL OR {VALID_SINCE} < $4)
         ORDER BY link.id LIMIT $5"
    );
    let values = [
        Value::Int(position),
        Value::Int(last),
        Value::Time(before),
        Value::Int(before.as_millisecond()),
        Value::Int(REMOVED),
    ];
    let (mut removed, rows) = (Vec::new(), sql.query(&unvisited, &values).await?);
    for row in &rows {
        let id = LinkId::from_stored(row.int(0)?);
        match delete(sql, id, &Precondition::default(), OPERATOR).await {
            Ok(_) => removed.push(id),
            // It is left to that release, and holds up no other link.
            Err(StoreError::LaterRelease) => {}
            Err(error) => return Err(error),
        }
    }
    // A step that removed its maximum may have left more among the links that it examined.
    let is_full = rows.len() == usize::try_from(REMOVED).unwrap_or(usize::MAX);
    let position = match rows.last().filter(|_| is_full) {
        Some(row) => row.int(0)?,
        None => last,
    };
    let keep = "UPDATE chore SET position = $1 WHERE name = $2";
    sql.query(keep, &[Value::Int(position), Value::Text(CHORE.to_owned())]).await?;
    Ok(Some(removed))
}
