//! Statements in SQLite's own dialect. Each call is a transaction of its own.

use codes::LinkId;
use jiff::Timestamp;
use links::{Link, LongUrl, NewLink, api_key::ApiKeyId};
use numbers::{Mark, StoreEpoch};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::{
    Inserted, Result, StoreError,
    sql::{RAISE, details, details_text, mark_of},
};

/// Begins a transaction that takes the write lock at once, so that writers conflict here and not at
/// COMMIT.
fn begin(connection: &mut Connection) -> Result<rusqlite::Transaction<'_>> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

pub(super) fn timestamp(milliseconds: i64) -> Result<Timestamp> {
    Timestamp::from_millisecond(milliseconds).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
}

/// Returns the database's history. Only a restored file begins a new one: nothing else can take
/// over from a SQLite file.
pub(super) fn epoch(connection: &Connection) -> Result<StoreEpoch> {
    let sql = "SELECT 'sqlite:' || history FROM deployment WHERE history > 0";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    StoreEpoch::new(text.as_deref().unwrap_or("sqlite"))
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

/// Inserts links, and returns the outcome of each. With `raises`, the mark is raised in the same
/// transaction; the second value is the new mark, or 0.
pub(super) fn insert(
    connection: &mut Connection,
    links: &[NewLink],
    raises: bool,
) -> Result<(Vec<Inserted>, Mark)> {
    let transaction = begin(connection)?;
    let mut outcomes = Vec::with_capacity(links.len());
    {
        let mut statement = transaction.prepare_cached(
            "INSERT INTO link (id, long_url, title, crawlable, forward_query, created_by, details)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING RETURNING created_at",
        )?;
        for NewLink { id, draft } in links {
            let row = params![
                id.get(),
                draft.long_url.as_str(),
                draft.title,
                draft.crawlable,
                draft.forward_query,
                draft.created_by.0,
                details_text(draft.details.as_deref())?
            ];
            let stored: Option<i64> = statement.query_row(row, |row| row.get(0)).optional()?;
            outcomes.push(match stored {
                Some(milliseconds) => Inserted::Stored(timestamp(milliseconds)?),
                None => Inserted::Taken,
            });
        }
    }
    let mark = match raises {
        true => transaction.prepare_cached(RAISE)?.query_row([], |row| row.get(0)).optional()?,
        false => None,
    };
    transaction.commit()?;
    Ok((outcomes, mark_of(mark.unwrap_or(0))?))
}

pub(super) fn read(connection: &Connection, ids: &[LinkId]) -> Result<Vec<Link>> {
    let mut statement = connection.prepare_cached(
        "SELECT id, long_url, title, crawlable, forward_query, created_at, created_by, details FROM link WHERE id = ?1",
    )?;
    let mut links = Vec::with_capacity(ids.len());
    for id in ids {
        if let Some(found) = statement.query_row([id.get()], |row| Ok(link(row))).optional()? {
            links.push(found?);
        }
    }
    Ok(links)
}

fn link(row: &Row<'_>) -> Result<Link> {
    Ok(Link {
        id: LinkId::from_stored(row.get(0)?),
        long_url: LongUrl::from_stored(row.get::<_, String>(1)?),
        title: row.get(2)?,
        crawlable: row.get(3)?,
        forward_query: row.get(4)?,
        created_at: timestamp(row.get(5)?)?,
        created_by: ApiKeyId(row.get(6)?),
        details: details(row.get_ref(7)?.as_str_or_null().map_err(rusqlite::Error::from)?),
    })
}
