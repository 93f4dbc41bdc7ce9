//! Scheduled edits of links: table `scheduled_change`.
//!
//! A transaction locks the link before rows of this table, as a deletion does: in another order,
//! two of them could wait for each other.

use codes::LinkId;
use jiff::Timestamp;
use links::{
    Edit, Refusal, SCHEDULED_PER_KEY, SCHEDULED_PER_LINK, ScheduledEdit, ScheduledEditId, ScheduledFields,
    api_key::ApiKeyId,
};

use super::{
    Row, Sql, Value,
    edits::{self, lock},
};
use crate::{Result, Scheduled, StoreError};

/// Columns and tables of a scheduled edit, for [`edit_in`].
const SELECT: &str = "SELECT scheduled_change.id, scheduled_change.link_id, scheduled_change.due_at,
        scheduled_change.fields, scheduled_change.created_by, api_key.name, scheduled_change.failed_because
    FROM scheduled_change LEFT JOIN api_key ON api_key.id = scheduled_change.created_by";

/// The link is locked, so that it has no more edits than it may have. A key may exceed its number
/// by a few that are scheduled at the same time.
pub(crate) async fn schedule_edit(
    sql: &mut dyn Sql,
    link: LinkId,
    due_at: Timestamp,
    fields: &ScheduledFields,
    by: ApiKeyId,
) -> Result<Scheduled> {
    let found = lock(sql, link).await?;
    if found.is_none_or(|(found, _)| found.is_deleted()) {
        return Ok(Scheduled::NoLink);
    }
    for (column, number, most) in
        [("link_id", link.get(), SCHEDULED_PER_LINK), ("created_by", by.0, SCHEDULED_PER_KEY)]
    {
        let count = format!("SELECT count(*) FROM scheduled_change WHERE {column} = $1");
        if sql.number(&count, &[Value::Int(number)]).await? >= Some(i64::from(most)) {
            return Ok(Scheduled::TooMany(most));
        }
    }
    let insert = "INSERT INTO scheduled_change (link_id, due_at, fields, created_by)
                  VALUES ($1, $2, $3, $4) RETURNING id";
    let values =
        [Value::Int(link.get()), Value::Time(due_at), Value::Text(fields.stored()), Value::Int(by.0)];
    let id = sql.number(insert, &values).await?;
    let id = id.ok_or_else(|| StoreError::Corrupt("an insert has returned no row".to_owned()))?;
    Ok(Scheduled::Stored(ScheduledEditId::from_stored(id)))
}

pub(crate) async fn scheduled_edits(sql: &mut dyn Sql, link: LinkId) -> Result<Vec<ScheduledEdit>> {
    let select = format!(
        "{SELECT} WHERE scheduled_change.link_id = $1 ORDER BY scheduled_change.due_at, scheduled_change.id"
    );
    sql.query(&select, &[Value::Int(link.get())]).await?.iter().map(edit_in).collect()
}

pub(crate) async fn scheduled_edit(sql: &mut dyn Sql, id: ScheduledEditId) -> Result<Option<ScheduledEdit>> {
    let select = format!("{SELECT} WHERE scheduled_change.id = $1");
    sql.first(&select, &[Value::Int(id.get())]).await?.as_ref().map(edit_in).transpose()
}

pub(crate) async fn cancel_edit(sql: &mut dyn Sql, id: ScheduledEditId) -> Result<bool> {
    let cancel = "DELETE FROM scheduled_change WHERE id = $1";
    Ok(sql.execute(cancel, &[Value::Int(id.get())]).await? > 0)
}

/// Of each link only the earliest, so that processes which make edits at the same time keep their
/// order. An index has the edits by their moments, so that it costs next to nothing if none is due.
pub(crate) async fn due_edits(
    sql: &mut dyn Sql,
    after: Option<(Timestamp, ScheduledEditId)>,
    most: usize,
) -> Result<Vec<ScheduledEdit>> {
    let (mut values, mut behind) = (Vec::new(), "");
    if let Some((due_at, id)) = after {
        values.extend([Value::Time(due_at), Value::Int(id.get())]);
        behind = "AND (scheduled_change.due_at, scheduled_change.id) > ($1, $2)";
    }
    values.push(Value::count(most));
    let select = format!(
        "{SELECT} WHERE scheduled_change.failed_because IS NULL AND scheduled_change.due_at <= {} {behind}
           AND NOT EXISTS (SELECT 1 FROM scheduled_change AS earlier
               WHERE earlier.link_id = scheduled_change.link_id AND earlier.failed_because IS NULL
                 AND (earlier.due_at, earlier.id) < (scheduled_change.due_at, scheduled_change.id))
         ORDER BY scheduled_change.due_at, scheduled_change.id LIMIT ${}",
        sql.dialect().now(),
        values.len()
    );
    sql.query(&select, &values).await?.iter().map(edit_in).collect()
}

/// The row is removed with the edit, so that no other transaction makes it again. If it is gone,
/// there is nothing to do. A transaction that has the row is awaited: it may still fail, and then
/// the edit is due as before.
pub(crate) async fn make_edit(
    sql: &mut dyn Sql,
    due: &ScheduledEdit,
    edit: &Edit,
) -> Result<Result<(), Refusal>> {
    lock(sql, due.link).await?;
    let own = [Value::Int(due.id.get())];
    let claim = format!(
        "SELECT id FROM scheduled_change WHERE id = $1 AND failed_because IS NULL {}",
        sql.dialect().for_update()
    );
    if sql.first(&claim, &own).await?.is_none() {
        return Ok(Ok(()));
    }
    let made = edits::edit(sql, due.link, edit, due.by).await?;
    if made.is_ok() {
        sql.execute("DELETE FROM scheduled_change WHERE id = $1", &own).await?;
    }
    Ok(made.map(drop))
}

pub(crate) async fn fail_edit(sql: &mut dyn Sql, id: ScheduledEditId, reason: &str) -> Result<()> {
    let fail = "UPDATE scheduled_change SET failed_because = $1 WHERE id = $2 AND failed_because IS NULL";
    sql.execute(fail, &[Value::Text(reason.to_owned()), Value::Int(id.get())]).await.map(drop)
}

/// Ends the scheduled edits of links that are deleted.
pub(super) async fn end_edits(sql: &mut dyn Sql, links: &[LinkId]) -> Result<()> {
    let end = format!("DELETE FROM scheduled_change WHERE {}", sql.dialect().among("link_id", "$1"));
    sql.execute(&end, &[Value::ids(links)]).await.map(drop)
}

fn edit_in(row: &Row) -> Result<ScheduledEdit> {
    Ok(ScheduledEdit {
        id: ScheduledEditId::from_stored(row.int(0)?),
        link: LinkId::from_stored(row.int(1)?),
        due_at: row.time(2)?,
        fields: ScheduledFields::from_stored(row.text(3)?),
        by: ApiKeyId(row.int(4)?),
        by_name: row.opt_text(5)?.map(str::to_owned),
        failure: row.opt_text(6)?.map(str::to_owned),
    })
}
