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
    use crate::table::is_within;

    fn list(links: &Value, width: usize) -> String {
        LIST.format(&json!({ "shortUrls": { "data": links } }), width)
    }

    fn some_links() -> Value {
        let long = format!("https://example.com/{}", "a".repeat(8_000));
        json!([
            json!({ "shortCode": "abc123", "longUrl": "https://example.com/", "tags": [], "title": null,
                "dateCreated": "2026-11-22T10:00:00+00:00", "domain": null, "enabled": true }),
            json!({ "shortCode": "短い", "longUrl": long, "tags": ["one", "タグ"], "title": "題名\u{1b}[2J".repeat(100),
                "dateCreated": "2026-11-23T10:00:00+00:00", "domain": "sho.rt", "enabled": false }),
            json!({ "shortCode": "summer-sale/2026/and-much-more-of-it", "longUrl": "https://example.org/", "tags": ["x"],
                "title": "e\u{301}", "dateCreated": "2026-11-24T10:00:00+00:00", "domain": null, "enabled": true }),
        ])
    }

    #[test]
    fn a_list_leaves_out_columns_that_say_nothing_and_is_never_wider_than_the_terminal() {
        let plain = list(&json!([some_links()[0]]), 100);
        assert_eq!(
            plain,
            "code    long URL              created\nabc123  https://example.com/  2026-11-22\n"
        );
        assert_eq!(list(&json!([]), 100), "no links\n");
        let odd = list(&json!([null, [], { "shortCode": 7, "tags": "x" }]), 100);
        assert_eq!(odd.lines().count(), 4, "{odd}");
        for width in [40, 60, 80, 100, 1_000] {
            let table = list(&some_links(), width);
            assert!(table.lines().count() == 4 && is_within(&table, width), "{table}");
        }
        let wide = list(&some_links(), 140);
        assert!(wide.contains("summer-sale/2026/and-much-more-of-it  "), "codes are cut last: {wide}");
        assert!(wide.contains("2026-11-24"), "{wide}");
    }
}
