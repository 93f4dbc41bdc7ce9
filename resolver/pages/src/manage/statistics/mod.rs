//! Statistics of a link, a tag, a domain, all links, or visits that no link redirected.
//!
//! 1. The page, the download and the live count read one query (`selection.rs`) and call one use
//!    case, so that they agree.
//! 2. The form and the chart are written on the server. A script only replaces the number of
//!    visits, and only for a period that ends now.
//! 3. What visitors and users wrote is escaped by the templates, and in the download as cells.

mod figures;
mod rankings;
#[cfg(test)]
mod sample;
mod selection;
mod series;

use app::{
    AppError, FieldErrors,
    visit_stats::{VisitCount, VisitStats},
    visit_subjects::VisitsOf,
};
use askama::Template;
use hyper::StatusCode;
use jiff::tz::TimeZone;
use links::scope::Scope;
use serde_json::json;
use visits::{Day, OrphanKind, series::rfc3339, tally::Dimension};
use web::Answer;

use super::period::{Period, was_text};
use crate::{
    addresses, answer, context::Context, error::PageError, frame::Frame, locale::Locale, messages::message,
};
use figures::{change, exactness};
use rankings::Ranking;
use selection::{Selection, begin_with, query_of};
use series::ShownSeries;

/// The columns of the download.
const COLUMNS: [&str; 4] = ["part", "value", "visits", "bots"];
pub(super) const TABLE: &str = "/manage/statistics.csv";
pub(super) const COUNT: &str = "/manage/statistics/count";

/// Maximum number of tags that the form suggests. Others are typed.
const TAGS_MAX: usize = 1_000;

#[derive(Template)]
#[template(path = "manage/statistics.html")]
struct StatisticsPage<'a> {
    frame: Frame<'a>,
    selection: Selection,
    /// The kinds of visits that no link redirected, to choose from; none for other visits.
    kinds: Vec<Choice>,
    presets: Vec<Choice>,
    from: String,
    until: String,
    wrong: Option<String>,
    stats: Option<VisitStats>,
    /// Whether the period goes on, so that the page asks for the number of visits again and again.
    is_live: bool,
    zone: &'a TimeZone,
    tags: Vec<String>,
    domains: Vec<String>,
}

struct Choice {
    query: String,
    text: String,
    is_chosen: bool,
}

/// Says which days visitors, addresses and rankings count.
fn days((first, last): &(Day, Day), t: &Locale) -> String {
    let day = |day: &Day| series::date(day.start(), &TimeZone::UTC);
    t.with_two("stats-days", day(first), day(last))
}

pub(super) async fn show(context: &Context<'_>) -> Result<Answer, PageError> {
    let (api, t, query) = (&context.pages.api, context.t, context.query);
    let zone = &api.time_zone;
    let (selection, read) = read(context, &rankings::SHOWN).await;
    let (status, stats, wrong) = match read {
        Ok(stats) => (StatusCode::OK, Some(stats), None),
        Err(error @ AppError::Invalid(_)) => {
            (api::rest::status_of(&error), None, Some(wrong_text(&error, t)))
        }
        Err(error) => return Err(error.into()),
    };
    let typed = |name: &str| query.value(name).to_owned();
    let (from, until) = match &stats {
        Some(stats) => series::dates(&stats.current, zone),
        None => (typed("from"), typed("until")),
    };
    let is_live = selection.period.bounds(api.domain_cache.now(), zone).1.is_none();
    let (tags, domains) = suggestions(context).await?;
    let page = StatisticsPage {
        frame: context.frame(addresses::STATISTICS),
        kinds: kinds(&selection, t),
        presets: presets(&selection, t),
        selection,
        from,
        until,
        wrong,
        stats,
        is_live,
        zone,
        tags,
        domains,
    };
    Ok(context.page(status, &page))
}

pub(super) async fn download(context: &Context<'_>) -> Result<Answer, PageError> {
    let zone = &context.pages.api.time_zone;
    let (_, stats) = read(context, &rankings::SHOWN).await;
    let stats = stats?;
    let (from, until) = series::dates(&stats.current, zone);
    Ok(crate::table::file(&format!("statistics-{from}-{until}"), table(&stats, zone)?))
}

/// Writes series and rankings as CSV (RFC 4180). One table holds everything, so that every record
/// has the same columns. `part` is `series`, `previous` for the period before, or the name of a
/// dimension; `value` is the beginning of an interval (RFC 3339) or a value of the dimension as the
/// API returns it.
fn table(stats: &VisitStats, zone: &TimeZone) -> Result<Vec<u8>, AppError> {
    let row = |part: &str, value: String, count: VisitCount| {
        [part.to_owned(), value, count.total.to_string(), count.bots.to_string()]
    };
    let previous = stats.previous.iter().map(|previous| ("previous", previous));
    let points = previous.chain([("series", &stats.current)]).flat_map(|(part, range)| {
        range.points.iter().map(move |(start, count)| row(part, rfc3339(*start, zone), *count))
    });
    let values = stats.dimensions.iter().flat_map(|(dimension, values)| {
        values.iter().map(move |(value, count)| row(dimension.as_str(), value.clone(), *count))
    });
    crate::table::write(COLUMNS, points.chain(values))
}

/// Answers with the number of visits as JSON, for the script of the page.
pub(super) async fn count(context: &Context<'_>) -> Result<Answer, PageError> {
    let (_, stats) = read(context, &[]).await;
    let body = json!({ "visits": stats?.current.visits.total });
    Ok(answer::file("application/json", body.to_string().into_bytes()))
}

/// Computes the statistics of a query. Without dimensions there is no period before either.
async fn read(context: &Context<'_>, dimensions: &[Dimension]) -> (Selection, Result<VisitStats, AppError>) {
    let api = &context.pages.api;
    let mut wrong = FieldErrors::default();
    let selection = Selection::read(context.query, &mut wrong);
    let now = api.domain_cache.now();
    let mut request = selection.request(now, &api.time_zone, dimensions);
    // The number of visits is the same without it.
    if !dimensions.is_empty()
        && let VisitsOf::Link(name) = &selection.of
        && let Ok(record) = context.links.get_link(name, context.by).await
    {
        begin_with(record.link.created_at, &mut request, now);
    }
    let stats = context.links.visit_stats(request, wrong, context.by).await;
    (selection, stats)
}

/// Returns the tags and domains that the forms suggest. Keys that may not list them type the names.
async fn suggestions(context: &Context<'_>) -> Result<(Vec<String>, Vec<String>), PageError> {
    let (links, by) = (context.links, context.by);
    if !context.allows(Scope::Read) {
        return Ok((Vec::new(), Vec::new()));
    }
    let tags = links.tag_names(TAGS_MAX, by).await?;
    let domains = links.domains(false, by).await?.into_iter().map(|domain| domain.name);
    Ok((tags.iter().map(ToString::to_string).collect(), domains.collect()))
}

fn presets(selection: &Selection, t: &Locale) -> Vec<Choice> {
    let choice = |(period, _): (Period, _)| {
        let query = Selection { period, ..selection.clone() }.query();
        Choice { query, text: period.text(t), is_chosen: period == selection.period }
    };
    Period::PRESETS.into_iter().map(choice).collect()
}

/// Returns links to the kinds of visits that no link redirected; none for other visits.
fn kinds(selection: &Selection, t: &Locale) -> Vec<Choice> {
    let VisitsOf::Orphans { kind: chosen, domain } = &selection.of else { return Vec::new() };
    let choice = |kind: Option<OrphanKind>| {
        let text = match kind {
            None => "stats-every-kind",
            Some(OrphanKind::BaseUrl) => "stats-outcome-base-url",
            Some(OrphanKind::InvalidShortUrl) => "stats-invalid-link",
            Some(OrphanKind::RegularNotFound) => "stats-no-page",
        };
        let of = VisitsOf::Orphans { kind, domain: domain.clone() };
        let query = Selection { of, ..selection.clone() }.query();
        Choice { query, text: t.text(text), is_chosen: kind == *chosen }
    };
    std::iter::once(None).chain(OrphanKind::ALL.map(Some)).map(choice).collect()
}

fn wrong_text(error: &AppError, t: &Locale) -> String {
    let AppError::Invalid(fields) = error else { return message(error, t) };
    let names = |names: &[&str]| fields.iter().any(|field| names.contains(&field.field.as_str()));
    if names(&["of"]) {
        t.text("stats-wrong-subject")
    } else if names(&["from", "until", "startDate", "endDate"]) {
        t.text("stats-wrong-dates")
    } else {
        message(error, t)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_and_rankings_are_one_table() {
        let count = VisitCount { total: 3, bots: 1 };
        let values = ["example.com", "a,\"b\""].map(|referrer| (referrer.to_owned(), count));
        let mut stats = sample::stats(&[2], Some(&[1]));
        stats.dimensions = vec![(Dimension::Referrer, values.to_vec())];
        assert_eq!(
            String::from_utf8(table(&stats, &TimeZone::UTC).unwrap()).unwrap(),
            "part,value,visits,bots\r\n\
             previous,2025-11-16T00:00:00+00:00,1,0\r\n\
             series,2025-11-25T00:00:00+00:00,2,0\r\n\
             referrer,example.com,3,1\r\n\
             referrer,\"a,\"\"b\"\"\",3,1\r\n"
        );
    }
}
