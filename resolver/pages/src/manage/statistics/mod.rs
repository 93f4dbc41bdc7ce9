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
mod table;

use app::{AppError, FieldErrors, visit_stats::VisitStats, visit_subjects::VisitsOf};
use askama::Template;
use hyper::StatusCode;
use jiff::tz::TimeZone;
use links::scope::Scope;
use serde_json::json;
use visits::{
    Day, OrphanKind,
    series::rfc3339,
    tally::{Dimension, Estimate},
};
use web::Answer;

use super::period::{Period, was_text};
use crate::{
    addresses, answer, context::Context, error::PageError, frame::Frame, locale::Locale, messages::message,
};
use figures::{Change, exactness};
use rankings::Ranking;
use selection::{Pairs, Selection, query_of};
use series::ShownSeries;

pub(super) const TABLE: &str = "/manage/statistics.csv";
pub(super) const COUNT: &str = "/manage/statistics/count";

/// Maximum number of tags that the form suggests. Others are typed.
const TAGS_MAX: usize = 1_000;

#[derive(Template)]
#[template(path = "manage/statistics.html")]
struct StatisticsPage<'a> {
    frame: Frame<'a>,
    title: String,
    domain: Option<String>,
    link: Option<String>,
    /// The fields that the form of the period repeats.
    subject: Pairs,
    is_of_all: bool,
    /// The kinds of visits that no link redirected, to choose from; none for other visits.
    kinds: Vec<Choice>,
    /// The fields that the forms of other subjects repeat.
    period: Pairs,
    period_query: String,
    query: String,
    presets: Vec<Choice>,
    /// The value of the field `range`, which is hidden in the form of dates.
    range: &'static str,
    from: String,
    until: String,
    was: String,
    people_only: bool,
    wrong: Option<String>,
    stats: Option<Shown>,
    tags: Vec<String>,
    domains: Vec<String>,
}

struct Choice {
    query: String,
    text: String,
    is_chosen: bool,
}

impl Choice {
    fn new(selection: &Selection, text: String, is_chosen: bool) -> Self {
        Self { query: selection.query(), text, is_chosen }
    }
}

struct Shown {
    visits: u64,
    /// The change to the period before; `None` for a period without one.
    change: Option<Change>,
    /// Distinct visitors of each day, added up.
    visitors: Estimate,
    addresses: Estimate,
    /// Visits of bots; `None` if they are left out.
    bots: Option<u64>,
    series: ShownSeries,
    rankings: Vec<Ranking>,
    /// Which days visitors, addresses and rankings count.
    days: String,
    zone: String,
    /// The address of the live count; `None` for a period that is over.
    live: Option<String>,
}

impl Shown {
    /// Shows statistics of a selection. A live one is asked for again and again.
    fn new(stats: &VisitStats, selection: &Selection, is_live: bool, zone: &TimeZone, t: &Locale) -> Self {
        let day = |day: Day| {
            let start = rfc3339(day.start(), &TimeZone::UTC);
            start.split('T').next().unwrap_or_default().to_owned()
        };
        let (first, last) = stats.days;
        let (visits, before) = (stats.current.visits, stats.previous.as_ref());
        Self {
            visits: visits.total,
            change: before.map(|before| Change::new(visits.total, before.visits.total, t)),
            visitors: stats.visitors,
            addresses: stats.addresses,
            bots: (!selection.people_only).then_some(visits.bots),
            series: ShownSeries::new(stats, zone, t),
            rankings: Ranking::all(stats, t),
            days: t.with_two("stats-days", day(first), day(last)),
            zone: t.with("stats-zone", zone.iana_name().unwrap_or("UTC")),
            live: is_live.then(|| format!("{COUNT}?{}", selection.query())),
        }
    }
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
    let is_live = selection.period.bounds(api.domain_cache.now(), zone).end.is_none();
    let (tags, domains) = suggestions(context).await?;
    let page = StatisticsPage {
        frame: context.frame(addresses::STATISTICS),
        title: selection.title(t),
        domain: selection.on_domain().map(str::to_owned),
        link: link_page(&selection.of),
        subject: selection.subject_pairs(),
        is_of_all: matches!(selection.of, VisitsOf::Links { domain: None }),
        kinds: kinds(&selection, t),
        period: selection.period_pairs(),
        period_query: query_of(selection.period_pairs()),
        query: selection.query(),
        presets: presets(&selection, t),
        range: selection.period.name(),
        was: was_text(&from, &until),
        from,
        until,
        people_only: selection.people_only,
        wrong,
        stats: stats.map(|stats| Shown::new(&stats, &selection, is_live, zone, t)),
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
    Ok(crate::table::answer(&format!("statistics-{from}-{until}"), table::write(&stats, zone)?))
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
    let request = selection.request(api.domain_cache.now(), &api.time_zone, dimensions);
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
    let choice = |period: Period| {
        let is_chosen = period == selection.period;
        Choice::new(&Selection { period, ..selection.clone() }, period.text(t), is_chosen)
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
        Choice::new(&Selection { of, ..selection.clone() }, t.text(text), kind == *chosen)
    };
    std::iter::once(None).chain(OrphanKind::ALL.map(Some)).map(choice).collect()
}

fn link_page(of: &VisitsOf) -> Option<String> {
    let VisitsOf::Link(name) = of else { return None };
    Some(addresses::link_page(&name.code, name.domain.as_deref()))
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
