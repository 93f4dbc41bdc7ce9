//! Chores: work that one process at a time does for all, in steps. Table `chore` has their leases.

use super::{Row, Sql, Value};
use crate::{Result, Sweep};

/// Takes or keeps the lease of a chore. Returns the position of the chore, its beginning and the
/// current time; `None` if another process has the lease, or the chore rests.
pub(super) async fn hold(sql: &mut dyn Sql, chore: &str, sweep: &Sweep) -> Result<Option<Row>> {
    let begin = "INSERT INTO chore (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
    sql.execute(begin, &[Value::Text(chore.to_owned())]).await?;
    let now = sql.dialect().now();
    let hold = format!(
        "UPDATE chore SET holder = $1, held_until = {} WHERE name = $3 AND due_at <= {now} AND (holder = $1 OR held_until < {now})
         RETURNING position, begun_at, {now}",
        sql.dialect().now_plus("$2")
    );
    let values = [
        Value::Text(sweep.holder.clone()),
        Value::milliseconds(sweep.held_for),
        Value::Text(chore.to_owned()),
    ];
    sql.first(&hold, &values).await
}

/// Ends a pass: resets the position, releases the lease and sets the time of the next pass.
pub(super) async fn rest(sql: &mut dyn Sql, chore: &str, sweep: &Sweep) -> Result<()> {
    let rest = format!(
        "UPDATE chore SET position = 0, holder = '', held_until = {}, due_at = {} WHERE name = $2",
        sql.dialect().now(),
        sql.dialect().now_plus("$1")
    );
    let values = [Value::milliseconds(sweep.every), Value::Text(chore.to_owned())];
    sql.query(&rest, &values).await.map(drop)
}
