//! A link as Shlink shows it. All fields are always there, in this order.

use links::RedirectStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::{VisitsSummary, page::Page, values::inline_schema};

/// A link.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortUrl<'a> {
    /// The URL that visitors open.
    pub short_url: String,
    /// The code, or the slug chosen by a person.
    pub short_code: String,
    /// The target, as it was written.
    pub long_url: &'a str,
    /// When the link was created.
    #[schemars(extend("format" = "date-time"))]
    pub date_created: String,
    /// The tags.
    pub tags: Vec<&'a str>,
    /// When and how often the link redirects.
    pub meta: LinkLimits,
    /// The domain; null for the default one, `(removed)` for one that was removed.
    pub domain: Option<String>,
    /// The name of the link for people.
    pub title: Option<&'a str>,
    /// Whether crawlers may follow the link.
    pub crawlable: bool,
    /// Whether the visitor's query is merged into the target.
    pub forward_query: bool,
    /// Counts of visits.
    pub visits_summary: VisitsSummary,
    /// Whether redirect rules lead some visitors elsewhere.
    pub has_redirect_rules: bool,
    /// A description for people.
    #[schemars(extend("x-addition" = true))]
    pub description: Option<&'a str>,
    /// Whether the link redirects.
    #[schemars(extend("x-addition" = true))]
    pub enabled: bool,
    /// The status of the link's redirects; null for the server's default.
    #[schemars(with = "StatusOrNull", extend("x-addition" = true))]
    pub redirect_status: Option<RedirectStatus>,
    /// Whether visitors are asked for a password.
    #[schemars(extend("x-addition" = true))]
    pub has_password: bool,
    /// The name of the API key that created the link; null for the operator's command line.
    #[schemars(extend("x-addition" = true))]
    pub created_by: Option<&'a str>,
    /// The name of the API key that last edited the link; null also if it was never edited.
    #[schemars(extend("x-addition" = true))]
    pub edited_by: Option<&'a str>,
    /// When the link was last edited.
    #[schemars(extend("format" = "date-time", "x-addition" = true))]
    pub edited_at: Option<String>,
    /// The version, which grows with each edit; it is also in `ETag`.
    #[schemars(extend("x-addition" = true))]
    pub version: u64,
    /// When the link was deleted; null for a link that is not deleted.
    #[schemars(extend("format" = "date-time", "x-addition" = true))]
    pub deleted_at: Option<String>,
    /// Why an operator took the link down; null for a link that was not taken down.
    #[schemars(extend("x-addition" = true))]
    pub blocked: Option<Takedown<'a>>,
}

/// Why and when an operator took a link down. The key that did it is in the log, which tenants do
/// not read.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct Takedown<'a> {
    /// The reason, in the operator's words.
    pub reason: &'a str,
    /// When the link was taken down.
    #[schemars(extend("format" = "date-time"))]
    pub date: String,
}

/// When and how often a link redirects.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkLimits {
    /// The link does not redirect before this time.
    #[schemars(extend("format" = "date-time"))]
    pub valid_since: Option<String>,
    /// The link does not redirect from this time on.
    #[schemars(extend("format" = "date-time"))]
    pub valid_until: Option<String>,
    /// How many visits are redirected.
    #[schemars(range(min = 1))]
    pub max_visits: Option<u64>,
}

/// A page of links.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShortUrlPage<'a> {
    /// The page.
    pub short_urls: Page<ShortUrl<'a>>,
}

/// The schema of a redirect status or null.
struct StatusOrNull;

inline_schema!(StatusOrNull, {
    let statuses = (300..400_u16).filter(|status| RedirectStatus::try_from(*status).is_ok());
    let all: Vec<Option<u16>> = statuses.map(Some).chain([None]).collect();
    json_schema!({ "enum": all })
});
