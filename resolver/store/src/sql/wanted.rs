//! Conditions on the links of a list or of a walk, as SQL.

use std::{collections::BTreeSet, slice::Chunks};

use codes::LinkId;
use links::{DomainId, Filter, Outlined, Tag, TagsMode};

use super::{
    Dialect, Sql, Value,
    details::{DELETED_AT, DOMAIN, DOMAIN_TEXT, GIVEN_UP, IS_ON_DEFAULT_DOMAIN, MAX_VISITS, VALID_UNTIL},
    list::{FIRST, Page, outlined, outlined_columns},
    long_urls::candidates,
    search::Search,
    tags::stored_names,
};
use crate::Result;

/// Conditions of a WHERE clause, and their parameters.
#[derive(Clone)]
pub(super) struct Wanted {
    dialect: Dialect,
    pub(super) parts: Vec<String>,
    pub(super) values: Vec<Value>,
    /// Whether Postgres looks up the links of the first tags in the order of their ids, in which
    /// neighbours share pages. Left to choose, it looks ten thousand of them up in a random order.
    pub(super) by_tag: bool,
    /// The placeholders of the ids after which the links are, and up to which.
    span: Option<[String; 2]>,
}

impl Wanted {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { dialect, parts: Vec::new(), values: Vec::new(), by_tag: false, span: None }
    }

    /// Adds the condition that a link's id is after one and not after another. The conditions on
    /// tags, which come later, look at the tags of these links only.
    pub(super) fn walk(&mut self, after: i64, end: i64) {
        let span = [after, end].map(|id| self.value(Value::Int(id)));
        self.parts.push(format!("link.id > {} AND link.id <= {}", span[0], span[1]));
        self.span = Some(span);
    }

    /// Returns outlines of the first links that meet the conditions, in the order of their ids.
    pub(super) async fn outlines(mut self, sql: &mut dyn Sql, most: usize) -> Result<Vec<Outlined>> {
        // SQLite numbers parameters in the order in which they appear, so this one is the last.
        let most = self.value(Value::count(most));
        let (columns, conditions) = (outlined_columns(self.dialect), self.parts.join(" AND "));
        let select = format!("SELECT {columns} FROM link WHERE {conditions} ORDER BY link.id LIMIT {most}");
        sql.query(&select, &self.values).await?.iter().map(outlined).collect()
    }

    /// Turns the conditions so far into a table of the first links that meet them.
    pub(super) fn first_links(&mut self, order: &str) -> String {
        let conditions = std::mem::take(&mut self.parts).join(" AND ");
        format!("(SELECT * FROM link WHERE {conditions} ORDER BY {order} LIMIT {FIRST}) AS link")
    }

    /// Returns how many rows of a table meet the conditions, or `most` if there are more.
    pub(super) async fn count(&self, sql: &mut dyn Sql, table: &str, most: u64) -> Result<u64> {
        let conditions = self.parts.join(" AND ");
        let count = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {conditions} LIMIT {most}) AS counted"
        );
        Ok(u64::try_from(sql.number(&count, &self.values).await?.unwrap_or(0)).unwrap_or(0))
    }

    /// Returns the ids of the links of a page, which are chosen from `table` in this order.
    pub(super) async fn ids(
        &self,
        sql: &mut dyn Sql,
        (table, order): (&str, &str),
        page: Page,
    ) -> Result<Vec<LinkId>> {
        let conditions = self.parts.join(" AND ");
        let (limit, offset) = (self.values.len() + 1, self.values.len() + 2);
        let values: Vec<Value> =
            self.values.iter().cloned().chain([page.len, page.first].map(Value::count)).collect();
        let select = format!(
            "SELECT link.id FROM {table} WHERE {conditions} ORDER BY {order} LIMIT ${limit} OFFSET ${offset}"
        );
        let rows = sql.query(&select, &values).await?;
        rows.iter().map(|row| Ok(LinkId::from_stored(row.int(0)?))).collect()
    }

    /// Adds a parameter, and returns its placeholder.
    pub(super) fn value(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }

    /// Adds the conditions on a link's state and time.
    pub(super) fn state_and_time(&mut self, filter: &Filter) {
        let not = if filter.deleted { "NOT " } else { "" };
        self.parts.push(format!("{DELETED_AT} IS {not}NULL"));
        if filter.deleted {
            self.parts.push(format!("{GIVEN_UP} IS NULL"));
        }
        if let Some(since) = filter.since {
            let since = self.value(Value::Time(since));
            self.parts.push(format!("link.created_at >= {since}"));
        }
        if let Some(until) = filter.until {
            let until = self.value(Value::Time(until));
            self.parts.push(format!("link.created_at <= {until}"));
        }
    }

    /// Adds all other conditions.
    pub(super) fn others(&mut self, filter: &Filter, search: Option<&Search>) {
        if filter.crawlable {
            self.parts.push("link.crawlable".to_owned());
        }
        if let Some(url) = &filter.long_url {
            let digest = self.value(Value::Int(url.digest()));
            let text = self.value(Value::Text(url.as_str().to_owned()));
            let candidates = candidates(self.dialect, &digest, &text, None);
            self.parts.push(format!("link.id IN ({candidates}) AND link.long_url = {text}"));
        }
        if let Some(digest) = &filter.external_id {
            let digest = self.value(Value::Text(digest.clone()));
            self.parts.push(format!("link.id IN (SELECT link_id FROM dedupe WHERE digest = {digest})"));
        }
        if let Some(search) = search {
            self.search(search);
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
        if let Some(since) = filter.visited_since {
            let since = self.value(Value::Time(since));
            // As `LAST_VISIT` has it, but Postgres can read all rows at once.
            self.parts.push(format!(
                "EXISTS (SELECT 1 FROM link_seen WHERE link_seen.link_id = link.id AND link_seen.total > 0
                  AND link_seen.seen_at >= {since})"
            ));
        }
        if !filter.listed_before.is_empty() {
            let ids = self.value(Value::ids(&filter.listed_before));
            self.parts.push(format!("link.id NOT IN ({})", self.dialect.numbers(&ids)));
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

    /// Adds the condition that a link contains a text.
    pub(super) fn search(&mut self, search: &Search) {
        let key = self.value(Value::Text(search.key.clone()));
        let mut ways = vec![Search::in_texts(self.dialect, &key)];
        ways.extend(search.is_tagged(self.dialect, &key));
        ways.extend(search.domains.iter().map(|domain| self.on_domain(*domain)));
        ways.extend(search.code.map(|id| format!("link.id = {}", self.value(Value::Int(id.get())))));
        self.parts.push(format!("({})", ways.join(" OR ")));
    }

    fn on_domain(&mut self, domain: DomainId) -> String {
        if domain.is_default() {
            return IS_ON_DEFAULT_DOMAIN.to_owned();
        }
        match self.dialect {
            // As the index has it.
            Dialect::Postgres => {
                format!("{DOMAIN_TEXT} = {}", self.value(Value::Text(domain.get().to_string())))
            }
            Dialect::Sqlite => format!("{DOMAIN} = {}", self.value(Value::Int(domain.get()))),
        }
    }

    fn tags(&mut self, tags: &[Tag], mode: TagsMode, is_excluded: bool) {
        if tags.is_empty() {
            return;
        }
        let conditions: Vec<String> = tag_sets(tags, mode).map(|tags| self.has_one_of(tags)).collect();
        let not = if is_excluded { "NOT " } else { "" };
        self.parts.push(format!("{not}({})", conditions.join(" AND ")));
    }

    /// Returns a condition for links with one of these tags.
    fn has_one_of(&mut self, tags: &[Tag]) -> String {
        let tagged = self.tagged(tags);
        // Of the first tags only: of two arrays, older releases of Postgres look up every pair.
        match std::mem::take(&mut self.by_tag) {
            true => format!("link.id = ANY(ARRAY({tagged}))"),
            false => format!("link.id IN ({tagged})"),
        }
    }

    /// Returns a query for the ids of links with one of these tags. A tag is matched under the name
    /// given and under its normalized name: they differ after a renaming.
    pub(super) fn tagged(&mut self, tags: &[Tag]) -> String {
        let names: Vec<String> = names_of(tags).into_iter().map(|name| self.value(name)).collect();
        let within = self.span.as_ref().map_or_else(String::new, |[after, end]| {
            format!(" AND link_tag.link_id > {after} AND link_tag.link_id <= {end}")
        });
        format!(
            "SELECT link_tag.link_id FROM link_tag JOIN tag ON tag.id = link_tag.tag_id WHERE tag.name IN ({}){within}",
            names.join(", ")
        )
    }
}

/// Splits tags into sets, of each of which a link must have a tag.
pub(super) fn tag_sets(tags: &[Tag], mode: TagsMode) -> Chunks<'_, Tag> {
    tags.chunks(match mode {
        TagsMode::Any => tags.len().max(1),
        TagsMode::All => 1,
    })
}

/// Returns the parameters for the names of tags in a filter, given and normalized.
pub(super) fn names_of(tags: &[Tag]) -> Vec<Value> {
    let plain = tags.iter().filter_map(|tag| Tag::parse(tag.as_str()).ok());
    let all: BTreeSet<Tag> = tags.iter().cloned().chain(plain).collect();
    stored_names(&all)
}
