//! `GET /rest/v3/live/visits`: visits as they are stored, as server-sent events. An addition.
//!
//! Shlink's own clients get the same visits from the Mercure hub (`mercure.rs`). Both are streams
//! of `live/stream.rs`.

pub(super) mod message;
pub(super) mod stream;

use app::{
    find_link::LinkName,
    live::{LiveFilter, SUBSCRIPTIONS_OF_CLIENT, Start, Topics},
};
use dto::{Flag, LiveVisitsQuery};
use hyper::{HeaderMap, header::HeaderName};
use schemars::SchemaGenerator;
use visits::VisitId;

use super::{prelude::*, route::SchemaOf};
use message::Dialect;
use stream::{EVENT_STREAM, HEARTBEAT, LONGEST, RETRY_MS};

/// The header with the id of the last event that a client has received, or of the one before the
/// first that it is sent.
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

pub(super) fn routes() -> Vec<Route> {
    let events: SchemaOf = SchemaGenerator::subschema_for::<dto::LiveVisit>;
    vec![
        Route::new(Method::GET, "/rest/v3/live/visits", keyed!(Scope::Visits, watch))
            .document("watchVisits", Topic::Visits, "Watch visits as they are stored")
            .addition()
            .text(description())
            .query::<LiveVisitsQuery>()
            .answers_of(200, "The data of each event `visit`.", vec![(EVENT_STREAM, events)])
            .fails(&[Kind::NoShortUrl, Kind::NoTag, Kind::NoDomain, Kind::NoMercure]),
    ]
}

fn description() -> String {
    format!(
        "Server-sent events. An event `visit` comes for each visit, a second or two after it; keys of one domain, or of their own links only, \
         get the visits that lists show them. Without the scope `read` there is no `shortUrl`. An event `skipped` comes with `{{\"visits\":n}}` \
         if so many visits at least were not sent, because there were too many or the client read too slowly; n is null if it is not known, or if \
         the key sees only some links. A client that comes back with `Last-Event-ID` gets what was stored meanwhile, as far as the last minute \
         reaches. A comment comes every {} s. The stream ends with its key, when the server stops, and after {} h; connect again after {RETRY_MS} ms. \
         A client has at most {SUBSCRIPTIONS_OF_CLIENT} streams.",
        HEARTBEAT.as_secs(),
        LONGEST.as_secs() / 3_600
    )
}

impl Fields for LiveVisitsQuery {}

async fn watch(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let live = call.api.live.as_ref().ok_or(Problem::NoMercure)?;
    let (query, wrong): (LiveVisitsQuery, FieldErrors) = call.query();
    wrong.finish()?;
    let filter = filter(call, query, by).await?;
    if call.method == Method::HEAD {
        return Ok(stream::head());
    }
    let start = Start { since: last_event_id(&call.headers), resumption: None };
    stream::open(call, live, Dialect::Live, filter, start, LONGEST).map(|(answer, _)| answer)
}

/// Returns the visits that a query asks for. What it names has to exist.
async fn filter(call: &Call, query: LiveVisitsQuery, by: &Grant) -> Result<LiveFilter, Problem> {
    let LiveVisitsQuery { short_code, tag, domain, orphan } = query;
    let links = &call.api.links;
    let topics = match orphan {
        None => Topics::all(),
        Some(Flag(orphans)) => Topics { links: !orphans, orphans, ..Topics::default() },
    };
    let mut filter = LiveFilter { by: by.clone(), topics, link: None, tag: None, domain: None };
    if let Some(tag) = tag {
        filter.tag = Some(links.find_tag(&tag, by).await?);
    }
    match (short_code, domain) {
        (Some(code), domain) => filter.link = Some(links.find_link(&LinkName { code, domain }, by).await?.id),
        (None, Some(name)) => filter.domain = Some(links.find_domain(&name, by).await?),
        (None, None) => {}
    }
    Ok(filter)
}

/// Returns the visit that a client has received last. A malformed id is none.
pub(super) fn last_event_id(headers: &HeaderMap) -> Option<VisitId> {
    visit_id(headers.get(LAST_EVENT_ID)?.to_str().ok()?)
}

/// Reads the id of an event in either form.
pub(super) fn visit_id(text: &str) -> Option<VisitId> {
    let digits = text.strip_prefix('#').unwrap_or(text);
    digits.parse().ok().filter(|id| *id >= 0).map(VisitId::from_stored)
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn ids_of_events_are_read_in_both_forms() {
        for (text, id) in [("12", Some(12)), ("#12", Some(12)), ("-1", None), ("", None), ("urn:x", None)] {
            let mut headers = HeaderMap::new();
            headers.insert(LAST_EVENT_ID, HeaderValue::from_static(text));
            assert_eq!(last_event_id(&headers).map(VisitId::get), id, "{text}");
        }
        assert_eq!(last_event_id(&HeaderMap::new()), None);
    }
}
