//! Reads of rows.

use tokio_postgres::{Client, Row, types::Type};
use visits::{
    BOT, DAY, Flags, Language, Month, OrphanKind, Outcome, StoredAddress, Subject, TextHash, VisitId,
    VisitRow,
};

use codes::LinkId;
use links::DomainId;

use super::int;
use crate::{RowQuery, StoredText, TextRef, VisitStoreError};

const COLUMNS: &str =
    "link_id, id, user_agent, referrer, urls, place, address, visitor, domain, language, flags, rule";

/// Returns rows, the latest first.
pub(super) async fn rows(client: &Client, query: &RowQuery) -> Result<Vec<VisitRow>, VisitStoreError> {
    let rows = format!(
        "SELECT {COLUMNS} FROM visit WHERE {} ORDER BY id DESC OFFSET {} LIMIT {}",
        condition(query),
        int(query.skip),
        int(query.most)
    );
    let rows = client.query_typed(&rows, &[]).await?;
    Ok(rows.iter().map(row).collect())
}

/// Returns the number of rows of a query.
pub(super) async fn count(client: &Client, query: &RowQuery) -> Result<u64, VisitStoreError> {
    let count = format!("SELECT count(*) FROM visit WHERE {}", condition(query));
    let rows = client.query_typed(&count, &[]).await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0).unsigned_abs()))
}

/// Returns the latest rows after an id.
pub(super) async fn latest(
    client: &Client,
    after: VisitId,
    most: usize,
) -> Result<Vec<VisitRow>, VisitStoreError> {
    let rows = format!(
        "SELECT {COLUMNS} FROM visit WHERE id > {} ORDER BY id DESC LIMIT {}",
        after.get(),
        int(most)
    );
    let rows = client.query_typed(&rows, &[]).await?;
    Ok(rows.iter().map(row).collect())
}

/// SQL condition of a query. Numbers are part of the text, so that the planner leaves out partitions
/// before it plans for them.
pub(super) fn condition(query: &RowQuery) -> String {
    let on = |domain: Option<DomainId>| {
        domain.map_or_else(String::new, |domain| format!(" AND domain = {}", domain.get()))
    };
    let of_subject = match query.subject {
        Subject::Link(link) => format!("link_id = {}", link.get()),
        Subject::All(domain) => format!("link_id <> 0{}", on(domain)),
        Subject::Tag(tag, domain) => {
            let links = format!("SELECT link_id FROM visit_tag WHERE tag_id = {tag}");
            // Rows that are more than a day apart are few among all: the index finds them by their
            // links. Otherwise to look at all rows is faster.
            let is_rare = query.before.micros().saturating_sub(query.from.micros()) > DAY;
            let of_links = if is_rare { format!("= ANY (ARRAY ({links}))") } else { format!("IN ({links})") };
            format!("link_id {of_links} AND link_id <> 0{}", on(domain))
        }
        Subject::Orphans(kind, domain) => {
            format!("link_id = 0{}{}", kind.map_or_else(String::new, of_kind), on(domain))
        }
    };
    // Of `= 0` the planner expects one row in 200, and sorts all rows instead of going along the index.
    let people = if query.people_only { format!(" AND flags & {BOT} <> {BOT}") } else { String::new() };
    format!("{of_subject} AND id >= {} AND id < {}{people}", query.from.get(), query.before.get())
}

/// SQL condition for a kind of orphan visits.
fn of_kind(kind: OrphanKind) -> String {
    let outcomes = Outcome::ALL.into_iter().filter(|outcome| outcome.orphan() == Some(kind));
    let numbers: Vec<String> = outcomes.map(|outcome| outcome.number().to_string()).collect();
    format!(" AND flags >> 1 IN ({})", numbers.join(", "))
}

/// Reads a row from the columns of [`COLUMNS`].
fn row(row: &Row) -> VisitRow {
    let hash = |column: usize| TextHash::from_stored(row.get(column));
    let link: i64 = row.get(0);
    VisitRow {
        link: (link != 0).then(|| LinkId::from_stored(link)),
        id: VisitId::from_stored(row.get(1)),
        user_agent: hash(2),
        referrer: hash(3),
        urls: hash(4),
        place: hash(5),
        address: StoredAddress::from_stored(row.get(6)),
        visitor: row.get(7),
        domain: DomainId::from_stored(row.get::<_, i32>(8).into()),
        language: Language::from_stored(row.get(9)),
        flags: Flags::from_stored(row.get(10)),
        rule: u8::try_from(row.get::<_, i16>(11)).unwrap_or(u8::MAX),
    }
}

/// Returns texts, as far as they are kept.
pub(super) async fn texts(client: &Client, wanted: &[TextRef]) -> Result<Vec<StoredText>, VisitStoreError> {
    let months: Vec<i32> = wanted.iter().map(|text| text.month.get()).collect();
    let hashes: Vec<i64> = wanted.iter().map(|text| text.hash.get()).collect();
    let query = "SELECT month, hash, text FROM visit_text
         JOIN unnest($1, $2) AS wanted (month, hash) USING (month, hash)";
    let rows = client.query_typed(query, &[(&months, Type::INT4_ARRAY), (&hashes, Type::INT8_ARRAY)]).await?;
    Ok(rows.iter().map(text).collect())
}

/// Reads a text from its month, hash and bytes.
pub(super) fn text(row: &Row) -> StoredText {
    StoredText {
        at: TextRef { month: Month::from_stored(row.get(0)), hash: TextHash::from_stored(row.get(1)) },
        text: row.get(2),
    }
}
