//! Rows of visits and their texts: reads, inserts of texts, and the removal of old ones.

use links::DomainId;
use store::{Dialect, Row, Sql, StoreError, Value, insert_rows};
use visits::{BOT, DAY, Day, Month, OrphanKind, Outcome, Subject, TextHash, VisitId, VisitRow};

use super::{delete_some, int};
use crate::{Result, RowQuery, StoredText, TextRef, postgres::CHORE, sqlite::LINKS};

/// Rows removed in one statement. What it has removed is kept if the next one comes too late.
const REMOVED_AT_ONCE: i64 = 20_000;

pub(crate) async fn rows(sql: &mut dyn Sql, query: &RowQuery) -> Result<Vec<VisitRow>> {
    let condition = condition(sql.dialect(), query);
    let (most, skip) = (int(query.most), int(query.skip));
    select(sql, &format!("{condition} ORDER BY id DESC LIMIT {most} OFFSET {skip}")).await
}

pub(crate) async fn latest(sql: &mut dyn Sql, after: VisitId, most: usize) -> Result<Vec<VisitRow>> {
    select(sql, &format!("id > {} ORDER BY id DESC LIMIT {}", after.get(), int(most))).await
}

async fn select(sql: &mut dyn Sql, rows: &str) -> Result<Vec<VisitRow>> {
    let select = format!("SELECT {} FROM visit WHERE {rows}", VisitRow::COLUMNS);
    let numbers = sql.numbers(&select).await?;
    let (numbers, _) = numbers.as_chunks();
    let mut rows = Vec::with_capacity(numbers.len());
    for of_row in numbers {
        let corrupt = || StoreError::Corrupt(format!("a visit with a number out of range: {of_row:?}"));
        rows.push(VisitRow::from_numbers(*of_row).ok_or_else(corrupt)?);
    }
    Ok(rows)
}

pub(crate) async fn count(sql: &mut dyn Sql, query: &RowQuery) -> Result<u64> {
    let count = format!("SELECT count(*) FROM visit WHERE {}", condition(sql.dialect(), query));
    Ok(sql.number(&count, &[]).await?.unwrap_or(0).unsigned_abs())
}

pub(crate) async fn rows_from(sql: &mut dyn Sql) -> Result<Option<Day>> {
    let query = match sql.dialect() {
        Dialect::Postgres => format!("SELECT position FROM chore WHERE name = '{CHORE}'"),
        Dialect::Sqlite => "SELECT rows_from FROM visit_upkeep".to_owned(),
    };
    let day = sql.number(&query, &[]).await?.and_then(|day| i32::try_from(day).ok());
    Ok(day.filter(|day| *day > 0).map(Day::from_stored))
}

/// Data that is removed once its day is not kept any more, in this order; counters stay.
#[derive(Clone, Copy)]
pub(crate) enum Aging {
    /// Rows. On Postgres these are the ones that arrived without a partition of their day.
    Rows,
    /// Texts of whole months.
    Texts,
    /// Marks, by which earlier releases found deep pages.
    Marks,
}

impl Aging {
    pub(crate) const ALL: [Self; 3] = [Self::Rows, Self::Texts, Self::Marks];
}

/// Removes some of what is before `rows_from`. Returns whether there may be more.
pub(crate) async fn remove_old(sql: &mut dyn Sql, aging: Aging, rows_from: Day) -> Result<bool> {
    let rows = if sql.dialect() == Dialect::Sqlite { "visit" } else { "visit_default" };
    let (table, condition, bound) = match aging {
        Aging::Rows => ((rows, "id"), "id < $1", VisitId::floor(rows_from.start()).get()),
        Aging::Texts => (("visit_text", "month, hash"), "month < $1", rows_from.month().get().into()),
        Aging::Marks => (("visit_marks", "rowid"), "quarter < $1", rows_from.start()),
    };
    Ok(delete_some(sql, table, condition, bound, REMOVED_AT_ONCE).await? > 0)
}

/// SQL condition of a query. Numbers are part of the text, so that the planner leaves out
/// partitions before it plans for them.
pub(crate) fn condition(dialect: Dialect, query: &RowQuery) -> String {
    let of_subject = match query.subject {
        Subject::Link(link) => format!("link_id = {}", link.get()),
        Subject::All(domain) => format!("link_id <> 0{}", on(domain)),
        Subject::Tag(tag, domain) => {
            format!("link_id {} AND link_id <> 0{}", among_links_of(dialect, tag, query), on(domain))
        }
        Subject::Orphans(kind, domain) => {
            let of_kind = |kind| of_kind(kind, "flags >> 1");
            format!("link_id = 0{}{}", kind.map_or_else(String::new, of_kind), on(domain))
        }
    };
    // Of `= 0` Postgres expects one row in 200, and sorts all rows instead of going along the
    // index.
    let people = if query.people_only { format!(" AND flags & {BOT} <> {BOT}") } else { String::new() };
    format!("{of_subject} AND id >= {} AND id < {}{people}", query.from.get(), query.before.get())
}

/// SQL: the end of a condition that a link has a tag.
fn among_links_of(dialect: Dialect, tag: i64, query: &RowQuery) -> String {
    if dialect == Dialect::Sqlite {
        return format!("IN (SELECT link_id FROM {LINKS}.link_tag WHERE tag_id = {tag})");
    }
    let links = format!("SELECT link_id FROM visit_tag WHERE tag_id = {tag}");
    // Rows that are more than a day apart are few among all: the index finds them by their links.
    // Otherwise to look at all rows is faster.
    let is_rare = query.before.micros().saturating_sub(query.from.micros()) > DAY;
    if is_rare { format!("= ANY (ARRAY ({links}))") } else { format!("IN ({links})") }
}

/// SQL condition for a kind of orphan visits. `outcome` is an expression for the stored outcome.
pub(crate) fn of_kind(kind: OrphanKind, outcome: &str) -> String {
    let outcomes = Outcome::ALL.into_iter().filter(|outcome| outcome.orphan() == Some(kind));
    let numbers: Vec<String> = outcomes.map(|outcome| outcome.number().to_string()).collect();
    format!(" AND {outcome} IN ({})", numbers.join(", "))
}

/// SQL condition for visits on a domain, if one is given.
pub(crate) fn on(domain: Option<DomainId>) -> String {
    domain.map_or_else(String::new, |domain| format!(" AND domain = {}", domain.get()))
}

pub(crate) async fn texts(sql: &mut dyn Sql, wanted: &[TextRef]) -> Result<Vec<StoredText>> {
    let select = "SELECT month, hash, text FROM visit_text";
    let mut rows = match sql.dialect() {
        // Arrays, because a list of hundreds of values is planned value by value.
        Dialect::Postgres => {
            let query = format!("{select} JOIN unnest($1, $2) AS wanted (month, hash) USING (month, hash)");
            let months = wanted.iter().map(|at| i64::from(at.month.get())).collect();
            let hashes = wanted.iter().map(|at| at.hash.get()).collect();
            sql.query(&query, &[Value::IntArray(months), Value::IntArray(hashes)]).await?
        }
        Dialect::Sqlite => {
            let query = format!("{select} WHERE month = $1 AND hash = $2");
            let mut rows = Vec::new();
            for at in wanted {
                rows.extend(sql.first(&query, &[at.month.get().into(), at.hash.get().into()]).await?);
            }
            rows
        }
    };
    rows.iter_mut().map(text).collect()
}

/// Stores texts that are not there yet.
pub(crate) async fn insert_texts(
    sql: &mut dyn Sql,
    texts: impl IntoIterator<Item = &StoredText>,
) -> Result<()> {
    let mut texts: Vec<&StoredText> = texts.into_iter().collect();
    // In the order of their keys, so that two resolvers do not wait for each other in a circle.
    texts.sort_unstable_by_key(|text| text.at);
    let row = |StoredText { at, text }: &StoredText| {
        [at.month.get().into(), at.hash.get().into(), Value::Bytes(text.clone())]
    };
    let rows: Vec<[Value; 3]> = texts.into_iter().map(row).collect();
    let into = "INSERT INTO visit_text (month, hash, text)";
    Ok(insert_rows(sql, into, &rows, "ON CONFLICT DO NOTHING").await?)
}

pub(crate) fn text(row: &mut Row) -> Result<StoredText> {
    let (month, hash) = (Month::from_stored(row.number(0)?), TextHash::from_stored(row.int(1)?));
    Ok(StoredText { at: TextRef { month, hash }, text: row.take_bytes(2)? })
}
