//! The body of an event, as receivers get it: `type`, `timestamp` and `data`, as the Standard
//! Webhooks specification recommends.

use serde_json::{Map, Value, json};

use super::WebhookEvent;
use crate::audit::separate_name;

/// Maximum size of a body in bytes. Receivers accept no more, and deliveries of more would fail.
pub const BODY_BYTES: usize = 256 * 1024;
/// Maximum size of the sample visits of an event in bytes.
pub(super) const SAMPLE_BYTES: usize = 128 * 1024;
/// Members of `data` that a body keeps which would be too large.
const KEPT: [&str; 3] = ["shortCode", "shortUrl", "domain"];

/// The names that visitors know a link or a domain by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Code or slug of the link.
    pub short_code: Option<String>,
    /// Short URL of the link.
    pub short_url: Option<String>,
    /// Domain; `None` for the default one.
    pub domain: Option<String>,
}

/// Writes the body of an event. If it would be larger than [`BODY_BYTES`], only the link's names
/// are left of it, and `truncated` is true.
pub fn body(event: &WebhookEvent, shown: &Shown) -> String {
    let data = data(event, shown);
    let whole = envelope(event, data.clone());
    if whole.len() <= BODY_BYTES {
        return whole;
    }
    let mut kept: Map<String, Value> = data.into_iter().filter(|(name, _)| KEPT.contains(&&**name)).collect();
    kept.insert("truncated".to_owned(), json!(true));
    envelope(event, kept)
}

fn envelope(event: &WebhookEvent, data: Map<String, Value>) -> String {
    json!({ "type": event.kind, "timestamp": event.at.to_string(), "data": data }).to_string()
}

/// Returns the members of `data`: the names, and what the transaction recorded apart from the names
/// as they are stored.
fn data(event: &WebhookEvent, shown: &Shown) -> Map<String, Value> {
    let mut data = Map::new();
    if event.link.is_some() {
        data.insert("shortCode".to_owned(), json!(shown.short_code));
        data.insert("shortUrl".to_owned(), json!(shown.short_url));
    }
    if event.domain.is_some() {
        data.insert("domain".to_owned(), json!(shown.domain));
    }
    let recorded = serde_json::from_str(&event.data).unwrap_or_default();
    if let Value::Object(members) = separate_name("", Some(&recorded)).fields {
        data.extend(members);
    }
    data
}

impl WebhookEvent {
    /// Returns the slug that the link had at the event, if the transaction recorded one.
    pub fn slug(&self) -> Option<String> {
        let recorded: Value = serde_json::from_str(&self.data).ok()?;
        recorded["slug"].as_str().map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use jiff::Timestamp;

    use super::*;
    use crate::{DomainId, webhook::EventId};

    fn event(data: &Value) -> WebhookEvent {
        WebhookEvent {
            id: EventId::from_stored(1),
            kind: "link.updated".to_owned(),
            domain: Some(DomainId::from_stored(3)),
            link: Some(LinkId::from_stored(7)),
            tags: Vec::new(),
            data: data.to_string(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    fn shown() -> Shown {
        let text = |text: &str| Some(text.to_owned());
        Shown { short_code: text("x"), short_url: text("https://s.t/x"), domain: text("s.t") }
    }

    #[test]
    fn a_body_has_the_names_that_visitors_know_and_none_as_they_are_stored() {
        let event = event(&json!({ "slug": "x", "domain": 3, "longUrl": "https://e.t/", "tags": ["a"] }));
        let written: Value = serde_json::from_str(&body(&event, &shown())).unwrap();
        let expected = json!({
            "type": "link.updated",
            "timestamp": "1970-01-01T00:00:00Z",
            "data": { "shortCode": "x", "shortUrl": "https://s.t/x", "domain": "s.t", "longUrl": "https://e.t/",
                      "tags": ["a"] },
        });
        assert_eq!(written, expected);
        assert_eq!(event.slug().as_deref(), Some("x"));
    }

    #[test]
    fn a_body_that_would_be_too_large_keeps_the_names() {
        let event = event(&json!({ "redirectRules": "\u{1}".repeat(BODY_BYTES / 6) }));
        let written = body(&event, &shown());
        assert!(written.len() < 300, "{}", written.len());
        let written: Value = serde_json::from_str(&written).unwrap();
        let expected =
            json!({ "shortCode": "x", "shortUrl": "https://s.t/x", "domain": "s.t", "truncated": true });
        assert_eq!(written["data"], expected);
    }

    #[test]
    fn a_recorded_text_that_is_no_object_leaves_the_names() {
        let broken = WebhookEvent { data: "oops".to_owned(), ..event(&json!(null)) };
        let written: Value = serde_json::from_str(&body(&broken, &Shown::default())).unwrap();
        assert_eq!(written["data"], json!({ "shortCode": null, "shortUrl": null, "domain": null }));
    }
}
