//! Reads of rows and of their texts.

use codes::LinkId;
use links::DomainId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use visits::{
    BOT, Flags, Language, OrphanKind, Outcome, StoredAddress, Subject, TextHash, VisitId, VisitRow,
};

use super::{LINKS, int};
use crate::{RowQuery, StoredText, TextRef, VisitStoreError};

const COLUMNS: &str =
    "link_id, id, user_agent, referrer, urls, place, address, visitor, domain, language, flags, rule";

/// Returns rows, the latest first.
pub(super) fn rows(connection: &Connection, query: &RowQuery) -> Result<Vec<VisitRow>, VisitStoreError> {
    let (most, skip) = (int(query.most), int(query.skip));
    select(connection, &format!("{} ORDER BY id DESC LIMIT {most} OFFSET {skip}", condition(query)))
}

/// Returns the latest rows after an id.
pub(super) fn latest(
    connection: &Connection,
    after: VisitId,
    most: usize,
) -> Result<Vec<VisitRow>, VisitStoreError> {
    select(connection, &format!("id > {} ORDER BY id DESC LIMIT {}", after.get(), int(most)))
}

fn select(connection: &Connection, rows: &str) -> Result<Vec<VisitRow>, VisitStoreError> {
    let mut select = connection.prepare(&format!("SELECT {COLUMNS} FROM visit WHERE {rows}"))?;
    let rows = select.query_map([], row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the number of rows of a query.
pub(super) fn count(connection: &Connection, query: &RowQuery) -> Result<u64, VisitStoreError> {
    let count = format!("SELECT count(*) FROM visit WHERE {}", condition(query));
    Ok(connection.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// SQL condition of a query. All of its parts are numbers.
pub(super) fn condition(query: &RowQuery) -> String {
    let on = |domain: Option<DomainId>| {
        domain.map_or_else(String::new, |domain| format!(" AND domain = {}", domain.get()))
    };
    let of_subject = match query.subject {
        Subject::Link(link) => format!("link_id = {}", link.get()),
        Subject::All(domain) => format!("link_id <> 0{}", on(domain)),
        Subject::Tag(tag, domain) => format!(
            "link_id IN (SELECT link_id FROM {LINKS}.link_tag WHERE tag_id = {tag}) AND link_id <> 0{}",
            on(domain)
        ),
        Subject::Orphans(kind, domain) => {
            format!("link_id = 0{}{}", kind.map_or_else(String::new, of_kind), on(domain))
        }
    };
    let people = if query.people_only { format!(" AND flags & {BOT} = 0") } else { String::new() };
    format!("{of_subject} AND id >= {} AND id < {}{people}", query.from.get(), query.before.get())
}

/// SQL condition for a kind of orphan visits.
fn of_kind(kind: OrphanKind) -> String {
    let outcomes = Outcome::ALL.into_iter().filter(|outcome| outcome.orphan() == Some(kind));
    let numbers: Vec<String> = outcomes.map(|outcome| outcome.number().to_string()).collect();
    format!(" AND flags >> 1 IN ({})", numbers.join(", "))
}

/// Reads a row from the columns of [`COLUMNS`].
fn row(row: &Row<'_>) -> Result<VisitRow, rusqlite::Error> {
    let hash = |column: usize| row.get(column).map(TextHash::from_stored);
    let link: i64 = row.get(0)?;
    Ok(VisitRow {
        link: (link != 0).then(|| LinkId::from_stored(link)),
        id: VisitId::from_stored(row.get(1)?),
        user_agent: hash(2)?,
        referrer: hash(3)?,
        urls: hash(4)?,
        place: hash(5)?,
        address: StoredAddress::from_stored(row.get(6)?),
        visitor: row.get(7)?,
        domain: DomainId::from_stored(row.get(8)?),
        language: Language::from_stored(row.get(9)?),
        flags: Flags::from_stored(row.get(10)?),
        rule: row.get(11)?,
    })
}

/// Returns texts, as far as they are kept.
pub(super) fn texts(connection: &Connection, wanted: &[TextRef]) -> Result<Vec<StoredText>, VisitStoreError> {
    let mut query =
        connection.prepare_cached("SELECT text FROM visit_text WHERE month = ?1 AND hash = ?2")?;
    let mut found = Vec::with_capacity(wanted.len());
    for at in wanted {
        let values = params![at.month.get(), at.hash.get()];
        let text = query.query_row(values, |row| row.get(0)).optional()?;
        found.extend(text.map(|text| StoredText { at: *at, text }));
    }
    Ok(found)
}
