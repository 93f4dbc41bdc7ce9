//! Changing and deleting links. Every change is told in its own transaction, so that caches forget the link (rule 8 of `schema/README.md`).

use jiff::Timestamp;

use serde_json::{Value as Json, json};

use super::{
    Sql, Told, Value,
    audit::note,
    details_text,
    named::free_slug,
    tags::{set_tags, tags_of},
};
use crate::{
    api_key::ApiKeyId,
    audit::Action,
    codes::LinkId,
    links::{Edit, Link, Record},
    store::{Deleted, Edited, StoreError},
};

/// Changes a link.
pub(in crate::store) async fn edit<S: Sql>(
    sql: &mut S,
    id: LinkId,
    edit: &Edit,
    by: ApiKeyId,
) -> Result<Edited, StoreError> {
    let Some((link, now)) = lock(sql, id).await?.filter(lives) else { return Ok(Edited::Absent) };
    if !is_meant(&link, edit.versions.as_deref()) {
        return Ok(Edited::Superseded);
    }
    let link = edit.apply(link, now, by);
    write(sql, &link).await?;
    if let Some(tags) = &edit.tags {
        set_tags(sql, id, tags).await?;
    }
    let tags = tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default();
    note(sql, by, Action::EditLink, &id.get().to_string(), Some(state(&link))).await?;
    sql.tell(Told::Changed(&[id])).await?;
    Ok(Edited::Done(Box::new(Record { link, tags })))
}

fn lives((link, _): &(Link, Timestamp)) -> bool {
    !link.is_deleted()
}

fn is_meant(link: &Link, versions: Option<&[u64]>) -> bool {
    let version = link.details.as_ref().map_or(0, |details| details.version);
    versions.is_none_or(|versions| versions.contains(&version))
}

/// Deletes a link. Its row stays with all that was said of it, and its slug is free again.
pub(in crate::store) async fn delete<S: Sql>(
    sql: &mut S,
    id: LinkId,
    versions: Option<&[u64]>,
    by: ApiKeyId,
) -> Result<Deleted, StoreError> {
    let Some((link, now)) = lock(sql, id).await?.filter(lives) else { return Ok(Deleted::Absent) };
    if !is_meant(&link, versions) {
        return Ok(Deleted::Superseded);
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

/// The link and the database's time. Nobody else changes it before the transaction ends.
pub(super) async fn lock<S: Sql>(sql: &mut S, id: LinkId) -> Result<Option<(Link, Timestamp)>, StoreError> {
    let (link, now, lock) = (S::DIALECT.link(), S::DIALECT.now(), S::DIALECT.for_update());
    let rows = sql
        .query(&format!("SELECT {link}, {now} FROM link WHERE id = $1 {lock}"), &[Value::Int(id.get())])
        .await?;
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((row.link()?, row.time(8)?)))
}

/// What the log keeps of a link: what it came to, without what nobody is to read.
pub(super) fn state(link: &Link) -> Json {
    let mut details = link.details.as_deref().cloned().unwrap_or_default();
    let has_password = details.password.take().is_some();
    json!({
        "longUrl": link.long_url.as_str(),
        "title": link.title,
        "crawlable": link.crawlable,
        "forwardQuery": link.forward_query,
        "hasPassword": has_password,
        "details": details,
    })
}

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
