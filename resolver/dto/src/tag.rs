//! Tags and their counts.

use links::Tag;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Page, VisitsSummary, page::AnyInteger};

/// The query of a list of tags.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TagsQuery {
    /// The page, from 1, which a lower number stands for as well. One behind the last is empty.
    #[schemars(with = "AnyInteger", extend("default" = 1))]
    pub page: Option<String>,
    /// The number of items per page; all if it is below 1 or absent.
    #[schemars(with = "AnyInteger")]
    pub items_per_page: Option<String>,
    /// A text that the names contain, regardless of case.
    pub search_term: Option<String>,
    /// `tag`, `shortUrlsCount`, `visits` or `nonBotVisits`, followed by `-ASC` or `-DESC`. Any
    /// other order is that of the names.
    #[schemars(with = "String", extend("examples" = ["shortUrlsCount-DESC"]))]
    pub order_by: Option<String>,
}

/// The query of a deletion of tags.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TagsDeletionQuery {
    /// The tags.
    #[serde(rename = "tags[]")]
    pub tags: Vec<String>,
}

/// The name of a tag, and its new name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("required" = ["oldName", "newName"]))]
pub struct TagRenaming {
    /// The present name, exactly.
    #[schemars(with = "String", length(min = 1, max = Tag::MAX_LEN), extend("format" = "tag"))]
    pub old_name: Option<String>,
    /// The new name, which is stored as it is given.
    #[schemars(with = "String", length(min = 1, max = Tag::MAX_LEN), extend("format" = "tag"))]
    pub new_name: Option<String>,
}

/// A tag with its counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TagStats<'a> {
    /// The name.
    pub tag: &'a str,
    /// The number of links that have the tag.
    pub short_urls_count: u64,
    /// Counts of the visits of these links.
    pub visits_summary: VisitsSummary,
}

/// A page of tags.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TagPage<'a> {
    /// The page, as names.
    pub tags: Page<&'a str>,
}

/// A page of tags with their counts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TagStatsPage<'a> {
    /// The page.
    pub tags: Page<TagStats<'a>>,
}
