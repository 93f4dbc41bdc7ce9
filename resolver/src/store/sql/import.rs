//! Links that come from elsewhere, and how far an import has come: both in one transaction, so that nothing is doubled and nothing lost
//! however it ends.

use super::{
    Sql, Told, Value,
    domains::note_change,
    named::{Placed, place, same_keyspaces},
    sweep::note_arrived,
    tags::add_tags,
};
use crate::{
    codes::{Code, LinkId, candidates},
    links::{Link, Record, Slug},
    store::{ImportBatch, ImportItem, Imported, NamedLink, StoreError},
};

/// Ids that one notification can carry.
const TOLD_AT_ONCE: usize = 400;
/// Digests of one URL that are tried; see `create/named.rs`.
const SALTS_MAX: u32 = 250;
/// Characters of a code from a digest.
const DIGEST_LEN: usize = 8;

/// How far an import has come: the last item that is stored or was refused.
pub(in crate::store) async fn import_position<S: Sql>(sql: &mut S, name: &str) -> Result<u64, StoreError> {
    let rows =
        sql.query("SELECT position FROM import WHERE name = $1", &[Value::Text(name.to_owned())]).await?;
    let position = rows.first().map_or(Ok(0), |row| row.int(0))?;
    Ok(u64::try_from(position).unwrap_or(0))
}

/// About how many links there are.
pub(in crate::store) async fn link_count<S: Sql>(sql: &mut S) -> Result<Option<u64>, StoreError> {
    let rows = sql.query(S::DIALECT.link_count(), &[]).await?;
    rows.first().map_or(Ok(None), |row| Ok(u64::try_from(row.int(0)?).ok()))
}

/// Stores a batch, unless it was stored before; what became of each item.
pub(in crate::store) async fn import<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
) -> Result<Option<Vec<Imported>>, StoreError> {
    let name = Value::Text(batch.name.clone());
    let begin = "INSERT INTO import (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING";
    sql.query(begin, std::slice::from_ref(&name)).await?;
    let lock = format!("SELECT position FROM import WHERE name = $1 {}", S::DIALECT.for_update());
    let rows = sql.query(&lock, std::slice::from_ref(&name)).await?;
    let position = rows.first().map_or(Ok(0), |row| row.int(0))?;
    let end = i64::try_from(batch.end).unwrap_or(i64::MAX);
    if position >= end {
        return Ok(None);
    }
    same_keyspaces(sql, batch.mint.keyspaces()).await?;
    let mut imported = Vec::with_capacity(batch.items.len());
    let (mut changed, mut picked, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for item in &batch.items {
        let done = import_item(sql, batch, item).await?;
        if let Imported::Stored(id) = done {
            add_tags(sql, id, &item.tags).await?;
            seen.push(id);
            let is_mintable = batch.mint.code_of(id).is_some();
            if is_mintable { &mut picked } else { &mut changed }.push(id);
        }
        imported.push(done);
    }
    note_arrived(sql, &mut seen).await?;
    // Who keeps a copy of which codes were picked, and hears no notifications, reads it again.
    note_change(sql).await?;
    sql.query("UPDATE import SET position = $1 WHERE name = $2", &[Value::Int(end), name]).await?;
    for ids in changed.chunks(TOLD_AT_ONCE) {
        sql.tell(Told::Changed(ids)).await?;
    }
    for id in picked {
        sql.tell(Told::Picked(id)).await?;
    }
    Ok(Some(imported))
}

async fn import_item<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
    item: &ImportItem,
) -> Result<Imported, StoreError> {
    if let Some(slug) = &item.slug {
        return match put(sql, batch, item, slug).await? {
            Placed::Stored(id, ..) => Ok(Imported::Stored(id)),
            Placed::Taken => already_there(sql, batch, item, slug).await,
        };
    }
    for salt in 0..SALTS_MAX {
        for candidate in candidates(item.draft.long_url.as_str(), salt, DIGEST_LEN) {
            let Ok(slug) = Slug::parse(&candidate) else { continue };
            if let Placed::Stored(id, ..) = put(sql, batch, item, &slug).await? {
                return Ok(Imported::Stored(id));
            }
        }
    }
    Ok(Imported::Taken)
}

async fn put<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
    item: &ImportItem,
    slug: &Slug,
) -> Result<Placed, StoreError> {
    let mut draft = item.draft.clone();
    draft.details.get_or_insert_default().slug = Some(slug.clone());
    let mintable = mintable(batch, item, slug);
    let link = NamedLink { slug: slug.clone(), mintable, keyspaces: batch.mint.keyspaces(), draft };
    place(sql, &link, item.created_at).await
}

fn mintable(batch: &ImportBatch, item: &ImportItem, slug: &Slug) -> Option<LinkId> {
    let code = Code::parse(slug.as_str()).ok().filter(|_| item.draft.domain().is_default())?;
    batch.mint.read(&code)
}

/// Whether the code leads where the item does already: an earlier import brought it, perhaps under another name.
async fn already_there<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
    item: &ImportItem,
    slug: &Slug,
) -> Result<Imported, StoreError> {
    let id = match mintable(batch, item, slug) {
        Some(id) => Some(id),
        None => super::find_slug(sql, item.draft.domain(), slug.as_str()).await?,
    };
    let Some(id) = id else { return Ok(Imported::Taken) };
    let select = format!("SELECT {} FROM link WHERE id = $1", S::DIALECT.link());
    let rows = sql.query(&select, &[Value::Int(id.get())]).await?;
    let link = rows.first().map(super::Row::link).transpose()?;
    let is_same = |link: &Link| {
        let leads_there = link.domain() == item.draft.domain() && link.long_url == item.draft.long_url;
        !link.is_deleted() && leads_there
    };
    Ok(if link.as_ref().is_some_and(is_same) { Imported::AlreadyThere } else { Imported::Taken })
}

/// Links after one of them, in the order of their ids, at most so many, without the deleted ones; and the id of the last row that was looked at.
pub(in crate::store) async fn export<S: Sql>(
    sql: &mut S,
    after: i64,
    most: i64,
) -> Result<(Vec<Record>, Option<LinkId>), StoreError> {
    let select = format!("SELECT {} FROM link WHERE id > $1 ORDER BY id LIMIT $2", S::DIALECT.link());
    let rows = sql.query(&select, &[Value::Int(after), Value::Int(most)]).await?;
    let links = rows.iter().map(super::Row::link).collect::<Result<Vec<_>, _>>()?;
    let last = links.last().map(|link| link.id);
    let kept: Vec<Link> = links.into_iter().filter(|link| !link.is_deleted()).collect();
    let ids: Vec<LinkId> = kept.iter().map(|link| link.id).collect();
    let mut tags = super::tags_of(sql, &ids).await?;
    let records =
        kept.into_iter().map(|link| Record { tags: tags.remove(&link.id).unwrap_or_default(), link });
    Ok((records.collect(), last))
}
