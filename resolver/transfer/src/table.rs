//! Reads items from a table of comma-separated values (RFC 4180) that may be larger than memory.

use std::io::{self, Read};

use ::csv::{ByteRecord, ErrorKind, ReaderBuilder};
use serde_json::{Map, Value};

use super::{
    item::Item,
    row::{ITEM_BYTES, RowError},
};

/// Maximum bytes of the input that one line may take. A line within this bound but over the item
/// limit is skipped; a longer one ends the reading.
const LINE_BYTES: usize = 1024 * 1024;
/// A sentinel appended to the input. If a quotation mark is missing, the sentinel becomes part of
/// the last cell; otherwise it is a line of its own.
const MARK: &[u8] = b"\n\0\n";
/// The content of the sentinel as a line of its own.
const MARK_LINE: &[u8] = b"\0";

/// The column layout of a kind of table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The columns, each with its aliases.
    pub(super) columns: &'static [(&'static str, &'static [&'static str])],
    /// The columns and aliases as one text, for error messages.
    pub(super) known: &'static str,
    /// Columns that the first line must name.
    pub(super) needed: &'static [&'static str],
    /// Whether unknown columns are refused.
    pub(super) is_closed: bool,
    /// The columns of a table without column names, as databases write it. If set, a cell `\N`
    /// means null.
    pub(super) unnamed: Option<&'static [&'static str]>,
}

impl Layout {
    /// Returns the canonical name of a column; `None` if it is unknown. Case is ignored.
    pub(super) fn column(&self, name: &str) -> Option<&'static str> {
        let is_same = |known: &str| known.eq_ignore_ascii_case(name.trim());
        let found = self
            .columns
            .iter()
            .find(|(known, others)| is_same(known) || others.iter().any(|other| is_same(other)));
        found.map(|(known, _)| *known)
    }

    /// Returns the canonical names of the columns in the first line; `None` for an unknown column.
    fn columns(&self, line: &[&str]) -> Result<Vec<Option<&'static str>>, String> {
        let mut columns = Vec::new();
        for name in line {
            let column = self.column(name);
            if column.is_none() && self.is_closed {
                return Err(format!("{:?} is none of them", clip(name)));
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

/// Returns the first 40 characters of a name, for an error message.
pub(super) fn clip(name: &str) -> String {
    name.chars().take(40).collect()
}

/// Iterator over the rows of a table as items.
pub(super) struct Table<R> {
    input: ::csv::Reader<Marked<R>>,
    layout: Layout,
    /// The canonical column names, set when the first line has been read; `None` for an unknown
    /// column.
    columns: Option<Vec<Option<&'static str>>>,
    line: ByteRecord,
    /// The number of items so far, unreadable ones included.
    count: u64,
    is_over: bool,
}

impl<R: Read> Table<R> {
    pub(super) fn new(input: R, layout: Layout) -> Self {
        let input = Marked { input, left: 0, mark: None };
        let input = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
        Self { input, layout, columns: None, line: ByteRecord::new(), count: 0, is_over: false }
    }

    /// Reads the next line; returns `false` at the end of the input.
    fn read_line(&mut self) -> Result<bool, RowError> {
        self.input.get_mut().left = LINE_BYTES;
        let has_line = self.input.read_byte_record(&mut self.line).map_err(|error| self.unreadable(error))?;
        if self.input.get_ref().mark.is_none() || !has_line {
            return Ok(has_line);
        }
        let last = self.line.iter().next_back().unwrap_or_default();
        if self.line.len() == 1 && last == MARK_LINE {
            return Ok(false);
        }
        if last.ends_with(MARK) {
            return Err(self.broken("the quotation mark that ends the last cell"));
        }
        Ok(true)
    }

    fn unreadable(&self, error: ::csv::Error) -> RowError {
        let cause = plain(error);
        if cause.get_ref().is_some_and(|inner| inner.is::<TooLong>()) {
            return self.broken("lines of at most 1 MiB; a quotation mark may be missing");
        }
        RowError::Read { after: self.count, cause }
    }

    fn broken(&self, expected: &'static str) -> RowError {
        RowError::Broken { after: self.count, expected }
    }

    /// Reads the first line. If the table has no column names, the first line is also the first
    /// item.
    fn begin(&mut self) -> Result<Option<Item>, RowError> {
        let problem = |problem: String| RowError::Header { known: self.layout.known, problem };
        let no_names = problem("there is none".to_owned());
        let no_text = problem("it is not UTF-8".to_owned());
        if !self.read_line()? {
            return Err(no_names);
        }
        let names: Result<Vec<&str>, _> = self.line.iter().map(str::from_utf8).collect();
        let names = names.map_err(|_| no_text)?;
        let unnamed = self.layout.unnamed.filter(|unnamed| unnamed.len() == names.len());
        match (self.layout.columns(&names), unnamed) {
            (Ok(columns), _) => self.columns = Some(columns),
            (Err(_), Some(unnamed)) => {
                self.columns = Some(unnamed.iter().copied().map(Some).collect());
                return self.item().map(Some);
            }
            (Err(text), None) => return Err(RowError::Header { known: self.layout.known, problem: text }),
        }
        Ok(None)
    }

    /// Converts the current line to an item.
    fn item(&mut self) -> Result<Item, RowError> {
        self.count += 1;
        let place = self.count;
        let wrong = |expected| RowError::Item { place, expected };
        if self.line.as_slice().len() > ITEM_BYTES {
            return Err(wrong("at most 64 KiB"));
        }
        let columns = self.columns.as_deref().unwrap_or_default();
        if self.line.len() != columns.len() {
            return Err(wrong("as many cells as there are columns"));
        }
        let mut fields = Map::new();
        for (column, cell) in columns.iter().zip(&self.line) {
            let Some(column) = column else { continue };
            let cell = str::from_utf8(cell).map_err(|_| wrong("cells in UTF-8"))?;
            let is_none = cell.is_empty() || (self.layout.unnamed.is_some() && cell == "\\N");
            if !is_none {
                fields.insert((*column).to_owned(), Value::from(cell));
            }
        }
        Ok(Item { place, fields })
    }

    fn advance(&mut self) -> Result<Option<Item>, RowError> {
        if self.columns.is_none()
            && let Some(item) = self.begin()?
        {
            return Ok(Some(item));
        }
        if self.read_line()? { self.item().map(Some) } else { Ok(None) }
    }
}

impl<R: Read> Iterator for Table<R> {
    type Item = Result<Item, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let result = self.advance();
        self.is_over = match &result {
            Ok(item) => item.is_none(),
            Err(error) => error.is_final(),
        };
        result.transpose()
    }
}

/// Converts an error of the CSV reader to an I/O error; the kind of an I/O error is kept.
pub(super) fn plain(error: ::csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(cause) => cause,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// A reader that appends the sentinel to its input, and limits the bytes read for each line.
struct Marked<R> {
    input: R,
    /// The remaining bytes that may be read for the current line.
    left: usize,
    /// The rest of the sentinel, once the input has ended.
    mark: Option<&'static [u8]>,
}

/// The error for a line that takes more than [`LINE_BYTES`] of the input.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected a shorter line")]
struct TooLong;

impl<R: Read> Read for Marked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if let Some(mark) = &mut self.mark {
            return mark.read(to);
        }
        if self.left == 0 {
            return Err(io::Error::other(TooLong));
        }
        let room = to.len().min(self.left);
        let got = loop {
            match self.input.read(&mut to[..room]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        self.left -= got;
        if got > 0 || room == 0 {
            return Ok(got);
        }
        self.mark.insert(MARK).read(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: Layout = Layout {
        columns: &[("code", &["slug"]), ("url", &[])],
        known: "code, url",
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
        Table::new(input, layout).map(shown).collect()
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
        ] {
            assert_eq!(read(OPEN, input.as_bytes()), items, "{input:?}");
        }
    }

    #[test]
    fn a_bad_line_is_told_and_the_next_one_comes() {
        let long = "x".repeat(ITEM_BYTES);
        for (line, problem) in [
            (&b"a"[..], "as many cells as there are columns"),
            (b"a,b,c", "as many cells as there are columns"),
            (b"a,\xff", "cells in UTF-8"),
            (format!("a,{long}").as_bytes(), "at most 64 KiB"),
        ] {
            let input = [b"code,url\n", line, b"\nc,d\n"].concat();
            let expected = [format!("item 1: expected {problem}"), r#"2 {"code":"c","url":"d"}"#.to_owned()];
            assert_eq!(read(OPEN, &input), expected, "{problem}");
        }
    }

    #[test]
    fn a_first_line_without_the_names_of_columns_is_refused_with_the_known_names() {
        for (layout, input, problem) in [
            (CLOSED, "", "there is none"),
            (CLOSED, "\n\r\n", "there is none"),
            (CLOSED, "code,url,x\n", "\"x\" is none of them"),
            (CLOSED, "code;url\n", "\"code;url\" is none of them"),
            (CLOSED, "code\n", "url is missing"),
            (CLOSED, "code,url,slug\n", "\"slug\" comes twice, perhaps under another name"),
            (OPEN, "url,x\n", "code is missing"),
            (OPEN, "a,b\nc,d\n", "code is missing"),
        ] {
            let expected = format!("expected a first line with the names of columns: code, url; {problem}");
            assert_eq!(read(layout, input.as_bytes()), [expected], "{input:?}");
        }
        assert!(read(CLOSED, b"code,\xff\n")[0].ends_with("; it is not UTF-8"));
    }

    #[test]
    fn a_missing_quotation_mark_ends_the_input_and_is_not_taken_for_a_long_text() {
        let cut = "after item 1: expected the quotation mark that ends the last cell";
        for tail in ["c,\"d", "\"c", "c,\"d\n", "c,\"d\"\"", "c,\"d\ne,f\n"] {
            let input = format!("code,url\na,b\n{tail}");
            let read = read(OPEN, input.as_bytes());
            assert_eq!(read, [r#"1 {"code":"a","url":"b"}"#, cut], "{tail:?}");
        }
        let long = format!("code,url\na,b\nc,\"d\n{}", "e,f\n".repeat(LINE_BYTES / 2));
        let read = read(OPEN, long.as_bytes());
        assert_eq!(read[1], "after item 1: expected lines of at most 1 MiB; a quotation mark may be missing");
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn a_table_far_longer_than_a_line_may_be_is_read_to_its_end() {
        let input = format!("code,url\n{}", "a,https://example.com/\n".repeat(100_000));
        assert!(input.len() > 2 * LINE_BYTES);
        assert_eq!(read(OPEN, input.as_bytes()).len(), 100_000);
    }
}
