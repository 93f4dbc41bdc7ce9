//! Edits and deletions of links. Each is notified in its own transaction, so that caches drop the
//! link (rule 8 of `schema/README.md`).

use codes::{Code, LinkId};
use jiff::Timestamp;
use links::{
    Edit, Link, Meant, Record, Slug,
    api_key::ApiKeyId,
    audit::{Action, change, state},
};

use super::{
    Sql, Told, Value,
    audit::note,
    details_text,
    keyspaces::keyspaces,
    long_urls::note_long_urls,
    named::{free_slug, take_slug},
    tags::{set_tags, tags_of},
};
use crate::{Deleted, Edited, StoreError};

/// Edits a link.
pub(crate) async fn edit<S: Sql>(
    sql: &mut S,
    id: LinkId,
    edit: &Edit,
    by: ApiKeyId,
) -> Result<Edited, StoreError> {
    // A deleted link can be blocked as well, so that it cannot be restored.
    let is_there = |found: &(Link, Timestamp)| edit.block.is_some() || lives(found);
    let found = lock(sql, id).await?.filter(is_there);
    let Some((link, now)) = found.filter(|(link, _)| edit.meant.is_of(link)) else {
        return Ok(Edited::Absent);
    };
    if !edit.meant.has_version_of(&link) {
        return Ok(Edited::Superseded);
    }
    let (before, link) = (link.clone(), edit.apply(link, now, by));
    write(sql, &link).await?;
    if let Some(block) = edit.block.as_ref().filter(|_| link.is_deleted()) {
        hold_name(sql, &link, block.is_some()).await?;
    }
    let tags_before = match &edit.tags {
        Some(tags) => {
            let before = tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default();
            set_tags(sql, id, tags).await?;
            Some(before)
        }
        None => None,
    };
    if edit.long_url.is_some() {
        note_long_urls(sql, std::iter::once((id, &link.long_url))).await?;
    }
    let tags = tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default();
    let change = change(&before, &link, tags_before.as_deref().map(|before| (before, &*tags)));
    let action = match &edit.block {
        None => Action::EditLink,
        Some(Some(_)) => Action::BlockLink,
        Some(None) => Action::UnblockLink,
    };
    note(sql, by, action, &id.get().to_string(), Some(change)).await?;
    sql.tell(Told::Changed(&[id])).await?;
    Ok(Edited::Done(Box::new(Record { link, tags })))
}

/// Reserves the slug of a deleted link while the link is blocked, and releases it afterwards.
///
/// If another link has taken the slug meanwhile, that link keeps it. A mintable slug is kept by the
/// link's row itself. A slug that has become a code of a keyspace since the deletion is left to its
/// number, because as a slug it would lead elsewhere.
async fn hold_name<S: Sql>(sql: &mut S, link: &Link, is_blocked: bool) -> Result<(), StoreError> {
    let Some(slug) = link.slug().filter(|_| link.id.unpack().is_none()) else { return Ok(()) };
    if is_blocked && is_mintable(sql, link, slug).await? {
        Ok(())
    } else if is_blocked {
        take_slug(sql, link.domain(), slug.as_str(), link.id).await.map(drop)
    } else {
        free_slug(sql, link.domain(), slug.as_str(), link.id).await
    }
}

/// Returns whether a slug belongs to a keyspace. No further keyspace can be adopted before the
/// transaction ends.
async fn is_mintable<S: Sql>(sql: &mut S, link: &Link, slug: &Slug) -> Result<bool, StoreError> {
    let Some(code) = Code::parse(slug.as_str()).ok().filter(|_| link.domain().is_default()) else {
        return Ok(false);
    };
    sql.query(S::DIALECT.keep_keyspaces(), &[]).await?;
    Ok(keyspaces(sql).await?.iter().any(|(_, keyspace)| keyspace.contains(&code)))
}

fn lives((link, _): &(Link, Timestamp)) -> bool {
    !link.is_deleted()
}

/// Deletes a link. Its row stays with all its fields. A custom slug becomes free again; a minted
/// code stays with its number, on other domains by its row in `slug`.
pub(crate) async fn delete<S: Sql>(
    sql: &mut S,
    id: LinkId,
    meant: &Meant,
    by: ApiKeyId,
) -> Result<Deleted, StoreError> {
    let found = lock(sql, id).await?.filter(lives);
    let Some((link, now)) = found.filter(|(link, _)| meant.is_of(link)) else { return Ok(Deleted::Absent) };
    if !meant.has_version_of(&link) {
        return Ok(Deleted::Superseded);
    }
    if link.is_blocked() {
        return Ok(Deleted::Blocked);
    }
    let mut link = Edit::default().apply(link, now, by);
    let tags = tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default();
    if let Some(details) = &mut link.details {
        (details.deleted_at, details.deleted_tags) = (Some(now), tags);
    }
    write(sql, &link).await?;
    set_tags(sql, id, &[]).await?;
    if let Some(slug) = link.slug() {
        free_slug(sql, link.domain(), slug.as_str(), id).await?;
    }
    note(sql, by, Action::DeleteLink, &id.get().to_string(), Some(state(&link))).await?;
    sql.tell(Told::Changed(&[id])).await?;
    Ok(Deleted::Done)
}

/// Locks a link until the transaction ends, and returns it with the database's time.
pub(super) async fn lock<S: Sql>(sql: &mut S, id: LinkId) -> Result<Option<(Link, Timestamp)>, StoreError> {
    let (link, now, lock) = (S::DIALECT.link(), S::DIALECT.now(), S::DIALECT.for_update());
    let rows = sql
        .query(&format!("SELECT {link}, {now} FROM link WHERE id = $1 {lock}"), &[Value::Int(id.get())])
        .await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((row.link()?, row.time(8)?)))
}

/// Writes all fields of a link but its id, creator and creation time.
pub(super) async fn write<S: Sql>(sql: &mut S, link: &Link) -> Result<(), StoreError> {
    let details = S::DIALECT.json("$5");
    let update = format!(
        "UPDATE link SET long_url = $1, title = $2, crawlable = $3, forward_query = $4, details = {details} WHERE id = $6"
    );
    let values = [
        Value::Text(link.long_url.as_str().to_owned()),
        Value::OptText(link.title.clone()),
        Value::Bool(link.crawlable),
        Value::Bool(link.forward_query),
        Value::OptText(details_text(link.details.as_deref())?),
        Value::Int(link.id.get()),
    ];
    sql.query(&update, &values).await.map(drop)
}
