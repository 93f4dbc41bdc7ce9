//! Restoration of deleted links: their rows stay (I7), with all their fields.

use codes::LinkId;
use links::{
    DomainId, Link, Precondition, Record, Refusal,
    api_key::ApiKeyId,
    audit::{Action, state},
};

use super::{
    Notice, Row, Sql, Value,
    audit::note_link,
    create::{continue_versions, same_keyspaces},
    details::{DELETED_AT, DELETED_AT_MS, DOMAIN_OR_DEFAULT, GIVEN_UP, SLUG},
    edits::{lock, write},
    schedule::end_edits,
    slugs::{find_slug, free_slug, keep_domain, may_have_entry, take_slug},
    sweep::note_arrived,
    tags::set_tags,
};
use crate::Result;

pub(crate) async fn find_deleted(
    sql: &mut dyn Sql,
    domain: DomainId,
    name: &str,
    code: Option<LinkId>,
    of: Option<ApiKeyId>,
) -> Result<Option<Link>> {
    let link = sql.dialect().link();
    // A number has one link at most. Deleted links with a slug are told from minted ones by that
    // slug.
    let find = format!(
        "SELECT {link} FROM link
         WHERE {DELETED_AT} IS NOT NULL AND {GIVEN_UP} IS NULL AND {DOMAIN_OR_DEFAULT} = $1
           AND ({SLUG} = $2 OR ({SLUG} IS NULL AND id = $3))
           AND (CAST($4 AS bigint) IS NULL OR link.created_by = $4)
         ORDER BY {DELETED_AT_MS} DESC LIMIT 1"
    );
    // No link has the number -1.
    let code = code.map_or(-1, LinkId::get);
    let values = [
        Value::Int(domain.get()),
        Value::Text(name.to_owned()),
        Value::Int(code),
        Value::OptInt(of.map(|key| key.0)),
    ];
    sql.first(&find, &values).await?.as_ref().map(Row::link).transpose()
}

pub(crate) async fn restore(
    sql: &mut dyn Sql,
    id: LinkId,
    precondition: &Precondition,
    keyspaces: usize,
    by: ApiKeyId,
) -> Result<Result<Record, Refusal>> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(Err(Refusal::Absent)) };
    if let Err(refusal) = link.check_restoration(precondition) {
        return Ok(Err(refusal));
    }
    if !keep_domain(sql, link.domain()).await? {
        return Ok(Err(Refusal::Absent));
    }
    let (mut link, mut tags) = link.restored(now, by);
    if !claim_name(sql, &link, keyspaces).await? {
        return Ok(Err(Refusal::Taken));
    }
    if let Some(slug) = link.slug().cloned() {
        continue_versions(sql, &mut link, &slug).await?;
    }
    write(sql, &link).await?;
    set_tags(sql, id, &tags).await?;
    // A release before may have deleted the link, and leaves them.
    end_edits(sql, &[id]).await?;
    // Otherwise the next sweep of unvisited links would delete it again.
    note_arrived(sql, &mut [(id, 0)]).await?;
    tags.sort_unstable();
    note_link(sql, by, Action::RestoreLink, (&link, &tags, &[]), state(&link)).await?;
    sql.notify(Notice::Changed(&[id])).await?;
    Ok(Ok(Record { link, tags }))
}

/// Claims the name of a link that is about to be restored, as
/// [`prepare_move`](super::edits::prepare_move) does.
pub(crate) async fn prepare_restoration(
    sql: &mut dyn Sql,
    id: LinkId,
    precondition: &Precondition,
    keyspaces: usize,
    by: ApiKeyId,
) -> Result<()> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(()) };
    if link.check_restoration(precondition).is_ok() && keep_domain(sql, link.domain()).await? {
        claim_name(sql, &link.restored(now, by).0, keyspaces).await?;
    }
    Ok(())
}

/// Releases the name that was claimed for a restoration, unless the link is there.
pub(crate) async fn undo_preparation(sql: &mut dyn Sql, id: LinkId) -> Result<()> {
    match lock(sql, id).await? {
        Some((link, _)) if link.is_deleted() && !link.is_blocked() => match link.claimed_slug() {
            Some(slug) => free_slug(sql, link.domain(), slug.as_str(), id).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Claims the name of a link that is restored. Returns false if it is another link's by now.
async fn claim_name(sql: &mut dyn Sql, link: &Link, keyspaces: usize) -> Result<bool> {
    let (domain, Some(slug)) = (link.domain(), link.slug()) else { return Ok(true) };
    if link.claimed_slug().is_none() {
        // Its row is locked, so no other link is picked under its code from now on.
        return Ok(!link.is_named_by_id() || find_slug(sql, domain, slug.as_str()).await?.is_none());
    }
    if slug.code_on(domain).is_some() {
        same_keyspaces(sql, keyspaces).await?;
    }
    // A blocked link holds its slug already, and one whose restoration was prepared.
    if find_slug(sql, domain, slug.as_str()).await? == Some(link.id) {
        return Ok(true);
    }
    Ok(may_have_entry(sql, domain, slug).await? && take_slug(sql, domain, slug.as_str(), link.id).await?)
}
