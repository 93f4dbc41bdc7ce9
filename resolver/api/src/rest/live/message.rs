//! Live visits as JSON.
//!
//! Visits and links are written once each, whatever number of subscriptions they are sent to.

use app::live::{LiveEvent, LiveLink};
use serde::Serialize;

use super::super::{link_fields::short_url, visit_json::shown};
use crate::Api;
use web::server_sent_events::Events;

/// The form of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Dialect {
    /// Events with types.
    Live,
    /// Updates of Mercure, without types.
    Mercure,
}

/// Adds an event to those that are sent. `has_links` says whether the key may read links.
pub(super) fn write(api: &Api, dialect: Dialect, has_links: bool, event: &LiveEvent, to: &mut Events) {
    match event {
        LiveEvent::Visit(visit) => {
            let link = visit.link.as_ref().filter(|_| has_links);
            let link = link.map(|link| link.written.get_or_init(|| json(&shown_link(api, link))).as_slice());
            let id = visit.id.get();
            let id = if dialect == Dialect::Mercure { format!("#{id}") } else { id.to_string() };
            let kind = (dialect == Dialect::Live).then_some("visit");
            let written = visit.written.get_or_init(|| json(&shown(&visit.view)));
            to.event(kind, Some(&id), &message(link, written));
        }
        LiveEvent::Skipped(visits) if dialect == Dialect::Live => {
            to.event(Some("skipped"), None, &[&json(&dto::SkippedVisits { visits: *visits })]);
        }
        // Updates of Mercure have no such event, and Shlink's client would take it for a visit.
        LiveEvent::Skipped(_) => to.comment("skipped"),
    }
}

/// Returns the parts of a message: what [`dto::LiveVisit`] is written as.
fn message<'a>(link: Option<&'a [u8]>, visit: &'a [u8]) -> [&'a [u8]; 5] {
    const VISIT: &[u8] = br#""visit":"#;
    match link {
        Some(link) => [br#"{"shortUrl":"#, link, br#","visit":"#, visit, b"}"],
        None => [b"{", VISIT, visit, b"}", b""],
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_else(|error| {
        tracing::error!(%error, "write a live visit");
        b"null".to_vec()
    })
}

fn shown_link<'a>(api: &Api, link: &'a LiveLink) -> Option<dto::ShortUrl<'a>> {
    short_url(api, &link.record, &link.names, link.visits)
}

#[cfg(test)]
mod tests {
    use app::list_visits::VisitView;
    use serde_json::{Value, json as value};
    use visits::OrphanKind;

    use super::{super::super::visit_json::tests::visit, *};

    #[test]
    fn a_message_is_that_of_the_document_with_a_link_or_without() {
        let plain = visit();
        let orphan = VisitView { orphan: Some(OrphanKind::RegularNotFound), ..visit() };
        let link = br#"{"shortCode":"abc","domain":null}"#;
        let shown_plain = serde_json::to_value(shown(&plain)).unwrap();
        let of_link = value!({ "shortUrl": { "shortCode": "abc", "domain": null }, "visit": shown_plain });
        let alone = serde_json::to_value(dto::LiveVisit { short_url: None, visit: shown(&orphan) }).unwrap();
        assert_eq!(alone["visit"]["type"], "regular_404");
        for (link, visit, expected) in [(Some(&link[..]), &plain, of_link), (None, &orphan, alone)] {
            let written: Value =
                serde_json::from_slice(&message(link, &json(&shown(visit))).concat()).unwrap();
            assert_eq!(written, expected);
        }
    }
}
