//! Many links from pasted rows, in two steps: a preview of the rows, then their creation.
//!
//! The rows travel from the first step to the second in their field, so that they can be corrected
//! between the two, and nothing is kept on the server.

mod creation;
mod rows;

use std::sync::Arc;

use app::Field;
use askama::Template;
use hyper::StatusCode;
use links::scope::Scope;
use transfer::harmless;
use web::Answer;

use crate::{
    Pages,
    answer::{Forms, page},
    error::PageError,
    frame::{Frame, Place},
    home::mark,
    locale::Locale,
    request::PageRequest,
    session::Session,
};
use creation::{Outcome, check, create};
use rows::{COLUMNS, ROWS_MAX, Row, TextError, read};

/// The address of the page.
pub(super) const PATH: &str = "/manage/bulk";
/// Rows that the preview shows.
const SHOWN: usize = 10;
/// The columns of the result as CSV.
const RESULT_COLUMNS: [&str; 4] = ["line", "longUrl", "shortUrl", "error"];

/// The form, with the preview of its rows.
/// Maximum length of a shown cell, in characters.
const CELL_CHARS: usize = 2_000;

#[derive(Template)]
#[template(path = "manage/bulk.html")]
struct BulkPage<'a> {
    /// What makes a form that is sent twice create its links once.
    mark: String,
    frame: Frame<'a>,
    may_create: bool,
    rows_max: u64,
    /// The names of the columns that a table may have.
    columns: String,
    text: &'a str,
    /// Why the whole text was refused.
    refused: Option<String>,
    preview: Option<Preview>,
}

/// What the rows would become.
struct Preview {
    /// The number of all rows.
    rows: u64,
    /// The number of rows that are right, as far as that is known.
    right: u64,
    /// The columns that the first rows have.
    columns: Vec<String>,
    first: Vec<ShownRow>,
    wrong: Vec<WrongRow>,
}

/// One of the first rows.
struct ShownRow {
    line: u64,
    cells: Vec<String>,
}

/// A row that cannot become a link.
struct WrongRow {
    line: u64,
    long_url: String,
    reason: String,
}

/// The results of all rows.
#[derive(Template)]
#[template(path = "manage/bulk_result.html")]
struct ResultPage<'a> {
    frame: Frame<'a>,
    created: u64,
    refused: u64,
    results: Vec<ShownResult>,
    /// The results as CSV.
    csv: String,
}

/// What has become of a row: it has a short URL or an error, and the other one is empty.
struct ShownResult {
    line: u64,
    long_url: String,
    short_url: String,
    error: String,
}

impl Preview {
    fn new(rows: &[Row], wrong: Vec<WrongRow>, t: &Locale) -> Self {
        let first = &rows[..rows.len().min(SHOWN)];
        let has = |column: &Field| first.iter().any(|row| row.get(*column).is_some());
        let columns: Vec<Field> = COLUMNS.into_iter().filter(has).collect();
        let cell = |row: &Row, column: &Field| shortened(row.get(*column).unwrap_or_default());
        let shown = |row: &Row| ShownRow {
            line: row.line as u64,
            cells: columns.iter().map(|column| cell(row, column)).collect(),
        };
        Self {
            rows: rows.len() as u64,
            right: (rows.len() - wrong.len()) as u64,
            columns: columns.iter().map(|column| t.text(&format!("field-{}", column.name()))).collect(),
            first: first.iter().map(shown).collect(),
            wrong,
        }
    }
}

impl ShownResult {
    fn new(row: &Row, outcome: Outcome, t: &Locale) -> Self {
        let (short_url, error) = match outcome {
            Ok(short_url) => (short_url, String::new()),
            Err(refusal) => (String::new(), refusal.text(t)),
        };
        Self { line: row.line as u64, long_url: long_url(row), short_url, error }
    }
}

/// Shows the form.
pub(super) fn show(request: &PageRequest<'_>, session: &Session) -> Answer {
    form(request, session, StatusCode::OK, (None, None))
}

/// Shows the preview of the rows, or creates their links, as the pressed button says.
pub(super) async fn submit(
    pages: &Arc<Pages>,
    request: &PageRequest<'_>,
    session: &Session,
) -> Result<Answer, PageError> {
    let (by, t) = (&session.grant, request.preferences.locale);
    let rows = match read(request.form.get("rows").unwrap_or_default()) {
        Ok(rows) => rows,
        Err(error) => {
            let refused = Some(reason(&error, t));
            return Ok(form(request, session, StatusCode::BAD_REQUEST, (refused, None)));
        }
    };
    if request.form.get("do") == Some("create") {
        let outcomes = create(pages, (request.form.filled("mark"), &rows), by).await?;
        return Ok(result(request, session, &rows, outcomes));
    }
    let wrong = |row: &Row| {
        let refusal = check(pages, row, by).err()?;
        Some(WrongRow { line: row.line as u64, long_url: long_url(row), reason: refusal.text(t) })
    };
    let preview = Preview::new(&rows, rows.iter().filter_map(wrong).collect(), t);
    Ok(form(request, session, StatusCode::OK, (None, Some(preview))))
}

/// Answers with the form, which keeps the rows that were sent.
fn form(
    request: &PageRequest<'_>,
    session: &Session,
    status: StatusCode,
    (refused, preview): (Option<String>, Option<Preview>),
) -> Answer {
    let shown = BulkPage {
        mark: request.form.owned("mark").unwrap_or_else(mark),
        frame: Frame::new(request, Some(session), Place::Bulk),
        may_create: session.grant.scopes.allow(Scope::Create),
        rows_max: ROWS_MAX as u64,
        columns: column_names(),
        text: request.form.get("rows").unwrap_or_default(),
        refused,
        preview,
    };
    page(request.renderer, status, Forms::Stay, &shown)
}

/// Answers with the results of a creation.
fn result(request: &PageRequest<'_>, session: &Session, rows: &[Row], outcomes: Vec<Outcome>) -> Answer {
    let frame = Frame::new(request, Some(session), Place::Bulk);
    let created = outcomes.iter().filter(|outcome| outcome.is_ok()).count() as u64;
    let results = rows.iter().zip(outcomes).map(|(row, outcome)| ShownResult::new(row, outcome, frame.t));
    let results: Vec<ShownResult> = results.collect();
    let shown = ResultPage {
        created,
        refused: results.len() as u64 - created,
        // Writing to memory does not fail.
        csv: csv_of(&results).unwrap_or_default(),
        results,
        frame,
    };
    page(request.renderer, StatusCode::OK, Forms::Stay, &shown)
}

/// Writes the results as CSV. No cell is a formula, whatever the long URLs and the operator's
/// public URL are.
fn csv_of(results: &[ShownResult]) -> Result<String, csv::Error> {
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(RESULT_COLUMNS)?;
    for ShownResult { line, long_url, short_url, error } in results {
        let cells = [&line.to_string(), long_url, short_url, error];
        writer.write_record(cells.map(|cell| harmless(cell).into_owned()))?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the long URL of a row as it was written.
fn long_url(row: &Row) -> String {
    shortened(row.get(Field::LongUrl).unwrap_or_default())
}

/// Returns a text as tables show it. A row of megabytes would be in the answer several times.
fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(CELL_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// Lists the columns that a table may have.
fn column_names() -> String {
    COLUMNS.map(Field::name).join(", ")
}

/// Returns why the whole text was refused.
fn reason(error: &TextError, t: &Locale) -> String {
    match error {
        TextError::Empty => t.text("bulk-empty"),
        TextError::UnknownColumn(name) => t.with_two("bulk-unknown-column", name, column_names()),
        TextError::RepeatedColumn(name) => t.with("bulk-repeated-column", name),
        TextError::NoLongUrl => t.text("bulk-no-long-url"),
        TextError::TooManyRows => t.with("bulk-too-many", t.number(&(ROWS_MAX as u64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_of_the_result_is_a_formula() {
        let result = |long_url: &str, short_url: &str, error: &str| ShownResult {
            line: 2,
            long_url: long_url.to_owned(),
            short_url: short_url.to_owned(),
            error: error.to_owned(),
        };
        let results = [
            result("https://e.org/?a=1,\"2\"", "https://s.example/a", ""),
            result("=1+1", "@s.example", "-x"),
            result("+1", "\tx", "\rx"),
        ];
        let expected = "line,longUrl,shortUrl,error\r\n\
                        2,\"https://e.org/?a=1,\"\"2\"\"\",https://s.example/a,\r\n\
                        2,'=1+1,'@s.example,'-x\r\n\
                        2,'+1,'\tx,\"'\rx\"\r\n";
        assert_eq!(csv_of(&results).unwrap(), expected);
    }
}
