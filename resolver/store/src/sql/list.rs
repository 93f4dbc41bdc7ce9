//! Lists of links: filters, pages and outlines.

use std::collections::{BTreeSet, HashMap};

use codes::LinkId;
use links::{
    DomainId, Filter, Link, OrderField, Outline, Outlined, PER_PAGE_MAX, Record, Slug, Tag, TagsMode,
    search_key,
};

use super::{
    Dialect, Row, Sql, Value,
    details::{DELETED_AT, DOMAIN, IS_ON_DEFAULT_DOMAIN, MAX_VISITS, SLUG, VALID_UNTIL},
    long_urls::candidates,
    tags::{stored_names, with_tags},
    visits::{LAST_VISIT, NON_BOT_VISITS, VISITS},
};
use crate::Result;

/// Maximum number of links counted for a list's total. A longer list reports this number, because
/// an exact total would read all links for each page.
const COUNTED_MAX: u64 = 1_000_000;
/// Estimated memory of a tag beside its text, in bytes.
const TAG_BYTES: u64 = 32;

/// The links themselves are read a few at a time. So no page is in memory as a whole, however long,
/// and a slow client occupies no connection.
pub(crate) async fn outline(sql: &mut dyn Sql, filter: &Filter, code: Option<LinkId>) -> Result<Outline> {
    let mut wanted = Wanted { dialect: sql.dialect(), parts: Vec::new(), values: Vec::new() };
    wanted.filter(filter, code);
    let Wanted { parts, mut values, .. } = wanted;
    let conditions = parts.join(" AND ");
    let count_max = filter.count_max.map_or(COUNTED_MAX, |most| most.min(COUNTED_MAX));
    let count =
        format!("SELECT count(*) FROM (SELECT 1 FROM link WHERE {conditions} LIMIT {count_max}) AS counted");
    let total = sql.number(&count, &values).await?.unwrap_or(0);

    let per_page = filter.per_page.unwrap_or(PER_PAGE_MAX).min(PER_PAGE_MAX);
    let first = filter.page.max(1).saturating_sub(1).saturating_mul(per_page);
    let (limit, offset) = (values.len() + 1, values.len() + 2);
    values.extend([per_page, first].map(Value::count));
    let (columns, order) = (outlined_columns(sql.dialect()), order(sql.dialect(), filter));
    // Sizes are computed for the links of the page only, and not for those before it.
    let select = format!(
        "SELECT {columns} FROM link WHERE link.id IN
           (SELECT link.id FROM link WHERE {conditions} ORDER BY {order} LIMIT ${limit} OFFSET ${offset})
         ORDER BY {order}"
    );
    let entries = sql.query(&select, &values).await?.iter().map(outlined).collect::<Result<Vec<_>, _>>()?;
    Ok(Outline { entries, total: u64::try_from(total).unwrap_or(0) })
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
fn outlined_columns(dialect: Dialect) -> String {
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

fn outlined(row: &Row) -> Result<Outlined> {
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
fn order(dialect: Dialect, filter: &Filter) -> String {
    let direction = if filter.order.descending { "DESC" } else { "ASC" };
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

/// Conditions of a WHERE clause, and their parameters.
struct Wanted {
    dialect: Dialect,
    parts: Vec<String>,
    values: Vec<Value>,
}

impl Wanted {
    /// Adds a parameter, and returns its placeholder.
    fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    fn filter(&mut self, filter: &Filter, code: Option<LinkId>) {
        let not = if filter.deleted { "NOT " } else { "" };
        self.parts.push(format!("{DELETED_AT} IS {not}NULL"));
        if filter.crawlable {
            self.parts.push("link.crawlable".to_owned());
        }
        if let Some(url) = &filter.long_url {
            let digest = self.value(Value::Int(url.digest()));
            let text = self.value(Value::Text(url.as_str().to_owned()));
            let candidates = candidates(self.dialect, &digest, &text, None);
            self.parts.push(format!("link.id IN ({candidates}) AND link.long_url = {text}"));
        }
        if let Some(text) = &filter.search {
            self.search(text, code, &filter.search_domains);
        }
        self.tags(&filter.tags, filter.tags_mode, false);
        self.tags(&filter.exclude_tags, filter.exclude_tags_mode, true);
        if let Some(domain) = filter.domain {
            let is_there = self.on_domain(domain);
            self.parts.push(is_there);
        }
        if let Some(keys) = &filter.created_by {
            let keys: Vec<String> = keys.iter().map(|key| self.value(Value::Int(key.0))).collect();
            // Without an API key there are no links; an empty IN list is invalid SQL.
            let is_theirs = format!("link.created_by IN ({})", keys.join(", "));
            self.parts.push(if keys.is_empty() { "1 = 0".to_owned() } else { is_theirs });
        }
        if let Some(since) = filter.since {
            let since = self.value(Value::Time(since));
            self.parts.push(format!("link.created_at >= {since}"));
        }
        if let Some(until) = filter.until {
            let until = self.value(Value::Time(until));
            self.parts.push(format!("link.created_at <= {until}"));
        }
        if filter.exclude_spent {
            self.parts.push(format!(
                "({MAX_VISITS} IS NULL OR {MAX_VISITS} >
                  coalesce((SELECT used FROM link_use WHERE link_use.link_id = link.id), 0))"
            ));
        }
        if filter.exclude_past {
            let now = self.dialect.now_millis();
            self.parts.push(format!("({VALID_UNTIL} IS NULL OR {VALID_UNTIL} > {now})"));
        }
    }

    fn on_domain(&mut self, domain: DomainId) -> String {
        if domain.is_default() {
            return IS_ON_DEFAULT_DOMAIN.to_owned();
        }
        format!("{DOMAIN} = {}", self.value(Value::Int(domain.get())))
    }

    fn search(&mut self, text: &str, code: Option<LinkId>, domains: &[DomainId]) {
        let key = self.value(Value::Text(search_key(text).into_owned()));
        let contains = |column| self.dialect.contains(column, &key);
        let mut ways = Vec::from(["link.long_url", "link.title", SLUG].map(contains));
        ways.push(format!(
            "link.id IN (SELECT link_tag.link_id FROM link_tag JOIN tag ON tag.id = link_tag.tag_id WHERE {})",
            self.dialect.contains("tag.name", &key)
        ));
        for domain in domains {
            let is_there = self.on_domain(*domain);
            ways.push(is_there);
        }
        if let Some(id) = code {
            ways.push(format!("link.id = {}", self.value(Value::Int(id.get()))));
        }
        self.parts.push(format!("({})", ways.join(" OR ")));
    }

    fn tags(&mut self, tags: &[Tag], mode: TagsMode, is_excluded: bool) {
        if tags.is_empty() {
            return;
        }
        // A link must have a tag of each set.
        let sets: Vec<&[Tag]> = match mode {
            TagsMode::Any => vec![tags],
            TagsMode::All => tags.chunks(1).collect(),
        };
        let conditions: Vec<String> = sets.into_iter().map(|tags| self.has_one_of(tags)).collect();
        let not = if is_excluded { "NOT " } else { "" };
        self.parts.push(format!("{not}({})", conditions.join(" AND ")));
    }

    /// Adds a condition for links with one of these tags. A tag is matched under the name given and
    /// under its normalized name: they differ after a renaming.
    fn has_one_of(&mut self, tags: &[Tag]) -> String {
        let plain = tags.iter().filter_map(|tag| Tag::parse(tag.as_str()).ok());
        let all: BTreeSet<Tag> = tags.iter().cloned().chain(plain).collect();
        let names: Vec<String> = stored_names(&all).into_iter().map(|name| self.value(name)).collect();
        format!(
            "link.id IN (SELECT link_tag.link_id FROM link_tag JOIN tag ON tag.id = link_tag.tag_id WHERE tag.name IN ({}))",
            names.join(", ")
        )
    }
}
