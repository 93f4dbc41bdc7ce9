//! Tables of a server's answers. Widths are in cells of a terminal, where a character takes none,
//! one or two (UAX #11).
//!
//! Rejected: comfy-table, which shares a narrow width among all columns. Here the codes and ids
//! that people copy are cut last, and columns without a value are left out.

use std::fmt::Write as _;

use serde_json::Value;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The number of cells between two columns.
const GAP: usize = 2;
/// The minimum width of a column: seven such columns fit into the narrowest table.
const NARROWEST: usize = 4;
const CUT: char = '…';

/// A column of a table: its head, whether it is cut only after the others, because people copy its
/// values, and how its value is read from a row.
pub type Field<'a, T = Value> = (&'a str, bool, fn(&T) -> String);

struct Column<'a> {
    head: &'a str,
    is_kept: bool,
    cells: Vec<String>,
    width: usize,
}

/// Formats a table with one line per row below the heads. Empty columns are left out. No line is
/// wider than `width` cells, if `width` is at least 40 and there are at most seven columns.
pub fn grid<'a, T>(rows: &[T], fields: &[Field<'a, T>], width: usize) -> String {
    let column = |(head, is_kept, read): &Field<'a, T>| {
        let cells: Vec<String> = rows.iter().map(read).collect();
        let width = cells.iter().map(|cell| cell.width()).chain([head.width()]).max().unwrap_or(0);
        Column { head, is_kept: *is_kept, cells, width }
    };
    let mut columns: Vec<Column<'_>> = fields.iter().map(column).collect();
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    fit(&mut columns, width);
    lines(&columns)
}

/// Narrows the widest columns until the table fits.
fn fit(columns: &mut [Column<'_>], width: usize) {
    let room = width.saturating_sub(GAP * columns.len().saturating_sub(1));
    for takes_all in [false, true] {
        loop {
            let total: usize = columns.iter().map(|column| column.width).sum();
            let takeable = columns.iter_mut().filter(|column| takes_all || !column.is_kept);
            let widest = takeable.max_by_key(|column| column.width);
            match widest {
                Some(column) if total > room && column.width > NARROWEST => {
                    // An eighth at a time, because long URLs have thousands of cells.
                    let step = (column.width / 8).max(1).min(total - room);
                    column.width = column.width.saturating_sub(step).max(NARROWEST);
                }
                _ => break,
            }
        }
    }
}

fn lines(columns: &[Column<'_>]) -> String {
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

/// A list in an answer, as a table with one line for each row.
pub(super) struct List {
    /// The JSON pointer to the rows.
    pub(super) at: &'static str,
    pub(super) empty: &'static str,
    pub(super) fields: &'static [Field<'static>],
    pub(super) below: fn(&Value) -> String,
}

impl List {
    /// Formats the list of an answer. No line of the table is wider than `width` cells.
    pub(super) fn format(&self, answer: &Value, width: usize) -> String {
        let rows = answer.pointer(self.at).map(rows).unwrap_or_default();
        let table =
            if rows.is_empty() { format!("{}\n", self.empty) } else { grid(rows, self.fields, width) };
        table + &(self.below)(answer)
    }
}

pub(super) fn rows(list: &Value) -> &[Value] {
    list.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Formats how to ask for the page after one that the latest items are on; nothing after the last.
pub(super) fn earlier(page: &Value, items: &str) -> String {
    page["before"].as_i64().map_or_else(String::new, |next| format!("earlier {items}: --before {next}\n"))
}

/// Formats a table of two columns, names and values. Rows with an empty value are left out.
pub(super) fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0) + GAP;
    let mut lines = String::new();
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        // Writing to a string cannot fail.
        let _ = writeln!(lines, "{name:<width$}{value}");
    }
    lines
}

/// Formats a time to the second, without its offset.
pub(super) fn time(value: &Value) -> String {
    text(value).chars().take(19).collect::<String>().replace('T', " ")
}

/// Formats a number of links.
pub(super) fn counted_links(count: u64) -> String {
    if count == 1 { "1 link".to_owned() } else { format!("{count} links") }
}

/// Formats a JSON value; null and objects as an empty text.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => printable(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Null | Value::Object(_) => String::new(),
    }
}

/// Converts a text to one line without terminal commands: control characters and bidirectional
/// controls are replaced.
pub fn printable(text: &str) -> String {
    let shown = |one: char| match one {
        '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => char::REPLACEMENT_CHARACTER,
        one if one.is_control() => char::REPLACEMENT_CHARACTER,
        one => one,
    };
    text.chars().map(shown).collect()
}

/// Cuts a text to `width` cells. The last cell of a cut text is an ellipsis.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    // Combining marks take no cell, so their number needs a limit of its own.
    let most = width.saturating_mul(4);
    let mut cells = 0;
    let mut kept = String::new();
    let mut rest = text.chars().take(most).peekable();
    while let Some(one) = rest.next() {
        // An emoji variation selector makes the character before it two cells wide.
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

    #[test]
    fn columns_are_aligned_by_cells_and_cut_one_after_the_other() {
        let long = "a".repeat(60);
        let rows = [["短い", "", &long, "x"], ["b", "", "", "yes"]];
        let fields: [Field<[&str; 4]>; 4] = [
            ("name", true, |row| row[0].to_owned()),
            ("nothing", true, |row| row[1].to_owned()),
            ("long", false, |row| row[2].to_owned()),
            ("e\u{301}nd", true, |row| row[3].to_owned()),
        ];
        let narrow = format!(
            "name  {:<30}  e\u{301}nd\n短い  {}…  x\nb     {:<30}  yes\n",
            "long",
            "a".repeat(29),
            ""
        );
        assert_eq!(grid(&rows, &fields, 41), narrow);
        assert_eq!(
            grid(&rows, &fields, 100).lines().map(|line| line.width()).max(),
            Some(4 + 2 + 60 + 2 + 3)
        );
        assert_eq!(grid(&[], &fields, 40), "\n");
        let kept = "b".repeat(90);
        let all = grid(&[kept], &[("kept", true, String::clone), ("cut", false, String::clone)], 40);
        assert_eq!(all, format!("kept{}cut\n{}…  bbb…\n", " ".repeat(32), "b".repeat(33)));
    }

    #[test]
    fn a_list_of_any_rows_is_never_wider_than_the_terminal() {
        const LIST: List = List {
            at: "/links/data",
            empty: "no links",
            fields: &[
                ("code", true, |link| text(&link["code"])),
                ("long URL", false, |link| text(&link["longUrl"])),
                ("tags", false, |link| text(&link["tags"])),
                ("note", false, |link| text(&link["note"])),
            ],
            below: |_| String::new(),
        };
        let table = |links: &Value, width| LIST.format(&json!({ "links": { "data": links } }), width);
        let (long, hostile) = ("短".repeat(8_000), "\u{1b}[2J\n".repeat(100));
        let links = json!([
            { "code": "abc", "longUrl": long, "tags": ["one", "タグ"] },
            { "code": "summer-sale/2026/and-much-more-of-it", "longUrl": hostile },
            { "code": 7, "tags": "x" },
            null,
            [],
        ]);
        for width in [40, 60, 80, 100, 1_000] {
            let table = table(&links, width);
            let is_within = |line: &str| line.width() <= width && !line.contains('\u{1b}');
            assert!(table.lines().count() == 6 && table.lines().all(is_within), "{table}");
        }
        let wide = table(&links, 100);
        assert!(wide.contains("and-much-more-of-it  ") && !wide.contains("note"), "{wide}");
        assert_eq!(table(&json!([]), 40), "no links\n");
    }

    #[test]
    fn names_stand_before_what_is_said_and_what_is_not_said_is_left_out() {
        let rows =
            [("one", "1".to_owned()), ("none", String::new()), ("the last", text(&json!("two\nlines")))];
        assert_eq!(pairs(&rows), "one       1\nthe last  two lines\n");
        for (value, shown) in [
            (json!(null), ""),
            (json!(["a", 1]), "a, 1"),
            (json!({ "a": 1 }), ""),
            (json!(true), "yes"),
            (json!(false), "no"),
            (json!(18_446_744_073_709_551_615_u64), "18446744073709551615"),
        ] {
            assert_eq!(text(&value), shown, "{value}");
        }
    }
}
