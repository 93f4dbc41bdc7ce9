//! Records of a table in text (RFC 4180), as people, spreadsheets and other systems write it.
//!
//! 1. Commas, semicolons or tabs separate cells. A first line such as `sep=;` says which; otherwise
//!    the line with the names of columns decides.
//! 2. White space around a cell is not part of it, unless it is in quotation marks.
//! 3. A line ends with LF, CR LF or CR. A record without a filled cell is skipped.
//! 4. A missing quotation mark is an error, and never makes one long text of the rest.
//! 5. Not more than one record is held, and none may take more than [`RECORD_BYTES`].
//!
//! The crate `csv`, with which tables are written, was rejected for reading: it takes a quotation
//! mark behind a space for a part of the text, and does not tell a missing one from the end.

use std::{
    io::{self, BufRead, Cursor, Read as _},
    str,
};

/// The separators, the likeliest first.
const SEPARATORS: [u8; 3] = *b",;\t";
/// Maximum bytes of the input that one record may take.
pub(super) const RECORD_BYTES: usize = 1024 * 1024;

/// A record: its cells, and where it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The number of the line that the record begins on, from 1.
    pub line: u64,
    /// Whether a line break ends the record, and not the end of the input.
    pub is_ended: bool,
    text: Vec<u8>,
    /// The end of each cell in `text`.
    ends: Vec<usize>,
}

impl Record {
    /// Returns the cells; one that is not UTF-8 is `None`.
    pub fn cells(&self) -> impl Iterator<Item = Option<&str>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(move |(start, end)| str::from_utf8(&self.text[start..*end]).ok())
    }

    /// Returns the number of cells up to the last filled one.
    pub fn width(&self) -> usize {
        let is_filled = |cell: Option<&str>| cell.is_none_or(|cell| !cell.trim().is_empty());
        self.cells().enumerate().filter(|(_, cell)| is_filled(*cell)).last().map_or(0, |(last, _)| last + 1)
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

/// Why no record can be read any more.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The quotation mark that ends a cell is missing.
    #[error("the quotation mark that ends the last cell is missing")]
    OpenQuote,
    /// A record takes more than a mebibyte.
    #[error("a line has more than 1 MiB; a quotation mark may be missing")]
    TooLong,
    /// The input failed.
    #[error("the rest cannot be read: {0}")]
    Read(#[from] io::Error),
}

enum End {
    Separator,
    Line,
    Input,
}

/// The records of a table, the line with the names of columns included.
pub struct Records<R> {
    input: io::Chain<Cursor<Vec<u8>>, R>,
    separator: u8,
    /// Whether a first line such as `sep=;` says that the text is a table.
    pub is_declared: bool,
    line: u64,
    /// The line that the last record began on, also if it could not be read.
    pub began_on: u64,
    /// The bytes that the present record may still take.
    left: usize,
}

impl<R: BufRead> Records<R> {
    /// Begins a table. `score` says how well the cells of the first line fit as names of columns;
    /// the separator is the one with which they fit best.
    pub fn open(mut input: R, score: impl Fn(&[&str]) -> usize) -> Result<Self, RecordError> {
        let (mut first, mut passed, mut declared) = (first_line(&mut input)?, 0, None);
        while !first.is_empty() {
            let named = separator_line(&first);
            declared = declared.or(named);
            if named.is_none() && !is_blank(&first) {
                break;
            }
            passed += 1;
            first = first_line(&mut input)?;
        }
        let fits = |separator: &u8| {
            let mut records = Records::over(Cursor::new(&first[..]), *separator);
            let record = records.next().ok().flatten().unwrap_or_default();
            let cells: Vec<&str> = record.cells().map(Option::unwrap_or_default).collect();
            (score(&cells), cells.len())
        };
        // Of equals, `max_by_key` takes the last one.
        let found = SEPARATORS.into_iter().rev().max_by_key(fits).unwrap_or(b',');
        Ok(Self {
            input: Cursor::new(first).chain(input),
            separator: declared.unwrap_or(found),
            is_declared: declared.is_some(),
            line: passed + 1,
            began_on: passed + 1,
            left: RECORD_BYTES,
        })
    }

    fn over(input: R, separator: u8) -> Self {
        let input = Cursor::new(Vec::new()).chain(input);
        Self { input, separator, is_declared: false, line: 1, began_on: 1, left: RECORD_BYTES }
    }

    /// Reads the next record that has a filled cell; returns `None` at the end of the input.
    /// Nothing can be read after an error.
    #[expect(clippy::should_implement_trait, reason = "the end of the input is `Ok(None)`")]
    pub fn next(&mut self) -> Result<Option<Record>, RecordError> {
        loop {
            (self.left, self.began_on) = (RECORD_BYTES, self.line);
            let mut record = Record { line: self.line, ..Record::default() };
            let is_end = loop {
                match self.cell(&mut record)? {
                    End::Separator => {}
                    End::Line => {
                        record.is_ended = true;
                        break false;
                    }
                    End::Input => break true,
                }
            };
            if record.width() > 0 {
                return Ok(Some(record));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    fn cell(&mut self, to: &mut Record) -> Result<End, RecordError> {
        // A tab may be the separator.
        let is_space = |byte: u8, separator: u8| byte == b' ' || byte == b'\t' && separator != b'\t';
        while peek(&mut self.input)?.is_some_and(|byte| is_space(byte, self.separator)) {
            self.take()?;
        }
        let mut start = to.text.len();
        if peek(&mut self.input)? == Some(b'"') {
            self.take()?;
            self.quoted(&mut to.text)?;
            start = to.text.len();
        }
        loop {
            let end = match self.take()? {
                None => End::Input,
                Some(b'\n') => End::Line,
                Some(b'\r') => {
                    if peek(&mut self.input)? == Some(b'\n') {
                        self.take()?;
                    }
                    End::Line
                }
                Some(byte) if byte == self.separator => End::Separator,
                Some(byte) => {
                    to.text.push(byte);
                    continue;
                }
            };
            let filled = to.text[start..].trim_ascii_end().len();
            to.text.truncate(start + filled);
            to.ends.push(to.text.len());
            self.line += u64::from(matches!(end, End::Line));
            return Ok(end);
        }
    }

    /// Reads the rest of a cell in quotation marks. A doubled one stands for itself.
    fn quoted(&mut self, to: &mut Vec<u8>) -> Result<(), RecordError> {
        loop {
            let byte = self.take()?.ok_or(RecordError::OpenQuote)?;
            let next = peek(&mut self.input)?;
            match byte {
                b'"' if next == Some(b'"') => {
                    self.take()?;
                }
                b'"' => return Ok(()),
                b'\n' => self.line += 1,
                b'\r' if next != Some(b'\n') => self.line += 1,
                _ => {}
            }
            to.push(byte);
        }
    }

    fn take(&mut self) -> Result<Option<u8>, RecordError> {
        let byte = peek(&mut self.input)?;
        if byte.is_some() {
            self.left = self.left.checked_sub(1).ok_or(RecordError::TooLong)?;
            self.input.consume(1);
        }
        Ok(byte)
    }
}

fn peek(input: &mut impl BufRead) -> Result<Option<u8>, RecordError> {
    loop {
        match input.fill_buf() {
            Ok(bytes) => return Ok(bytes.first().copied()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reads a line with its end, which a line break in quotation marks does not make. Returns an empty
/// one at the end of the input.
fn first_line(input: &mut impl BufRead) -> Result<Vec<u8>, RecordError> {
    let (mut line, mut is_quoted) = (Vec::new(), false);
    while let Some(byte) = peek(input)? {
        if line.len() == RECORD_BYTES {
            return Err(RecordError::TooLong);
        }
        input.consume(1);
        line.push(byte);
        is_quoted ^= byte == b'"';
        if byte == b'\r' && !is_quoted && peek(input)? == Some(b'\n') {
            continue;
        }
        if matches!(byte, b'\n' | b'\r') && !is_quoted {
            break;
        }
    }
    Ok(line)
}

/// Returns whether a line has no filled cell, whatever separates them.
fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| byte.is_ascii_whitespace() || SEPARATORS.contains(byte))
}

/// Returns the separator that a line such as `sep=;` names, with or without quotation marks.
fn separator_line(line: &[u8]) -> Option<u8> {
    let text = line.trim_ascii_start();
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let (key, rest) = text.split_at_checked(4)?;
    let (separator, rest) = rest.split_first()?;
    let rest_is_blank = rest.iter().all(|byte| byte.is_ascii_whitespace() || b"\",;".contains(byte));
    (key.eq_ignore_ascii_case(b"sep=") && SEPARATORS.contains(separator) && rest_is_blank)
        .then_some(*separator)
}

/// Returns whether names of columns are the same but for case, spaces, dashes and underscores.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |text: &str| -> Vec<char> {
        let letters = text.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '-' | '_'));
        letters.flat_map(char::to_lowercase).collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(u64, Vec<String>)> {
        let score = |cells: &[&str]| cells.iter().filter(|cell| ["a", "b"].contains(cell)).count();
        let mut records = Records::open(text.as_bytes(), score).unwrap();
        let mut all = Vec::new();
        while let Some(record) = records.next().unwrap() {
            all.push((record.line, record.cells().map(|cell| cell.unwrap().to_owned()).collect()));
        }
        all
    }

    fn lines(lines: &[(u64, &[&str])]) -> Vec<(u64, Vec<String>)> {
        let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        lines.iter().map(|(line, cells)| (*line, owned(cells))).collect()
    }

    #[test]
    fn the_names_of_columns_or_a_line_of_its_own_say_what_separates_cells() {
        let two: &[(u64, &[&str])] = &[(1, &["a", "b"]), (2, &["1;2", "3,4"])];
        assert_eq!(read("a,b\n1;2,\"3,4\"\n"), lines(two));
        assert_eq!(read("a;b\n\"1;2\";3,4\n"), lines(two));
        assert_eq!(read("a\tb\n1;2\t3,4"), lines(two));
        assert_eq!(read("a;b,c;d\n"), lines(&[(1, &["a", "b,c", "d"])]), "the one that names more columns");
        assert_eq!(
            read("x;y\n1;2\n"),
            lines(&[(1, &["x", "y"]), (2, &["1", "2"])]),
            "the one with more cells"
        );
        for first in ["sep=;", "SEP=;", "\"sep=;\"", "sep=;;;", " sep=; "] {
            let text = format!("\n{first}\r\na,b;c\r\n");
            assert_eq!(read(&text), lines(&[(3, &["a,b", "c"])]), "{first}");
        }
        assert_eq!(read("sep=\t\nx\ty\n"), lines(&[(2, &["x", "y"])]));
        assert_eq!(read("sep=|\n"), lines(&[(1, &["sep=|"])]));
        assert_eq!(read("a\n1\n"), lines(&[(1, &["a"]), (2, &["1"])]));
        assert_eq!((read(""), read("\n \r\n,,\n")), (Vec::new(), Vec::new()));
    }

    #[test]
    fn padding_and_line_ends_are_not_part_of_cells_and_blank_records_are_skipped() {
        let expected = lines(&[(1, &["a", "b"]), (2, &["x y", "1, \"2\"\n3 "]), (6, &["z", ""])]);
        let text = " a , b \n x y ,\t\"1, \"\"2\"\"\n3 \" \n ,\n\nz,\n";
        assert_eq!(read(text), expected);
        let crlf = lines(&[(1, &["a", "b"]), (2, &["x y", "1, \"2\"\r\n3 "]), (6, &["z", ""])]);
        assert_eq!(read(&text.replace('\n', "\r\n")), crlf);
        let cr = lines(&[(1, &["a", "b"]), (2, &["x y", "1, \"2\"\r3 "]), (6, &["z", ""])]);
        assert_eq!(read(&text.replace('\n', "\r")), cr);
        assert_eq!(
            read("a\tb\n\t1\n"),
            lines(&[(1, &["a", "b"]), (2, &["", "1"])]),
            "a tab may be a separator"
        );
        assert_eq!(read("a,b\nc\"d,\"e\"f\n"), lines(&[(1, &["a", "b"]), (2, &["c\"d", "ef"])]));
    }

    #[test]
    fn a_missing_quotation_mark_is_told_from_the_end_of_the_input() {
        for (text, is_open) in [("a,b\n1,\"2", true), ("a,b\n\"1\"\"", true), ("a,b\n1,2", false)] {
            let mut records = Records::open(text.as_bytes(), |_| 0).unwrap();
            assert_eq!(records.next().unwrap().map(|record| record.is_ended), Some(true));
            let last = records.next();
            assert_eq!(matches!(last, Err(RecordError::OpenQuote)), is_open, "{text}");
            assert_eq!(last.ok().flatten().map(|record| record.is_ended), (!is_open).then_some(false));
        }
        let long = format!("a,b\n1,\"{}", "x\n".repeat(RECORD_BYTES));
        let mut records = Records::open(long.as_bytes(), |_| 0).unwrap();
        records.next().unwrap();
        assert!(matches!(records.next(), Err(RecordError::TooLong)));
    }

    #[test]
    fn names_are_the_same_in_each_spelling() {
        for name in ["longUrl", "Long URL", "long_url", " LONG-URL "] {
            assert!(is_same_name(name, "longUrl"), "{name}");
        }
        assert!(!is_same_name("longUrls", "longUrl"));
    }
}
