//! Reads items from the records of a table, which may be larger than memory.

use std::{io::BufRead, ops::ControlFlow};

use jiff::tz::TimeZone;
use serde_json::{Map, Value};

use super::{
    item::Item,
    records::{Record, Records, is_same_name},
    row::RowError,
    source::source_hint,
};

/// Maximum length of a row's cells, in bytes: the limit of a single create request.
const ITEM_BYTES: usize = 64 * 1024;

/// Error text for a table in another encoding.
const NOT_UTF_8: &str = "the text is not in UTF-8: save the table as \"CSV UTF-8\"";

/// The canonical names of a table's columns; `None` for an unknown column.
type Columns = Vec<Option<&'static str>>;

#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The names of each column, the canonical one first.
    pub(super) columns: &'static [&'static str],
    pub(super) needed: &'static [&'static str],
    /// Whether unknown columns are refused.
    pub(super) is_closed: bool,
    /// The columns of a table without column names, as databases write it. If set, a cell `\N`
    /// means null.
    pub(super) unnamed: Option<&'static [&'static str]>,
}

impl Layout {
    /// Returns the canonical name of a column; `None` if it is unknown.
    pub(super) fn column(&self, name: &str) -> Option<&'static str> {
        let is_meant = |names: &&str| names.split(' ').any(|known| is_same_name(known, name));
        self.columns.iter().copied().find(is_meant).map(first_name)
    }

    /// Returns the columns and their aliases as one text, for error messages.
    pub(super) fn known(&self) -> String {
        let columns = self.columns.iter().map(|names| match names.split_once(' ') {
            None => (*names).to_owned(),
            Some((name, others)) => format!("{name} (or {})", others.replace(' ', ", ")),
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Says how well the first line fits as names of columns, or else as a table without names.
    fn score(&self, line: &[&str]) -> usize {
        let named = line.iter().filter(|name| self.column(name).is_some()).count();
        let is_unnamed = self.unnamed.is_some_and(|unnamed| unnamed.len() == line.len());
        2 * named + usize::from(is_unnamed)
    }

    /// Finds the columns by the first line. Returns the line as well if it has no names.
    fn begin(&self, line: Option<Record>) -> Result<(Columns, Option<Record>), RowError> {
        let problem = |problem: &str| {
            RowError::form(format!("{problem}; the first line has to name the columns: {}", self.known()))
        };
        let line = line.ok_or_else(|| problem("there is no line"))?;
        let names: Option<Vec<&str>> = line.cells().collect();
        let names = names.ok_or_else(|| problem(NOT_UTF_8))?;
        let unnamed = self.unnamed.filter(|unnamed| unnamed.len() == names.len());
        match (self.columns(&names), unnamed) {
            (Ok(columns), _) => Ok((columns, None)),
            (Err(_), Some(unnamed)) => Ok((unnamed.iter().copied().map(Some).collect(), Some(line))),
            (Err(text), None) => Err(problem(&text)),
        }
    }

    fn columns(&self, line: &[&str]) -> Result<Columns, String> {
        let mut columns = Vec::new();
        for name in line {
            let column = self.column(name);
            if column.is_none() && self.is_closed && !name.is_empty() {
                let hint = source_hint(line.iter().copied());
                return Err(format!("{:?} is no known column{hint}", clip(name)));
            }
            if column.is_some() && columns.contains(&column) {
                return Err(format!("{:?} comes twice, perhaps under another name", clip(name)));
            }
            columns.push(column);
        }
        match self.needed.iter().find(|needed| !columns.contains(&Some(**needed))) {
            Some(missing) => Err(format!("{missing} is missing")),
            None => Ok(columns),
        }
    }
}

/// Returns the canonical one of the names of a column.
pub(super) fn first_name(names: &'static str) -> &'static str {
    names.split(' ').next().unwrap_or_default()
}

/// Returns the first 40 characters of a name, for an error message.
pub(super) fn clip(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Passes the rows of a table as items to `take` until that breaks. It returns how many further
/// items it has made of one.
pub(super) fn each_item(
    input: impl BufRead,
    layout: Layout,
    zone: &TimeZone,
    mut take: impl FnMut(Result<Item, RowError>) -> ControlFlow<(), u64>,
) -> Result<(), RowError> {
    let mut place = 0;
    let mut records =
        Records::open(input, |line| layout.score(line)).map_err(|error| RowError::broken(place, error))?;
    let first = records.next().map_err(|error| RowError::broken(place, error))?;
    let (columns, mut first) = layout.begin(first)?;
    loop {
        let next = match first.take() {
            Some(first) => Some(first),
            None => records.next().map_err(|error| RowError::broken(place, error))?,
        };
        let Some(record) = next else { return Ok(()) };
        place += 1;
        let has_nulls = layout.unnamed.is_some();
        let fields = fields(&record, place, &columns, has_nulls);
        match take(fields.map(|fields| Item { place, fields, zone: zone.clone() })) {
            ControlFlow::Continue(more) => place += more,
            ControlFlow::Break(()) => return Ok(()),
        }
    }
}

/// Returns the filled cells of a record under the names of their columns. Cells that are missing at
/// its end are empty, as some spreadsheets leave them out, unless the file ends there: then it may
/// have been cut off. With `has_nulls`, a cell `\N` is empty.
fn fields(
    record: &Record,
    place: u64,
    columns: &[Option<&'static str>],
    has_nulls: bool,
) -> Result<Map<String, Value>, RowError> {
    let (width, cells) = (record.width(), record.cells().count());
    let wrong = |problem: String| RowError::item(place, problem);
    if record.len() > ITEM_BYTES {
        return Err(wrong("it has more than 64 KiB".to_owned()));
    }
    if width > columns.len() {
        let most = columns.len();
        return Err(wrong(format!(
            "{width} cells for {most} columns: a text with the separator in it has to be in quotation marks"
        )));
    }
    if cells < columns.len() && !record.is_ended {
        return Err(wrong(format!(
            "the file ends after {cells} of {} cells: it may have been cut off; if not, end the line",
            columns.len()
        )));
    }
    let mut fields = Map::new();
    for (column, cell) in columns.iter().zip(record.cells()) {
        let Some(column) = *column else { continue };
        let cell = cell.ok_or_else(|| wrong(format!("{column}: {NOT_UTF_8}")))?;
        let is_none = cell.is_empty() || (has_nulls && cell == "\\N");
        if !is_none {
            fields.insert(column.to_owned(), Value::from(cell));
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::RECORD_BYTES;

    const OPEN: Layout = Layout {
        columns: &["code slug", "url"],
        needed: &["code", "url"],
        is_closed: false,
        unnamed: Some(&["code", "url", "other"]),
    };
    const CLOSED: Layout = Layout { is_closed: true, unnamed: None, needed: &["url"], ..OPEN };

    fn read(layout: Layout, input: &[u8]) -> Vec<String> {
        let shown = |result: Result<Item, RowError>| match result {
            Ok(item) => format!("{} {}", item.place, Value::Object(item.fields)),
            Err(error) => error.to_string(),
        };
        let mut all = Vec::new();
        let read = each_item(input, layout, &TimeZone::UTC, |item| {
            all.push(shown(item));
            ControlFlow::Continue(0)
        });
        all.extend(read.err().map(|error| error.to_string()));
        all
    }

    #[test]
    fn lines_become_items_with_the_names_of_their_columns() {
        for (input, items) in [
            ("code,url\na,b\n", &[r#"1 {"code":"a","url":"b"}"#][..]),
            ("url,x,Slug \r\nb,y,a\r\n\r\nd,,", &[r#"1 {"url":"b","code":"a"}"#, r#"2 {"url":"d"}"#]),
            ("\"code\",\"url\"\n\"a\"\"b\",\"c,\r\nd\"", &[r#"1 {"code":"a\"b","url":"c,\r\nd"}"#]),
            ("code,url\nü短,\"\"\"\"", &[r#"1 {"code":"ü短","url":"\""}"#]),
            ("code,url\na\"b,c\n", &[r#"1 {"code":"a\"b","url":"c"}"#]),
            (
                "a,b,c\nd,\\N,e\n",
                &[r#"1 {"code":"a","url":"b","other":"c"}"#, r#"2 {"code":"d","other":"e"}"#],
            ),
            ("code,url", &[]),
            ("code;url;\na;b,c;\nd;\n;;\n", &[r#"1 {"code":"a","url":"b,c"}"#, r#"2 {"code":"d"}"#]),
            ("a;b,c;d\n", &[r#"1 {"code":"a","url":"b,c","other":"d"}"#]),
            ("a\tb\tc\n", &[r#"1 {"code":"a","url":"b","other":"c"}"#]),
        ] {
            assert_eq!(read(OPEN, input.as_bytes()), items, "{input:?}");
        }
    }

    #[test]
    fn a_bad_line_is_told_and_the_next_one_comes() {
        let long = "x".repeat(ITEM_BYTES);
        for (line, problem) in [
            (
                &b"a,b,c"[..],
                "item 1: 3 cells for 2 columns: a text with the separator in it has to be in quotation marks",
            ),
            (b"a,\xff", "item 1: url: the text is not in UTF-8: save the table as \"CSV UTF-8\""),
            (format!("a,{long}").as_bytes(), "item 1: it has more than 64 KiB"),
        ] {
            let input = [b"code,url\n", line, b"\nc,d\n"].concat();
            assert_eq!(read(OPEN, &input), [problem, r#"2 {"code":"c","url":"d"}"#]);
        }
    }

    #[test]
    fn cells_are_missing_at_the_end_of_a_line_but_not_at_the_end_of_the_file() {
        let read = read(OPEN, b"code,url,x\na\nb,c,\nd,e,f\ng,h");
        let cut = "item 4: the file ends after 2 of 3 cells: it may have been cut off; if not, end the line";
        let whole = [r#"1 {"code":"a"}"#, r#"2 {"code":"b","url":"c"}"#, r#"3 {"code":"d","url":"e"}"#];
        assert_eq!(read, [&whole[..], &[cut]].concat());
    }

    #[test]
    fn a_first_line_without_the_names_of_columns_is_refused_with_the_known_names() {
        for (layout, input, problem) in [
            (CLOSED, "", "there is no line"),
            (CLOSED, "\n\r\n", "there is no line"),
            (CLOSED, "code,url,x\n", "\"x\" is no known column"),
            (CLOSED, "code|url\n", "\"code|url\" is no known column"),
            (CLOSED, "code;uri\n", "\"uri\" is no known column"),
            (CLOSED, "code\n", "url is missing"),
            (CLOSED, "code,url,slug\n", "\"slug\" comes twice, perhaps under another name"),
            (OPEN, "url,x\n", "code is missing"),
            (OPEN, "a,b\nc,d\n", "code is missing"),
        ] {
            let expected = format!("{problem}; the first line has to name the columns: code (or slug), url");
            assert_eq!(read(layout, input.as_bytes()), [expected], "{input:?}");
        }
        assert!(read(CLOSED, b"code,\xff\n")[0].contains("not in UTF-8"));
    }

    #[test]
    fn a_missing_quotation_mark_ends_the_input_and_is_not_taken_for_a_long_text() {
        let cut = "after item 1: the quotation mark that ends the last cell is missing";
        for tail in ["c,\"d", "\"c", "c,\"d\n", "c,\"d\"\"", "c,\"d\ne,f\n"] {
            let input = format!("code,url\na,b\n{tail}");
            let read = read(OPEN, input.as_bytes());
            assert_eq!(read, [r#"1 {"code":"a","url":"b"}"#, cut], "{tail:?}");
        }
    }

    #[test]
    fn a_table_far_longer_than_a_line_may_be_is_read_to_its_end() {
        let input = format!("code,url\n{}", "a,https://example.com/\n".repeat(100_000));
        assert!(input.len() > 2 * RECORD_BYTES);
        assert_eq!(read(OPEN, input.as_bytes()).len(), 100_000);
    }
}
