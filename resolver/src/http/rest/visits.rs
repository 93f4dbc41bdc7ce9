//! `/rest/v3/visits`, and the visits of a link, a tag or a domain, in Shlink's shapes.
//!
//! Visits are noted and counted as a metric, and not kept by this version: every list of them is empty and every count is 0. What does not
//! exist is answered as if they were kept.

use app::find_link::LinkName;
use links::api_key::Grant;
use serde_json::{Value, json};

use super::{
    json,
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
};
use crate::http::{Answer, App};

/// Kinds of visits that no link has led on.
pub(super) const ORPHANS: [&str; 3] = ["base_url", "invalid_short_url", "regular_404"];

/// Counts of all visits.
pub(super) fn overview() -> Answer {
    let none = || json!({ "total": 0, "nonBots": 0, "bots": 0 });
    json(&json!({ "visits": { "nonOrphanVisits": none(), "orphanVisits": none() } }))
}

/// A page of visits.
fn page(app: &App, query: &Query) -> Result<Answer, Problem> {
    let wrong = |field: &'static str| move |expected: String| Problem::invalid(field, expected);
    for name in ["startDate", "endDate"] {
        let read = |text| super::fields::parse_time(text, &app.time_zone);
        query.text(name).map(read).transpose().map_err(wrong(name))?;
    }
    let paging = Paging::read(query).map_err(|(field, expected)| wrong(field)(expected))?;
    let none: [Value; 0] = [];
    Ok(json(&json!({ "visits": { "data": none, "pagination": pagination(paging, 0, 0) } })))
}

/// Visits of a link.
pub(super) async fn of_link(
    app: &App,
    name: &LinkName,
    query: &Query,
    by: &Grant,
) -> Result<Answer, Problem> {
    app.links.find_link(name, by).await?;
    page(app, query)
}

/// Visits of the links that have a tag.
pub(super) async fn of_tag(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    app.links.find_tag(&decoded, by).await?;
    page(app, query)
}

/// Visits of the links of a domain.
pub(super) async fn of_domain(app: &App, name: &str, query: &Query, by: &Grant) -> Result<Answer, Problem> {
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    app.links.find_domain(&decoded, by).await?;
    page(app, query)
}

/// Visits that some link has led on.
pub(super) fn non_orphan(app: &App, query: &Query) -> Result<Answer, Problem> {
    page(app, query)
}

/// Visits that no link has led on.
pub(super) fn orphan(app: &App, query: &Query) -> Result<Answer, Problem> {
    if query.text("type").is_some_and(|kind| !ORPHANS.contains(&kind)) {
        let expected = format!("expected one of {}", ORPHANS.join(", "));
        return Err(Problem::invalid("type", expected));
    }
    page(app, query)
}

/// Takes the visits of a link away.
pub(super) async fn delete_of_link(app: &App, name: &LinkName, by: &Grant) -> Result<Answer, Problem> {
    app.links.find_link(name, by).await?;
    Ok(deleted())
}

/// So many visits were taken away.
pub(super) fn deleted() -> Answer {
    json(&json!({ "deletedVisits": 0 }))
}
