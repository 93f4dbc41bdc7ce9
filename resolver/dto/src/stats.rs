//! Statistics of visits, ready to be drawn. An addition to Shlink's API.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DateTime, Time, VisitsSummary, values::inline_schema};

/// Statistics of visits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct Stats<'a> {
    /// The distance between the points of a series.
    #[schemars(with = "IntervalName")]
    pub interval: &'static str,
    /// The time zone that the series follow.
    pub time_zone: &'a str,
    /// Visits of the range.
    #[serde(flatten)]
    pub current: StatsRange,
    /// Visits of the range of equal length before, if they were asked for.
    pub previous: Option<StatsRange>,
    /// The UTC days that the dimensions, visitors and addresses count: those that the range
    /// touches.
    pub days: StatsDays,
    /// The most frequent values of each dimension, by its name; the most frequent first. An empty
    /// value is unknown. The last one may be `(other)`: all others, added up. Each dimension but
    /// `outcome` counts redirects; of a link's visits, `outcome` counts those too that it did not
    /// redirect.
    pub dimensions: BTreeMap<&'static str, Vec<StatsValue<'a>>>,
    /// Distinct visitors, without bots.
    pub visitors: StatsDistinct,
    /// Distinct addresses, without those of bots.
    pub addresses: StatsDistinct,
}

/// Visits of a range.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct StatsRange {
    /// The first second. The range is extended to whole quarter hours.
    pub start_date: DateTime,
    /// The last second.
    pub end_date: DateTime,
    /// All visits of the range.
    pub visits: VisitsSummary,
    /// Visits by interval, the earliest first. The first and the last point count what lies in the
    /// range.
    pub series: Vec<StatsPoint>,
}

/// A point of a series.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct StatsPoint {
    /// The beginning of the interval on the clocks of the time zone.
    pub start: DateTime,
    /// All visits.
    pub total: u64,
    /// Visits of bots.
    pub bots: u64,
}

/// A value of a dimension.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(extend("x-addition" = true))]
pub struct StatsValue<'a> {
    /// The value.
    pub value: &'a str,
    /// All visits with it.
    pub total: u64,
    /// Visits of bots with it.
    pub bots: u64,
}

/// UTC days, both included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct StatsDays {
    /// The first day.
    #[schemars(extend("format" = "date"))]
    pub first: String,
    /// The last day.
    #[schemars(extend("format" = "date"))]
    pub last: String,
}

/// A number of distinct visitors or addresses.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-addition" = true))]
pub struct StatsDistinct {
    /// The number.
    pub count: u64,
    /// The relative error: 95 % of such numbers are closer to the truth. 0 for one that was counted
    /// rather than estimated.
    #[schemars(range(min = 0))]
    pub error: f64,
    /// What the number counts.
    pub meaning: &'static str,
}

/// The query of statistics.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-addition" = true))]
pub struct StatsQuery {
    /// Only visits of the link with this code or slug. At most one of `shortCode`, `tag` and
    /// `orphan` can be given; without any, all visits that a link redirected are counted.
    pub short_code: Option<String>,
    /// The domain of the link, or only visits on this domain; `DEFAULT` for the default one.
    pub domain: Option<String>,
    /// Only visits of links with this tag.
    pub tag: Option<String>,
    /// Visits that no link redirected: all of them, or of one kind.
    #[schemars(with = "OrphanChoice")]
    pub orphan: Option<String>,
    /// Only visits from this time on. RFC 3339, or a date, which means its beginning. Without an
    /// offset it is in `timeZone`. By default it is the day of the first visit.
    #[schemars(with = "Time")]
    pub start_date: Option<String>,
    /// Only visits until this time; now by default.
    #[schemars(with = "Time")]
    pub end_date: Option<String>,
    /// The distance between the points of the series; by default one that fits the range.
    #[schemars(with = "IntervalName")]
    pub interval: Option<String>,
    /// The time zone whose days and weeks the series follows, by its IANA name; by default that of
    /// the server.
    #[schemars(with = "String", extend("examples" = ["Europe/Berlin"]))]
    pub time_zone: Option<String>,
    /// Leaves out visits of bots. Its presence counts, whatever the value.
    pub exclude_bots: Option<String>,
    /// Names of dimensions, separated by commas; all by default.
    #[schemars(with = "String", extend("examples" = ["referrer,country"]))]
    pub dimensions: Option<String>,
    /// The number of values of each dimension. The others are added up.
    #[schemars(with = "TopCount", extend("default" = 20))]
    pub top: Option<String>,
    /// `previous` counts the range of equal length before, too. Without `startDate` there is none.
    #[schemars(with = "Comparison")]
    pub compare: Option<String>,
}

impl StatsQuery {
    /// Names of intervals.
    pub const INTERVALS: [&str; 5] = ["15min", "hour", "day", "week", "month"];
    /// The value of `compare`.
    pub const PREVIOUS: &str = "previous";
    /// The value of `orphan` for all kinds.
    pub const ALL_ORPHANS: &str = "all";
    /// Maximum number of values of a dimension.
    pub const TOP_MAX: usize = 1_000;
}

inline_schema!(struct IntervalName, json_schema!({ "type": "string", "enum": StatsQuery::INTERVALS }));

inline_schema!(
    struct TopCount,
    json_schema!({ "type": "integer", "minimum": 1, "maximum": StatsQuery::TOP_MAX })
);

inline_schema!(struct Comparison, json_schema!({ "type": "string", "enum": [StatsQuery::PREVIOUS] }));

inline_schema!(struct OrphanChoice, {
    let kinds = super::OrphanVisitsQuery::TYPES.into_iter();
    let all: Vec<&str> = std::iter::once(StatsQuery::ALL_ORPHANS).chain(kinds).collect();
    json_schema!({ "type": "string", "enum": all })
});
