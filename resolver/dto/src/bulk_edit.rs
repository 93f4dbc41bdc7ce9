//! Edits and deletions of many links.

use links::{BULK_NAMES_MAX, BULK_PAGE, BULK_PAGE_MAX, TAGS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Flag, LinkFilter, Number, ShortUrlEdit, ShortUrlName};

/// A change of many links, selected by a filter or by name.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct BulkEdit {
    /// Selects the links that meet all criteria. Without any criterion, `all` is required.
    #[schemars(with = "Option<LinkFilter>")]
    pub filter: Option<Map<String, Value>>,
    /// Whether a filter without any criterion selects all links that the key sees.
    #[schemars(extend("default" = false))]
    pub all: Flag,
    /// Selects links by name instead of by a filter. Each is changed once.
    #[schemars(length(max = BULK_NAMES_MAX))]
    pub short_urls: Vec<LinkNamed>,
    /// The fields to set on each link, as in an edit of one link. `customSlug` is refused, and
    /// `password` can only be null.
    #[schemars(with = "Option<ShortUrlEdit>")]
    pub changes: Option<Map<String, Value>>,
    /// Tags to add to each link.
    #[schemars(length(max = TAGS_MAX))]
    pub add_tags: Vec<String>,
    /// Tags to remove from each link.
    #[schemars(length(max = TAGS_MAX))]
    pub remove_tags: Vec<String>,
    /// Whether to delete the links instead, which also requires the scope `delete`.
    #[schemars(extend("default" = false))]
    pub delete: Flag,
    /// Whether to report what would be changed without storing anything. Requires the scope `read`.
    #[schemars(extend("default" = false))]
    pub dry_run: Flag,
    /// The cursor `next` of the previous page.
    pub after: Option<String>,
    /// The maximum number of links of this page.
    #[schemars(range(max = BULK_PAGE_MAX), extend("default" = BULK_PAGE))]
    pub limit: Option<Number>,
}

/// The name of a link in a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct LinkNamed {
    /// The code or slug.
    pub short_code: String,
    /// The domain; null for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// The outcome for a page of links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct BulkEdited {
    /// The number of links of the page.
    pub matched: u64,
    /// The number of links that were changed; in a dry run, that would be changed.
    pub changed: u64,
    /// The number of links that already had the requested values. They keep their versions.
    pub unchanged: u64,
    /// The links that were not changed.
    pub failed: Vec<BulkFailure>,
    /// In a dry run, some of the links that would be changed.
    pub sample: Vec<ShortUrlName>,
    /// The cursor of the next page; null at the end.
    pub next: Option<String>,
}

/// A link that was not changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct BulkFailure {
    /// The code or slug.
    pub short_code: String,
    /// The domain; null for the default one.
    pub domain: Option<String>,
    /// The reason, as a call for this link alone would report it.
    pub problem: String,
}
