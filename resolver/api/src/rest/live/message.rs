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
            let link = link.map(|link| link.written(|link| json(&shown_link(api, link))));
            let id = visit.id.get();
            let id = if dialect == Dialect::Mercure { format!("#{id}") } else { id.to_string() };
            let kind = (dialect == Dialect::Live).then_some("visit");
            to.event(kind, Some(&id), &message(link, visit.written(|visit| json(&shown(&visit.view)))));
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
    use jiff::Timestamp;
    use serde_json::{Value, json as value};

    use visits::OrphanKind;

    use super::*;

    fn view(orphan: Option<OrphanKind>) -> VisitView {
        VisitView {
            referrer: "https://a.test/".into(),
            at: Timestamp::from_second(1_764_028_800).unwrap(),
            user_agent: "curl".into(),
            place: None,
            is_bot: true,
            visited_url: Some("https://s.test/abc".into()),
            redirect_url: None,
            orphan,
        }
    }

    fn written(link: Option<&[u8]>, visit: &VisitView) -> Value {
        serde_json::from_slice(&message(link, &json(&shown(visit))).concat()).unwrap()
    }

    #[test]
    fn a_visit_of_a_link_has_the_link_and_no_type() {
        let message = written(Some(br#"{"shortCode":"abc","domain":null}"#), &view(None));
        let expected = value!({
            "shortUrl": { "shortCode": "abc", "domain": null },
            "visit": {
                "referer": "https://a.test/", "date": "2025-11-25T00:00:00+00:00", "userAgent": "curl",
                "visitLocation": null, "potentialBot": true, "visitedUrl": "https://s.test/abc", "redirectUrl": null,
            },
        });
        assert_eq!(message, expected);
    }

    #[test]
    fn an_orphan_visit_has_a_type_and_no_link() {
        let message = written(None, &view(Some(OrphanKind::RegularNotFound)));
        assert_eq!(message["visit"]["type"], "regular_404");
        assert_eq!(message.as_object().unwrap().keys().collect::<Vec<_>>(), ["visit"]);
        let orphan = view(Some(OrphanKind::RegularNotFound));
        let dto = dto::LiveVisit { short_url: None, visit: shown(&orphan) };
        assert_eq!(message, serde_json::to_value(dto).unwrap());
    }
}
