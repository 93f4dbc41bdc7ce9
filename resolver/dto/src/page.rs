//! Pages of lists, as Shlink counts them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::inline_schema;

/// The position of a page in a list. An empty list has one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// The requested page, from 1.
    pub current_page: u64,
    /// The number of pages.
    pub pages_count: u64,
    /// The number of items per page.
    pub items_per_page: u64,
    /// The number of items on this page.
    pub items_in_current_page: u64,
    /// The number of items on all pages. For very long lists of links it grows from page
    /// to page, up to the last one.
    pub total_items: u64,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Page<T> {
    /// The items.
    pub data: Vec<T>,
    /// The position of the page.
    pub pagination: Pagination,
}

/// The query of a list that is read backwards.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BeforeQuery {
    /// The number that the last page ended with: what is before it is returned.
    #[schemars(with = "i64", extend("x-addition" = true))]
    pub before: Option<String>,
}

/// A page of a list that is read backwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Backwards<T> {
    /// The items, the latest first.
    pub data: Vec<T>,
    /// The number to ask for the next page with; null at the end.
    pub before: Option<i64>,
}

/// A list that is answered whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Data<T> {
    /// The items.
    pub data: Vec<T>,
}

// For a number that has a meaning to Shlink also below 1.
inline_schema!(
    pub(super) struct AnyInteger,
    json_schema!({ "type": "integer", "minimum": i64::MIN, "maximum": i64::MAX })
);

inline_schema!(
    pub(super) struct PageNumber,
    json_schema!({ "type": "integer", "minimum": 1, "maximum": u64::MAX })
);

inline_schema!(
    pub(super) struct PageSize,
    json_schema!({
        "type": "integer", "anyOf": [{ "minimum": 1, "maximum": i64::MAX }, { "const": -1 }],
    })
);
