//! Changes of many links, each batch in one transaction with few statements.
//!
//! A batch locks its links in the order of their ids, and then its tags in that of their names, as
//! a change of one link does. So changes wait for each other, and cannot deadlock.

use std::collections::HashMap;

use codes::LinkId;
use jiff::Timestamp;
use links::{
    BulkChange, BulkRefusal, Edit, Link, Precondition, Record, Refusal, Tag,
    api_key::ApiKeyId,
    audit::{Action, change, state},
};

use super::{
    Notice, Sql, Value,
    audit::{LinkNote, note_links},
    details_text,
    edits::{delete, edit, lock},
    import::TOLD_AT_ONCE,
    insert_rows,
    link_index::renew_texts,
    long_urls::note_long_urls,
    tags::{note_changes, tag_links, tags_of, tags_of_link, untag_links},
};
use crate::{BulkBatch, Result, StoreError};

/// Whether a link was changed, or why not.
type Outcome = Result<bool, BulkRefusal>;

/// A link of a batch before its change and after it. Tags are sorted.
struct Changed {
    before: Link,
    tags: Vec<Tag>,
    after: Record,
}

pub(crate) async fn change_many(sql: &mut dyn Sql, batch: &BulkBatch) -> Result<Vec<Outcome>> {
    let BulkBatch { items, change, by } = batch;
    let ids: Vec<LinkId> = items.iter().map(|(id, _)| *id).collect();
    let mut locked = lock_all(sql, &ids).await?;
    let mut tags = tags_of(sql, &ids).await?;
    let (mut outcomes, mut changed) = (Vec::with_capacity(items.len()), Vec::new());
    for (id, of) in items {
        let Some((before, now)) = locked.remove(id) else {
            outcomes.push(Err(BulkRefusal::Refused(Refusal::Absent)));
            continue;
        };
        let tags = sorted(tags.remove(id).unwrap_or_default());
        outcomes.push(match change.apply(&before, &tags, of, (now, *by)) {
            Ok(Some(after)) => {
                changed.push(Changed { before, tags, after });
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(refusal) => Err(refusal),
        });
    }
    if !changed.is_empty() {
        store(sql, change, &changed).await?;
        note(sql, change, &changed, *by).await?;
    }
    Ok(outcomes)
}

/// Changes one link, as a database does whose links are on nodes: there each link has a transaction
/// of its own.
pub(crate) async fn change_one(
    sql: &mut dyn Sql,
    (id, of): &(LinkId, Precondition),
    change: &BulkChange,
    by: ApiKeyId,
) -> Result<Outcome> {
    let (link, now) = match lock(sql, *id).await {
        Ok(Some(locked)) => locked,
        Ok(None) => return Ok(Err(BulkRefusal::Refused(Refusal::Absent))),
        Err(StoreError::LaterRelease) => return Ok(Err(BulkRefusal::LaterRelease)),
        Err(error) => return Err(error),
    };
    let tags = sorted(tags_of_link(sql, *id).await?);
    let after = match change.apply(&link, &tags, of, (now, by)) {
        Ok(Some(after)) => after,
        Ok(None) => {
            // As with an edit of one link that changes nothing.
            sql.notify(Notice::Changed(&[*id])).await?;
            return Ok(Ok(false));
        }
        Err(refusal) => return Ok(Err(refusal)),
    };
    let done = match change {
        BulkChange::Delete => delete(sql, *id, of, by).await?,
        BulkChange::Edit(change) => {
            let tags = Some(after.tags).filter(|after| *after != tags);
            let one = Edit { tags, precondition: of.clone(), ..change.edit.clone() };
            edit(sql, *id, &one, by).await?.map(drop)
        }
    };
    Ok(done.map(|()| true).map_err(BulkRefusal::Refused))
}

fn sorted(mut tags: Vec<Tag>) -> Vec<Tag> {
    tags.sort_unstable();
    tags
}

/// Locks links until the transaction ends, and returns them with the database's time.
async fn lock_all(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<HashMap<LinkId, (Link, Timestamp)>> {
    let dialect = sql.dialect();
    let select = format!(
        "SELECT {}, {} FROM link WHERE {} ORDER BY link.id {}",
        dialect.link(),
        dialect.now(),
        dialect.among("link.id", "$1"),
        dialect.for_update()
    );
    let rows = sql.query(&select, &[Value::ids(ids)]).await?;
    rows.iter().map(|row| row.link().and_then(|link| Ok((link.id, (link, row.time(8)?))))).collect()
}

/// Writes the links, their tags and what is found by them.
async fn store(sql: &mut dyn Sql, change: &BulkChange, changed: &[Changed]) -> Result<()> {
    write_all(sql, changed).await?;
    write_tags(sql, changed).await?;
    let ids: Vec<LinkId> = changed.iter().map(|one| one.before.id).collect();
    match change {
        BulkChange::Delete => {
            free_slugs(sql, changed).await?;
            end_schedules(sql, &ids).await?;
        }
        BulkChange::Edit(change) => {
            if change.edit.long_url.is_some() {
                let urls = changed.iter().map(|one| (one.before.id, &one.after.link.long_url));
                note_long_urls(sql, urls).await?;
            }
            if change.edit.long_url.is_some() || change.edit.title.is_some() {
                renew_texts(sql, &ids).await?;
            }
        }
    }
    for ids in ids.chunks(TOLD_AT_ONCE) {
        sql.notify(Notice::Changed(ids)).await?;
    }
    Ok(())
}

/// Writes all fields of links as [`write`](super::edits::write) does those of one.
async fn write_all(sql: &mut dyn Sql, changed: &[Changed]) -> Result<()> {
    let row = |Changed { after: Record { link, .. }, .. }: &Changed| {
        Ok([
            Value::Int(link.id.get()),
            Value::Text(link.long_url.as_str().to_owned()),
            Value::OptText(link.title.clone()),
            Value::Bool(link.crawlable),
            Value::Bool(link.forward_query),
            Value::OptText(details_text(link.details.as_deref())?),
        ])
    };
    let rows: Vec<[Value; 6]> = changed.iter().map(row).collect::<Result<_>>()?;
    let update = format!(
        "UPDATE link SET long_url = edited.column2, title = edited.column3, crawlable = edited.column4,
             forward_query = edited.column5, details = {} FROM (",
        sql.dialect().json("edited.column6")
    );
    insert_rows(sql, &update, &rows, ") AS edited WHERE link.id = edited.column1").await
}

/// Writes the tags of links. The tags of a link that only gets more are not touched: others may
/// wait for them.
async fn write_tags(sql: &mut dyn Sql, changed: &[Changed]) -> Result<()> {
    let (mut losing, mut noted, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for Changed { before, tags, after } in changed.iter().filter(|one| one.tags != one.after.tags) {
        noted.push(before.id);
        let loses = tags.iter().any(|tag| !after.tags.contains(tag));
        if loses {
            losing.push(before.id);
        }
        let added = after.tags.iter().filter(|tag| loses || !tags.contains(*tag));
        pairs.extend(added.map(|tag| (before.id, tag)));
    }
    if !losing.is_empty() {
        untag_links(sql, &losing).await?;
    }
    tag_links(sql, &pairs).await?;
    note_changes(sql, &noted).await
}

/// Releases the slugs of deleted links; minted codes stay with their numbers.
async fn free_slugs(sql: &mut dyn Sql, deleted: &[Changed]) -> Result<()> {
    let row = |Changed { before, .. }: &Changed| {
        let slug = Value::Text(before.slug()?.as_str().to_owned());
        Some([Value::Int(before.domain().get()), slug, Value::Int(before.id.get())])
    };
    let rows: Vec<[Value; 3]> = deleted.iter().filter_map(row).collect();
    insert_rows(sql, "DELETE FROM slug WHERE (domain_id, slug, link_id) IN (", &rows, ")").await
}

/// Removes the scheduled edits of deleted links, as a deletion of one link does.
async fn end_schedules(sql: &mut dyn Sql, deleted: &[LinkId]) -> Result<()> {
    let remove = format!("DELETE FROM scheduled_change WHERE {}", sql.dialect().among("link_id", "$1"));
    sql.query(&remove, &[Value::ids(deleted)]).await.map(drop)
}

/// Adds an entry for each link to the audit log, from which the change of that link can be undone.
async fn note(sql: &mut dyn Sql, how: &BulkChange, changed: &[Changed], by: ApiKeyId) -> Result<()> {
    let action = match how {
        BulkChange::Delete => Action::DeleteLink,
        BulkChange::Edit(change) => Action::of_edit(&change.edit),
    };
    let mut notes = Vec::with_capacity(changed.len());
    for Changed { before, tags: former, after: Record { link, tags } } in changed {
        notes.push(match how {
            BulkChange::Delete => LinkNote { link, tags: former, former: &[], details: state(link) },
            BulkChange::Edit(_) => {
                let details = change(before, link, Some((former.as_slice(), tags.as_slice())));
                LinkNote { link, tags, former, details }
            }
        });
    }
    note_links(sql, by, action, notes).await
}
