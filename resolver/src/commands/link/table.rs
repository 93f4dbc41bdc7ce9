//! Links as tables for people. Widths are those of a terminal, where a character takes no, one or two cells (UAX #11).

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Cells between two columns.
const GAP: usize = 2;
/// Cells that a column keeps: seven of them have room in the narrowest table.
const NARROWEST: usize = 4;
/// Stands for what was cut off.
const CUT: char = '…';

/// A column of a list.
struct Column {
    head: &'static str,
    /// Whether it is cut only after the others, since people copy what is in it.
    is_kept: bool,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    fn new(head: &'static str, is_kept: bool, cells: impl Iterator<Item = String>) -> Self {
        let cells: Vec<String> = cells.collect();
        let width = cells.iter().map(|cell| cell.width()).chain([head.width()]).max().unwrap_or(0);
        Self { head, is_kept, cells, width }
    }
}

/// The links of a page, a line each, none wider than `width` cells, of which there are at least 40.
pub(super) fn list(links: &[Value], width: usize) -> String {
    if links.is_empty() {
        return "no links\n".to_owned();
    }
    let of = |head, is_kept, read: fn(&Value) -> String| Column::new(head, is_kept, links.iter().map(read));
    let mut columns = vec![of("code", true, |link| text(&link["shortCode"]))];
    if links.iter().any(|link| link["domain"].is_string()) {
        columns.push(of("domain", false, |link| text(&link["domain"])));
    }
    columns.push(of("long URL", false, |link| text(&link["longUrl"])));
    if links.iter().any(|link| link["title"].is_string()) {
        columns.push(of("title", false, |link| text(&link["title"])));
    }
    if links.iter().any(|link| link["tags"].as_array().is_some_and(|tags| !tags.is_empty())) {
        columns.push(of("tags", false, |link| tags(&link["tags"])));
    }
    columns.push(of("created", true, |link| text(&link["dateCreated"]).chars().take(10).collect()));
    if links.iter().any(|link| link["enabled"] == false) {
        columns.push(of("state", true, |link| {
            if link["enabled"] == false { "disabled" } else { "" }.to_owned()
        }));
    }
    fit(&mut columns, width);
    lines(&columns)
}

/// Takes cells from the widest columns until all have room.
fn fit(columns: &mut [Column], width: usize) {
    let room = width.saturating_sub(GAP * columns.len().saturating_sub(1));
    for takes_all in [false, true] {
        loop {
            let total: usize = columns.iter().map(|column| column.width).sum();
            let takeable = columns.iter_mut().filter(|column| takes_all || !column.is_kept);
            let widest = takeable.max_by_key(|column| column.width);
            match widest {
                Some(column) if total > room && column.width > NARROWEST => {
                    // An eighth at once: long URLs have thousands.
                    let step = (column.width / 8).max(1).min(total - room);
                    column.width = column.width.saturating_sub(step).max(NARROWEST);
                }
                _ => break,
            }
        }
    }
}

fn lines(columns: &[Column]) -> String {
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let mut lines = String::new();
    for row in 0..=rows {
        let mut line = String::new();
        for column in columns {
            let cell = row.checked_sub(1).map_or(column.head, |row| column.cells[row].as_str());
            let cell = cut(cell, column.width);
            line.push_str(&cell);
            line.extend(std::iter::repeat_n(' ', (column.width + GAP).saturating_sub(cell.width())));
        }
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}

/// A link as a table of two columns; what is not said of it is left out.
pub(super) fn link(link: &Value) -> String {
    let (meta, visits) = (&link["meta"], &link["visitsSummary"]);
    let rows = [
        ("short URL", text(&link["shortUrl"])),
        ("code", text(&link["shortCode"])),
        ("domain", text(&link["domain"])),
        ("long URL", text(&link["longUrl"])),
        ("title", text(&link["title"])),
        ("description", text(&link["description"])),
        ("tags", tags(&link["tags"])),
        ("created", text(&link["dateCreated"])),
        ("edited", text(&link["editedAt"])),
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
    ];
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + GAP;
    let mut lines = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{name:<width$}{value}");
    }
    lines
}

/// A value as people read it; nothing for null and for what has parts.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

fn tags(value: &Value) -> String {
    let tags = value.as_array().map(Vec::as_slice).unwrap_or_default();
    tags.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A text on one line that cannot command the terminal: without control characters and those that turn the direction of writing.
pub(super) fn printable(text: &str) -> String {
    let shown = |one: char| match one {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        one if one.is_control() => char::REPLACEMENT_CHARACTER,
        one => one,
    };
    text.chars().map(shown).collect()
}

/// As much of a text as has room in so many cells; the last one says that there is more.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    // Marks that take no cell of their own could go on for ever.
    let most = width.saturating_mul(4);
    let mut cells = 0;
    let mut kept = String::new();
    let mut rest = text.chars().take(most).peekable();
    while let Some(one) = rest.next() {
        // An emoji's variation selector makes the character before it wide.
        let is_emoji = rest.peek() == Some(&'\u{FE0F}');
        cells += if is_emoji { 2 } else { one.width().unwrap_or(0) };
        if cells > room {
            break;
        }
        kept.push(one);
    }
    if width > 0 {
        kept.push(CUT);
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_cut_to_cells_and_not_to_bytes_or_characters() {
        for (text, width, expected) in [
            ("", 0, ""),
            ("abc", 0, ""),
            ("abc", 1, "…"),
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("短い短い", 8, "短い短い"),
            ("短い短い", 7, "短い短…"),
            ("短い短い", 6, "短い…"),
            ("短い短い", 2, "…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("⚠\u{FE0F}⚠\u{FE0F}⚠\u{FE0F}", 4, "⚠\u{FE0F}…"),
        ] {
            let cut = cut(text, width);
            assert_eq!(cut, expected, "{text} in {width}");
            assert!(cut.width() <= width, "{text} in {width}");
        }
        let marks = format!("abc{}", "\u{301}".repeat(100_000));
        assert_eq!(cut(&marks, 3), marks, "it has room, so all of it is shown");
        assert!(cut(&format!("{marks}d"), 3).chars().count() < 20);
    }

    #[test]
    fn what_a_stranger_wrote_cannot_command_the_terminal() {
        for (text, expected) in [
            ("two\nlines\tand\rmore", "two lines and more"),
            ("\u{1b}[31mred\u{7}", "\u{FFFD}[31mred\u{FFFD}"),
            ("\u{9b}31m", "\u{FFFD}31m"),
            ("exe\u{202E}txt", "exe\u{FFFD}txt"),
            ("über 短い", "über 短い"),
        ] {
            assert_eq!(printable(text), expected);
        }
    }

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
