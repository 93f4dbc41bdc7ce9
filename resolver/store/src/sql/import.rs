//! Imports: links from other systems. A batch and the import's position are stored in one
//! transaction, so that links are neither duplicated nor lost, however an import ends.

use std::collections::HashMap;

use codes::LinkId;
use links::{ImportCode, ImportItem, PickedCode, Record};

use super::{
    Notice, Row, Sql, Value,
    create::{insert_deleted, place, same_keyspaces},
    idempotency::keep_imported,
    link_index::renew_texts,
    list::find_links,
    long_urls::note_long_urls,
    note_change,
    restore::find_deleted,
    slugs::{find_slug, may_have_entry, take_slug},
    sweep::note_arrived,
    tags::{add_tags, tags_of},
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
    let (mut changed, mut picked, mut arrived, mut noted) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (index, item) in batch.items.iter().enumerate() {
        let tried = store(sql, batch.keyspaces, item).await?;
        // Nothing of the batch is stored. It comes again with more candidates.
        let (done, code) = tried.ok_or(StoreError::NoFreeCode { item: index })?;
        if let Imported::Stored(id) = done {
            add_tags(sql, id, &item.tags).await?;
            spend(sql, id, item.uses).await?;
            keep_external_id(sql, id, item).await?;
            arrived.push((id, item.visits));
            noted.push((id, &item.draft.long_url));
            let is_number = code.is_some_and(|code| code.mintable == Some(id));
            if is_number { &mut picked } else { &mut changed }.push(id);
        }
        imported.push(done);
    }
    note_arrived(sql, &mut arrived).await?;
    // Imported links may have old creation times, which the background indexer has passed already.
    let ids: Vec<LinkId> = noted.iter().map(|(id, _)| *id).collect();
    note_long_urls(sql, noted.into_iter()).await?;
    renew_texts(sql, &ids).await?;
    // A server of the release before on this SQLite file, which is not notified, reads the mintable
    // custom slugs again.
    note_change(sql).await?;
    // Items that are not in the batch were refused before it was sent.
    let kept = imported.iter().filter(|one| !matches!(one, Imported::Taken)).count();
    let refused = (end - position).saturating_sub(i64::try_from(kept).unwrap_or(i64::MAX)).max(0);
    let advance = "UPDATE import SET position = $1, refused = refused + $2 WHERE name = $3";
    sql.query(advance, &[Value::Int(end), Value::Int(refused), name]).await?;
    for ids in changed.chunks(TOLD_AT_ONCE) {
        sql.notify(Notice::Changed(ids)).await?;
    }
    for id in picked {
        sql.notify(Notice::Picked(id)).await?;
    }
    Ok(imported)
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

/// Records how many visits of a link's limit are used up.
async fn spend(sql: &mut dyn Sql, id: LinkId, uses: u64) -> Result<()> {
    if uses == 0 {
        return Ok(());
    }
    let spend = "INSERT INTO link_use (link_id, used) VALUES ($1, $2)
                 ON CONFLICT (link_id) DO UPDATE SET used = excluded.used";
    sql.query(spend, &[Value::Int(id.get()), Value::count(uses)]).await.map(drop)
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
