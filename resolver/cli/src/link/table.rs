//! Links as a table. Answers are read by the names of their fields, so that a server of another
//! release, which lacks fields or has more, is shown as well.

use serde_json::Value;

use crate::table::{List, text};

pub(super) const LIST: List = List {
    at: "/shortUrls/data",
    empty: "no links",
    fields: &[
        ("code", true, |link| text(&link["shortCode"])),
        ("domain", false, |link| text(&link["domain"])),
        ("long URL", false, |link| text(&link["longUrl"])),
        ("title", false, |link| text(&link["title"])),
        ("tags", false, |link| text(&link["tags"])),
        ("created", true, |link| text(&link["dateCreated"]).chars().take(10).collect()),
        ("state", true, |link| state(link).to_owned()),
    ],
    below: |answer| {
        let count = |name: &str| answer["shortUrls"]["pagination"][name].as_u64().unwrap_or_default();
        let (current, pages, total) = (count("currentPage"), count("pagesCount"), count("totalItems"));
        let is_all = pages <= 1 && current <= 1;
        if is_all { String::new() } else { format!("page {current} of {pages}, {total} links in all\n") }
    },
};

pub(super) const EXPLANATION: List = List {
    at: "/steps",
    empty: "no steps",
    fields: &[
        ("step", true, |step| text(&step["step"])),
        ("outcome", true, |step| text(&step["outcome"])),
        ("detail", false, |step| text(&step["detail"])),
    ],
    below: |explanation| {
        let answer = &explanation["answer"];
        let [status, location, page] = ["status", "location", "page"].map(|name| text(&answer[name]));
        format!("answer: {status} {location}{page}\n")
    },
};

fn state(link: &Value) -> &'static str {
    match (&link["blocked"], &link["enabled"]) {
        (Value::Object(_), _) => "blocked",
        (_, Value::Bool(false)) => "disabled",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_leaves_out_columns_that_say_nothing() {
        let link = json!({ "shortCode": "abc123", "longUrl": "https://example.com/", "tags": [], "title": null,
            "dateCreated": "2026-11-22T10:00:00+00:00", "domain": null, "enabled": true });
        let list = LIST.format(&json!({ "shortUrls": { "data": [link] } }), 100);
        assert_eq!(list, "code    long URL              created\nabc123  https://example.com/  2026-11-22\n");
    }
}
