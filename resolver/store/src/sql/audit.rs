//! The audit log: each entry is part of the transaction that makes the change, so that no change
//! lacks one.
//!
//! Creates have no entry: a link itself records who created it, and when. Visits may be in another
//! database, so that entries about their deletion are transactions of their own.
//!
//! A change of a link is an event of webhooks as well.

use links::{
    Link, Tag,
    api_key::ApiKeyId,
    audit::{Action, Entry, EntryFilter, Object, without_hashes},
    webhook::EventKind,
};
use serde_json::{Value as Json, json};

use super::{
    Sql, Value,
    chores::{hold, rest},
    insert_rows, places,
    webhooks::{is_called_for, record_link},
};
use crate::{Result, StoreError, Sweep};

/// Name of the removal of old entries in table `chore`.
const CHORE: &str = "remove old audit entries";
/// Maximum number of entries removed in one step.
const REMOVED: i64 = 1_000;

/// Adds an entry for a change.
pub(crate) async fn note(
    sql: &mut dyn Sql,
    by: ApiKeyId,
    action: Action,
    subject: &str,
    details: Option<Json>,
) -> Result<()> {
    let insert = format!(
        "INSERT INTO audit (api_key, action, subject, details) VALUES ($1, $2, $3, {})",
        sql.dialect().json("$4")
    );
    let values = [
        Value::Int(by.0),
        Value::Text(action.as_str().to_owned()),
        Value::Text(subject.to_owned()),
        Value::OptText(details.map(|details| details.to_string())),
    ];
    sql.query(&insert, &values).await.map(drop)
}

/// Adds an entry for a change of a link, and records its event for webhooks. `tags` are those after
/// the change, or those that a deleted link had; `former` are those before it, if it set any.
pub(super) async fn note_link(
    sql: &mut dyn Sql,
    by: ApiKeyId,
    action: Action,
    (link, tags, former): (&Link, &[Tag], &[Tag]),
    details: Json,
) -> Result<()> {
    note(sql, by, action, &link.id.get().to_string(), Some(details.clone())).await?;
    let Some(event) = EventKind::of(action) else { return Ok(()) };
    record(sql, event, (link, tags, former), details).await
}

/// A change of a link for [`note_links`], as [`note_link`] has it.
pub(super) struct LinkNote<'a> {
    pub(super) link: &'a Link,
    pub(super) tags: &'a [Tag],
    pub(super) former: &'a [Tag],
    pub(super) details: Json,
}

/// Adds entries for changes of links, and records their events for webhooks.
pub(super) async fn note_links(
    sql: &mut dyn Sql,
    by: ApiKeyId,
    action: Action,
    notes: Vec<LinkNote<'_>>,
) -> Result<()> {
    let row = |note: &LinkNote<'_>| {
        let subject = Value::Text(note.link.id.get().to_string());
        let action = Value::Text(action.as_str().to_owned());
        [Value::Int(by.0), action, subject, Value::Text(note.details.to_string())]
    };
    let rows: Vec<[Value; 4]> = notes.iter().map(row).collect();
    let into = format!(
        "INSERT INTO audit (api_key, action, subject, details) SELECT column1, column2, column3, {} FROM (",
        sql.dialect().json("column4")
    );
    insert_rows(sql, &into, &rows, ") AS noted").await?;
    let Some(event) = EventKind::of(action) else { return Ok(()) };
    if is_called_for(sql, event).await? {
        for LinkNote { link, tags, former, details } in notes {
            record(sql, event, (link, tags, former), details).await?;
        }
    }
    Ok(())
}

/// Records the event of a change for webhooks.
async fn record(
    sql: &mut dyn Sql,
    event: EventKind,
    (link, tags, former): (&Link, &[Tag], &[Tag]),
    details: Json,
) -> Result<()> {
    let mut data = without_hashes(details);
    data["tags"] = json!(tags);
    let all: Vec<Tag> = tags.iter().chain(former.iter().filter(|tag| !tags.contains(tag))).cloned().collect();
    record_link(sql, event, link, &all, &data).await
}

/// Returns the actions whose entries are about links, as a list for SQL.
fn link_actions() -> String {
    let actions = Action::ALL.into_iter().filter(|action| action.is_of_link());
    actions.map(|action| format!("'{}'", action.as_str())).collect::<Vec<_>>().join(", ")
}

pub(crate) async fn audit_entries(
    sql: &mut dyn Sql,
    filter: &EntryFilter,
    most: usize,
) -> Result<Vec<Entry>> {
    let EntryFilter { before, action, by_name, object, since, until } = filter;
    let mut values = vec![Value::Int(before.unwrap_or(i64::MAX))];
    let mut conditions = String::new();
    let mut add = |condition: &str, value: Option<Value>| {
        if let Some(value) = value {
            values.push(value);
            conditions.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    };
    let text = |text: &Option<String>| text.clone().map(Value::Text);
    add("audit.action =", action.map(|action| Value::Text(action.as_str().to_owned())));
    add("coalesce(api_key.name, '') =", text(by_name));
    add("audit.at >=", since.map(|time| Value::OptTime(Some(time))));
    add("audit.at <=", until.map(|time| Value::OptTime(Some(time))));
    if let Some(Object { name, links }) = object {
        // The subject of an entry about a link is a number, which may be the name of another
        // object.
        let is_of_link = format!("audit.action IN ({})", link_actions());
        let mut about = Vec::new();
        if !name.is_empty() || links.is_empty() {
            values.push(Value::Text(name.clone()));
            about.push(format!("(audit.subject = ${} AND NOT {is_of_link})", values.len()));
        }
        if !links.is_empty() {
            let ids = places(values.len() + 1, links.len());
            about.push(format!("(audit.subject IN ({ids}) AND {is_of_link})"));
            values.extend(links.iter().map(|id| Value::Text(id.get().to_string())));
        }
        conditions.push_str(&format!(" AND ({})", about.join(" OR ")));
    }
    // SQLite numbers parameters in the order in which they appear, so this one is the last.
    values.push(Value::count(most));
    let select = format!(
        "SELECT audit.id, audit.at, audit.api_key, coalesce(api_key.name, ''), audit.action, audit.subject, {}
         FROM audit LEFT JOIN api_key ON api_key.id = audit.api_key
         WHERE audit.id < $1{conditions} ORDER BY audit.id DESC LIMIT ${}",
        sql.dialect().json_text("audit.details"),
        values.len()
    );
    let rows = sql.query(&select, &values).await?;
    let entry = |row: &super::Row| {
        let corrupt = |error| StoreError::Corrupt(format!("audit: {error}"));
        Ok(Entry {
            id: row.int(0)?,
            at: row.time(1)?,
            by: ApiKeyId(row.int(2)?),
            by_name: Some(row.text(3)?.to_owned()).filter(|name| !name.is_empty()),
            action: row.text(4)?.to_owned(),
            subject: row.text(5)?.to_owned(),
            details: row.opt_text(6)?.map(serde_json::from_str).transpose().map_err(corrupt)?,
        })
    };
    rows.iter().map(entry).collect()
}

/// Only the process that holds the lease removes entries. Returns false once there are no more, and
/// if another process holds it.
pub(crate) async fn remove_old_entries(sql: &mut dyn Sql, sweep: &Sweep) -> Result<bool> {
    if hold(sql, CHORE, sweep).await?.is_none() {
        return Ok(false);
    }
    let remove = format!(
        "DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE at < {} ORDER BY at LIMIT $1)",
        sql.dialect().now_minus(sweep.kept_for)
    );
    let has_removed = sql.execute(&remove, &[Value::Int(REMOVED)]).await? > 0;
    if !has_removed {
        rest(sql, CHORE, sweep).await?;
    }
    Ok(has_removed)
}
