//! `/rest/v3/visits`, and the visits of a link, a tag or a domain, in Shlink's shapes.
//!
//! 1. A page has any size, and without one all visits are on one page, as in Shlink. So an answer
//!    of more than [`VISITS_READ`] visits is streamed: a few visits are read once the client has
//!    taken those before.
//! 2. One key has few such lists under way, and a client that takes too long for a piece or for the
//!    whole is cut off. So is one whose key is revoked meanwhile.

use std::sync::Arc;

use app::{
    FieldErrors,
    delete_visits::expected_address,
    list_visits::{ListVisits, ListedVisits, VISITS_READ, VisitView},
    time::read_time,
    visit_subjects::{OWN_LINKS_MAX, VisitsOf},
};
use dto::OrphanVisitsQuery;
use hyper::{Method, StatusCode};
use links::{api_key::Grant, scope::Scope};
use schemars::SchemaGenerator;
use store::VisitTotals;
use tokio::sync::mpsc;
use visits::{OrphanKind, PlaceText};

use super::{
    call::Call,
    docs::{Kind, Topic},
    json::{JSON, json},
    list::{must_still_be_granted, send, stream},
    pagination::{Paging, pagination},
    problem::Problem,
    query::Query,
    read::Fields,
    route::{ContentSchema, Route, keyed},
    time::atom,
};
use crate::Api;
use web::{Answer, BrokenOff, Piece, budgets::BudgetAccount};

const OF_LINK: &str = "/rest/v3/short-urls/{shortCode}/visits";
const ALL: &str = "/rest/v3/visits";
const ORPHAN: &str = "/rest/v3/visits/orphan";
/// The parameter whose presence leaves out visits of bots.
pub(super) const EXCLUDE_BOTS: &str = "excludeBots";
/// Bytes after which a piece of a long page is sent.
const PIECE: usize = 256 * 1_024;

pub(super) fn routes() -> Vec<Route> {
    [totals(), lists(), deletions()].into_iter().flatten().collect()
}

fn totals() -> Vec<Route> {
    vec![
        Route::new(Method::GET, ALL, keyed!(Scope::Visits, overview))
            .document("getVisitsOverview", Topic::Visits, "Count all visits")
            .text(own_links())
            .answers::<dto::VisitsOverview>("Counts."),
    ]
}

fn lists() -> Vec<Route> {
    let page = |path, handler, id, summary, text: String| {
        Route::new(Method::GET, path, handler)
            .document(id, Topic::Visits, summary)
            .text(text)
            .query::<dto::VisitsQuery>()
            .answers::<dto::VisitPage<'_>>("A page of visits.")
            .fails(&[Kind::InvalidData])
    };
    let of_link = keyed!(Scope::Visits, list_of_link);
    let of_tag = keyed!(Scope::Visits, list_of_tag);
    let of_domain = keyed!(Scope::Visits, list_of_domain);
    let orphan = "Keys that see only their own links get none.";
    vec![
        page(
            ORPHAN,
            keyed!(Scope::Visits, list_orphan),
            "getOrphanVisits",
            "List visits that no link redirected",
            orphan.to_owned(),
        )
        .query::<dto::VisitsDomainQuery>()
        .query::<OrphanVisitsQuery>(),
        page(
            "/rest/v3/visits/non-orphan",
            keyed!(Scope::Visits, list_non_orphan),
            "getNonOrphanVisits",
            "List visits that a link redirected",
            own_links(),
        )
        .query::<dto::VisitsDomainQuery>(),
        page(OF_LINK, of_link, "getShortUrlVisits", "List visits of a link", String::new())
            .query::<dto::DomainQuery>()
            .fails(&[Kind::NoShortUrl]),
        page(
            "/rest/v3/tags/{tag}/visits",
            of_tag,
            "getTagVisits",
            "List visits of the links with a tag",
            own_links(),
        )
        .query::<dto::VisitsDomainQuery>()
        .fails(&[Kind::NoTag]),
        page(
            "/rest/v3/domains/{domain}/visits",
            of_domain,
            "getDomainVisits",
            "List visits of a domain",
            own_links(),
        )
        .fails(&[Kind::NoDomain]),
    ]
}

fn deletions() -> Vec<Route> {
    let deletion = |path, handler, id, summary| {
        Route::new(Method::DELETE, path, handler)
            .document(id, Topic::Visits, summary)
            .answers::<dto::DeletedVisits>("The number of visits.")
    };
    let all_orphans = keyed!(Scope::Delete, delete_orphan);
    let of_link = keyed!(Scope::Delete, delete_of_link);
    vec![
        deletion(ORPHAN, all_orphans, "deleteOrphanVisits", "Delete visits that no link redirected")
            .text("The key must have no limits, since these visits belong to all domains."),
        deletion(OF_LINK, of_link, "deleteShortUrlVisits", "Delete the visits of a link")
            .text("Also those that were not stored yet. Later visits count from zero.")
            .query::<dto::DomainQuery>()
            .fails(&[Kind::NoShortUrl]),
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
                vec![(JSON, ContentSchema::Of(SchemaGenerator::subschema_for::<dto::ErasedVisits>))],
            )
            .fails(&[Kind::InvalidData, Kind::AddressesNotKept, Kind::TooManyErasures]),
    ]
}

fn own_links() -> String {
    format!(
        "Keys that see only their own links get the visits of these, as long as they have at most {OWN_LINKS_MAX} of them."
    )
}

impl Fields for dto::VisitsQuery {
    fn expected(_: &str) -> String {
        "expected a text".to_owned()
    }
}

impl Fields for dto::VisitsDomainQuery {
    fn expected(_: &str) -> String {
        "expected a text".to_owned()
    }
}

impl Fields for dto::ErasureQuery {
    fn expected(_: &str) -> String {
        expected_address()
    }
}

impl Fields for OrphanVisitsQuery {
    fn expected(_: &str) -> String {
        format!("expected one of {}", Self::TYPES.join(", "))
    }
}

async fn overview(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let overview = call.api.links.visits_overview(by).await?;
    let visits = dto::VisitsByKind {
        non_orphan_visits: summary(overview.links),
        orphan_visits: summary(overview.orphans),
    };
    Ok(json(&dto::VisitsOverview { visits }))
}

/// Returns totals as answers show them.
pub(super) fn summary(totals: VisitTotals) -> dto::VisitsSummary {
    dto::VisitsSummary::new(totals.total, totals.bots)
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
    let kind = name.map(|name| OrphanKind::parse(&name).ok_or_else(|| OrphanVisitsQuery::expected("type")));
    let kind = wrong.note("type", kind.transpose()).flatten();
    list(call, VisitsOf::Orphans { kind, domain }, wrong, by).await
}

/// Answers with a page of visits, or with all wrong parameters.
async fn list(call: &Call, of: VisitsOf, mut wrong: FieldErrors, by: &Grant) -> Result<Answer, Problem> {
    let api = &call.api;
    let (query, _): (dto::VisitsQuery, FieldErrors) = call.query();
    let mut time = |name, text: Option<String>| {
        wrong.note(name, text.map(|text| read_time(&text, &api.time_zone)).transpose()).flatten()
    };
    let (start, end) = (time("startDate", query.start_date), time("endDate", query.end_date));
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
    let under_way = api.budgets.lists.take(BudgetAccount::Key(by.id), 1)?;
    let streamed = Streamed { api: Arc::clone(api), by: by.clone(), listed, paging };
    Ok(stream(api, under_way, async move |to| streamed.write(first, &to).await))
}

/// A long page of visits that is read while it is answered.
struct Streamed {
    api: Arc<Api>,
    by: Grant,
    listed: ListedVisits,
    paging: Paging,
}

impl Streamed {
    /// Writes the first visits, and those that follow.
    async fn write(mut self, first: Vec<VisitView>, to: &mpsc::Sender<Piece>) -> Result<(), BrokenOff> {
        let mut text = br#"{"visits":{"data":["#.to_vec();
        let (mut visits, mut count) = (first, 0);
        while !visits.is_empty() {
            // The next ones are read while these are written, and to the end even if the client has
            // gone: a statement that is given up would go on in the database.
            let next = self.api.links.next_visits(&mut self.listed, &self.by);
            let write = async {
                for visit in &visits {
                    write_visit(visit, count == 0, &mut text)?;
                    count += 1;
                    if text.len() >= PIECE {
                        must_still_be_granted(&self.api, &self.by).await?;
                        send(to, std::mem::take(&mut text)).await?;
                    }
                }
                must_still_be_granted(&self.api, &self.by).await?;
                send(to, std::mem::take(&mut text)).await
            };
            let (next, written) = tokio::join!(next, write);
            written?;
            visits = next.map_err(|_| BrokenOff)?;
        }
        text.extend_from_slice(br#"],"pagination":"#);
        let pagination = pagination(self.paging, count, self.listed.total);
        serde_json::to_writer(&mut text, &pagination).map_err(|_| BrokenOff)?;
        text.extend_from_slice(b"}}");
        send(to, text).await
    }
}

/// Writes a visit as part of a comma-separated list.
fn write_visit(visit: &VisitView, is_first: bool, text: &mut Vec<u8>) -> Result<(), BrokenOff> {
    if !is_first {
        text.push(b',');
    }
    serde_json::to_writer(text, &shown(visit)).map_err(|_| BrokenOff)
}

pub(super) fn shown(visit: &VisitView) -> dto::Visit<'_> {
    dto::Visit {
        referer: &visit.referrer,
        date: atom(visit.at),
        user_agent: &visit.user_agent,
        visit_location: visit.place.as_deref().map(location),
        potential_bot: visit.is_bot,
        visited_url: visit.visited_url.as_deref(),
        redirect_url: visit.redirect_url.as_deref(),
        r#type: visit.orphan.map(OrphanKind::as_str),
    }
}

fn location(place: &PlaceText) -> dto::VisitLocation<'_> {
    dto::VisitLocation {
        country_code: &place.country,
        country_name: &place.country_name,
        region_name: &place.region,
        city_name: &place.city,
        latitude: place.latitude,
        longitude: place.longitude,
        timezone: &place.time_zone,
        is_empty: place.is_empty(),
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn visit() -> VisitView {
        VisitView {
            referrer: "https://a.b/".into(),
            at: "2026-11-25T10:00:00.999999Z".parse().unwrap(),
            user_agent: "curl".into(),
            place: None,
            is_bot: true,
            visited_url: Some("https://s.test/abc".into()),
            redirect_url: None,
            orphan: None,
        }
    }

    #[test]
    fn a_visit_has_shlinks_shape_and_only_an_orphan_visit_has_a_type() {
        let plain = serde_json::to_value(shown(&visit())).unwrap();
        let expected = json!({
            "referer": "https://a.b/", "date": "2026-11-25T10:00:00+00:00", "userAgent": "curl",
            "visitLocation": null, "potentialBot": true, "visitedUrl": "https://s.test/abc", "redirectUrl": null,
        });
        assert_eq!(plain, expected);
        let place = PlaceText { country: "DE".to_owned(), latitude: 52.5, ..PlaceText::default() };
        let orphan = VisitView { orphan: Some(OrphanKind::BaseUrl), place: Some(place.into()), ..visit() };
        let orphan = serde_json::to_value(shown(&orphan)).unwrap();
        assert_eq!(orphan["type"], "base_url");
        let location = json!({
            "countryCode": "DE", "countryName": "", "regionName": "", "cityName": "", "latitude": 52.5,
            "longitude": 0.0, "timezone": "", "isEmpty": false,
        });
        assert_eq!(orphan["visitLocation"], location);
    }

    #[test]
    fn visits_of_a_long_page_form_one_list() {
        let mut text = b"[".to_vec();
        for is_first in [true, false, false] {
            write_visit(&visit(), is_first, &mut text).unwrap();
        }
        text.push(b']');
        let list: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(list.as_array().unwrap().len(), 3);
    }
}
