//! `/rest/v3/visits`, and the visits of a link, a tag or a domain, in Shlink's shapes.
//!
//! This version counts visits as a metric and does not store them: lists are empty and counts are
//! 0. What does not exist is reported as if visits were stored.

use app::FieldErrors;
use dto::OrphanVisitsQuery;
use hyper::Method;
use links::{api_key::Grant, scope::Scope};

use super::{
    call::Call,
    docs::{Kind, Topic},
    json::json,
    pagination::{Paging, pagination},
    problem::Problem,
    read::Fields,
    route::{Route, keyed},
    time::parse_time,
};
use web::Answer;

const OF_LINK: &str = "/rest/v3/short-urls/{shortCode}/visits";
const ORPHAN: &str = "/rest/v3/visits/orphan";

pub(super) fn routes() -> Vec<Route> {
    let page = |path, handler, id, summary| {
        Route::new(Method::GET, path, handler)
            .document(id, Topic::Visits, summary)
            .query::<dto::VisitsQuery>()
            .answers::<dto::VisitPage>("A page of visits.")
            .fails(&[Kind::InvalidData])
    };
    let deletion = |path, handler, id, summary| {
        Route::new(Method::DELETE, path, handler)
            .document(id, Topic::Visits, summary)
            .answers::<dto::DeletedVisits>("The number of visits.")
    };
    let non_orphan = "List visits that a link redirected";
    let orphan = "List visits that no link redirected";
    let of_tag = "List visits of the links with a tag";
    vec![
        Route::new(Method::GET, "/rest/v3/visits", keyed!(Scope::Visits, overview))
            .document("getVisitsOverview", Topic::Visits, "Count all visits")
            .answers::<dto::VisitsOverview>("Counts."),
        page(ORPHAN, keyed!(Scope::Visits, list_orphan), "getOrphanVisits", orphan)
            .query::<dto::DomainQuery>()
            .query::<OrphanVisitsQuery>(),
        page(
            "/rest/v3/visits/non-orphan",
            keyed!(Scope::Visits, list_non_orphan),
            "getNonOrphanVisits",
            non_orphan,
        )
        .query::<dto::DomainQuery>(),
        page(OF_LINK, keyed!(Scope::Visits, list_of_link), "getShortUrlVisits", "List visits of a link")
            .query::<dto::DomainQuery>()
            .fails(&[Kind::NoShortUrl]),
        page("/rest/v3/tags/{tag}/visits", keyed!(Scope::Visits, list_of_tag), "getTagVisits", of_tag)
            .query::<dto::DomainQuery>()
            .fails(&[Kind::NoTag]),
        page(
            "/rest/v3/domains/{domain}/visits",
            keyed!(Scope::Visits, list_of_domain),
            "getDomainVisits",
            "List visits of a domain",
        )
        .fails(&[Kind::NoDomain]),
        deletion(
            ORPHAN,
            keyed!(Scope::Delete, delete_orphan),
            "deleteOrphanVisits",
            "Delete visits that no link redirected",
        ),
        deletion(
            OF_LINK,
            keyed!(Scope::Delete, delete_of_link),
            "deleteShortUrlVisits",
            "Delete the visits of a link",
        )
        .query::<dto::DomainQuery>()
        .fails(&[Kind::NoShortUrl]),
    ]
}

impl Fields for dto::VisitsQuery {
    fn expected(_: &str) -> String {
        "expected a text".to_owned()
    }
}

impl Fields for OrphanVisitsQuery {
    fn expected(_: &str) -> String {
        format!("expected one of {}", Self::TYPES.join(", "))
    }
}

async fn overview(_: &Call, _: &Grant) -> Result<Answer, Problem> {
    Ok(json(&dto::VisitsOverview::default()))
}

/// Answers with a page of visits, or with all wrong parameters.
fn page(call: &Call) -> Result<Answer, Problem> {
    let (query, mut wrong): (dto::VisitsQuery, FieldErrors) = call.query();
    for (name, text) in [("startDate", query.start_date), ("endDate", query.end_date)] {
        wrong.note(name, text.map(|text| parse_time(&text, &call.api.time_zone)).transpose());
    }
    let paging = Paging::read(query.page.as_deref(), query.items_per_page.as_deref(), &mut wrong);
    wrong.finish()?;
    let visits = dto::Page { data: Vec::new(), pagination: pagination(paging, 0, 0) };
    Ok(json(&dto::VisitPage { visits }))
}

async fn list_of_link(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.find_link(&call.link()?, by).await?;
    page(call)
}

async fn list_of_tag(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.find_tag(&call.parameter(), by).await?;
    page(call)
}

async fn list_of_domain(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.find_domain(&call.parameter(), by).await?;
    page(call)
}

async fn list_non_orphan(call: &Call, _: &Grant) -> Result<Answer, Problem> {
    page(call)
}

async fn list_orphan(call: &Call, _: &Grant) -> Result<Answer, Problem> {
    let (OrphanVisitsQuery { r#type: kind }, _) = call.query();
    if kind.is_some_and(|kind| !OrphanVisitsQuery::TYPES.contains(&&*kind)) {
        return Err(Problem::invalid("type", OrphanVisitsQuery::expected("type")));
    }
    page(call)
}

async fn delete_of_link(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.find_link(&call.link()?, by).await?;
    delete_orphan(call, by).await
}

async fn delete_orphan(_: &Call, _: &Grant) -> Result<Answer, Problem> {
    Ok(json(&dto::DeletedVisits { deleted_visits: 0 }))
}
