//! Edits and deletions of links. Each is notified in its own transaction, so that caches drop the
//! link (rule 8 of `schema/README.md`).

use codes::LinkId;
use jiff::Timestamp;
use links::{
    Domain, Edit, Link, Precondition, Record, Refusal, Relocation, Tag,
    api_key::ApiKeyId,
    audit::{Action, change, domain_name, note_move, note_rename, state},
};

use super::{
    Notice, Sql, Value,
    audit::note_link,
    create::{continue_versions, leave_code, note_left_slug, same_keyspaces},
    details_text,
    domains::find_domain,
    keys::limits,
    link_index::renew_texts,
    long_urls::note_long_urls,
    schedule::end_edits,
    slugs::{find_slug, free_slug, may_have_entry, take_slug},
    tags::{set_tags, tags_of_link},
};
use crate::{Result, StoreError};

pub(crate) async fn edit(
    sql: &mut dyn Sql,
    id: LinkId,
    edit: &Edit,
    by: ApiKeyId,
) -> Result<Result<Record, Refusal>> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(Err(Refusal::Absent)) };
    if let Err(refusal) = edit.check(&link) {
        return Ok(Err(refusal));
    }
    if link.details.as_ref().is_some_and(|details| edit.replaces_unknown(details)) {
        return Err(StoreError::LaterRelease);
    }
    if let Some(record) = unchanged(sql, &link, edit, now, by).await? {
        if sql.is_distributed() {
            // Perhaps a node has stored the edit, and nobody was told, and this is sent again.
            sql.notify(Notice::Changed(&[id])).await?;
        }
        return Ok(Ok(record));
    }
    let (before, mut link) = (link.clone(), edit.apply(link, now, by));
    if let Some(relocation) = &edit.relocation {
        if !relocate(sql, (&before, now), &link, relocation).await? {
            return Ok(Err(Refusal::Taken));
        }
        continue_versions(sql, &mut link, &relocation.name).await?;
        if before.domain() != link.domain() {
            end_unseen_edits(sql, &link).await?;
        }
    }
    write(sql, &link).await?;
    if edit.block.is_some() && link.is_deleted() {
        hold_slug(sql, &link).await?;
    }
    let tags_before = match &edit.tags {
        Some(tags) => {
            let before = tags_of_link(sql, id).await?;
            set_tags(sql, id, tags).await?;
            Some(before)
        }
        None => None,
    };
    if edit.long_url.is_some() {
        note_long_urls(sql, std::iter::once((id, &link.long_url))).await?;
    }
    if edit.long_url.is_some() || edit.title.is_some() || edit.relocation.is_some() {
        renew_texts(sql, &[id]).await?;
    }
    let tags = tags_of_link(sql, id).await?;
    let mut change = change(&before, &link, tags_before.as_deref().map(|before| (before, &*tags)));
    if let Some(relocation) = &edit.relocation {
        note_relocation(sql, &mut change, &before, relocation).await?;
    }
    let former = tags_before.as_deref().unwrap_or_default();
    note_link(sql, by, Action::of_edit(edit), (&link, &tags, former), change).await?;
    sql.notify(Notice::Changed(&[id])).await?;
    Ok(Ok(Record { link, tags }))
}

/// Returns the link if the edit changes nothing: such an edit makes no version and no entry in the
/// audit log.
async fn unchanged(
    sql: &mut dyn Sql,
    link: &Link,
    edit: &Edit,
    now: Timestamp,
    by: ApiKeyId,
) -> Result<Option<Record>> {
    if !edit.leaves(link, now, by) {
        return Ok(None);
    }
    let tags = tags_of_link(sql, link.id).await?;
    let is_same =
        |wanted: &Vec<Tag>| wanted.len() == tags.len() && wanted.iter().all(|tag| tags.contains(tag));
    Ok(edit.tags.as_ref().is_none_or(is_same).then(|| Record { link: link.clone(), tags }))
}

/// Adds another domain and another name of a link to its changes.
async fn note_relocation(
    sql: &mut dyn Sql,
    change: &mut serde_json::Value,
    before: &Link,
    Relocation { domain, name, former, .. }: &Relocation,
) -> Result<()> {
    if before.domain() != *domain {
        let [from, to] = [find_domain(sql, before.domain()).await?, find_domain(sql, *domain).await?];
        let name = |domain: &Option<Domain>| domain.as_ref().map_or("", domain_name).to_owned();
        note_move(change, &name(&from), &name(&to));
    }
    if name != former {
        note_rename(change, former.as_str(), name.as_str());
    }
    Ok(())
}

/// Claims the name that a link gets, or that it keeps on the domain that it moves to, and releases
/// its former custom slug where it was; a code stays with its number. Returns false if another link
/// has the name there or the domain was removed. The link is not written then.
async fn relocate(
    sql: &mut dyn Sql,
    (before, now): (&Link, Timestamp),
    after: &Link,
    relocation: &Relocation,
) -> Result<bool> {
    if relocation.is_done(before) {
        return Ok(true);
    }
    let Relocation { domain, name, .. } = relocation;
    if !after.is_named_by_id()
        && !take_name(sql, after, now, relocation).await?
        && find_slug(sql, *domain, name.as_str()).await? != Some(after.id)
    {
        return Ok(false);
    }
    if let Some(slug) = before.claimed_slug() {
        free_slug(sql, before.domain(), slug.as_str(), before.id).await?;
        note_left_slug(sql, before, slug, now).await?;
    }
    Ok(true)
}

/// Claims the name of a link that moves or is renamed. Returns false if it is claimed already, by
/// this link perhaps, or is the code of a number that another link has.
async fn take_name(
    sql: &mut dyn Sql,
    link: &Link,
    now: Timestamp,
    Relocation { domain, name, number, keyspaces, .. }: &Relocation,
) -> Result<bool> {
    if name.code_on(*domain).is_some() {
        same_keyspaces(sql, *keyspaces).await?;
        if let Some(number) = number
            && !leave_code(sql, (*number, name), link, now).await?
        {
            return Ok(false);
        }
    }
    take_slug(sql, *domain, name.as_str(), link.id).await
}

/// Claims the name of a link that is about to move, ahead of the move itself. A node may store the
/// move although the coordinator fails: without its name the link would be found nowhere. Returns
/// whether it was free.
pub(crate) async fn prepare_move(sql: &mut dyn Sql, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<bool> {
    let Some(relocation) = &edit.relocation else { return Ok(false) };
    let Some((before, now)) = lock(sql, id).await? else { return Ok(false) };
    let after = edit.apply(before.clone(), now, by);
    let moves = edit.check(&before).is_ok() && !relocation.is_done(&before);
    Ok(moves && !after.is_named_by_id() && take_name(sql, &after, now, relocation).await?)
}

/// Releases the name that was claimed for a move, unless the link has moved.
pub(crate) async fn undo_preparation(sql: &mut dyn Sql, id: LinkId, edit: &Edit) -> Result<()> {
    let Some(relocation) = &edit.relocation else { return Ok(()) };
    match lock(sql, id).await? {
        Some((link, _)) if !relocation.is_done(&link) => {
            free_slug(sql, relocation.domain, relocation.name.as_str(), id).await
        }
        _ => Ok(()),
    }
}

/// Claims the slug of a deleted link that was blocked, and releases it if the block was lifted. If
/// another link has claimed the slug meanwhile, or it has become the code of a number since the
/// deletion, that link keeps it.
async fn hold_slug(sql: &mut dyn Sql, link: &Link) -> Result<()> {
    let Some(slug) = link.claimed_slug() else { return Ok(()) };
    if !link.is_blocked() {
        return free_slug(sql, link.domain(), slug.as_str(), link.id).await;
    }
    if may_have_entry(sql, link.domain(), slug).await? {
        take_slug(sql, link.domain(), slug.as_str(), link.id).await?;
    }
    Ok(())
}

/// A custom slug becomes free again; a minted code stays with its number, on other domains by its
/// row in `slug`.
pub(crate) async fn delete(
    sql: &mut dyn Sql,
    id: LinkId,
    precondition: &Precondition,
    by: ApiKeyId,
) -> Result<Result<(), Refusal>> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(Err(Refusal::Absent)) };
    if let Err(refusal) = link.check_deletion(precondition) {
        if sql.is_distributed() && link.is_deleted() && !link.is_blocked() && precondition.is_of(&link) {
            // As with an edit that changes nothing.
            tell_deleted(sql, &link).await?;
        }
        return Ok(Err(refusal));
    }
    let tags = tags_of_link(sql, id).await?;
    let link = link.deleted(tags.clone(), now, by);
    write(sql, &link).await?;
    set_tags(sql, id, &[]).await?;
    end_edits(sql, &[id]).await?;
    note_link(sql, by, Action::DeleteLink, (&link, &tags, &[]), state(&link)).await?;
    tell_deleted(sql, &link).await.map(Ok)
}

/// Ends the scheduled edits by keys that do not see a link on the domain to which it moves. They
/// could not be made. The keys of that domain would learn of the former one by them, and could
/// schedule the fewer of their own.
async fn end_unseen_edits(sql: &mut dyn Sql, link: &Link) -> Result<()> {
    let select = format!(
        "SELECT scheduled_change.id, {} FROM scheduled_change
         JOIN api_key ON api_key.id = scheduled_change.created_by WHERE scheduled_change.link_id = $1",
        sql.dialect().json_text("api_key.limits")
    );
    for row in sql.query(&select, &[Value::Int(link.id.get())]).await? {
        if limits(row.opt_text(1)?).domain.is_some_and(|own| own != link.domain()) {
            let end = "DELETE FROM scheduled_change WHERE id = $1";
            sql.execute(end, &[Value::Int(row.int(0)?)]).await?;
        }
    }
    Ok(())
}

async fn tell_deleted(sql: &mut dyn Sql, link: &Link) -> Result<()> {
    if let Some(slug) = link.slug() {
        free_slug(sql, link.domain(), slug.as_str(), link.id).await?;
    }
    sql.notify(Notice::Changed(&[link.id])).await
}

/// Locks a link until the transaction ends, and returns it with the database's time.
///
/// # Errors
/// Returns [`StoreError::LaterRelease`] if this release cannot tell which link it is, or its state.
pub(super) async fn lock(sql: &mut dyn Sql, id: LinkId) -> Result<Option<(Link, Timestamp)>> {
    let (link, now, lock) = (sql.dialect().link(), sql.dialect().now(), sql.dialect().for_update());
    let select = format!("SELECT {link}, {now} FROM link WHERE id = $1 {lock}");
    let Some(row) = sql.first(&select, &[Value::Int(id.get())]).await? else { return Ok(None) };
    let link = row.link()?;
    if link.details.as_ref().is_some_and(|details| details.is_opaque()) {
        return Err(StoreError::LaterRelease);
    }
    Ok(Some((link, row.time(8)?)))
}

/// Writes all fields of a link but its id, creator and creation time.
pub(super) async fn write(sql: &mut dyn Sql, link: &Link) -> Result<()> {
    let details = sql.dialect().json("$5");
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
