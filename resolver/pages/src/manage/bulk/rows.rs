//! Reads pasted rows: one long URL on each line, or a table ([`transfer::Records`]) whose first
//! line names its columns in any order.
//!
//! 1. The text is a table if its first line names a column, or has several cells that are words and
//!    so no URLs, or if a line `sep=…` is before it. A table with an unknown column, or without
//!    long URLs, is refused whole.
//! 2. A wrong row keeps its line and its fault, and fails no other.
//! 3. Cells are read as `resolver import` reads those of a spreadsheet ([`transfer::spreadsheet`]).
//!
//! Only the form of the text is checked here. The use cases check the values.

use app::{Field, values::read_time};
use jiff::tz::TimeZone;
use transfer::{Record, RecordError, Records, link_column, spreadsheet};

pub(super) const ROWS_MAX: usize = 1_000;
pub(super) const COLUMNS: [Field; 7] = [
    Field::LongUrl,
    Field::CustomSlug,
    Field::Title,
    Field::Tags,
    Field::ValidUntil,
    Field::MaxVisits,
    Field::Domain,
];
/// A fault: a cell that no column belongs to, as an unquoted comma makes it.
const CELLS: &str = "bulk-wrong-cells";
/// A fault: a cell with a line break, as a missing quotation mark makes it.
const BREAK: &str = "bulk-wrong-break";
/// A fault: the quotation mark that ends a cell is missing, so the rest cannot be read.
const OPEN_QUOTE: &str = "bulk-wrong-quote";
/// A fault: a spreadsheet has made a number of the ending.
const ROUNDED: &str = "bulk-wrong-rounded";
/// A fault: the day and the month of the end may be either way round.
const DAY: &str = "bulk-wrong-day";
/// A fault: the end is no time.
const TIME: &str = "bulk-wrong-time";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The number of the line that the row begins on, from 1.
    pub(super) line: u64,
    /// The cells that are not blank, without white space around them.
    cells: Vec<(Field, String)>,
    /// The name of the text that says why the row cannot be read.
    pub(super) fault: Option<&'static str>,
}

impl Row {
    pub(super) fn get(&self, column: Field) -> Option<&str> {
        self.cells.iter().find(|(has, _)| *has == column).map(|(_, cell)| cell.as_str())
    }

    /// Returns the row in a form that is the same whenever the row is, for an idempotency key.
    pub(super) fn canonical(&self) -> String {
        let cells = self.cells.iter().map(|(field, text)| (field.name(), text));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(cells).finish()
    }
}

/// Why the whole text was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextError {
    Empty,
    /// The first line names a column that links do not have.
    UnknownColumn(String),
    RepeatedColumn(&'static str),
    NoLongUrl,
    TooManyRows,
}

pub(super) fn read(text: &str) -> Result<Vec<Row>, TextError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let names = |cells: &[&str]| cells.iter().filter(|cell| column(cell).is_some()).count();
    let mut records = Records::open(text.as_bytes(), names).map_err(|_| TextError::Empty)?;
    let is_table = match records.next() {
        Ok(first) => {
            let first = first.ok_or(TextError::Empty)?;
            if records.is_declared || is_header(&first) { Some(columns(&first)?) } else { None }
        }
        // A quotation mark that nothing ends makes no names of columns.
        Err(_) => None,
    };
    let rows = match is_table {
        Some(columns) => table(records, &columns),
        None => list(text),
    };
    match rows.len() {
        0 => Err(TextError::Empty),
        1..=ROWS_MAX => Ok(rows),
        _ => Err(TextError::TooManyRows),
    }
}

/// Returns whether the first record of a text names columns.
fn is_header(record: &Record) -> bool {
    let cells: Vec<&str> = record.cells().map(Option::unwrap_or_default).collect();
    let is_word = |cell: &&str| cell.chars().all(|letter| letter.is_alphanumeric() || " _-".contains(letter));
    let names_column = cells.iter().any(|cell| column(cell).is_some());
    let is_url = cells.iter().any(|cell| cell.contains("://"));
    (cells.len() > 1 && cells.iter().all(is_word)) || (names_column && !is_url)
}

/// Finds a column by its name, in upper or lower case.
fn column(name: &str) -> Option<Field> {
    let name = link_column(name)?;
    let field = if name == "shortCode" { Some(Field::CustomSlug) } else { Field::parse(name) };
    field.filter(|field| COLUMNS.contains(field))
}

/// Reads one long URL from each line.
fn list(text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let row = |(index, line): (usize, &str)| Row {
        line: index as u64 + 1,
        cells: vec![(Field::LongUrl, line.to_owned())],
        fault: None,
    };
    lines.map(row).take(ROWS_MAX + 1).collect()
}

fn table(mut records: Records<&[u8]>, columns: &[Option<Field>]) -> Vec<Row> {
    let mut rows = Vec::new();
    while rows.len() <= ROWS_MAX {
        match records.next() {
            Ok(Some(record)) => rows.push(row(&record, columns)),
            Ok(None) => break,
            Err(error) => {
                let fault = if matches!(error, RecordError::OpenQuote) { OPEN_QUOTE } else { BREAK };
                rows.push(Row { line: records.began_on, cells: Vec::new(), fault: Some(fault) });
                break;
            }
        }
    }
    rows
}

/// Reads the columns of a header. One without a name is left out.
fn columns(header: &Record) -> Result<Vec<Option<Field>>, TextError> {
    let mut columns = Vec::new();
    for name in header.cells().map(Option::unwrap_or_default) {
        let found = column(name);
        match found {
            None if !name.is_empty() => return Err(TextError::UnknownColumn(name.to_owned())),
            Some(field) if columns.contains(&found) => return Err(TextError::RepeatedColumn(field.name())),
            _ => columns.push(found),
        }
    }
    if columns.contains(&Some(Field::LongUrl)) { Ok(columns) } else { Err(TextError::NoLongUrl) }
}

fn row(record: &Record, columns: &[Option<Field>]) -> Row {
    let (mut cells, mut fault) = (Vec::new(), None);
    let texts = record.cells().map(|cell| cell.unwrap_or_default().trim());
    for (index, cell) in texts.enumerate().filter(|(_, cell)| !cell.is_empty()) {
        match columns.get(index).copied().flatten() {
            None => fault = Some(CELLS),
            Some(_) if cell.contains(['\n', '\r']) => fault = Some(BREAK),
            Some(column) => match value(column, cell) {
                Ok(value) => cells.push((column, value)),
                Err(wrong) => fault = Some(wrong),
            },
        }
    }
    Row { line: record.line, cells, fault }
}

/// Returns the value of a cell, or the fault that it is.
fn value(column: Field, cell: &str) -> Result<String, &'static str> {
    match column {
        Field::CustomSlug if spreadsheet::is_rounded(cell) => Err(ROUNDED),
        Field::ValidUntil => {
            let time = spreadsheet::time(cell).map_err(|_| DAY)?;
            // In any zone: whether it exists in that of the service is checked with the others.
            let is_time = read_time(&time, &TimeZone::UTC).is_ok();
            is_time.then(|| time.into_owned()).ok_or(TIME)
        }
        Field::MaxVisits => {
            let count = spreadsheet::number(cell);
            Ok(count.map_or_else(|| cell.to_owned(), |count| count.to_string()))
        }
        _ => Ok(cell.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells<'a>(rows: &'a [Row], columns: &[Field]) -> Vec<(u64, Vec<&'a str>)> {
        let cells = |row: &'a Row| columns.iter().map(|column| row.get(*column).unwrap_or("-")).collect();
        rows.iter().map(|row| (row.line, cells(row))).collect()
    }

    #[test]
    fn a_list_has_one_long_url_on_each_line() {
        let rows = read("\u{feff}https://e.org/?a=1,2&title\r\n\r\n  e.org/b \r\n").unwrap();
        assert_eq!(
            cells(&rows, &[Field::LongUrl, Field::Title]),
            [(1, vec!["https://e.org/?a=1,2&title", "-"]), (3, vec!["e.org/b", "-"])]
        );
        assert_eq!(read("https://e.org/,title").unwrap().len(), 1);
    }

    #[test]
    fn columns_come_in_any_order_and_cells_may_be_quoted() {
        let text =
            "title,TAGS,longUrl\r\n\"a, \"\"b\"\"\",\"x,y|z\",https://e.org/\r\n\r\n,,\r\n,,e.org/2\r\n";
        let rows = read(text).unwrap();
        let columns = [Field::LongUrl, Field::Title, Field::Tags];
        assert_eq!(
            cells(&rows, &columns),
            [(2, vec!["https://e.org/", "a, \"b\"", "x,y|z"]), (5, vec!["e.org/2", "-", "-"])]
        );
        let other = "Long URL;Short code;Title;Tags\r\nhttps://e.org/;x;T;a|b\r\n";
        let columns = [Field::LongUrl, Field::CustomSlug, Field::Title, Field::Tags];
        for text in [
            other.to_owned(),
            format!("sep=;\n\n{other}"),
            "url\tslug\ttitle\ttags\nhttps://e.org/\tx\tT\ta|b".to_owned(),
        ] {
            let rows = read(&text).unwrap();
            assert_eq!(cells(&rows, &columns)[0].1, ["https://e.org/", "x", "T", "a|b"], "{text}");
        }
        let columns = [Field::LongUrl, Field::Title, Field::Tags];
        for separator in [";", "\t"] {
            let text = ["title,longUrl", "T,https://e.org/"].join("\n").replace(',', separator);
            assert_eq!(cells(&read(&text).unwrap(), &columns[..2]), [(2, vec!["https://e.org/", "T"])]);
        }
    }

    #[test]
    fn a_wrong_header_is_refused_by_name() {
        for (text, error) in [
            ("", TextError::Empty),
            (" \n\n", TextError::Empty),
            ("longUrl,title\n", TextError::Empty),
            ("longUrl,colour\nhttps://e.org/,red", TextError::UnknownColumn("colour".to_owned())),
            ("longUrl,visits\nhttps://e.org/,7", TextError::UnknownColumn("visits".to_owned())),
            ("sep=;\nuri;title\nhttps://e.org/;a", TextError::UnknownColumn("uri".to_owned())),
            ("title,tags\na,b", TextError::NoLongUrl),
            ("title\na", TextError::NoLongUrl),
            ("longUrl,title,longurl\na,b,c", TextError::RepeatedColumn("longUrl")),
        ] {
            assert_eq!(read(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_wrong_row_has_its_line_and_fails_no_other() {
        let text = "longUrl,tags\ne.org/1,a,b\ne.org/2,\"a\nb\"\ne.org/3,a,,\ne.org/4\n";
        let rows = read(text).unwrap();
        let faults: Vec<_> = rows.iter().map(|row| (row.line, row.fault)).collect();
        assert_eq!(faults, [(2, Some(CELLS)), (3, Some(BREAK)), (5, None), (6, None)]);
        assert_eq!(rows[1].get(Field::LongUrl), Some("e.org/2"));
        let rows = read("longUrl,title\ne.org/1,a\ne.org/2,\"b\ne.org/3,c").unwrap();
        assert_eq!(rows.last().map(|row| (row.line, row.fault)), Some((3, Some(OPEN_QUOTE))));
    }

    #[test]
    fn cells_are_read_as_a_spreadsheet_writes_them() {
        let text = "url;validUntil;maxVisits\ne.org;31.12.2026;1.000\ne.org;11/30/2026 2:05 PM;many\n";
        let rows = read(text).unwrap();
        assert_eq!(
            cells(&rows, &[Field::ValidUntil, Field::MaxVisits]),
            [(2, vec!["2026-12-31T00:00:00", "1000"]), (3, vec!["2026-11-30T14:05:00", "many"])]
        );
        for (cells, fault) in [
            ("1.23E+11,", Some(ROUNDED)),
            (",3/4/2026", Some(DAY)),
            (",soon", Some(TIME)),
            ("1e5,2026-12-31T10:00:00Z", None),
        ] {
            let rows = read(&format!("url,slug,validUntil\ne.org,{cells}")).unwrap();
            assert_eq!(rows[0].fault, fault, "{cells}");
        }
    }

    #[test]
    fn a_thousand_rows_are_read_and_one_more_is_refused() {
        let lines = |count: usize| "https://e.org/\n".repeat(count);
        assert_eq!(read(&lines(ROWS_MAX)).unwrap().len(), ROWS_MAX);
        assert_eq!(read(&lines(ROWS_MAX + 1)), Err(TextError::TooManyRows));
        let table = |count: usize| format!("longUrl\n{}", lines(count));
        assert_eq!(read(&table(ROWS_MAX)).unwrap().last().map(|row| row.line), Some(ROWS_MAX as u64 + 1));
        assert_eq!(read(&table(ROWS_MAX + 1)), Err(TextError::TooManyRows));
    }
}
