//! Which links are listed, and in which order.

use codes::LinkId;
use jiff::Timestamp;

use super::{DomainId, LongUrl, Record, Slug, Tag};
use crate::api_key::ApiKeyId;

/// Which links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// A text that the long URL, the title, a tag or the slug has in it, whatever its case.
    pub search: Option<String>,
    /// Exactly this long URL.
    pub long_url: Option<LongUrl>,
    /// Tags that links have, one of them or all.
    pub tags: Vec<Tag>,
    /// Whether one of them is enough.
    pub tags_mode: TagsMode,
    /// Tags that links do not have.
    pub exclude_tags: Vec<Tag>,
    /// Whether one of them is enough to leave a link out, or it takes all of them.
    pub exclude_tags_mode: TagsMode,
    /// On this domain.
    pub domain: Option<DomainId>,
    /// Domains whose names have the searched text in them.
    pub search_domains: Vec<DomainId>,
    /// Created with one of these keys.
    pub created_by: Option<Vec<ApiKeyId>>,
    /// Created then or later.
    pub since: Option<Timestamp>,
    /// Created then or earlier.
    pub until: Option<Timestamp>,
    /// Those that were deleted, and no others.
    pub deleted: bool,
    /// Those that robots may follow, and no others.
    pub crawlable: bool,
    /// Without those that are past their time.
    pub exclude_past: bool,
    /// Without those that were followed as often as they may be.
    pub exclude_spent: bool,
    /// In which order.
    pub order: OrderBy,
    /// Which page, from 1.
    pub page: u64,
    /// Links of a page; none for all of them.
    pub per_page: Option<u64>,
}

/// How several tags go together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagsMode {
    /// One of them is enough.
    #[default]
    Any,
    /// It takes all of them.
    All,
}

/// An order of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderBy {
    /// By what.
    pub field: OrderField,
    /// Whether the highest comes first.
    pub descending: bool,
}

impl Default for OrderBy {
    /// The latest first.
    fn default() -> Self {
        Self { field: OrderField::DateCreated, descending: true }
    }
}

/// By what links are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderField {
    /// When they were created.
    DateCreated,
    /// Where they lead.
    LongUrl,
    /// What they are called.
    Title,
    /// By their numbers: whoever wants another order puts them into it.
    Id,
}

/// A page of a list before its links are read: which they are, and how much of them there is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// Its links.
    pub entries: Vec<Outlined>,
    /// How many there are on all pages.
    pub total: u64,
}

/// A link that is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlined {
    /// Its id.
    pub id: LinkId,
    /// Bytes of its texts, about.
    pub bytes: u64,
    /// Its slug, if a person picked one.
    pub slug: Option<Slug>,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its links.
    pub records: Vec<Record>,
    /// How many there are on all pages.
    pub total: u64,
}
