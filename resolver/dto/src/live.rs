//! Live visits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DateTime, Flag, ShortUrl, Visit};

/// A visit that was just stored: the data of an event `visit`, and of Shlink's updates.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveVisit<'a> {
    /// The link, whose counts include this visit. Absent if no link redirected the visit, and if
    /// the key lacks the scope `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short_url: Option<ShortUrl<'a>>,
    /// The visit.
    pub visit: Visit<'a>,
}

/// Visits that were stored and not sent: the data of an event `skipped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkippedVisits {
    /// How many there were at least; null if that is unknown, or if the key sees only some links.
    pub visits: Option<u64>,
}

/// The query of live visits. A visit has to fit all parameters.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LiveVisitsQuery {
    /// Only visits of the link with this code or slug, on `domain`.
    pub short_code: Option<String>,
    /// Only visits of links with this tag.
    pub tag: Option<String>,
    /// Only visits on this domain; `DEFAULT` for the default one.
    pub domain: Option<String>,
    /// Only visits that no link redirected, or only the others.
    #[schemars(with = "bool")]
    pub orphan: Option<Flag>,
}

/// Where and with which token Shlink's clients find live visits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MercureInfo {
    /// The URL of the hub.
    pub mercure_hub_url: String,
    /// A token that the hub takes: a JWT.
    pub token: String,
    /// When the token expires.
    pub jwt_expiration: DateTime,
}
