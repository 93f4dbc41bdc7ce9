//! Webhooks and deliveries as tables.

use serde_json::Value;

use crate::table::{Column, layout, pairs, text};

/// Formats webhooks as a table with one line each, none wider than `width` cells.
pub(super) fn list(webhooks: &[Value], width: usize) -> String {
    if webhooks.is_empty() {
        return "no webhooks\n".to_owned();
    }
    let of =
        |head, is_kept, read: fn(&Value) -> String| Column::new(head, is_kept, webhooks.iter().map(read));
    let columns = vec![
        of("id", true, |webhook| text(&webhook["id"])),
        of("URL", false, |webhook| text(&webhook["url"])),
        of("events", false, events),
        of("state", true, |webhook| state(webhook).to_owned()),
        of("dropped", true, |webhook| match webhook["droppedDeliveries"].as_u64() {
            Some(0) | None => String::new(),
            Some(dropped) => dropped.to_string(),
        }),
        of("description", false, |webhook| text(&webhook["description"])),
    ];
    layout(columns, width)
}

/// Formats a webhook as a table of two columns. Fields without a value are left out.
pub(super) fn webhook(webhook: &Value) -> String {
    let field = |name: &str| text(&webhook[name]);
    pairs(&[
        ("id", field("id")),
        ("URL", field("url")),
        ("secret", field("secret")),
        ("former secret until", field("formerSecretUntil")),
        ("events", events(webhook)),
        ("domain", field("domain")),
        ("tag", field("tag")),
        ("link", field("shortCode")),
        ("description", field("description")),
        ("created", field("dateCreated")),
        ("enabled", field("enabled")),
        ("disabled because", field("disabledReason")),
        ("failing since", field("failingSince")),
        ("dropped", field("droppedDeliveries")),
    ])
}

/// Formats deliveries as a table with one line each, none wider than `width` cells.
pub(super) fn deliveries(deliveries: &[Value], width: usize) -> String {
    if deliveries.is_empty() {
        return "no deliveries\n".to_owned();
    }
    let of =
        |head, is_kept, read: fn(&Value) -> String| Column::new(head, is_kept, deliveries.iter().map(read));
    let columns = vec![
        of("id", true, |delivery| text(&delivery["id"])),
        of("created", true, |delivery| time(&delivery["dateCreated"])),
        of("event", true, |delivery| text(&delivery["event"])),
        of("state", true, |delivery| text(&delivery["state"])),
        of("attempts", true, |delivery| text(&delivery["attempts"])),
        of("status", true, |delivery| text(&delivery["lastStatus"])),
        of("error", false, |delivery| text(&delivery["lastError"])),
    ];
    layout(columns, width)
}

fn events(webhook: &Value) -> String {
    let events = webhook["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    events.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn state(webhook: &Value) -> &'static str {
    match (&webhook["enabled"], &webhook["failingSince"]) {
        (Value::Bool(false), _) => "disabled",
        (_, Value::String(_)) => "failing",
        _ => "",
    }
}

fn time(value: &Value) -> String {
    text(value).chars().take(19).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_tells_disabled_and_failing_webhooks() {
        let webhooks = [
            json!({ "id": 1, "url": "https://a.b/", "events": ["link.created"], "enabled": true,
                    "droppedDeliveries": 0 }),
            json!({ "id": 2, "url": "https://a.c/", "events": [], "enabled": true, "failingSince": "x",
                    "droppedDeliveries": 7 }),
            json!({ "id": 3, "url": "https://a.d/\u{1b}", "enabled": false, "failingSince": "x" }),
        ];
        let expected = [
            "id  URL            events        state     dropped",
            "1   https://a.b/   link.created",
            "2   https://a.c/                 failing   7",
            "3   https://a.d/\u{FFFD}                disabled",
        ];
        assert_eq!(list(&webhooks, 100).lines().collect::<Vec<_>>(), expected);
        assert_eq!(list(&[], 100), "no webhooks\n");
    }

    #[test]
    fn a_new_webhook_is_shown_with_its_secret() {
        let shown = webhook(&json!({ "id": 1, "secret": "whsec_x", "events": ["a", "b"], "enabled": true }));
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[1], "secret               whsec_x");
        assert_eq!(lines[2], "events               a, b");
    }

    #[test]
    fn deliveries_say_how_the_last_attempt_went() {
        let one = json!({ "id": 4, "dateCreated": "2026-11-25T01:02:03.456Z", "event": "ping", "state": "open",
                          "attempts": 2, "lastStatus": 500, "lastError": "expected 2xx" });
        let table = deliveries(&[one, json!(null)], 100);
        assert!(
            table.contains("4   2026-11-25 01:02:03  ping   open   2         500     expected 2xx\n"),
            "{table}"
        );
        assert_eq!(deliveries(&[], 100), "no deliveries\n");
    }
}
