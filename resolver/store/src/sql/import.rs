//! Imports: links from other systems. A batch and the import's position are stored in one
//! transaction, so that links are neither duplicated nor lost, however an import ends.
//!
//! 1. On Postgres without nodes, items that depend on no item before them are tried first, all in
//!    the same few statements ([`together`](super::together)). Each other one, and each of these
//!    that is not stored so, is stored or refused by itself, in the order of the file. So each item
//!    has the outcome that it has in a batch of its own.
//! 2. What belongs to the links is added after all of them, as no outcome depends on it: tags, used
//!    visits, external ids, entries of the indexes. Then the position follows.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use codes::LinkId;
use links::{DomainId, ImportCode, ImportItem, LongUrl, PickedCode, Record, Slug, Tag};

use super::{
    Dialect, Row, Sql, Value,
    create::{insert_deleted, place, same_keyspaces},
    idempotency::keep_imported,
    insert_numbers,
    link_index::renew_texts,
    list::find_links,
    long_urls::note_long_urls,
    note_change,
    restore::find_deleted,
    slugs::{find_slug, may_have_entry, take_slug},
    sweep::note_arrived,
    tags::{add_tags_to_all, tags_of},
    together::{ImportedLink, insert_imported, notify_all},
    visits::visit_totals,
};
use crate::{CustomSlugLink, Exported, ImportBatch, ImportPosition, Imported, Result, StoreError};

/// Maximum number of ids in one notification.
pub(super) const TOLD_AT_ONCE: usize = 400;
/// Size in bytes at which a page of an export ends.
const EXPORTED_BYTES: u64 = 8 << 20;

pub(crate) async fn import_position(sql: &mut dyn Sql, name: &str) -> Result<ImportPosition> {
    let query = "SELECT position, refused FROM import WHERE name = $1";
    let Some(row) = sql.first(query, &[Value::Text(name.to_owned())]).await? else {
        return Ok(ImportPosition::default());
    };
    Ok(ImportPosition { place: row.count(0)?, refused: row.count(1)? })
}

pub(crate) async fn link_count(sql: &mut dyn Sql) -> Result<Option<u64>> {
    let count = sql.number(sql.dialect().link_count(), &[]).await?;
    Ok(count.and_then(|count| u64::try_from(count).ok()))
}

/// The batch may have been stored by a call whose answer was lost. Each of its items is then
/// reported as already there, or as refused.
pub(crate) async fn import(sql: &mut dyn Sql, batch: &ImportBatch) -> Result<Vec<Imported>> {
    let name = Value::Text(batch.name.clone());
    let begin = "INSERT INTO import (name, position) VALUES ($1, 0) ON CONFLICT (name) DO NOTHING";
    sql.query(begin, std::slice::from_ref(&name)).await?;
    let lock = format!("SELECT position FROM import WHERE name = $1 {}", sql.dialect().for_update());
    let position = sql.number(&lock, std::slice::from_ref(&name)).await?.unwrap_or(0);
    let end = i64::try_from(batch.end).unwrap_or(i64::MAX);
    if position >= end {
        return look_again(sql, batch).await;
    }
    same_keyspaces(sql, batch.keyspaces).await?;
    let mut imported = Vec::with_capacity(batch.items.len());
    let (mut changed, mut picked, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    let plain = store_plain(sql, &batch.items).await?;
    for (index, (item, plain)) in batch.items.iter().zip(plain).enumerate() {
        let tried = match plain {
            Some((id, code)) => Some((Imported::Stored(id), Some(code))),
            None => store(sql, batch.keyspaces, item).await?,
        };
        // Nothing of the batch is stored. It comes again with more candidates.
        let (done, code) = tried.ok_or(StoreError::NoFreeCode { item: index })?;
        if let Imported::Stored(id) = done {
            stored.push((id, item));
            let is_number = code.is_some_and(|code| code.mintable == Some(id));
            if is_number { &mut picked } else { &mut changed }.push(id);
        }
        imported.push(done);
    }
    add_all_else(sql, &stored).await?;
    // A server of the release before on this SQLite file, which is not notified, reads the mintable
    // custom slugs again.
    note_change(sql).await?;
    // Items that are not in the batch were refused before it was sent.
    let kept = imported.iter().filter(|one| !matches!(one, Imported::Taken)).count();
    let refused = (end - position).saturating_sub(i64::try_from(kept).unwrap_or(i64::MAX)).max(0);
    let advance = "UPDATE import SET position = $1, refused = refused + $2 WHERE name = $3";
    sql.query(advance, &[Value::Int(end), Value::Int(refused), name]).await?;
    notify_all(sql, &picked, &changed).await?;
    Ok(imported)
}

/// Stores the plain items that have nothing in their way, and returns the ids and codes of these.
/// The others are left to [`store`].
async fn store_plain<'a>(
    sql: &mut dyn Sql,
    items: &'a [ImportItem],
) -> Result<Vec<Option<(LinkId, &'a PickedCode)>>> {
    let mut stored = vec![None; items.len()];
    if sql.is_distributed() || sql.dialect() == Dialect::Sqlite {
        return Ok(stored);
    }
    let plain = plain_items(items);
    let links: Vec<ImportedLink<'_>> =
        plain.iter().map(|&(place, code)| imported_link(&items[place], code)).collect();
    let ids = insert_imported(sql, &links).await?;
    for ((place, code), id) in plain.into_iter().zip(ids) {
        stored[place] = id.map(|id| (id, code));
    }
    Ok(stored)
}

/// Returns the places of items that are not deleted and whose first code is no code of an item
/// before them, with that code. If it is free, an item gets it whatever becomes of the others.
fn plain_items(items: &[ImportItem]) -> Vec<(usize, &PickedCode)> {
    let (mut names, mut numbers) = (HashSet::<(DomainId, &Slug)>::new(), HashSet::<LinkId>::new());
    let (mut lists, mut plain) = (HashSet::new(), Vec::with_capacity(items.len()));
    for (place, item) in items.iter().enumerate() {
        let domain = item.draft.domain();
        let codes = match &item.code {
            ImportCode::Kept(code) => std::slice::from_ref(code),
            ImportCode::FirstFree { candidates, .. } => {
                // Items with one long URL share a list, which may have a thousand codes.
                if !lists.insert((domain, Arc::as_ptr(candidates))) {
                    continue;
                }
                &**candidates
            }
        };
        let first = codes.first().filter(|_| item.draft.details().deleted_at.is_none());
        let first = first.filter(|code| !names.contains(&(domain, &code.slug)));
        let first = first.filter(|code| code.mintable.is_none_or(|number| !numbers.contains(&number)));
        plain.extend(first.map(|code| (place, code)));
        names.extend(codes.iter().map(|code| (domain, &code.slug)));
        numbers.extend(codes.iter().filter_map(|code| code.mintable));
    }
    plain
}

/// Returns the link of an item as [`place`] would store it.
fn imported_link<'a>(item: &ImportItem, code: &'a PickedCode) -> ImportedLink<'a> {
    let mut draft = item.draft_under(code);
    draft.details.get_or_insert_default();
    ImportedLink { code, draft, created_at: item.created_at }
}

/// Adds what belongs to stored links beside their rows and names.
async fn add_all_else(sql: &mut dyn Sql, stored: &[(LinkId, &ImportItem)]) -> Result<()> {
    let tagged: Vec<(LinkId, &[Tag])> = stored.iter().map(|(id, item)| (*id, item.tags.as_slice())).collect();
    add_tags_to_all(sql, &tagged).await?;
    spend(sql, stored).await?;
    for (id, item) in stored {
        keep_external_id(sql, *id, item).await?;
    }
    let mut arrived: Vec<(LinkId, u64)> = stored.iter().map(|(id, item)| (*id, item.visits)).collect();
    note_arrived(sql, &mut arrived).await?;
    // Imported links may have old creation times, which the background indexer has passed already.
    let urls: Vec<(LinkId, &LongUrl)> = stored.iter().map(|(id, item)| (*id, &item.draft.long_url)).collect();
    note_long_urls(sql, urls.into_iter()).await?;
    let ids: Vec<LinkId> = stored.iter().map(|(id, _)| *id).collect();
    renew_texts(sql, &ids).await
}

/// Returns the outcomes for a batch that was stored before.
async fn look_again(sql: &mut dyn Sql, batch: &ImportBatch) -> Result<Vec<Imported>> {
    let mut found = Vec::with_capacity(batch.items.len());
    for item in &batch.items {
        found.push(match &item.code {
            ImportCode::Kept(code) if item.draft.details().deleted_at.is_none() => {
                already_there(sql, item, code).await?
            }
            // A deleted link leads nowhere, and an item that had no code cannot conflict.
            ImportCode::Kept(_) | ImportCode::FirstFree { .. } => Imported::AlreadyThere,
        });
    }
    Ok(found)
}

/// Stores one item under its code, or under the first of its candidates that is free. Returns its
/// outcome with that code; `None` if all candidates are taken and there are more.
async fn store<'a>(
    sql: &mut dyn Sql,
    keyspaces: usize,
    item: &'a ImportItem,
) -> Result<Option<(Imported, Option<&'a PickedCode>)>> {
    match &item.code {
        ImportCode::Kept(code) => {
            let done = if item.draft.details().deleted_at.is_some() {
                store_deleted(sql, item, code).await?
            } else {
                match put(sql, keyspaces, item, code).await? {
                    Some(id) => Imported::Stored(id),
                    None => already_there(sql, item, code).await?,
                }
            };
            Ok(Some((done, Some(code))))
        }
        ImportCode::FirstFree { candidates, is_all } => {
            for code in candidates.iter() {
                if let Some(id) = put(sql, keyspaces, item, code).await? {
                    return Ok(Some((Imported::Stored(id), Some(code))));
                }
            }
            Ok(is_all.then_some((Imported::Taken, None)))
        }
    }
}

async fn put(
    sql: &mut dyn Sql,
    keyspaces: usize,
    item: &ImportItem,
    code: &PickedCode,
) -> Result<Option<LinkId>> {
    let PickedCode { slug, mintable } = code.clone();
    let link = CustomSlugLink { slug, mintable, keyspaces, draft: item.draft_under(code) };
    Ok(place(sql, &link, item.created_at).await?.map(|(id, ..)| id))
}

/// Stores a link that was deleted in its former system. Its slug stays free, unless the link is
/// blocked (`links/src/block.rs`). A mintable code stays with the link.
async fn store_deleted(sql: &mut dyn Sql, item: &ImportItem, code: &PickedCode) -> Result<Imported> {
    let domain = item.draft.domain();
    let before = find_deleted(sql, domain, code.slug.as_str(), code.mintable, None).await?;
    if before.is_some_and(|link| item.is_there_deleted_as(&link)) {
        return Ok(Imported::AlreadyThere);
    }
    let stored = insert_deleted(sql, code, &item.draft_under(code), item.created_at).await?;
    let Some(id) = stored else { return Ok(Imported::Taken) };
    let has_entry = code.mintable != Some(id);
    if item.draft.details().blocked.is_some() && has_entry && may_have_entry(sql, domain, &code.slug).await? {
        // Another link may have taken the slug, there or here, before this one was blocked.
        take_slug(sql, domain, code.slug.as_str(), id).await?;
    }
    Ok(Imported::Stored(id))
}

/// Keeps a link under its external id, unless its key has another link under it. If a deleted one
/// kept it, the next request with the id would create another link beside the imported one.
async fn keep_external_id(
    sql: &mut dyn Sql,
    id: LinkId,
    ImportItem { draft, .. }: &ImportItem,
) -> Result<()> {
    match &draft.details().external_id {
        Some(external_id) => keep_imported(sql, id, draft, &external_id.entry(draft.created_by)).await,
        None => Ok(()),
    }
}

/// Records how many visits of the links' limits are used up.
async fn spend(sql: &mut dyn Sql, stored: &[(LinkId, &ImportItem)]) -> Result<()> {
    let spent = stored.iter().filter(|(_, item)| item.uses > 0);
    let row = |(id, item): &(LinkId, &ImportItem)| [id.get(), i64::try_from(item.uses).unwrap_or(i64::MAX)];
    let rows: Vec<[i64; 2]> = spent.map(row).collect();
    let then = "ON CONFLICT (link_id) DO UPDATE SET used = excluded.used";
    insert_numbers(sql, "INSERT INTO link_use (link_id, used)", &rows, then).await
}

/// Returns whether the code leads to the item's target already.
async fn already_there(sql: &mut dyn Sql, item: &ImportItem, code: &PickedCode) -> Result<Imported> {
    // The link of the code's number, and the one that was picked after that one was deleted.
    let entry = find_slug(sql, item.draft.domain(), code.slug.as_str()).await?;
    let ids: Vec<LinkId> = code.mintable.into_iter().chain(entry).collect();
    let is_there = find_links(sql, &ids).await?.iter().any(|link| item.is_there_as(link));
    Ok(if is_there { Imported::AlreadyThere } else { Imported::Taken })
}

/// A page ends with the first link that exceeds [`EXPORTED_BYTES`].
pub(crate) async fn export(sql: &mut dyn Sql, after: Option<LinkId>, most: usize) -> Result<Vec<Exported>> {
    let (columns, weight) = (sql.dialect().link(), super::list::weight(sql.dialect()));
    let select = format!(
        "SELECT {columns} FROM link WHERE link.id IN
           (SELECT page.id FROM
             (SELECT piece.id, sum(piece.bytes) OVER (ORDER BY piece.id) - piece.bytes AS before FROM
               (SELECT link.id, {weight} AS bytes FROM link WHERE link.id > $1 ORDER BY link.id LIMIT $2) AS piece
             ) AS page WHERE page.before < {EXPORTED_BYTES})
         ORDER BY link.id"
    );
    let rows = sql.query(&select, &[Value::Int(after.map_or(0, LinkId::get)), Value::count(most)]).await?;
    let links = rows.iter().map(Row::link).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<LinkId> = links.iter().map(|link| link.id).collect();
    let limited: Vec<LinkId> = links.iter().filter(|link| link.is_limited()).map(|link| link.id).collect();
    let mut tags = tags_of(sql, &ids).await?;
    let uses = uses_of(sql, &limited).await?;
    let visits: HashMap<_, _> = visit_totals(sql, &ids).await?.into_iter().collect();
    let exported = links.into_iter().map(|link| Exported {
        uses: uses.get(&link.id).copied().unwrap_or_default(),
        visits: visits.get(&link.id).map_or(0, |totals| totals.total),
        record: Record { tags: tags.remove(&link.id).unwrap_or_default(), link },
    });
    Ok(exported.collect())
}

/// Returns how many visits of these links' limits are used up.
async fn uses_of(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<HashMap<LinkId, u64>> {
    let select = format!("SELECT link_id, used FROM link_use WHERE {}", sql.dialect().among("link_id", "$1"));
    let uses = |row: &Row| Ok((LinkId::from_stored(row.int(0)?), row.count(1)?));
    sql.query(&select, &[Value::ids(ids)]).await?.iter().map(uses).collect()
}
