//! Imports: links from other systems. A batch and the import's position are stored in one
//! transaction, so that links are neither duplicated nor lost, however an import ends.

use std::collections::HashMap;

use codes::{Code, LinkId};
use links::{Draft, Link, Record, Slug};

use super::{
    Sql, Told, Value,
    domains::note_change,
    long_urls::note_long_urls,
    named::{Placed, insert_deleted, place, same_keyspaces, take_slug},
    places,
    restore::find_deleted,
    sweep::note_arrived,
    tags::add_tags,
};
use crate::{Exported, ImportBatch, ImportItem, Imported, NamedLink, StoreError};

/// Maximum number of ids in one notification.
const TOLD_AT_ONCE: usize = 400;
/// Maximum number of digests of one URL that are tried; see `creator/named.rs`.
const SALTS_MAX: u32 = 250;
/// Length of a code from a digest, in characters.
const DIGEST_LEN: usize = 8;
/// Size in bytes at which a page of an export ends.
const EXPORTED_BYTES: u64 = 8 << 20;

/// Returns the position of an import: the last item that was stored or refused.
pub(crate) async fn import_position<S: Sql>(sql: &mut S, name: &str) -> Result<u64, StoreError> {
    let rows =
        sql.query("SELECT position FROM import WHERE name = $1", &[Value::Text(name.to_owned())]).await?;
    let position = rows.first().map_or(Ok(0), |row| row.int(0))?;
    Ok(u64::try_from(position).unwrap_or(0))
}

/// Returns the estimated number of links.
pub(crate) async fn link_count<S: Sql>(sql: &mut S) -> Result<Option<u64>, StoreError> {
    let rows = sql.query(S::DIALECT.link_count(), &[]).await?;
    rows.first().map_or(Ok(None), |row| Ok(u64::try_from(row.int(0)?).ok()))
}

/// Stores a batch unless it was stored before, and returns the outcome of each item.
///
/// A batch may have been stored by a call whose answer was lost. Each of its items is then reported
/// as already there, or as refused.
pub(crate) async fn import<S: Sql>(sql: &mut S, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
    let name = Value::Text(batch.name.clone());
    let begin = "INSERT INTO import (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING";
    sql.query(begin, std::slice::from_ref(&name)).await?;
    let lock = format!("SELECT position FROM import WHERE name = $1 {}", S::DIALECT.for_update());
    let rows = sql.query(&lock, std::slice::from_ref(&name)).await?;
    let position = rows.first().map_or(Ok(0), |row| row.int(0))?;
    let end = i64::try_from(batch.end).unwrap_or(i64::MAX);
    if position >= end {
        return look_again(sql, batch).await;
    }
    same_keyspaces(sql, batch.mint.keyspaces()).await?;
    let mut imported = Vec::with_capacity(batch.items.len());
    let (mut changed, mut picked, mut seen, mut noted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for item in &batch.items {
        let done = import_item(sql, batch, item).await?;
        if let Imported::Stored(id) = done {
            add_tags(sql, id, &item.tags).await?;
            spend(sql, id, item.uses).await?;
            seen.push(id);
            noted.push((id, &item.draft.long_url));
            let is_mintable = batch.mint.code_of(id).is_some();
            if is_mintable { &mut picked } else { &mut changed }.push(id);
        }
        imported.push(done);
    }
    note_arrived(sql, &mut seen).await?;
    // Imported links may have old creation times, which the background indexer has passed already.
    note_long_urls(sql, noted.into_iter()).await?;
    // A resolver with a copy of the mintable custom slugs that receives no notifications reads them
    // again.
    note_change(sql).await?;
    sql.query("UPDATE import SET position = $1 WHERE name = $2", &[Value::Int(end), name]).await?;
    for ids in changed.chunks(TOLD_AT_ONCE) {
        sql.tell(Told::Changed(ids)).await?;
    }
    for id in picked {
        sql.tell(Told::Picked(id)).await?;
    }
    Ok(imported)
}

/// Returns the outcomes for a batch that was stored before.
async fn look_again<S: Sql>(sql: &mut S, batch: &ImportBatch) -> Result<Vec<Imported>, StoreError> {
    let mut found = Vec::with_capacity(batch.items.len());
    for item in &batch.items {
        // An item without a slug cannot conflict, and a deleted link leads nowhere.
        let slug = item.slug.as_ref().filter(|_| !is_deleted(&item.draft));
        found.push(match slug {
            Some(slug) => already_there(sql, batch, item, slug).await?,
            None => Imported::AlreadyThere,
        });
    }
    Ok(found)
}

/// Stores one item under its slug, or under the first free code derived from its long URL.
async fn import_item<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
    item: &ImportItem,
) -> Result<Imported, StoreError> {
    if let Some(slug) = &item.slug {
        if is_deleted(&item.draft) {
            return bury(sql, batch, item, slug).await;
        }
        return match put(sql, batch, item, slug).await? {
            Placed::Stored(id, ..) => Ok(Imported::Stored(id)),
            Placed::Taken => already_there(sql, batch, item, slug).await,
        };
    }
    for salt in 0..SALTS_MAX {
        for candidate in batch.mint.candidates(item.draft.long_url.as_str(), salt, DIGEST_LEN) {
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
    let mintable = mintable(batch, item, slug);
    let draft = named(item, slug, mintable);
    let link = NamedLink { slug: slug.clone(), mintable, keyspaces: batch.mint.keyspaces(), draft };
    place(sql, &link, item.created_at).await
}

/// Builds the link to store under a slug. A mintable code that its former system minted belongs to
/// its number, as if it had been minted here.
fn named(item: &ImportItem, slug: &Slug, mintable: Option<LinkId>) -> Draft {
    let mut draft = item.draft.clone();
    if item.minted && mintable.is_some() {
        return draft;
    }
    let details = draft.details.get_or_insert_default();
    details.slug = Some(slug.clone());
    if item.minted {
        details.origin.get_or_insert_default().minted = true;
    }
    draft
}

fn is_deleted(draft: &Draft) -> bool {
    draft.details.as_ref().is_some_and(|details| details.deleted_at.is_some())
}

/// Stores a deleted link. Its slug stays free, unless the link is blocked (`links/src/block.rs`). A
/// mintable code stays with the link.
async fn bury<S: Sql>(
    sql: &mut S,
    batch: &ImportBatch,
    item: &ImportItem,
    slug: &Slug,
) -> Result<Imported, StoreError> {
    let mintable = mintable(batch, item, slug);
    let before = find_deleted(sql, item.draft.domain(), slug.as_str(), mintable).await?;
    let deleted_at = |link: &Link| link.details.as_ref().and_then(|details| details.deleted_at);
    let wanted = item.draft.details.as_ref().and_then(|details| details.deleted_at);
    if before.is_some_and(|link| link.long_url == item.draft.long_url && deleted_at(&link) == wanted) {
        return Ok(Imported::AlreadyThere);
    }
    let stored = insert_deleted(sql, mintable, &named(item, slug, mintable), item.created_at).await?;
    let Some(id) = stored else { return Ok(Imported::Taken) };
    let is_blocked = item.draft.details.as_ref().is_some_and(|details| details.blocked.is_some());
    if is_blocked && mintable.is_none() {
        // Another link may have taken the slug, there or here, before this one was blocked.
        take_slug(sql, item.draft.domain(), slug.as_str(), id).await?;
    }
    Ok(Imported::Stored(id))
}

/// Records how many visits of a link's limit are used up.
async fn spend<S: Sql>(sql: &mut S, id: LinkId, uses: u64) -> Result<(), StoreError> {
    if uses == 0 {
        return Ok(());
    }
    let spend = "INSERT INTO link_use (link_id, used) VALUES ($1, $2)
                 ON CONFLICT (link_id) DO UPDATE SET used = excluded.used";
    let uses = i64::try_from(uses).unwrap_or(i64::MAX);
    sql.query(spend, &[Value::Int(id.get()), Value::Int(uses)]).await.map(drop)
}

/// Returns the id whose minted code the slug is. Only slugs of the default domain have one.
fn mintable(batch: &ImportBatch, item: &ImportItem, slug: &Slug) -> Option<LinkId> {
    let code = Code::parse(slug.as_str()).ok().filter(|_| item.draft.domain().is_default())?;
    batch.mint.read(&code)
}

/// Returns whether the code leads to the item's target already. An earlier import may have stored
/// the link, perhaps under another name.
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

/// Returns links with an id above `after`, in the order of their ids. The page has at most `most`
/// links, and ends with the first one that exceeds [`EXPORTED_BYTES`].
pub(crate) async fn export<S: Sql>(sql: &mut S, after: i64, most: i64) -> Result<Vec<Exported>, StoreError> {
    let (columns, weight) = (S::DIALECT.link(), super::list::weight(S::DIALECT));
    let select = format!(
        "SELECT {columns} FROM link WHERE link.id IN
           (SELECT page.id FROM
             (SELECT piece.id, sum(piece.bytes) OVER (ORDER BY piece.id) - piece.bytes AS before FROM
               (SELECT link.id, {weight} AS bytes FROM link WHERE link.id > $1 ORDER BY link.id LIMIT $2) AS piece
             ) AS page WHERE page.before < {EXPORTED_BYTES})
         ORDER BY link.id"
    );
    let rows = sql.query(&select, &[Value::Int(after), Value::Int(most)]).await?;
    let links = rows.iter().map(super::Row::link).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<LinkId> = links.iter().map(|link| link.id).collect();
    let limited: Vec<LinkId> = links.iter().filter(|link| link.is_limited()).map(|link| link.id).collect();
    let mut tags = super::tags_of(sql, &ids).await?;
    let uses = uses_of(sql, &limited).await?;
    let exported = links.into_iter().map(|link| Exported {
        uses: uses.get(&link.id).copied().unwrap_or_default(),
        record: Record { tags: tags.remove(&link.id).unwrap_or_default(), link },
    });
    Ok(exported.collect())
}

/// Returns how many visits of these links' limits are used up.
async fn uses_of<S: Sql>(sql: &mut S, ids: &[LinkId]) -> Result<HashMap<LinkId, u64>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let select = format!("SELECT link_id, used FROM link_use WHERE link_id IN ({})", places(1, ids.len()));
    let values: Vec<Value> = ids.iter().map(|id| Value::Int(id.get())).collect();
    let uses = |row: &super::Row| {
        Ok((LinkId::from_stored(row.int(0)?), u64::try_from(row.int(1)?).unwrap_or_default()))
    };
    sql.query(&select, &values).await?.iter().map(uses).collect()
}
