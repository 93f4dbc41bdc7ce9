//! The query of a list of links.

use links::{PER_PAGE, TagsMode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Flag, Time,
    page::{PageNumber, PageSize},
    values::inline_schema,
};

/// Orders of links, by the field that they are sorted by.
const ORDERS: &str = "dateCreated|shortCode|longUrl|title|visits|nonBotVisits|lastVisit";

/// The query of a list of links.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkListQuery {
    /// The page, from 1. One behind the last is empty.
    #[schemars(with = "PageNumber", extend("default" = 1))]
    pub page: Option<String>,
    /// The number of links per page; -1 asks for as many as a page can have. The answer says how
    /// many the page has.
    #[schemars(with = "PageSize", extend("default" = PER_PAGE))]
    pub items_per_page: Option<String>,
    /// A text that the slug, long URL, title, a tag or the domain of the links contains, regardless
    /// of case; or a whole code.
    pub search_term: Option<String>,
    /// The exact long URL: all codes that lead there. An index answers it, and new links are found
    /// at once.
    #[schemars(with = "String", extend("x-addition" = true))]
    pub long_url: Option<String>,
    /// The caller's own id of the link (`externalId` of a create by the same API key).
    #[schemars(with = "String", extend("x-addition" = true))]
    pub external_id: Option<String>,
    /// The domain of the links; `DEFAULT` for the default one.
    pub domain: Option<String>,
    /// Tags that the links have.
    #[serde(rename = "tags[]")]
    pub tags: Vec<String>,
    /// Whether the links have any or all of the tags.
    #[schemars(with = "MatchMode", extend("default" = "any"))]
    pub tags_mode: TagsMode,
    /// Tags that the links do not have.
    #[serde(rename = "excludeTags[]")]
    pub exclude_tags: Vec<String>,
    /// Whether any or all of these tags exclude a link.
    #[schemars(with = "MatchMode", extend("default" = "any"))]
    pub exclude_tags_mode: TagsMode,
    /// Only links that were created from this time on. RFC 3339, or a date, which means its
    /// beginning.
    #[schemars(with = "Time")]
    pub start_date: Option<String>,
    /// Only links that were created until this time.
    #[schemars(with = "Time")]
    pub end_date: Option<String>,
    /// Leaves out links whose `validUntil` has passed.
    #[schemars(with = "bool", extend("default" = false))]
    pub exclude_past_valid_until: Flag,
    /// Leaves out links whose visit limit is used up.
    #[schemars(with = "bool", extend("default" = false))]
    pub exclude_max_visits_reached: Flag,
    /// The name of an API key: only links that were created with it. A limited key can ask about
    /// itself only.
    pub api_key_name: Option<String>,
    /// Lists the deleted links, and no others.
    #[schemars(with = "bool", extend("default" = false))]
    pub deleted: Flag,
    /// The field to sort by, followed by `-ASC` or `-DESC`; by default the latest links come first.
    /// Only a list that fits one page can be sorted by `shortCode`.
    #[schemars(with = "String", regex(pattern = format!("^({ORDERS})(-(ASC|DESC))?$")))]
    #[schemars(extend("examples" = ["dateCreated-DESC"]))]
    pub order_by: Option<String>,
}

/// The criteria of a change of many links, which are those of a list.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[schemars(extend("x-addition" = true))]
pub struct LinkFilter {
    /// A text that the slug, long URL, title, a tag or the domain of the links contains, regardless
    /// of case; or a whole code.
    pub search_term: Option<String>,
    /// The exact long URL.
    pub long_url: Option<String>,
    /// The domain of the links; `DEFAULT` for the default one.
    pub domain: Option<String>,
    /// Tags that the links have.
    pub tags: Vec<String>,
    /// Whether the links have any or all of the tags.
    #[schemars(with = "MatchMode", extend("default" = "any"))]
    pub tags_mode: TagsMode,
    /// Tags that the links do not have.
    pub exclude_tags: Vec<String>,
    /// Whether any or all of these tags exclude a link.
    #[schemars(with = "MatchMode", extend("default" = "any"))]
    pub exclude_tags_mode: TagsMode,
    /// Only links that were created from this time on.
    pub start_date: Option<Time>,
    /// Only links that were created until this time.
    pub end_date: Option<Time>,
    /// Leaves out links whose `validUntil` has passed.
    #[schemars(extend("default" = false))]
    pub exclude_past_valid_until: Flag,
    /// Leaves out links whose visit limit is used up.
    #[schemars(extend("default" = false))]
    pub exclude_max_visits_reached: Flag,
    /// The name of an API key: only links that were created with it.
    pub api_key_name: Option<String>,
}

impl From<LinkFilter> for LinkListQuery {
    fn from(filter: LinkFilter) -> Self {
        Self {
            search_term: filter.search_term,
            long_url: filter.long_url,
            domain: filter.domain,
            tags: filter.tags,
            tags_mode: filter.tags_mode,
            exclude_tags: filter.exclude_tags,
            exclude_tags_mode: filter.exclude_tags_mode,
            start_date: filter.start_date.map(|Time(text)| text),
            end_date: filter.end_date.map(|Time(text)| text),
            exclude_past_valid_until: filter.exclude_past_valid_until,
            exclude_max_visits_reached: filter.exclude_max_visits_reached,
            api_key_name: filter.api_key_name,
            ..Self::default()
        }
    }
}

inline_schema!(
    struct MatchMode,
    json_schema!({
        "oneOf": [
            { "description": "One of the tags is enough.", "type": "string", "const": "any" },
            { "description": "All tags are needed.", "type": "string", "const": "all" },
        ],
    })
);
