//! Lists of links: filters, pages and outlines.

use std::collections::HashMap;

use codes::LinkId;
use links::{COUNTED_MAX, Filter, Link, OrderField, Outline, Outlined, PER_PAGE_MAX, Record, Slug, Tag};

use super::{
    Dialect, Row, Sql, Value,
    details::{DELETED_AT, SLUG},
    search::Search,
    tags::with_tags,
    visits::{IS_VISITED, LAST_VISIT, NON_BOT_VISITS, SEEN_VISITS, VISITS},
    wanted::{Wanted, names_of, tag_sets},
};
use crate::Result;

/// The number of links from which on a list by visits is read in the order of an index. Fewer are
/// sorted sooner than they are found among all visited links.
const MANY: u64 = 2_000;
/// How many links of a list by time are read before indexes of what they have are. They take about
/// as long as a page.
pub(super) const FIRST: u64 = 15_000;
/// The number of links before a page from which on they are counted in an index.
const DEEP: u64 = 10_000;
/// Estimated memory of a tag beside its text, in bytes.
const TAG_BYTES: u64 = 32;

/// The links themselves are read a few at a time. So no page is in memory as a whole, however long,
/// and a slow client occupies no connection.
///
/// A page that all counted links fit on is read at once, and its links are the count. If they are
/// those of a tag, Postgres looks them up in the order of their ids ([`Wanted::by_tag`]).
///
/// A list by time with other conditions is read from its beginning, among many links: first from
/// the newest or oldest ones, among which a full page of what is not rare is found. How many more
/// there are is not counted then, if the caller need not know. Nodes would each send so many links;
/// each finds its part of the page by itself.
pub(crate) async fn outline(sql: &mut dyn Sql, filter: &Filter, code: Option<LinkId>) -> Result<Outline> {
    let page = Page::of(filter);
    let order = order(sql.dialect(), filter);
    let search = Search::of(sql, filter, code).await?;
    let is_by_time = filter.order.field == OrderField::DateCreated;
    let is_of_all = *filter == filter.of_all();
    let is_whole = page.first == 0 && filter.count_max == Some(page.len + 1);
    let is_long = !is_whole
        && filter.count_max.is_some()
        && filter.sees_all
        && is_by_time
        && !is_of_all
        && !filter.deleted
        && has_many(sql).await?;
    let mut wanted = Wanted::new(sql.dialect());
    let mut found = None;
    if is_long && !sql.is_distributed() && page.first.saturating_add(page.len) < FIRST {
        wanted.state_and_time(filter);
        let first = wanted.first_links(&order);
        wanted.others(filter, search.as_ref());
        let ids = wanted.ids(sql, (&first, &order), page.with_one_more()).await?;
        // Other conditions leave out links that contain the text, and so does a page behind the
        // last of them.
        let is_only_searched =
            Filter { search: None, search_domains: Vec::new(), ..filter.clone() } == filter.of_all();
        if is_only_searched && (page.first == 0 || !ids.is_empty()) {
            found = Some(page.first + ids.len() as u64);
        }
        if let Some(outline) = page.uncounted(ids).filter(|outline| !outline.is_counted) {
            return Ok(outline);
        }
        wanted = Wanted::new(sql.dialect());
    }
    if let Some(search) = search.as_ref().filter(|_| filter.sees_all) {
        search.narrow(sql, &mut wanted, found).await?;
    }
    wanted.by_tag =
        is_whole && filter.sees_all && search.is_none() && has_few_tagged(sql, filter, page).await?;
    wanted.state_and_time(filter);
    wanted.others(filter, search.as_ref());
    if is_whole || is_long {
        let ids = wanted.ids(sql, ("link", &order), page.with_one_more()).await?;
        if let Some(outline) = page.uncounted(ids) {
            return Ok(outline);
        }
    }
    let count_max = filter.count_max.map_or(COUNTED_MAX, |most| most.min(COUNTED_MAX));
    let total = match only_tag(filter) {
        Some(tag) => count_tagged(sql, tag, count_max).await?,
        None => wanted.count(sql, "link", count_max).await?,
    };
    let is_counted = total < count_max;
    let ids = match filter.order.field {
        OrderField::Visits if filter.sees_all && (!is_counted || total >= MANY) => {
            by_visits(sql, &wanted, filter, page).await?
        }
        OrderField::DateCreated if page.first >= DEEP && is_of_all => {
            deep(sql, wanted, (filter, &order), page).await?
        }
        _ => wanted.ids(sql, ("link", &order), page).await?,
    };
    Ok(Outline { ids, total, is_counted })
}

/// Returns whether there are so many links that those of a list are not all counted.
async fn has_many(sql: &mut dyn Sql) -> Result<bool> {
    let select = format!("SELECT 1 FROM link ORDER BY created_at, id LIMIT 1 OFFSET {FIRST}");
    Ok(sql.first(&select, &[]).await?.is_some())
}

/// Returns whether a list has tags, and so few links have the first of them that all of these can
/// be read for a page ([`Wanted::by_tag`]). Where many more have it, other plans fill the page
/// sooner.
async fn has_few_tagged(sql: &mut dyn Sql, filter: &Filter, page: Page) -> Result<bool> {
    let Some(tags) = tag_sets(&filter.tags, filter.tags_mode).next() else { return Ok(false) };
    if sql.dialect() == Dialect::Sqlite || sql.is_distributed() {
        return Ok(false);
    }
    let mut wanted = Wanted::new(sql.dialect());
    let further = format!("{} LIMIT 1 OFFSET {}", wanted.tagged(tags), 2 * page.len);
    Ok(sql.first(&further, &wanted.values).await?.is_none())
}

/// Returns the tag of a list of all links that have it. Tags that are written in two ways, and
/// several ones, may be of the same links.
fn only_tag(filter: &Filter) -> Option<&[Tag]> {
    let tags = &filter.tags;
    let of_tags = Filter { tags: tags.clone(), tags_mode: filter.tags_mode, ..filter.of_all() };
    (names_of(tags).len() == 1 && *filter == of_tags).then_some(tags)
}

/// Counts the links with a tag, or returns `most` if there are more. The links are not read: a
/// deleted one has no tags.
async fn count_tagged(sql: &mut dyn Sql, tag: &[Tag], most: u64) -> Result<u64> {
    let mut wanted = Wanted::new(sql.dialect());
    let count = format!("SELECT count(*) FROM ({} LIMIT {most}) AS counted", wanted.tagged(tag));
    Ok(u64::try_from(sql.number(&count, &wanted.values).await?.unwrap_or(0)).unwrap_or(0))
}

/// Which links of a list are on a page.
#[derive(Clone, Copy)]
pub(super) struct Page {
    pub(super) len: u64,
    /// How many links are on the pages before.
    pub(super) first: u64,
}

impl Page {
    fn of(filter: &Filter) -> Self {
        let len = filter.per_page.unwrap_or(PER_PAGE_MAX).min(PER_PAGE_MAX);
        let first = filter.page.max(1).saturating_sub(1).saturating_mul(len);
        let end = first.saturating_add(len);
        let [first, end] = [first, end].map(|place| place.saturating_sub(filter.listed_before.len() as u64));
        Self { len: end - first, first }
    }

    fn with_one_more(self) -> Self {
        Self { len: self.len + 1, ..self }
    }

    /// Outlines a page that was read with one link more than it has. That there is one is all that
    /// is known of the links behind it. Returns `None` if the page is behind the last link.
    fn uncounted(self, mut ids: Vec<LinkId>) -> Option<Outline> {
        let is_counted = ids.len() as u64 <= self.len;
        if ids.is_empty() && self.first > 0 {
            return None;
        }
        let total = self.first + ids.len() as u64;
        ids.truncate(usize::try_from(self.len).unwrap_or(usize::MAX));
        Some(Outline { ids, total, is_counted })
    }
}

/// Lists visited links in the order of an index on visits, and those without a visit in that of
/// their creation: together a page of the order by visits.
async fn by_visits(sql: &mut dyn Sql, wanted: &Wanted, filter: &Filter, page: Page) -> Result<Vec<LinkId>> {
    let visited = (
        "link JOIN link_seen ON link_seen.link_id = link.id",
        IS_VISITED.to_owned(),
        format!("{SEEN_VISITS} {}, link.created_at, link.id", direction(filter)),
    );
    let is_not =
        format!("NOT EXISTS (SELECT 1 FROM link_seen WHERE link_seen.link_id = link.id AND {IS_VISITED})");
    let not_visited = ("link", is_not, "link.created_at, link.id".to_owned());
    let parts = if filter.order.descending { [visited, not_visited] } else { [not_visited, visited] };
    let (mut ids, mut first) = (Vec::new(), page.first);
    for (table, condition, order) in parts {
        let mut part = wanted.clone();
        part.parts.push(condition);
        let found = part.ids(sql, (table, &order), Page { len: page.len - ids.len() as u64, first }).await?;
        if found.is_empty() && first > 0 {
            first -= part.count(sql, table, first).await?;
        } else {
            first = 0;
        }
        ids.extend(found);
        if ids.len() as u64 == page.len {
            break;
        }
    }
    Ok(ids)
}

/// Lists all links that are not deleted by time, many pages from the first one. The links before
/// are counted in the index, deleted ones too, and so many more are left out after them.
async fn deep(
    sql: &mut dyn Sql,
    mut wanted: Wanted,
    (filter, order): (&Filter, &str),
    page: Page,
) -> Result<Vec<LinkId>> {
    let last = format!("SELECT created_at, id FROM link ORDER BY {order} LIMIT 1 OFFSET $1");
    let Some(last) = sql.first(&last, &[Value::count(page.first - 1)]).await? else { return Ok(Vec::new()) };
    let last = [Value::Time(last.time(0)?), Value::Int(last.int(1)?)];
    let (before, after) = if filter.order.descending { (">=", "<") } else { ("<=", ">") };
    let deleted = format!(
        "SELECT count(*) FROM link WHERE {DELETED_AT} IS NOT NULL AND (created_at, id) {before} ($1, $2)"
    );
    let first = sql.number(&deleted, &last).await?.unwrap_or(0);
    let [time, id] = last.map(|value| wanted.value(value));
    wanted.parts.push(format!("(link.created_at, link.id) {after} ({time}, {id})"));
    let first = u64::try_from(first).unwrap_or(0);
    wanted.ids(sql, ("link", order), Page { first, ..page }).await
}

pub(crate) async fn outlines_of(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<Vec<Outlined>> {
    let (columns, among) = (outlined_columns(sql.dialect()), sql.dialect().among("link.id", "$1"));
    let select = format!("SELECT {columns} FROM link WHERE {among}");
    let rows = sql.query(&select, &[Value::ids(ids)]).await?;
    let entries = rows.iter().map(outlined).collect::<Result<Vec<_>>>()?;
    let mut entries: HashMap<LinkId, Outlined> = entries.into_iter().map(|entry| (entry.id, entry)).collect();
    Ok(ids.iter().filter_map(|id| entries.remove(id)).collect())
}

/// Columns of an outline, for [`outlined`].
pub(super) fn outlined_columns(dialect: Dialect) -> String {
    format!("link.id, {}, {SLUG}", weight(dialect))
}

/// SQL expression for the size of a link's texts and tags, in bytes.
pub(super) fn weight(dialect: Dialect) -> String {
    let details = dialect.json_text("link.details");
    let bytes = |text: &str| format!("coalesce(CAST(octet_length({text}) AS bigint), 0)");
    let texts = ["link.long_url", "link.title", &details].map(bytes).join(" + ");
    format!(
        "{texts} + (SELECT CAST(coalesce(sum(octet_length(tag.name) + {TAG_BYTES}), 0) AS bigint)
           FROM link_tag JOIN tag ON tag.id = link_tag.tag_id WHERE link_tag.link_id = link.id)"
    )
}

pub(super) fn outlined(row: &Row) -> Result<Outlined> {
    Ok(Outlined {
        id: LinkId::from_stored(row.int(0)?),
        bytes: row.count(1)?,
        slug: row.opt_text(2)?.and_then(|slug| Slug::parse(slug).ok()),
    })
}

pub(crate) async fn records(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<Vec<Record>> {
    let links = find_links(sql, ids).await?;
    let records = with_tags(sql, links).await?;
    let mut records: HashMap<LinkId, Record> = records.into_iter().map(|one| (one.link.id, one)).collect();
    Ok(ids.iter().filter_map(|id| records.remove(id)).collect())
}

/// Returns links, deleted ones too, in any order.
pub(crate) async fn find_links(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<Vec<Link>> {
    let columns = sql.dialect().link();
    select(sql, &columns, ids).await
}

pub(crate) async fn plain_links(sql: &mut dyn Sql, ids: &[LinkId]) -> Result<Vec<Link>> {
    let columns = sql.dialect().plain_link();
    select(sql, &columns, ids).await
}

async fn select(sql: &mut dyn Sql, columns: &str, ids: &[LinkId]) -> Result<Vec<Link>> {
    let select = format!("SELECT {columns} FROM link WHERE {}", sql.dialect().among("link.id", "$1"));
    sql.query(&select, &[Value::ids(ids)]).await?.iter().map(Row::link).collect()
}

/// Returns the ORDER BY terms of a filter. Links with the same value come in the order of their
/// creation, in both directions, and the id breaks ties, so that no link is on two pages.
pub(super) fn order(dialect: Dialect, filter: &Filter) -> String {
    let direction = direction(filter);
    let by = |column: &str| format!("{column} {direction}, link.created_at, link.id");
    match filter.order.field {
        // As the index has them.
        OrderField::DateCreated => format!("link.created_at {direction}, link.id {direction}"),
        OrderField::Id => format!("link.id {direction}"),
        OrderField::LongUrl => by(&dialect.by_bytes("link.long_url")),
        OrderField::Title => by(&dialect.by_bytes("sort_key(coalesce(link.title, ''))")),
        OrderField::Visits => by(VISITS),
        OrderField::NonBotVisits => by(NON_BOT_VISITS),
        // The two databases sort NULL at different ends.
        OrderField::LastVisit => by(&format!("{LAST_VISIT} IS NOT NULL {direction}, {LAST_VISIT}")),
    }
}

fn direction(filter: &Filter) -> &'static str {
    if filter.order.descending { "DESC" } else { "ASC" }
}
