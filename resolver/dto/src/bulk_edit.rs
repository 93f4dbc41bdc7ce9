//! Edits and deletions of many links.

use links::{BULK_NAMES_MAX, BULK_PAGE, BULK_PAGE_MAX, TAGS_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Flag, LinkFilter, Number, ShortUrlEdit, ShortUrlName};

/// A change of many links: those that meet a filter, or those that are named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct BulkEdit {
    /// The links: those that meet all criteria. Without a criterion it needs `all`.
    #[schemars(with = "Option<LinkFilter>")]
    pub filter: Option<Map<String, Value>>,
    /// Whether a filter without a criterion means all links that the key sees.
    #[schemars(extend("default" = false))]
    pub all: Flag,
    /// The links by their names, in place of a filter. Each is changed once.
    #[schemars(length(max = BULK_NAMES_MAX))]
    pub short_urls: Vec<LinkNamed>,
    /// The fields that each link gets, as in an edit of one link. `customSlug` is refused, and
    /// `password` can only be null.
    #[schemars(with = "Option<ShortUrlEdit>")]
    pub changes: Option<Map<String, Value>>,
    /// Tags that each link gets beside those that it has.
    #[schemars(length(max = TAGS_MAX))]
    pub add_tags: Vec<String>,
    /// Tags that each link loses.
    #[schemars(length(max = TAGS_MAX))]
    pub remove_tags: Vec<String>,
    /// Whether the links are deleted instead, which needs the scope `delete` as well.
    #[schemars(extend("default" = false))]
    pub delete: Flag,
    /// Whether nothing is stored: the answer says what would be. It needs the scope `read` as well.
    #[schemars(extend("default" = false))]
    pub dry_run: Flag,
    /// The cursor `next` of the page before.
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

/// What became of a page of links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct BulkEdited {
    /// The number of links of the page.
    pub matched: u64,
    /// The number of links that were changed; of a dry run, that would be.
    pub changed: u64,
    /// The number of links that were as wished already. They keep their versions.
    pub unchanged: u64,
    /// The links that were not changed.
    pub failed: Vec<BulkFailure>,
    /// Of a dry run: some of the links that would be changed.
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
    /// The reason, as the call for this link alone would have it.
    pub problem: String,
}
