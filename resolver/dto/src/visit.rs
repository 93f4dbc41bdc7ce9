//! Visits and their counts, in Shlink's shapes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DateTime, Page, Time, page::AnyInteger, values::inline_schema};

/// Counts of visits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisitsSummary {
    /// All visits.
    pub total: u64,
    /// Visits of people.
    pub non_bots: u64,
    /// Visits of bots.
    pub bots: u64,
}

impl VisitsSummary {
    /// Makes the summary of all visits and those of bots.
    pub fn new(total: u64, bots: u64) -> Self {
        Self { total, non_bots: total.saturating_sub(bots), bots }
    }
}

/// Counts of all visits.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct VisitsOverview {
    /// The counts.
    pub visits: VisitsByKind,
}

/// Counts of visits that a link redirected, and of the others.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct VisitsByKind {
    /// Visits that a link redirected.
    pub non_orphan_visits: VisitsSummary,
    /// Visits that no link redirected.
    pub orphan_visits: VisitsSummary,
}

/// A page of visits, the latest first.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct VisitPage<'a> {
    /// The page.
    pub visits: Page<Visit<'a>>,
}

/// A visit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Visit<'a> {
    /// The page that the visitor came from.
    pub referer: &'a str,
    /// When the visit was.
    pub date: DateTime,
    /// The user agent that the visitor's browser sends.
    pub user_agent: &'a str,
    /// The visitor's location, if it is known.
    pub visit_location: Option<VisitLocation<'a>>,
    /// Whether the visit looks like a bot's.
    pub potential_bot: bool,
    /// The URL that was requested; null if it is not known any more.
    pub visited_url: Option<&'a str>,
    /// The URL that the visitor was redirected to; null if to none, or if it is not known any more,
    /// because the link was edited since.
    pub redirect_url: Option<&'a str>,
    /// The kind of a visit that no link redirected. Other visits do not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrphanType>")]
    pub r#type: Option<&'static str>,
}

/// The location of a visitor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VisitLocation<'a> {
    /// The country, as two letters of ISO 3166-1.
    pub country_code: &'a str,
    /// The name of the country.
    pub country_name: &'a str,
    /// The name of the region.
    pub region_name: &'a str,
    /// The name of the city.
    pub city_name: &'a str,
    /// The latitude in degrees.
    pub latitude: f64,
    /// The longitude in degrees.
    pub longitude: f64,
    /// The name of a time zone.
    pub timezone: &'a str,
    /// Whether none of this is known.
    pub is_empty: bool,
}

/// The number of visits that were deleted.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedVisits {
    /// The number of visits.
    pub deleted_visits: u64,
}

/// The query of an erasure of visits.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("required" = ["address"]))]
pub struct ErasureQuery {
    /// The address, or a network with the length of its prefix.
    #[schemars(with = "AddressOrNetwork", extend("x-addition" = true))]
    pub address: Option<String>,
}

/// The number of visits that were erased.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct ErasedVisits {
    /// The number of single visits that were deleted so far.
    pub deleted_visits: u64,
    /// Whether there are no more.
    pub is_complete: bool,
}

/// The query of a list of visits.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct VisitsQuery {
    /// The page, from 1, which a lower number stands for as well. One behind the last is empty.
    #[schemars(with = "AnyInteger", extend("default" = 1))]
    pub page: Option<String>,
    /// The number of items per page; all if it is below 1 or absent.
    #[schemars(with = "AnyInteger")]
    pub items_per_page: Option<String>,
    /// Only visits from this time on. RFC 3339, or a date, which means its beginning.
    #[schemars(with = "Time")]
    pub start_date: Option<String>,
    /// Only visits until this time, whose second is included.
    #[schemars(with = "Time")]
    pub end_date: Option<String>,
    /// Leaves out visits of bots. Its presence counts, whatever the value.
    pub exclude_bots: Option<String>,
}

/// The query of a list of visits on one domain, beside [`VisitsQuery`].
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct VisitsDomainQuery {
    /// Only visits on this domain; `DEFAULT` for the default one. A domain that does not exist has
    /// no visits.
    pub domain: Option<String>,
}

/// The query of a list of visits that no link redirected: its kind, beside [`VisitsQuery`].
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OrphanVisitsQuery {
    /// The kind of these visits.
    #[schemars(with = "OrphanType")]
    pub r#type: Option<String>,
}

impl OrphanVisitsQuery {
    /// The kinds of visits that no link redirected.
    pub const TYPES: [&str; 3] = ["base_url", "invalid_short_url", "regular_404"];
}

inline_schema!(struct OrphanType, json_schema!({ "type": "string", "enum": OrphanVisitsQuery::TYPES }));

inline_schema!(struct AddressOrNetwork, {
    let byte = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])";
    let network = format!(r"^{byte}(\.{byte}){{3}}/([89]|[12][0-9]|3[0-2])$");
    json_schema!({
        "type": "string",
        "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }, { "pattern": network }],
        "examples": ["192.0.2.7", "192.0.2.0/24", "2001:db8::/48"],
    })
});
