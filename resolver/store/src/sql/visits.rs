//! Numbers of visits in lists of links and tags. They are kept in table `link_seen`.

use std::collections::HashMap;

use codes::LinkId;
use jiff::Timestamp;
use links::Tag;

use super::{ROWS_AT_ONCE, Row, Sql, Value, details::DELETED_AT, insert_rows, places, tags::visible_only};
use crate::{LinkVisits, Result, StoreError, TagChange, Visible, VisitTotals};

/// The chore whose position is that of the last visits that were added.
const CHORE: &str = "add visits to links";

/// SQL expression for the visits of a link.
pub(super) const VISITS: &str = "coalesce((SELECT link_seen.total + link_seen.imported FROM link_seen WHERE link_seen.link_id = link.id), 0)";
/// SQL expression for the visits of a link without those of bots.
pub(super) const NON_BOT_VISITS: &str = "coalesce((SELECT link_seen.total + link_seen.imported - link_seen.bots FROM link_seen WHERE link_seen.link_id = link.id), 0)";

/// SQL expression for the time of the last visit of a link, which is NULL without one.
pub(super) const LAST_VISIT: &str =
    "(SELECT link_seen.seen_at FROM link_seen WHERE link_seen.link_id = link.id AND link_seen.total > 0)";

pub(crate) async fn add_visits(sql: &mut dyn Sql, up_to: i64, visits: &[LinkVisits]) -> Result<()> {
    if advance(sql, CHORE, up_to).await? { add_to_links(sql, visits).await } else { Ok(()) }
}

/// Adds visits to links in a transaction of the caller. Each link occurs once, and the ids must
/// ascend, so that two resolvers cannot deadlock.
pub async fn add_to_links(sql: &mut dyn Sql, visits: &[LinkVisits]) -> Result<()> {
    let row = |LinkVisits { link, total, bots, last }: &LinkVisits| {
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
    insert_rows(sql, "INSERT INTO link_seen (link_id, seen_at, total, bots)", &rows, &then).await
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

#[cfg(test)]
mod tests {
    use links::{DomainId, api_key::ApiKeyId};

    use super::*;
    use crate::{Catalog as _, sqlite::SqliteStore};

    fn visits(link: i64, total: i64, bots: i64, last: i64) -> LinkVisits {
        LinkVisits { link: LinkId::from_stored(link), total, bots, last }
    }

    fn totals(link: i64, total: u64, bots: u64, last: Option<i64>) -> (LinkId, VisitTotals) {
        let last = last.map(|last| Timestamp::from_microsecond(last).unwrap());
        (LinkId::from_stored(link), VisitTotals { total, bots, last })
    }

    #[tokio::test]
    async fn visits_are_added_once_and_the_last_one_stays_the_last() {
        let (_, store) = SqliteStore::in_memory("").await;
        let ids: Vec<LinkId> = (1..=1_200).map(LinkId::from_stored).collect();
        let first: Vec<LinkVisits> = (1..=1_100).map(|link| visits(link, 3, 1, 5_000_000)).collect();
        let stored = async || {
            let mut stored = store.visit_totals(&ids).await.unwrap();
            stored.sort_by_key(|(link, _)| *link);
            stored
        };
        for _ in 0..2 {
            store.add_visits(40, &first).await.unwrap();
            let expected: Vec<_> = (1..=1_100).map(|link| totals(link, 3, 1, Some(5_000_000))).collect();
            assert_eq!(stored().await, expected);
        }
        let second = [visits(1, 4, 0, 9_000_999), visits(2, -3, -1, 0), visits(3, 2, 2, 1_000_000)];
        store.add_visits(39, &second).await.unwrap();
        assert_eq!(stored().await[0], totals(1, 3, 1, Some(5_000_000)), "39 is before 40");
        store.add_visits(41, &second).await.unwrap();
        let expected =
            [totals(1, 7, 1, Some(9_000_000)), totals(2, 0, 0, None), totals(3, 5, 3, Some(5_000_000))];
        assert_eq!(stored().await[..3], expected);
    }

    #[tokio::test]
    async fn the_visits_of_a_tag_are_those_of_its_visible_links() {
        let fill = r#"INSERT INTO link (id, long_url, crawlable, forward_query, created_by, details) VALUES
                (1, 'a', 0, 0, 1, NULL), (2, 'b', 0, 0, 2, '{"domain":7}'), (3, 'c', 0, 0, 1, '{"domain":7}');
             INSERT INTO tag (id, name) VALUES (1, 'one'), (2, 'two'), (3, 'none');
             INSERT INTO link_tag (tag_id, link_id) VALUES (1, 1), (1, 2), (2, 2), (2, 3)"#;
        let (_, store) = SqliteStore::in_memory(fill).await;
        store.add_visits(1, &[visits(1, 1, 0, 0), visits(2, 20, 10, 0)]).await.unwrap();
        let tags = ["one", "two", "none", "absent"].map(Tag::from_stored);
        let of = async |of: Visible| {
            let mut found = store.tag_visit_totals(&tags, &of).await.unwrap();
            found.sort_by(|one, other| one.0.cmp(&other.0));
            let numbers =
                |(tag, totals): (Tag, VisitTotals)| format!("{tag} {} {}", totals.total, totals.bots);
            found.into_iter().map(numbers).collect::<Vec<_>>()
        };
        assert_eq!(of(Visible::default()).await, ["none 0 0", "one 21 10", "two 20 10"]);
        let domain = Visible { domain: Some(DomainId::from_stored(7)), created_by: None };
        assert_eq!(of(domain).await, ["one 20 10", "two 20 10"]);
        let own = Visible { domain: None, created_by: Some(ApiKeyId(1)) };
        assert_eq!(of(own).await, ["one 1 0", "two 0 0"]);
    }
}
