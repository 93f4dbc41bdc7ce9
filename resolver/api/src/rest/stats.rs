//! `GET /rest/v3/stats`: statistics of visits. An addition to Shlink's API.

use std::collections::BTreeSet;

use app::{
    find_link::LinkName,
    visit_stats::{RangeCount, StatsRequest, TOP, VisitStats},
    visit_subjects::{OWN_LINKS_MAX, VisitsOf},
};
use dto::{DateTime, OrphanVisitsQuery, StatsQuery};
use jiff::tz::TimeZone;
use visits::{
    Day, OrphanKind, TimeRange,
    series::{Interval, rfc3339},
    tally::{Dimension, Estimate, RELATIVE_ERROR},
};

use super::{prelude::*, query::Query, read::time_range, visits::EXCLUDE_BOTS};

const SECOND: i64 = 1_000_000;

pub(super) fn routes() -> Vec<Route> {
    let names = Dimension::NAMES.map(|name| format!("`{name}`")).join(", ");
    vec![
        Route::new(Method::GET, "/rest/v3/stats", keyed!(Scope::Visits, show))
            .document("getStats", Topic::Visits, "Compute statistics of visits")
            .addition()
            .text(format!(
                "Totals, a series over time, the most frequent values of the dimensions {names}, distinct visitors and distinct \
                 addresses. They come from counters, so that visits count whose rows are not listed any more. Keys that see only their \
                 own links get the statistics of these, as long as they have at most {OWN_LINKS_MAX}, and none of visits that no link \
                 redirected."
            ))
            .query::<StatsQuery>()
            .answers::<dto::Stats>("The statistics.")
            .fails(&[Kind::NoShortUrl, Kind::NoTag]),
    ]
}

impl Fields for StatsQuery {}

async fn show(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (query, mut wrong): (StatsQuery, FieldErrors) = call.query();
    let people_only = Query::of(&call.uri).has(EXCLUDE_BOTS);
    let request = request(query, &call.api.time_zone, people_only, &mut wrong);
    let zone = request.zone.clone();
    let stats = call.api.links.visit_stats(request, wrong, by).await?;
    Ok(json(&shown(&stats, &zone)))
}

fn request(query: StatsQuery, zone: &TimeZone, people_only: bool, wrong: &mut FieldErrors) -> StatsRequest {
    let expected_zone = |_| "expected the name of a time zone, such as Europe/Berlin".to_owned();
    let named = query.time_zone.as_deref().map(TimeZone::get).transpose();
    let zone = wrong.note("timeZone", named.map_err(expected_zone)).flatten().unwrap_or_else(|| zone.clone());
    let (start, end) = time_range((query.start_date.as_deref(), query.end_date.as_deref()), &zone, wrong);
    let expected_interval = || format!("expected one of {}", StatsQuery::INTERVALS.join(", "));
    let interval = query.interval.map(|name| Interval::parse(&name).ok_or_else(expected_interval));
    let interval = wrong.note("interval", interval.transpose());
    let dimensions = wrong.note("dimensions", parse_dimensions(query.dimensions.as_deref()));
    let expected_top = |_| format!("expected a number from 1 to {}", StatsQuery::TOP_MAX);
    let top = query.top.map_or(Ok(TOP), |text| text.parse().map_err(expected_top));
    let top = wrong.note("top", top).unwrap_or(TOP);
    let compares = match query.compare.as_deref() {
        None => Ok(false),
        Some(StatsQuery::PREVIOUS) => Ok(true),
        Some(_) => Err(format!("expected {}", StatsQuery::PREVIOUS)),
    };
    let compares = wrong.note("compare", compares).unwrap_or_default();
    let of = subject(query.short_code, query.tag, query.orphan, query.domain, wrong);
    StatsRequest {
        of,
        start,
        end,
        interval: interval.flatten(),
        zone,
        people_only,
        dimensions: dimensions.unwrap_or_default(),
        top,
        compares,
    }
}

fn subject(
    code: Option<String>,
    tag: Option<String>,
    orphan: Option<String>,
    domain: Option<String>,
    wrong: &mut FieldErrors,
) -> VisitsOf {
    let kind = match orphan.as_deref() {
        None | Some(StatsQuery::ALL_ORPHANS) => Ok(None),
        Some(name) => OrphanKind::parse(name).map(Some).ok_or_else(|| {
            format!("expected one of {}, {}", StatsQuery::ALL_ORPHANS, OrphanVisitsQuery::TYPES.join(", "))
        }),
    };
    let kind = wrong.note("orphan", kind).flatten();
    let mut alone = |name: &str, is_alone: bool| {
        if !is_alone {
            wrong.add(name, "expected only one of shortCode, tag and orphan");
        }
    };
    alone("tag", code.is_none() || tag.is_none());
    alone("orphan", code.is_none() && tag.is_none() || orphan.is_none());
    match (code, tag, orphan) {
        (Some(code), ..) => VisitsOf::Link(LinkName { code, domain }),
        (None, Some(tag), _) => VisitsOf::Tag { tag, domain },
        (None, None, Some(_)) => VisitsOf::Orphans { kind, domain },
        (None, None, None) => VisitsOf::Links { domain },
    }
}

/// Parses names of dimensions; all of them without any.
fn parse_dimensions(text: Option<&str>) -> Result<Vec<Dimension>, String> {
    let Some(text) = text else { return Ok(Dimension::ALL.into()) };
    let named: Option<BTreeSet<Dimension>> =
        text.split(',').map(|name| Dimension::parse(name.trim())).collect();
    named.map(|dimensions| dimensions.into_iter().collect()).ok_or_else(|| {
        let names = Dimension::NAMES.join(", ");
        format!("expected some of {names}, separated by commas")
    })
}

fn shown<'a>(stats: &'a VisitStats, zone: &'a TimeZone) -> dto::Stats<'a> {
    let value = |(value, count): &'a (String, app::visit_stats::VisitCount)| dto::StatsValue {
        value,
        total: count.total,
        bots: count.bots,
    };
    let dimensions = stats.dimensions.iter();
    let (first, last) = stats.days;
    dto::Stats {
        interval: stats.interval.as_str(),
        time_zone: zone.iana_name().unwrap_or("UTC"),
        current: range(&stats.current, zone),
        previous: stats.previous.as_ref().map(|previous| range(previous, zone)),
        days: dto::StatsDays { first: date(first), last: date(last) },
        dimensions: dimensions
            .map(|(dimension, values)| (dimension.as_str(), values.iter().map(value).collect()))
            .collect(),
        visitors: distinct(stats.visitors, "visitors of each day, added up"),
        addresses: distinct(stats.addresses, "distinct addresses over the whole range"),
    }
}

fn range(count: &RangeCount, zone: &TimeZone) -> dto::StatsRange {
    let TimeRange { from, before } = count.range;
    let series = count.points.iter().map(|(start, count)| dto::StatsPoint {
        start: DateTime(rfc3339(*start, zone)),
        total: count.total,
        bots: count.bots,
    });
    dto::StatsRange {
        start_date: DateTime(rfc3339(from, zone)),
        end_date: DateTime(rfc3339(before - SECOND, zone)),
        visits: dto::VisitsSummary::new(count.visits.total, count.visits.bots),
        series: series.collect(),
    }
}

fn date(day: Day) -> String {
    let date = rfc3339(day.start(), &TimeZone::UTC);
    date.split_once('T').map_or_else(String::new, |(date, _)| date.to_owned())
}

fn distinct(Estimate { count, is_exact }: Estimate, meaning: &'static str) -> dto::StatsDistinct {
    dto::StatsDistinct { count, error: if is_exact { 0.0 } else { RELATIVE_ERROR }, meaning }
}

#[cfg(test)]
mod tests {
    use app::AppError;

    use super::*;
    use crate::rest::read::read_query;

    fn read(query: &str) -> (StatsRequest, Vec<String>) {
        let (fields, mut wrong) = read_query(&Query::new(Some(query)));
        let request = request(fields, &TimeZone::UTC, false, &mut wrong);
        let names = match wrong.finish() {
            Err(AppError::Invalid(fields)) => fields.into_iter().map(|field| field.field).collect(),
            _ => Vec::new(),
        };
        (request, names)
    }

    #[test]
    fn a_query_names_whose_visits_and_which_numbers() {
        let (request, wrong) = read(
            "shortCode=a%2Fb&domain=s.test&startDate=2026-11-01&timeZone=Europe%2FBerlin&interval=15min\
             &dimensions=os,+country,os&top=5&compare=previous",
        );
        assert_eq!(wrong, [""; 0]);
        let name = LinkName { code: "a/b".to_owned(), domain: Some("s.test".to_owned()) };
        assert_eq!((request.of, request.top, request.compares), (VisitsOf::Link(name), 5, true));
        assert_eq!(request.start, Some("2026-10-31T23:00:00Z".parse().unwrap()), "in the zone of the query");
        assert_eq!(request.dimensions, [Dimension::Os, Dimension::Country]);
        assert_eq!(request.interval, Some(Interval::QuarterHour));
        let (request, wrong) = read("");
        assert_eq!((request.of, wrong.len()), (VisitsOf::Links { domain: None }, 0));
        assert_eq!((request.dimensions.len(), request.top), (10, TOP));
        let orphans = |kind| VisitsOf::Orphans { kind, domain: None };
        assert_eq!(read("orphan=all").0.of, orphans(None));
        assert_eq!(read("orphan=base_url").0.of, orphans(Some(OrphanKind::BaseUrl)));
    }

    #[test]
    fn all_wrong_parameters_are_named() {
        let (_, wrong) = read(
            "timeZone=Berlin&startDate=x&endDate=y&interval=year&dimensions=os,shoe&top=-1&compare=next&orphan=some",
        );
        let expected =
            ["timeZone", "startDate", "endDate", "interval", "dimensions", "top", "compare", "orphan"];
        assert_eq!(wrong, expected);
        assert_eq!(read("shortCode=a&tag=b&orphan=all").1, ["tag", "orphan"]);
    }

    #[test]
    fn intervals_and_limits_are_those_of_the_application() {
        assert_eq!(StatsQuery::INTERVALS, Interval::NAMES);
        assert_eq!(StatsQuery::TOP_MAX, app::visit_stats::TOP_MAX);
        assert_eq!(OrphanVisitsQuery::TYPES, OrphanKind::NAMES);
    }
}
