//! Numbers of visits in lists of links and tags. They are kept in table `link_seen`.

use std::collections::HashMap;

use codes::LinkId;
use jiff::Timestamp;
use links::Tag;

use super::{ROWS_AT_ONCE, Row, Sql, Value, details::DELETED_AT, insert_rows, places, tags::visible_only};
use crate::{LinkVisits, Result, StoreError, TagChange, Visible, VisitTotals};

/// The chore whose position is that of the last visits that were added.
const CHORE: &str = "add visits to links";

pub(super) const VISITS: &str = "coalesce((SELECT link_seen.total + link_seen.imported FROM link_seen WHERE link_seen.link_id = link.id), 0)";
/// Visits of a row of `link_seen`, as the index `link_seen_visits` has them.
pub(super) const SEEN_VISITS: &str = "link_seen.total + link_seen.imported";
/// Whether a row of `link_seen` is of a link with visits.
pub(super) const IS_VISITED: &str = "link_seen.total + link_seen.imported > 0";
/// SQL expression for the visits of a link without those of bots.
pub(super) const NON_BOT_VISITS: &str = "coalesce((SELECT link_seen.total + link_seen.imported - link_seen.bots FROM link_seen WHERE link_seen.link_id = link.id), 0)";

/// SQL expression for the time of the last visit of a link, which is NULL without one.
pub(super) const LAST_VISIT: &str =
    "(SELECT link_seen.seen_at FROM link_seen WHERE link_seen.link_id = link.id AND link_seen.total > 0)";

/// The ids ascend, so that two resolvers cannot deadlock.
pub(crate) async fn add_visits(sql: &mut dyn Sql, up_to: i64, visits: &[LinkVisits]) -> Result<()> {
    if advance(sql, CHORE, up_to).await? { add_to_links(sql, visits).await } else { Ok(()) }
}

/// Adds visits to links in a transaction of the caller. Each link occurs once, and the ids must
/// ascend, so that two resolvers cannot deadlock. An imported visit takes the place of one that was
/// only counted, if there is any left: a link's total is right at each moment of an import.
pub async fn add_to_links(sql: &mut dyn Sql, visits: &[LinkVisits]) -> Result<()> {
    let row = |LinkVisits { link, total, bots, last, .. }: &LinkVisits| {
        let last =
            Timestamp::from_microsecond(*last).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok([Value::Int(link.get()), Value::Time(last), Value::Int(*total), Value::Int(*bots)])
    };
    let rows = visits.iter().map(row).collect::<Result<Vec<_>>>()?;
    let then = format!(
        "ON CONFLICT (link_id) DO UPDATE SET seen_at = {},
             total = link_seen.total + excluded.total, bots = link_seen.bots + excluded.bots",
        sql.dialect().later("link_seen.seen_at", "excluded.seen_at")
    );
    insert_rows(sql, "INSERT INTO link_seen (link_id, seen_at, total, bots)", &rows, &then).await?;
    let replace = format!(
        "UPDATE link_seen SET imported = {} WHERE link_id = $2",
        sql.dialect().later("imported - $1", "0")
    );
    for LinkVisits { link, imported, .. } in visits.iter().filter(|visits| visits.imported > 0) {
        sql.query(&replace, &[Value::Int(*imported), Value::Int(link.get())]).await?;
    }
    Ok(())
}

/// Returns how often a link was visited and by how many bots, without imported visits.
pub async fn counted_visits(sql: &mut dyn Sql, link: LinkId) -> Result<(i64, i64)> {
    // A batch that is being added is awaited.
    let select =
        format!("SELECT total, bots FROM link_seen WHERE link_id = $1 {}", sql.dialect().for_update());
    let row = sql.first(&select, &[Value::Int(link.get())]).await?;
    row.map_or(Ok((0, 0)), |row| Ok((row.int(0)?, row.int(1)?)))
}

/// Moves the position of a chore forward. Returns false if it is there already: what has come up to
/// this position was added before.
pub(super) async fn advance(sql: &mut dyn Sql, chore: &str, up_to: i64) -> Result<bool> {
    let advance = "INSERT INTO chore (name, position) VALUES ($1, $2)
         ON CONFLICT (name) DO UPDATE SET position = excluded.position WHERE chore.position < excluded.position
         RETURNING position";
    let moved = sql.query(advance, &[Value::Text(chore.to_owned()), Value::Int(up_to)]).await?;
    Ok(!moved.is_empty())
}

pub(crate) async fn take_imported_visits(sql: &mut dyn Sql, link: LinkId) -> Result<u64> {
    let select = format!(
        "SELECT imported FROM link_seen WHERE link_id = $1 AND imported > 0 {}",
        sql.dialect().for_update()
    );
    let Some(imported) = sql.number(&select, &[Value::Int(link.get())]).await? else { return Ok(0) };
    let take = "UPDATE link_seen SET imported = 0 WHERE link_id = $1";
    sql.query(take, &[Value::Int(link.get())]).await?;
    Ok(u64::try_from(imported).unwrap_or(0))
}

pub(crate) async fn most_visited(sql: &mut dyn Sql, most: usize) -> Result<Vec<LinkId>> {
    // A text has room for a million ids where rows would take 100 MB.
    let select = format!(
        "SELECT string_agg(CAST(link_id AS text), ',') FROM
         (SELECT link_id FROM link_seen WHERE {IS_VISITED} ORDER BY {SEEN_VISITS} DESC LIMIT $1) AS most"
    );
    let most = Value::count(u64::try_from(most).unwrap_or(u64::MAX));
    let rows = sql.query(&select, &[most]).await?;
    let ids = rows.first().map(|row| row.opt_text(0)).transpose()?.flatten().unwrap_or_default();
    let id = |text: &str| text.parse().ok().map(LinkId::from_stored);
    Ok(ids.split(',').filter_map(id).collect())
}

/// Returns the visits of links that were ever seen, in any order. A count is below zero only while
/// a deletion was added before visits that it deletes.
pub(crate) async fn visit_totals(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<Vec<(LinkId, VisitTotals)>> {
    let select = format!(
        "SELECT link_id, total, bots, seen_at, imported FROM link_seen WHERE {}",
        sql.dialect().among("link_id", "$1")
    );
    let totals = |row: &Row| {
        let (counted, bots, imported) = (row.count(1)?, row.count(2)?, row.count(4)?);
        // Imported and restored links count as seen, without a visit here.
        let last = if counted > 0 { Some(row.time(3)?) } else { None };
        let total = counted.saturating_add(imported);
        Ok((LinkId::from_stored(row.int(0)?), VisitTotals { total, bots, last }))
    };
    sql.query(&select, &[Value::ids(ids)]).await?.iter().map(totals).collect()
}

pub(crate) async fn tag_visit_totals(
    sql: &mut dyn Sql,
    tags: &[Tag],
    of: &Visible,
) -> Result<Vec<(Tag, VisitTotals)>> {
    let mut found = Vec::with_capacity(tags.len());
    for tags in tags.chunks(ROWS_AT_ONCE) {
        let mut values: Vec<Value> = tags.iter().map(|tag| Value::Text(tag.to_string())).collect();
        let (links, conditions) = visible_only(of, &mut values);
        let links_too =
            if conditions.is_empty() { "LEFT JOIN link ON link.id = link_tag.link_id" } else { "" };
        let sum = |count: &str| {
            format!("CAST(coalesce(sum(CASE WHEN {DELETED_AT} IS NULL THEN {count} END), 0) AS bigint)")
        };
        let select = format!(
            "SELECT tag.name, {}, {}
             FROM tag {links} {links_too} LEFT JOIN link_seen ON link_seen.link_id = link_tag.link_id
             WHERE tag.name IN ({}){conditions} GROUP BY tag.name",
            sum("link_seen.total + link_seen.imported"),
            sum("link_seen.bots"),
            places(1, tags.len())
        );
        for row in sql.query(&select, &values).await? {
            let totals = VisitTotals { total: row.count(1)?, bots: row.count(2)?, last: None };
            found.push((Tag::from_stored(row.text(0)?), totals));
        }
    }
    Ok(found)
}

/// Returns the oldest links whose tags have changed, as [`Catalog`](crate::Catalog) says, in a
/// transaction of the caller.
pub async fn tag_changes(sql: &mut dyn Sql, most: usize) -> Result<Vec<TagChange>> {
    let select = "SELECT number, link_id FROM tag_change ORDER BY number LIMIT $1";
    let changes = sql.query(select, &[Value::count(most)]).await?;
    let links = changes.iter().map(|row| row.int(1)).collect::<Result<Vec<_>>>()?;
    // Links of a tag that was deleted may be left.
    let select = format!(
        "SELECT link_id, tag_id FROM link_tag JOIN tag ON tag.id = tag_id WHERE {}",
        sql.dialect().among("link_id", "$1")
    );
    let mut tags: HashMap<i64, Vec<i64>> = HashMap::new();
    for row in sql.query(&select, &[Value::numbers(links)]).await? {
        tags.entry(row.int(0)?).or_default().push(row.int(1)?);
    }
    let change = |row: &Row| {
        let (number, link) = (row.int(0)?, row.int(1)?);
        let tags = tags.get(&link).cloned().unwrap_or_default();
        Ok(TagChange { number, link: LinkId::from_stored(link), tags })
    };
    changes.iter().map(change).collect()
}

pub(crate) async fn forget_tag_changes(sql: &mut dyn Sql, up_to: i64) -> Result<()> {
    sql.query("DELETE FROM tag_change WHERE number <= $1", &[Value::Int(up_to)]).await.map(drop)
}
