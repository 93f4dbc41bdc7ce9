//! Reads pasted rows: one long URL on each line, or a table (RFC 4180) whose first line names its
//! columns in any order.
//!
//! 1. The text is a table if its first line names a column, or has several cells that are words and
//!    so no URLs. A table with an unknown column, or without long URLs, is refused whole.
//! 2. A wrong row keeps its line and its [`Fault`], and fails no other.
//! 3. Cells are separated by commas, semicolons or tabs, as spreadsheets write and copy them. Blank
//!    lines are skipped.
//!
//! Only the form of the text is checked here. The use cases check the values.

use app::Field;

/// Maximum number of rows of one form.
pub(super) const ROWS_MAX: usize = 1_000;
/// The columns that a table may have.
pub(super) const COLUMNS: [Field; 7] = [
    Field::LongUrl,
    Field::CustomSlug,
    Field::Title,
    Field::Tags,
    Field::ValidUntil,
    Field::MaxVisits,
    Field::Domain,
];

/// A row of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The number of the line that the row begins on, from 1.
    pub(super) line: usize,
    /// The cells that are not blank, without white space around them.
    cells: Vec<(Field, String)>,
    /// Why the row cannot become a link.
    pub(super) fault: Option<Fault>,
}

impl Row {
    /// Returns the row in a form that is the same whenever the row is, for an idempotency key.
    pub(super) fn canonical(&self) -> String {
        let cells = self.cells.iter().map(|(field, text)| (field.name(), text));
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(cells).finish()
    }
}

/// Why a row cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The row has a cell that no column belongs to, as an unquoted comma makes it.
    Cells,
    /// A cell has a line break, as a missing quotation mark makes it.
    Break,
}

/// Why the whole text was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TextError {
    /// The text has no rows.
    Empty,
    /// The first line names a column that links do not have.
    UnknownColumn(String),
    /// The first line names a column twice.
    RepeatedColumn(&'static str),
    /// The first line names no column of long URLs.
    NoLongUrl,
    /// The text has more than [`ROWS_MAX`] rows.
    TooManyRows,
}

impl Row {
    /// Returns a cell that is not blank.
    pub(super) fn get(&self, column: Field) -> Option<&str> {
        self.cells.iter().find(|(has, _)| *has == column).map(|(_, cell)| cell.as_str())
    }
}

/// Reads the rows of a text.
///
/// # Errors
/// Returns [`TextError`] if the text is no list and no table of links, or too long.
pub(super) fn read(text: &str) -> Result<Vec<Row>, TextError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !line.trim().is_empty()).ok_or(TextError::Empty)?;
    let separator = separator(first);
    let rows = if is_header(first, separator) { table(text, separator)? } else { list(text) };
    match rows.len() {
        0 => Err(TextError::Empty),
        1..=ROWS_MAX => Ok(rows),
        _ => Err(TextError::TooManyRows),
    }
}

/// Returns the separator that a line has most of; a comma if it has none.
fn separator(line: &str) -> char {
    let count = |separator: &char| line.matches(*separator).count();
    ['\t', ';', ','].into_iter().max_by_key(count).unwrap_or(',')
}

/// Returns whether the first line of a text names columns.
fn is_header(line: &str, separator: char) -> bool {
    let cells: Vec<&str> = line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect();
    let is_word = |cell: &&str| cell.chars().all(|letter| letter.is_alphanumeric() || " _-".contains(letter));
    let names_column = cells.iter().any(|cell| column(cell).is_some());
    (cells.len() > 1 && cells.iter().all(is_word)) || (names_column && !line.contains("://"))
}

/// Finds a column by its name, in upper or lower case.
fn column(name: &str) -> Option<Field> {
    COLUMNS.into_iter().find(|column| column.name().eq_ignore_ascii_case(name))
}

/// Reads one long URL from each line.
fn list(text: &str) -> Vec<Row> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty());
    let row = |(index, line): (usize, &str)| Row {
        line: index + 1,
        cells: vec![(Field::LongUrl, line.to_owned())],
        fault: None,
    };
    lines.map(row).take(ROWS_MAX + 1).collect()
}

/// Reads a table.
fn table(text: &str, separator: char) -> Result<Vec<Row>, TextError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(u8::try_from(separator).unwrap_or(b','))
        .from_reader(text.as_bytes());
    // A text in memory that is UTF-8 has no record that cannot be read.
    let records = reader.records().map_while(Result::ok);
    let mut records = records.filter(|record| record.iter().any(|cell| !cell.trim().is_empty()));
    let columns = columns(&records.next().ok_or(TextError::Empty)?)?;
    let mut lines = Lines { text, at: 0, line: 1 };
    let row = |record: csv::StringRecord| {
        let start = record.position().map_or(0, |position| usize::try_from(position.byte()).unwrap_or(0));
        row(&record, &columns, lines.of(start))
    };
    Ok(records.map(row).take(ROWS_MAX + 1).collect())
}

/// Reads the columns of a header. One without a name is left out.
fn columns(header: &csv::StringRecord) -> Result<Vec<Option<Field>>, TextError> {
    let mut columns = Vec::with_capacity(header.len());
    for name in header.iter().map(str::trim) {
        let found = column(name);
        match found {
            None if !name.is_empty() => return Err(TextError::UnknownColumn(name.to_owned())),
            Some(field) if columns.contains(&found) => return Err(TextError::RepeatedColumn(field.name())),
            _ => columns.push(found),
        }
    }
    if columns.contains(&Some(Field::LongUrl)) { Ok(columns) } else { Err(TextError::NoLongUrl) }
}

/// Reads the cells of a row.
fn row(record: &csv::StringRecord, columns: &[Option<Field>], line: usize) -> Row {
    let (mut cells, mut fault) = (Vec::new(), None);
    let filled = record.iter().map(str::trim).enumerate().filter(|(_, cell)| !cell.is_empty());
    for (index, cell) in filled {
        match columns.get(index).copied().flatten() {
            None => fault = Some(Fault::Cells),
            Some(_) if cell.contains(['\n', '\r']) => fault = Some(Fault::Break),
            Some(column) => cells.push((column, cell.to_owned())),
        }
    }
    Row { line, cells, fault }
}

/// Numbers the lines of a text in one pass.
struct Lines<'a> {
    text: &'a str,
    /// The place that was asked for last, in bytes.
    at: usize,
    line: usize,
}

impl Lines<'_> {
    /// Returns the line of a record that begins at this byte, or after line breaks that follow it.
    /// Places are asked for in their order.
    fn of(&mut self, start: usize) -> usize {
        let rest = self.text.get(start..).unwrap_or_default();
        let start = self.text.len() - rest.trim_start_matches(['\r', '\n']).len();
        let passed = self.text.get(self.at..start).unwrap_or_default();
        self.line += passed.matches('\n').count();
        self.at = start;
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line and some cells of each row.
    fn cells<'a>(rows: &'a [Row], columns: &[Field]) -> Vec<(usize, Vec<&'a str>)> {
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
            ("url,slug\nhttps://e.org/,a", TextError::UnknownColumn("url".to_owned())),
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
        assert_eq!(faults, [(2, Some(Fault::Cells)), (3, Some(Fault::Break)), (5, None), (6, None)]);
        assert_eq!(rows[1].get(Field::LongUrl), Some("e.org/2"));
    }

    #[test]
    fn a_thousand_rows_are_read_and_one_more_is_refused() {
        let lines = |count: usize| "https://e.org/\n".repeat(count);
        assert_eq!(read(&lines(ROWS_MAX)).unwrap().len(), ROWS_MAX);
        assert_eq!(read(&lines(ROWS_MAX + 1)), Err(TextError::TooManyRows));
        let table = |count: usize| format!("longUrl\n{}", lines(count));
        assert_eq!(read(&table(ROWS_MAX)).unwrap().last().map(|row| row.line), Some(ROWS_MAX + 1));
        assert_eq!(read(&table(ROWS_MAX + 1)), Err(TextError::TooManyRows));
    }
}
