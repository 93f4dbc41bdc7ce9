//! Filters, ordering and pages of link lists.

use codes::LinkId;
use jiff::Timestamp;
use serde::Deserialize;

use super::{DomainId, LongUrl, Slug, Tag};
use crate::api_key::ApiKeyId;

const PIECE_LINKS: usize = 256;
/// Maximum size of a piece in bytes, unless it consists of one larger link.
const PIECE_BYTES: u64 = 256 * 1024;
/// Bytes that a link takes beside its texts.
const LINK_BYTES: u64 = 512;

/// Criteria that listed links have to meet, with order and page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Text that the long URL, the title, a tag or the slug contains, in any case.
    pub search: Option<String>,
    /// Exact long URL.
    pub long_url: Option<LongUrl>,
    /// Digest of an external id ([`ExternalId::digest`](crate::ExternalId::digest)).
    pub external_id: Option<String>,
    /// Tags that links must have, combined by `tags_mode`.
    pub tags: Vec<Tag>,
    /// Whether a link needs any or all of `tags`.
    pub tags_mode: TagsMode,
    /// Tags that links must not have, combined by `exclude_tags_mode`.
    pub exclude_tags: Vec<Tag>,
    /// Whether any of `exclude_tags` excludes a link, or only all of them together.
    pub exclude_tags_mode: TagsMode,
    /// Domain of the links.
    pub domain: Option<DomainId>,
    /// Domains whose names contain the `search` text. Their links match the search as well.
    pub search_domains: Vec<DomainId>,
    /// API keys, one of which created the link. An empty list matches no link.
    pub created_by: Option<Vec<ApiKeyId>>,
    /// Earliest creation time, inclusive.
    pub since: Option<Timestamp>,
    /// Latest creation time, inclusive.
    pub until: Option<Timestamp>,
    /// Earliest last visit, inclusive. A visit is known here some seconds after it was stored.
    pub visited_since: Option<Timestamp>,
    /// Links that are left out, because they are on the pages before those of the others. At most
    /// [`PER_PAGE_MAX`](crate::PER_PAGE_MAX).
    pub listed_before: Vec<LinkId>,
    /// Selects deleted links only; otherwise they are left out.
    pub deleted: bool,
    /// Selects crawlable links only.
    pub crawlable: bool,
    /// Leaves out links whose `valid_until` has passed.
    pub exclude_past: bool,
    /// Leaves out links that have reached their visit limit.
    pub exclude_spent: bool,
    /// Order of the list.
    pub order: OrderBy,
    /// Page number, from 1.
    pub page: u64,
    /// Links per page; `None` for all of them, up to the store's maximum.
    pub per_page: Option<u64>,
    /// Whether the caller may see all links. To others, the time that a list takes must not tell of
    /// links that they do not see, so a search of theirs reads all links.
    pub sees_all: bool,
    /// The number of links at which the count of all pages ends; `None` for the store's maximum.
    pub count_max: Option<u64>,
}

impl Filter {
    /// Returns the filter without its conditions: all links that are not deleted, in the same order
    /// and pages.
    pub fn of_all(&self) -> Self {
        let Self { order, page, per_page, count_max, sees_all, .. } = *self;
        Self { order, page, per_page, count_max, sees_all, ..Self::default() }
    }
}

/// How several tags are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagsMode {
    /// At least one of the tags.
    #[default]
    Any,
    /// All of the tags.
    All,
}

/// Sort order of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// Sort key.
    pub field: OrderField,
    /// Whether the highest value comes first.
    pub descending: bool,
}

impl Default for OrderBy {
    fn default() -> Self {
        Self { field: OrderField::DateCreated, descending: true }
    }
}

/// Sort key of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderField {
    /// Creation time.
    DateCreated,
    /// Target URL.
    LongUrl,
    /// Title.
    Title,
    /// Number of visits.
    Visits,
    /// Number of visits that no bot made.
    NonBotVisits,
    /// Time of the last visit; a link without one counts as visited before all others.
    LastVisit,
    /// Link id. Callers sort the result themselves for an order that the database does not know.
    Id,
}

/// A page of a list before its links are read: their ids, and the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Links of the page, in order.
    pub ids: Vec<LinkId>,
    /// Links on all pages.
    pub total: u64,
    /// Whether all of them were counted. Otherwise there are at least `total`.
    pub is_counted: bool,
}

/// Id and size of a link that has still to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Link id.
    pub id: LinkId,
    /// Approximate size of the link's texts and tags, in bytes.
    pub bytes: u64,
    /// Slug, if the code was hand-picked.
    pub slug: Option<Slug>,
}

impl Outlined {
    /// Returns the memory that the link takes, in bytes, including the overhead beside its texts.
    pub fn size(&self) -> u64 {
        self.bytes + LINK_BYTES
    }
}

/// Splits a page into pieces that take little memory each, unless a single link takes much.
pub fn pieces(entries: &[Outlined]) -> impl Iterator<Item = &[Outlined]> {
    grown_pieces(entries, 0)
}

/// Does the same for links of which each grows by so many bytes.
pub fn grown_pieces(mut entries: &[Outlined], growth: u64) -> impl Iterator<Item = &[Outlined]> {
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |entry: &&Outlined| {
            bytes += entry.size() + growth;
            bytes <= PIECE_BYTES
        };
        let count = entries.iter().take(PIECE_LINKS).take_while(fits).count().max(1).min(entries.len());
        let (piece, rest) = entries.split_at(count);
        entries = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_taken_apart_by_links_and_by_bytes() {
        let entries = |bytes: &[u64]| {
            let entry = |(id, bytes): (usize, &u64)| {
                let id = LinkId::from_stored(i64::try_from(id).unwrap());
                Outlined { id, bytes: *bytes, slug: None }
            };
            bytes.iter().enumerate().map(entry).collect::<Vec<_>>()
        };
        let lens = |bytes: &[u64]| pieces(&entries(bytes)).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(lens(&[]), [0; 0]);
        assert_eq!(lens(&[100; 300]), [256, 44]);
        assert_eq!(lens(&[100_000; 5]), [2, 2, 1]);
        assert_eq!(
            lens(&[PIECE_BYTES, 1, 1, 10 * PIECE_BYTES, 1]),
            [1, 2, 1, 1],
            "one that is too long is by itself"
        );
        let small = entries(&[100; 5]);
        let grown = grown_pieces(&small, 100_000).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(grown, [2, 2, 1], "links are counted as large as they become");
    }
}
