//! Changing and deleting links. Every change is told in its own transaction, so that caches forget the link (rule 8 of `schema/README.md`).

use jiff::Timestamp;

use super::{
    Sql, Told, Value, details_text,
    tags::{set_tags, tags_of},
};
use crate::{
    api_key::ApiKeyId,
    codes::LinkId,
    links::{Edit, Link, Record},
    store::{Edited, StoreError},
};

/// Changes a link.
pub(in crate::store) async fn edit<S: Sql>(
    sql: &mut S,
    id: LinkId,
    edit: &Edit,
    by: ApiKeyId,
) -> Result<Edited, StoreError> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(Edited::Absent) };
    let found = link.details.as_ref().map_or(0, |details| details.version);
    if edit.version.is_some_and(|expected| expected != found) {
        return Ok(Edited::Superseded { found });
    }
    let link = edit.apply(link, now, by);
    write(sql, &link).await?;
    if let Some(tags) = &edit.tags {
        set_tags(sql, id, tags).await?;
    }
    let tags = tags_of(sql, &[id]).await?.remove(&id).unwrap_or_default();
    sql.tell(Told::Changed(id)).await?;
    Ok(Edited::Done(Box::new(Record { link, tags })))
}

/// Deletes a link; whether there was one. Its row stays, and its slug is free again.
pub(in crate::store) async fn delete<S: Sql>(
    sql: &mut S,
    id: LinkId,
    by: ApiKeyId,
) -> Result<bool, StoreError> {
    let Some((link, now)) = lock(sql, id).await? else { return Ok(false) };
    let mut link = Edit::default().apply(link, now, by);
    if let Some(details) = &mut link.details {
        details.deleted_at = Some(now);
    }
    write(sql, &link).await?;
    set_tags(sql, id, &[]).await?;
    sql.query("DELETE FROM slug WHERE link_id = $1", &[Value::Int(id.get())]).await?;
    sql.tell(Told::Changed(id)).await?;
    Ok(true)
}

/// The link, unless it was deleted, and the database's time. Nobody else changes it before the transaction ends.
async fn lock<S: Sql>(sql: &mut S, id: LinkId) -> Result<Option<(Link, Timestamp)>, StoreError> {
    let (link, now, lock) = (S::DIALECT.link(), S::DIALECT.now(), S::DIALECT.for_update());
    let rows = sql
        .query(&format!("SELECT {link}, {now} FROM link WHERE id = $1 {lock}"), &[Value::Int(id.get())])
        .await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let link = row.link()?;
    Ok(if link.is_deleted() { None } else { Some((link, row.time(8)?)) })
}

async fn write<S: Sql>(sql: &mut S, link: &Link) -> Result<(), StoreError> {
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
