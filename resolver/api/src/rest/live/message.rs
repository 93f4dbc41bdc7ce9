//! Live visits as JSON.
//!
//! Visits and links are written once each, whatever number of subscriptions they are sent to.

use app::live::LiveEvent;
use serde::Serialize;

use super::super::{link_fields::short_url, visit_json::shown};
use crate::Api;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Dialect {
    /// Events with types.
    Live,
    /// Updates of Mercure, without types.
    Mercure,
}

/// Adds an event to those that are sent. `has_links` says whether the key may read links.
pub(super) fn write(api: &Api, dialect: Dialect, has_links: bool, event: &LiveEvent, to: &mut Vec<u8>) {
    match event {
        LiveEvent::Visit(visit) => {
            let link = visit.link.as_ref().filter(|_| has_links);
            let link = link.map(|link| {
                let written = || json(&short_url(api, &link.record, &link.names, link.visits));
                link.written.get_or_init(written).as_slice()
            });
            let id = visit.id.get();
            let id = if dialect == Dialect::Mercure { format!("#{id}") } else { id.to_string() };
            let kind = (dialect == Dialect::Live).then_some("visit");
            let written = visit.written.get_or_init(|| json(&shown(&visit.view)));
            push(to, kind, Some(&id), &message(link, written));
        }
        LiveEvent::Skipped(visits) if dialect == Dialect::Live => {
            push(to, Some("skipped"), None, &[&json(&dto::SkippedVisits { visits: *visits })]);
        }
        // Updates of Mercure have no such event, and Shlink's client would take it for a visit.
        LiveEvent::Skipped(_) => to.extend_from_slice(b": skipped\n\n"),
    }
}

/// Adds an event: its type, its id and the parts of its data. None of them has line breaks: data is
/// JSON on one line.
fn push(to: &mut Vec<u8>, kind: Option<&str>, id: Option<&str>, data: &[&[u8]]) {
    for (name, value) in [("event", kind), ("id", id)] {
        if let Some(value) = value {
            to.extend_from_slice(format!("{name}: {value}\n").as_bytes());
        }
    }
    to.extend_from_slice(b"data: ");
    data.iter().for_each(|part| to.extend_from_slice(part));
    to.extend_from_slice(b"\n\n");
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

#[cfg(test)]
mod tests {
    use app::list_visits::VisitView;
    use serde_json::{Value, json as value};
    use visits::OrphanKind;

    use super::{super::super::visit_json::tests::visit, *};

    fn pushed(kind: Option<&str>, id: Option<&str>, data: &[&[u8]]) -> String {
        let mut events = Vec::new();
        push(&mut events, kind, id, data);
        String::from_utf8(events).unwrap()
    }

    #[test]
    fn an_event_has_its_type_its_id_and_its_data_on_one_line() {
        let broken = json(&"a\nb\r\n");
        let event = pushed(Some("visit"), Some("12"), &[b"{\"a\":", &broken, b"}"]);
        assert_eq!(event, "event: visit\nid: 12\ndata: {\"a\":\"a\\nb\\r\\n\"}\n\n");
        assert_eq!(pushed(None, None, &[]), "data: \n\n");
    }

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
