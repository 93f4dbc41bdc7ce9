//! Links that contain a text: in the long URL, the title, the slug, a tag, or the domain's name.
//!
//! 1. What few links contain is found by the index of texts, and among the links that are not in it
//!    yet ([`link_index`](super::link_index)). Its entries may be stale, so the conditions on the
//!    link itself apply as well.
//! 2. What many contain is soon found without an index ([`outline`](super::list::outline)), and has
//!    too many entries in this one.
//! 3. On SQLite, for a text in a domain's name, and for callers who do not see all links, there is
//!    no index.
//!
//! The steps are statements of their own: Postgres cannot know how many links a text finds, and
//! chooses a plan for hundreds of thousands.

use codes::LinkId;
use links::{DomainId, Filter, search_key};

use super::{Dialect, Sql, Value, details::SLUG, link_index::state, wanted::Wanted};
use crate::{LinkIndex, Result};

/// If so many of the first links of a list contain a text, the index has too many entries for it.
const COMMON: u64 = 100;
/// The most links that are looked at one by one.
const FEW: usize = 20_000;
/// The most links that the index may lack. They are all read.
const BEHIND: usize = 100_000;
/// The most tags that are looked for by their numbers.
const TAGS: usize = 100;

/// A text to search for.
pub(super) struct Search {
    /// Its search key.
    pub(super) key: String,
    /// The domains whose names contain it.
    pub(super) domains: Vec<DomainId>,
    /// The link that it is the code of.
    pub(super) code: Option<LinkId>,
    tags: Tags,
}

/// The tags whose names contain a text.
enum Tags {
    Few(Vec<i64>),
    /// Any number of them.
    Many,
}

impl Search {
    /// Returns what a filter searches for.
    pub(super) async fn of(sql: &mut dyn Sql, filter: &Filter, code: Option<LinkId>) -> Result<Option<Self>> {
        let Some(text) = &filter.search else { return Ok(None) };
        let key = search_key(text).into_owned();
        let mut tags = Tags::Many;
        // To other callers, the time that it takes would tell which tags there are.
        if filter.sees_all {
            let contains = sql.dialect().contains("tag.name", "$1");
            let find = format!("SELECT id FROM tag WHERE {contains} LIMIT {}", TAGS + 1);
            let found = numbers(sql, &find, &[Value::Text(key.clone())]).await?;
            if found.len() <= TAGS {
                tags = Tags::Few(found);
            }
        }
        Ok(Some(Self { key, domains: filter.search_domains.clone(), code, tags }))
    }

    /// Adds a condition that only links meet which are known to contain the text, if they are few.
    /// `found` is how many of the first links contain it, if that is known.
    pub(super) async fn narrow(
        &self,
        sql: &mut dyn Sql,
        wanted: &mut Wanted,
        found: Option<u64>,
    ) -> Result<()> {
        if sql.dialect() == Dialect::Sqlite || !self.domains.is_empty() {
            return Ok(());
        }
        let is_common = match found {
            Some(found) => found >= COMMON,
            None => self.is_common(sql).await?,
        };
        if is_common {
            return Ok(());
        }
        // Read first: a link that comes into the index meanwhile is found as one that is not in it.
        let until = format!("SELECT indexed_until FROM {}", state(LinkIndex::Texts));
        let Some(until) = sql.first(&until, &[]).await? else { return Ok(()) };
        let until = Value::Time(until.time(0)?);
        let behind = format!(
            "SELECT 1 FROM link WHERE created_at >= $1 ORDER BY created_at, id LIMIT 1 OFFSET {BEHIND}"
        );
        if sql.first(&behind, std::slice::from_ref(&until)).await?.is_some() {
            return Ok(());
        }
        let Some(mut ids) = self.links_with_tags(sql).await? else { return Ok(()) };
        ids.extend(self.code.map(LinkId::get));
        let Some(indexed) = self.indexed(sql).await? else { return Ok(()) };
        ids.extend(indexed);
        let later = format!(
            "SELECT id FROM link WHERE created_at >= $1 AND {} LIMIT {}",
            Self::in_texts(sql.dialect(), "$2"),
            FEW + 1
        );
        ids.extend(numbers(sql, &later, &[until, Value::Text(self.key.clone())]).await?);
        if ids.len() <= FEW {
            let ids: Vec<LinkId> = ids.into_iter().map(LinkId::from_stored).collect();
            let ids = wanted.value(Value::ids(&ids));
            wanted.parts.push(sql.dialect().among("link.id", &ids));
        }
        Ok(())
    }

    /// Returns the links whose texts in the index contain this one, or a word of it; `None` if they
    /// are many.
    ///
    /// The longest word is looked for first: each further one takes as long again, and often leaves
    /// out no link. Without a word of three letters the index is of no use.
    async fn indexed(&self, sql: &mut dyn Sql) -> Result<Option<Vec<i64>>> {
        let words = self.key.split(|one: char| !one.is_alphanumeric());
        let word = words.max_by_key(|word| word.len()).filter(|word| word.chars().count() >= 3);
        let Some(word) = word else { return Ok(None) };
        let find = format!("SELECT link_id FROM link_text WHERE text LIKE $1 LIMIT {}", FEW + 1);
        for text in [word, &self.key] {
            // As `link_search_text` has it.
            let pattern = format!("%{}%", escaped(text).replace('Σ', "σ"));
            let ids = numbers(sql, &find, &[Value::Text(pattern)]).await?;
            if ids.len() <= FEW {
                return Ok(Some(ids));
            }
        }
        Ok(None)
    }

    /// Returns whether many links contain the text. Nodes would each send their newest links for
    /// it, so there it is not known.
    async fn is_common(&self, sql: &mut dyn Sql) -> Result<bool> {
        if sql.is_distributed() {
            return Ok(false);
        }
        let mut wanted = Wanted::new(sql.dialect());
        wanted.state_and_time(&Filter::default());
        let newest = wanted.first_links("link.created_at DESC, link.id DESC");
        wanted.search(self);
        Ok(wanted.count(sql, &newest, COMMON).await? == COMMON)
    }

    /// Returns the links with a tag whose name contains the text; `None` if they may be many.
    async fn links_with_tags(&self, sql: &mut dyn Sql) -> Result<Option<Vec<i64>>> {
        match &self.tags {
            Tags::Few(tags) if tags.is_empty() => Ok(Some(Vec::new())),
            Tags::Few(tags) => {
                let find = format!(
                    "SELECT link_id FROM link_tag WHERE tag_id IN ({}) LIMIT {}",
                    list(tags),
                    FEW + 1
                );
                Ok(Some(numbers(sql, &find, &[]).await?))
            }
            Tags::Many => Ok(None),
        }
    }

    /// SQL condition that one of a link's texts contains this one, whose search key is `key`.
    pub(super) fn in_texts(dialect: Dialect, key: &str) -> String {
        let ways = ["link.long_url", "link.title", SLUG].map(|column| dialect.contains(column, key));
        format!("({})", ways.join(" OR "))
    }

    /// SQL condition that a link has a tag whose name contains the text. `None` if there is no such
    /// tag.
    pub(super) fn is_tagged(&self, dialect: Dialect, key: &str) -> Option<String> {
        let (tagged, is_one) = match &self.tags {
            Tags::Few(tags) if tags.is_empty() => return None,
            Tags::Few(tags) => ("link_tag", format!("link_tag.tag_id IN ({})", list(tags))),
            Tags::Many => {
                ("link_tag JOIN tag ON tag.id = link_tag.tag_id", dialect.contains("tag.name", key))
            }
        };
        Some(format!("EXISTS (SELECT 1 FROM {tagged} WHERE link_tag.link_id = link.id AND {is_one})"))
    }
}

async fn numbers(sql: &mut dyn Sql, select: &str, values: &[Value]) -> Result<Vec<i64>> {
    sql.query(select, values).await?.iter().map(|row| row.int(0)).collect()
}

fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a text as a part of a pattern of LIKE.
fn escaped(text: &str) -> String {
    let escape = |one: char| matches!(one, '\\' | '%' | '_').then_some('\\').into_iter().chain([one]);
    text.chars().flat_map(escape).collect()
}
