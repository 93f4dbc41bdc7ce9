//! Many links from pasted rows, in two steps: a preview of the rows, then their creation.
//!
//! The rows travel from the first step to the second in their field, so that they can be corrected
//! between the two, and nothing is kept on the server.

mod creation;
mod rows;

use app::{AppError, Field};
use askama::Template;
use hyper::StatusCode;
use links::scope::Scope;
use web::Answer;

use crate::{context::Context, error::PageError, frame::Frame, link_input::mark, locale::Locale, table};
use creation::{check_all, create_all};
use rows::{COLUMNS, ROWS_MAX, Row, TextError, read};

pub(super) const PATH: &str = "/manage/bulk";
/// The path of a table to fill in, with all columns and an example row.
pub(super) const TEMPLATE: &str = "/manage/bulk.csv";
const SHOWN: usize = 10;
const RESULT_COLUMNS: [&str; 4] = ["line", "longUrl", "shortUrl", "error"];

/// Maximum length of a shown cell, in characters.
const CELL_CHARS: usize = 2_000;

/// The form, with the preview of its rows.
#[derive(Template)]
#[template(path = "manage/bulk.html")]
struct BulkPage<'a> {
    /// Idempotency key, so that a form that is sent twice creates its links once.
    mark: String,
    frame: Frame<'a>,
    may_create: bool,
    rows_max: u64,
    text: &'a str,
    refused: Option<String>,
    preview: Option<Preview>,
}

pub(super) struct Preview {
    rows: u64,
    /// The number of rows that are right, as far as that is known.
    right: u64,
    columns: Vec<Field>,
    first: Vec<Row>,
    wrong: Vec<ShownResult>,
}

#[derive(Template)]
#[template(path = "manage/bulk_result.html")]
struct ResultPage<'a> {
    frame: Frame<'a>,
    created: u64,
    refused: u64,
    results: Vec<ShownResult>,
    csv: String,
}

/// The result of a row.
struct ShownResult {
    line: u64,
    long_url: String,
    /// The short URL, or why there is none.
    created: Result<String, String>,
}

impl Preview {
    fn new(mut rows: Vec<Row>, wrong: Vec<ShownResult>) -> Self {
        let (count, right) = (rows.len() as u64, (rows.len() - wrong.len()) as u64);
        rows.truncate(SHOWN);
        let has = |column: &Field| rows.iter().any(|row| row.get(*column).is_some());
        Self { rows: count, right, columns: COLUMNS.into_iter().filter(has).collect(), first: rows, wrong }
    }
}

impl ShownResult {
    fn new(row: &Row, created: Result<String, String>) -> Self {
        Self { line: row.line, long_url: cell(row, &Field::LongUrl), created }
    }
}

pub(super) async fn submit(context: &Context<'_>) -> Result<Answer, PageError> {
    let (form_sent, t) = (context.form, context.t);
    let rows = match read(form_sent.value("rows")) {
        Ok(rows) => rows,
        Err(error) => return Ok(form(context, Some(reason(&error, t)), None)),
    };
    if form_sent.get("do") == Some("create") {
        let created = create_all(context, form_sent.filled("mark"), &rows).await?;
        return result(context, &rows, created);
    }
    let checked = check_all(context, &rows).await?;
    let wrong = |(row, checked): (&Row, Result<(), _>)| Some(ShownResult::new(row, Err(checked.err()?)));
    let wrong = rows.iter().zip(checked).filter_map(wrong).collect();
    let preview = Preview::new(rows, wrong);
    Ok(form(context, None, Some(preview)))
}

pub(super) fn form(context: &Context<'_>, refused: Option<String>, preview: Option<Preview>) -> Answer {
    let status = if refused.is_some() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let page = BulkPage {
        mark: context.form.owned("mark").unwrap_or_else(mark),
        frame: context.frame(PATH),
        may_create: context.allows(Scope::Create),
        rows_max: ROWS_MAX as u64,
        text: context.form.value("rows"),
        refused,
        preview,
    };
    context.page(status, &page)
}

pub(super) fn template() -> Result<Answer, PageError> {
    Ok(table::file("links", example_table()?))
}

/// Writes the table to fill in.
fn example_table() -> Result<Vec<u8>, AppError> {
    let example = |column: Field| match column {
        Field::LongUrl => "https://example.com/page",
        Field::CustomSlug => "spring-sale",
        Field::Title => "Spring sale",
        Field::Tags => "news|spring",
        Field::ValidUntil => "2037-12-31 18:00",
        Field::MaxVisits => "100",
        _ => "",
    };
    table::write(COLUMNS.map(Field::name), [COLUMNS.map(|column| example(column).to_owned())])
}

fn result(
    context: &Context<'_>,
    rows: &[Row],
    created: Vec<Result<String, String>>,
) -> Result<Answer, PageError> {
    let count = created.iter().filter(|created| created.is_ok()).count() as u64;
    let results = rows.iter().zip(created).map(|(row, created)| ShownResult::new(row, created));
    let results: Vec<ShownResult> = results.collect();
    let cells = |ShownResult { line, long_url, created }: &ShownResult| {
        let error = created.as_ref().err().cloned().unwrap_or_default();
        [line.to_string(), long_url.clone(), created.clone().unwrap_or_default(), error]
    };
    let csv = table::write(RESULT_COLUMNS, results.iter().map(cells))?;
    let page = ResultPage {
        created: count,
        refused: results.len() as u64 - count,
        csv: String::from_utf8_lossy(&csv).into_owned(),
        results,
        frame: context.frame(PATH),
    };
    Ok(context.page(StatusCode::OK, &page))
}

/// Returns a cell as tables show it. A row of megabytes would be in the answer several times.
fn cell(row: &Row, column: &Field) -> String {
    let text = row.get(*column).unwrap_or_default();
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
    fn the_table_to_fill_in_is_read_back() {
        let table = String::from_utf8(example_table().unwrap()).unwrap();
        let rows = read(&table).unwrap();
        assert_eq!((rows.len(), rows[0].fault), (1, None), "{table}");
        for column in COLUMNS.into_iter().filter(|column| *column != Field::Domain) {
            assert!(rows[0].get(column).is_some(), "{}", column.name());
        }
    }
}
