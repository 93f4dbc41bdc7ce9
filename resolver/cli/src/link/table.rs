//! Links as tables. Answers are read by the names of their fields, so that a server of another
//! release, which lacks fields or has more, is shown as well.

use serde_json::Value;

use crate::table::{Column, layout, pairs, text};

/// Formats the links of a page as a table with one line each, none wider than `width` cells.
pub(super) fn list(links: &[Value], width: usize) -> String {
    if links.is_empty() {
        return "no links\n".to_owned();
    }
    let of = |head, is_kept, read: fn(&Value) -> String| Column::new(head, is_kept, links.iter().map(read));
    let columns = vec![
        of("code", true, |link| text(&link["shortCode"])),
        of("domain", false, |link| text(&link["domain"])),
        of("long URL", false, |link| text(&link["longUrl"])),
        of("title", false, |link| text(&link["title"])),
        of("tags", false, |link| tags(&link["tags"])),
        of("created", true, |link| text(&link["dateCreated"]).chars().take(10).collect()),
        of("state", true, state),
    ];
    layout(columns, width)
}

fn state(link: &Value) -> String {
    let is_blocked = link["blocked"].is_object();
    let words = [(is_blocked, "blocked"), (link["enabled"] == false, "disabled")];
    words.into_iter().find(|(is, _)| *is).map_or_else(String::new, |(_, word)| word.to_owned())
}

/// Formats a link as a table of two columns. Fields without a value are left out.
pub(super) fn link(link: &Value) -> String {
    let (meta, visits) = (&link["meta"], &link["visitsSummary"]);
    pairs(&[
        ("short URL", text(&link["shortUrl"])),
        ("code", text(&link["shortCode"])),
        ("domain", text(&link["domain"])),
        ("long URL", text(&link["longUrl"])),
        ("title", text(&link["title"])),
        ("description", text(&link["description"])),
        ("tags", tags(&link["tags"])),
        ("created", text(&link["dateCreated"])),
        ("created by", text(&link["createdBy"])),
        ("edited", text(&link["editedAt"])),
        ("edited by", text(&link["editedBy"])),
        ("deleted", text(&link["deletedAt"])),
        ("taken down", text(&link["blocked"]["date"])),
        ("reason", text(&link["blocked"]["reason"])),
        ("valid since", text(&meta["validSince"])),
        ("valid until", text(&meta["validUntil"])),
        ("max visits", text(&meta["maxVisits"])),
        ("visits", text(&visits["total"])),
        ("enabled", text(&link["enabled"])),
        ("crawlable", text(&link["crawlable"])),
        ("forwards query", text(&link["forwardQuery"])),
        ("redirect status", text(&link["redirectStatus"])),
        ("password", text(&link["hasPassword"])),
        ("redirect rules", text(&link["hasRedirectRules"])),
        ("version", text(&link["version"])),
    ])
}

fn tags(value: &Value) -> String {
    let tags = value.as_array().map(Vec::as_slice).unwrap_or_default();
    tags.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unicode_width::UnicodeWidthStr as _;

    use super::*;

    fn some_links() -> Vec<Value> {
        let long = format!("https://example.com/{}", "a".repeat(8_000));
        vec![
            json!({ "shortCode": "abc123", "longUrl": "https://example.com/", "tags": [], "title": null,
                "dateCreated": "2026-11-22T10:00:00+00:00", "domain": null, "enabled": true }),
            json!({ "shortCode": "短い", "longUrl": long, "tags": ["one", "タグ"], "title": "題名\u{1b}[2J".repeat(100),
                "dateCreated": "2026-11-23T10:00:00+00:00", "domain": "sho.rt", "enabled": false }),
            json!({ "shortCode": "summer-sale/2026/and-much-more-of-it", "longUrl": "https://example.org/", "tags": ["x"],
                "title": "e\u{301}", "dateCreated": "2026-11-24T10:00:00+00:00", "domain": null, "enabled": true }),
        ]
    }

    #[test]
    fn no_line_of_a_list_is_wider_than_the_terminal_and_columns_are_aligned() {
        for width in [40, 60, 80, 100, 1_000] {
            let table = list(&some_links(), width);
            let lines: Vec<&str> = table.lines().collect();
            assert_eq!(lines.len(), 4);
            for line in &lines {
                assert!(line.width() <= width, "{width}: {} in {line}", line.width());
                assert!(!line.contains('\u{1b}'), "{line:?}");
            }
            let place = |line: &str, part: &str| line.find(part).map(|place| line[..place].width());
            let created = place(lines[0], "cre");
            assert!(created.is_some() && place(lines[1], "202") == created, "{table}");
            assert_eq!(lines[3].match_indices("202").last().map(|(at, _)| lines[3][..at].width()), created);
        }
        let wide = list(&some_links(), 140);
        assert!(wide.contains("summer-sale/2026/and-much-more-of-it  "), "codes are cut last: {wide}");
        assert!(wide.contains("2026-11-24"), "{wide}");
    }

    #[test]
    fn columns_that_say_nothing_are_left_out() {
        let plain = list(&some_links()[..1], 100);
        assert_eq!(
            plain,
            "code    long URL              created\nabc123  https://example.com/  2026-11-22\n"
        );
        assert_eq!(list(&[], 100), "no links\n");
        let odd = list(&[json!(null), json!([]), json!({ "shortCode": 7, "tags": "x" })], 100);
        assert_eq!(odd.lines().count(), 4, "{odd}");
    }

    #[test]
    fn a_link_is_shown_with_what_is_said_of_it() {
        let shown = link(&json!({
            "shortUrl": "http://sho.rt/abc", "shortCode": "abc", "longUrl": "https://example.com/", "domain": null,
            "title": null, "description": "two\nlines", "tags": ["a", "b"], "meta": { "maxVisits": 3, "validSince": null },
            "enabled": true, "hasPassword": false, "version": 0,
        }));
        let expected = [
            "short URL        http://sho.rt/abc",
            "code             abc",
            "long URL         https://example.com/",
            "description      two lines",
            "tags             a, b",
            "max visits       3",
            "enabled          yes",
            "password         no",
            "version          0",
        ];
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }
}
