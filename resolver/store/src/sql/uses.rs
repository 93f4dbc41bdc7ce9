//! Visit limits: the budgets of links that redirect only a limited number of times.

use codes::LinkId;
use links::granted_visits;

use super::{Sql, Value, details::MAX_VISITS};
use crate::Result;

pub(crate) async fn take_visits(sql: &mut dyn Sql, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>> {
    let mut taken = Vec::with_capacity(wanted.len());
    for (id, count) in wanted {
        taken.push(take(sql, *id, *count).await?);
    }
    Ok(taken)
}

pub(crate) async fn is_spent(sql: &mut dyn Sql, id: LinkId) -> Result<bool> {
    let spent = format!(
        "SELECT link.id FROM link JOIN link_use ON link_use.link_id = link.id
         WHERE link.id = $1 AND {MAX_VISITS} <= link_use.used"
    );
    Ok(!sql.query(&spent, &[Value::Int(id.get())]).await?.is_empty())
}

/// Takes at most `count` visits from a link's budget, and returns how many were granted. A link
/// without a limit grants all of them.
async fn take(sql: &mut dyn Sql, id: LinkId, count: u64) -> Result<u64> {
    let (id, dialect) = (Value::Int(id.get()), sql.dialect());
    let begin = "INSERT INTO link_use (link_id, used) VALUES ($1, 0) ON CONFLICT (link_id) DO NOTHING";
    sql.query(begin, std::slice::from_ref(&id)).await?;
    // The limit is read after the lock was taken, so it is that of the last committed edit.
    let lock = format!("SELECT used FROM link_use WHERE link_id = $1 {}", dialect.for_update());
    let Some(used) = sql.number(&lock, std::slice::from_ref(&id)).await? else { return Ok(0) };
    let limit = format!("SELECT {MAX_VISITS} FROM link WHERE id = $1 AND {MAX_VISITS} IS NOT NULL");
    let limit = sql.number(&limit, std::slice::from_ref(&id)).await?;
    let unsigned = |number: i64| u64::try_from(number).unwrap_or(0);
    let granted = granted_visits(limit.map(unsigned), unsigned(used), count.min(i64::MAX.unsigned_abs()));
    if granted > 0 {
        let spend = "UPDATE link_use SET used = used + CAST($1 AS bigint) WHERE link_id = $2";
        sql.query(spend, &[Value::count(granted), id]).await?;
    }
    Ok(granted)
}
