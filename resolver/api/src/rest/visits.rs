//! `/rest/v3/visits`, and the visits of a link, a tag or a domain, in Shlink's shapes.
//!
//! A page has any size, and without one all visits are on one page, as in Shlink. So an answer of
//! more than [`VISITS_READ`] visits is streamed: a few visits are read once the client has taken
//! those before.

use std::sync::Arc;

use app::{
    list_visits::{ListVisits, ListedVisits, VISITS_READ, VisitView},
    visit_subjects::{OWN_LINKS_MAX, VisitsOf},
};
use dto::OrphanVisitsQuery;
use schemars::SchemaGenerator;
use visits::OrphanKind;

use super::{
    pagination::{Paging, pagination},
    prelude::*,
    query::Query,
    read::time_range,
    route::json_of,
    streamed::{Pieces, stream},
    visit_json::{shown, summary},
};
use web::BrokenOff;

const OF_LINK: &str = "/rest/v3/short-urls/{shortCode}/visits";
const OF_TAG: &str = "/rest/v3/tags/{tag}/visits";
const OF_DOMAIN: &str = "/rest/v3/domains/{domain}/visits";
const OF_LINKS: &str = "/rest/v3/visits/non-orphan";
const ORPHAN: &str = "/rest/v3/visits/orphan";
const ALL: &str = "/rest/v3/visits";
/// The parameter whose presence leaves out visits of bots.
pub(super) const EXCLUDE_BOTS: &str = "excludeBots";
/// Bytes after which a piece of a long page is sent.
const PIECE: usize = 256 * 1_024;

pub(super) fn routes() -> Vec<Route> {
    let count = Route::new(Method::GET, ALL, keyed!(Scope::Visits, overview))
        .document("getVisitsOverview", Topic::Visits, "Count all visits")
        .text(own_links())
        .answers::<dto::VisitsOverview>("Counts.");
    [count].into_iter().chain(lists()).chain(deletions()).collect()
}

fn lists() -> [Route; 5] {
    let page = |path, handler, id, summary| {
        Route::new(Method::GET, path, handler)
            .document(id, Topic::Visits, summary)
            .query::<dto::VisitsQuery>()
            .answers::<dto::VisitPage<'_>>("A page of visits.")
    };
    let (orphan, of_links) = (keyed!(Scope::Visits, list_orphan), keyed!(Scope::Visits, list_non_orphan));
    let (of_link, of_tag) = (keyed!(Scope::Visits, list_of_link), keyed!(Scope::Visits, list_of_tag));
    let of_domain = keyed!(Scope::Visits, list_of_domain);
    [
        page(ORPHAN, orphan, "getOrphanVisits", "List visits that no link redirected")
            .text("Keys that see only their own links get none.")
            .query::<dto::VisitsDomainQuery>()
            .query::<OrphanVisitsQuery>(),
        page(OF_LINKS, of_links, "getNonOrphanVisits", "List visits that a link redirected")
            .text(own_links())
            .query::<dto::VisitsDomainQuery>(),
        page(OF_LINK, of_link, "getShortUrlVisits", "List visits of a link").query::<dto::DomainQuery>(),
        page(OF_TAG, of_tag, "getTagVisits", "List visits of the links with a tag")
            .text(own_links())
            .query::<dto::VisitsDomainQuery>(),
        page(OF_DOMAIN, of_domain, "getDomainVisits", "List visits of a domain").text(own_links()),
    ]
}

fn deletions() -> [Route; 3] {
    let deletion = |path, handler, id, summary| {
        Route::new(Method::DELETE, path, handler)
            .document(id, Topic::Visits, summary)
            .answers::<dto::DeletedVisits>("The number of visits.")
    };
    let all_orphans = keyed!(Scope::Delete, delete_orphan);
    let of_link = keyed!(Scope::Delete, delete_of_link);
    [
        deletion(ORPHAN, all_orphans, "deleteOrphanVisits", "Delete visits that no link redirected")
            .text("The key must have no limits, since these visits belong to all domains."),
        deletion(OF_LINK, of_link, "deleteShortUrlVisits", "Delete the visits of a link")
            .text("Also those that were not stored yet. Later visits count from zero.")
            .query::<dto::DomainQuery>(),
        Route::new(Method::DELETE, ALL, keyed!(Scope::Admin, erase))
            .document("eraseVisits", Topic::Visits, "Erase the visits of an address")
            .addition()
            .text(
                "For a person who asks for it. Single visits of the address are deleted, also those that were not stored yet; counts and statistics stay, because they name no visitor. As far as the operator keeps only networks of addresses, all visits of the address's network are deleted. The key must have no limits.",
            )
            .query::<dto::ErasureQuery>()
            .answers::<dto::ErasedVisits>("The number of deleted visits. All of them are deleted.")
            .answers_of(
                202,
                "The number of visits that are deleted so far. The others follow.",
                json_of(SchemaGenerator::subschema_for::<dto::ErasedVisits>),
            )
            .fails(&[Kind::AddressesNotKept, Kind::TooManyErasures]),
    ]
}

fn own_links() -> String {
    format!(
        "Keys that see only their own links get the visits of these, as long as they have at most {OWN_LINKS_MAX} of them."
    )
}

impl Fields for dto::VisitsQuery {}
impl Fields for dto::VisitsDomainQuery {}
impl Fields for dto::ErasureQuery {}
impl Fields for OrphanVisitsQuery {}

async fn overview(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let overview = call.api.links.visits_overview(by).await?;
    let visits = dto::VisitsByKind {
        non_orphan_visits: summary(overview.links),
        orphan_visits: summary(overview.orphans),
    };
    Ok(json(&dto::VisitsOverview { visits }))
}

async fn list_of_link(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    list(call, VisitsOf::Link(call.link()?), FieldErrors::default(), by).await
}

async fn list_of_tag(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::VisitsDomainQuery { domain }, wrong) = call.query();
    list(call, VisitsOf::Tag { tag: call.parameter(), domain }, wrong, by).await
}

async fn list_of_domain(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    list(call, VisitsOf::Domain(call.parameter()), FieldErrors::default(), by).await
}

async fn list_non_orphan(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::VisitsDomainQuery { domain }, wrong) = call.query();
    list(call, VisitsOf::Links { domain }, wrong, by).await
}

async fn list_orphan(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (OrphanVisitsQuery { r#type: name }, _) = call.query();
    let (dto::VisitsDomainQuery { domain }, mut wrong) = call.query();
    let expected = || format!("expected one of {}", OrphanVisitsQuery::TYPES.join(", "));
    let kind = name.map(|name| OrphanKind::parse(&name).ok_or_else(expected));
    let kind = wrong.note("type", kind.transpose()).flatten();
    list(call, VisitsOf::Orphans { kind, domain }, wrong, by).await
}

/// Answers with a page of visits, or with all wrong parameters.
async fn list(call: &Call, of: VisitsOf, mut wrong: FieldErrors, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let (query, _): (dto::VisitsQuery, FieldErrors) = call.query();
    let dates = (query.start_date.as_deref(), query.end_date.as_deref());
    let (start, end) = time_range(dates, &api.time_zone, &mut wrong);
    let paging = Paging::read(query.page.as_deref(), query.items_per_page.as_deref(), &mut wrong);
    let people_only = Query::of(&call.uri).has(EXCLUDE_BOTS);
    let request = ListVisits { of, start, end, page: paging.page, per_page: paging.per_page, people_only };
    let mut listed = api.links.list_visits(request, wrong, by).await?;
    let first = api.links.next_visits(&mut listed, by).await?;
    let is_all = first.len() < VISITS_READ || paging.per_page == Some(VISITS_READ as u64);
    if is_all {
        let data: Vec<dto::Visit<'_>> = first.iter().map(shown).collect();
        let pagination = pagination(paging, data.len(), listed.total);
        return Ok(json(&dto::VisitPage { visits: dto::Page { data, pagination } }));
    }
    stream(api, by, "visits", |to| write(listed, first, paging, to))
}

/// Writes the first visits of a long page, and those that follow.
async fn write(
    mut listed: ListedVisits,
    first: Vec<VisitView>,
    paging: Paging,
    mut to: Pieces,
) -> Result<(), BrokenOff> {
    let (api, by, mut visits) = (Arc::clone(&to.sender.api), to.sender.by.clone(), first);
    while !visits.is_empty() {
        // The next ones are read while these are written, and to the end even if the client has
        // gone: a statement that is given up would go on in the database.
        let next = api.links.next_visits(&mut listed, &by);
        let write = async {
            for visit in &visits {
                to.list.push(&shown(visit))?;
                if to.list.text.len() >= PIECE {
                    to.send().await?;
                }
            }
            to.send().await
        };
        let (next, written) = tokio::join!(next, write);
        written?;
        visits = next.map_err(|_| BrokenOff)?;
    }
    to.finish(paging, listed.total).await
}

async fn delete_of_link(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    deleted(call.api.links.delete_link_visits(&call.link()?, by).await?)
}

async fn delete_orphan(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    deleted(call.api.links.delete_orphan_visits(by).await?)
}

async fn erase(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (dto::ErasureQuery { address }, _) = call.query();
    let erased = call.api.links.erase_visits(address.as_deref(), by).await?;
    let mut answer = json(&dto::ErasedVisits { deleted_visits: erased.deleted, is_complete: erased.is_done });
    if !erased.is_done {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    Ok(answer)
}

fn deleted(deleted_visits: u64) -> Result<Answer, Problem> {
    Ok(json(&dto::DeletedVisits { deleted_visits }))
}
