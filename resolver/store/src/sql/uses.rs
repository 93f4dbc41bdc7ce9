//! Links that may be followed only so often.

use codes::LinkId;

use super::{Sql, Value};
use crate::StoreError;

/// Takes from each link's uses that are left, at most as many as wanted; how many were taken of each, in their order. The ids ascend, so that
/// two resolvers never wait for each other in a circle.
pub(crate) async fn use_links<S: Sql>(sql: &mut S, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
    let mut taken = Vec::with_capacity(wanted.len());
    for (id, count) in wanted {
        taken.push(take(sql, *id, *count).await?);
    }
    Ok(taken)
}

/// Whether a link was followed as often as it may be.
pub(crate) async fn is_spent<S: Sql>(sql: &mut S, id: LinkId) -> Result<bool, StoreError> {
    let spent = "SELECT link.id FROM link JOIN link_use ON link_use.link_id = link.id
                 WHERE link.id = $1 AND CAST(link.details->>'maxVisits' AS bigint) <= link_use.used";
    Ok(!sql.query(spent, &[Value::Int(id.get())]).await?.is_empty())
}

async fn take<S: Sql>(sql: &mut S, id: LinkId, count: u64) -> Result<u64, StoreError> {
    let (id, dialect) = (Value::Int(id.get()), S::DIALECT);
    let begin = "INSERT INTO link_use (link_id, used) VALUES ($1, 0) ON CONFLICT (link_id) DO NOTHING";
    sql.query(begin, std::slice::from_ref(&id)).await?;
    // The limit is read after the lock was taken, so it is that of the last edit that was committed.
    let lock = format!("SELECT used FROM link_use WHERE link_id = $1 {}", dialect.for_update());
    let Some(used) = first(&sql.query(&lock, std::slice::from_ref(&id)).await?)? else { return Ok(0) };
    let limit = "SELECT CAST(details->>'maxVisits' AS bigint) FROM link WHERE id = $1 AND details->>'maxVisits' IS NOT NULL";
    let wanted = i64::try_from(count).unwrap_or(i64::MAX);
    let granted = match first(&sql.query(limit, std::slice::from_ref(&id)).await?)? {
        Some(most) => wanted.min(most - used).max(0),
        None => wanted,
    };
    if granted > 0 {
        let spend = "UPDATE link_use SET used = used + CAST($1 AS bigint) WHERE link_id = $2";
        sql.query(spend, &[Value::Int(granted), id]).await?;
    }
    Ok(u64::try_from(granted).unwrap_or(0))
}

fn first(rows: &[super::Row]) -> Result<Option<i64>, StoreError> {
    rows.first().map(|row| row.int(0)).transpose()
}
