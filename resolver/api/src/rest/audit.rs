//! `GET /rest/v3/audit`: the log of changes, the latest first, and `GET /rest/v3/history`: those of
//! a link. Additions to Shlink's API.
//!
//! The history has no path below its link: slugs may end in `history`.

use app::audit::PER_PAGE;
use links::audit::{Entry, EntryFilter, separate_name};

use super::{json::atom, prelude::*};
use crate::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/rest/v3/audit", keyed!(Scope::Admin, list))
            .document("listAudit", Topic::Service, "List changes and who made them")
            .addition()
            .text(format!(
                "The latest entry first, {PER_PAGE} on a page. `before` of the answer leads to the next page; null ends the list."
            ))
            .query::<dto::BeforeQuery>()
            .answers::<dto::AuditPage>("Entries of the log."),
        Route::new(Method::GET, "/rest/v3/history", keyed!(Scope::Read, history))
            .document("getShortUrlHistory", Topic::Links, "List the changes of a link")
            .addition()
            .text(format!(
                "The entries of the log about this link, the latest first, {PER_PAGE} on a page. `before` of the answer leads to the next page; null ends the list. A key of one domain gets those since the link is there."
            ))
            .query::<dto::LinkQuery>()
            .query::<dto::BeforeQuery>()
            .answers::<dto::AuditPage>("Entries of the log.")
            .fails(&[Kind::NoShortUrl]),
    ]
}

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let filter = EntryFilter { before: call.before()?, ..EntryFilter::default() };
    Ok(page(call, &call.api.links.audit_log(&filter, by).await?))
}

async fn history(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let name = call.queried_link()?;
    Ok(page(call, &call.api.links.link_history(&name, call.before()?, by).await?))
}

fn page(call: &Call, entries: &[Entry]) -> Answer {
    let before = entries.last().filter(|_| entries.len() == PER_PAGE).map(|entry| entry.id);
    let data = entries.iter().map(|entry| shown(&call.api, entry)).collect();
    json(&dto::AuditPage { audit: dto::Backwards { data, before } })
}

fn shown<'a>(api: &Api, entry: &'a Entry) -> dto::AuditEntry<'a> {
    let (subject, domain, details) = if entry.is_of_link() {
        let link = separate_name(&entry.subject, entry.details.as_ref());
        let code = || link.id.and_then(|id| api.lookup.name(id, None));
        // An entry of a keyspace that is not known any more keeps its number.
        let name = link.slug.or_else(code).unwrap_or_else(|| entry.subject.clone());
        (name, api.domain_cache.shown_name(link.domain), Some(link.fields))
    } else {
        (entry.subject.clone(), None, entry.details.clone())
    };
    let (date, api_key, action) = (atom(entry.at), entry.by_name.as_deref(), &*entry.action);
    dto::AuditEntry { id: entry.id, date, api_key, action, subject, domain, details }
}
