//! Statements in SQLite's own dialect. Each call is a transaction of its own.

use codes::{Fingerprint, Keyspace, KeyspaceIndex, LinkId, check_slugs, plan_adoption};
use jiff::Timestamp;
use links::{
    Link, LongUrl, NewLink,
    api_key::{ApiKeyId, KeyHash},
};
use numbers::{Mark, Span, StoreEpoch};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use crate::{
    BlockEntry, Inserted, Registration, StoreError,
    sql::{
        Gaps, NOTE_SETTINGS, RAISE, SCAN_PAGE, details, details_text, ids_of, mark_of, number_of_end,
        parse_keyspaces,
    },
};

fn signed(value: u64) -> Result<i64, StoreError> {
    i64::try_from(value).map_err(|_| StoreError::Corrupt(format!("{value} does not fit an integer")))
}

/// Begins a transaction that takes the write lock at once, so that writers conflict here and not at
/// COMMIT.
fn begin(connection: &mut Connection) -> Result<rusqlite::Transaction<'_>, StoreError> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

pub(super) fn timestamp(milliseconds: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_millisecond(milliseconds).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
}

pub(super) fn fingerprint(connection: &Connection) -> Result<Option<Fingerprint>, StoreError> {
    let sql = "SELECT code_key_fingerprint FROM deployment";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(text.map(Fingerprint::from_stored))
}

pub(super) fn adopt_fingerprint(
    connection: &Connection,
    mine: &Fingerprint,
) -> Result<Fingerprint, StoreError> {
    let sql = "INSERT INTO deployment (one, code_key_fingerprint) VALUES (1, ?1) ON CONFLICT DO NOTHING";
    connection.execute(sql, [mine.as_str()])?;
    fingerprint(connection)?.ok_or_else(|| StoreError::Corrupt("table deployment is empty".to_owned()))
}

pub(super) fn adopt_ledger(connection: &Connection, mine: &str) -> Result<String, StoreError> {
    connection.execute("UPDATE deployment SET ledger = ?1 WHERE ledger IS NULL", [mine])?;
    let adopted = connection.query_row("SELECT ledger FROM deployment", [], |row| row.get(0)).optional()?;
    adopted.flatten().ok_or_else(|| StoreError::Corrupt("table deployment is empty".to_owned()))
}

pub(super) fn forget_ledger(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("UPDATE deployment SET ledger = NULL", [])?;
    Ok(())
}

/// Returns the database's history. Only a restored file begins a new one: nothing else can take
/// over from a SQLite file.
pub(super) fn epoch(connection: &Connection) -> Result<StoreEpoch, StoreError> {
    let sql = "SELECT 'sqlite:' || history FROM deployment WHERE history > 0";
    let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    StoreEpoch::new(text.as_deref().unwrap_or("sqlite"))
        .map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn adopt_keyspaces(
    connection: &mut Connection,
    mine: &[Keyspace],
) -> Result<Vec<(KeyspaceIndex, Keyspace)>, StoreError> {
    let transaction = begin(connection)?;
    let stored = transaction
        .prepare("SELECT \"index\", definition FROM keyspace ORDER BY \"index\"")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    let mut known = parse_keyspaces(stored)?;
    let new = plan_adoption(&known, mine)?;
    if !new.is_empty() {
        let slugs = transaction
            .prepare("SELECT slug FROM slug WHERE domain_id = 0 AND length(slug) <= 8")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<Vec<String>, _>>()?;
        check_slugs(&slugs, &new)?;
        transaction.execute(NOTE_SETTINGS, [])?;
    }
    for (index, keyspace) in &new {
        let row = params![index.get(), keyspace.name.as_str(), keyspace.to_string()];
        let insert = "INSERT INTO keyspace (\"index\", name, definition, adopted_at)
                      VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER))";
        transaction.execute(insert, row)?;
    }
    transaction.commit()?;
    known.extend(new);
    Ok(known)
}

pub(super) fn register_block(
    connection: &mut Connection,
    block: &BlockEntry,
) -> Result<Registration, StoreError> {
    let transaction = begin(connection)?;
    let registration = enter(&transaction, block)?;
    transaction.commit()?;
    Ok(registration)
}

/// Replaces all register rows in the block's range that are not newer than the leaked generation by
/// one new row. The result is [`Registration::Overlaps`] if other rows are left; nothing is changed
/// then.
pub(super) fn take_over_block(
    connection: &mut Connection,
    block: &BlockEntry,
    leaked: u64,
) -> Result<Registration, StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let transaction = begin(connection)?;
    transaction.execute(
        // The codes of an open reservation are published: no other block ever takes its row over.
        "DELETE FROM block WHERE generation <= ?1 AND first_id >= ?2 AND end_id <= ?3
         AND NOT EXISTS (SELECT 1 FROM reservation
             WHERE closed_at IS NULL AND 'reservation-' || reservation.id = block.holder)",
        params![signed(leaked)?, first, end],
    )?;
    let registration = enter(&transaction, block)?;
    if registration == Registration::Registered {
        transaction.commit()?;
    }
    Ok(registration)
}

/// Registers a block, unless another block has some of its ids. Idempotent.
fn enter(connection: &Connection, block: &BlockEntry) -> Result<Registration, StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let generation = signed(block.generation)?;
    let overlapping = connection
        .prepare(
            "SELECT first_id, end_id, generation, instance FROM block WHERE first_id < ?2 AND end_id > ?1",
        )?
        .query_map([first, end], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<Result<Vec<(i64, i64, i64, String)>, _>>()?;
    if overlapping.is_empty() {
        insert_block(connection, block, block.span)?;
        return Ok(Registration::Registered);
    }
    let mine = overlapping == [(first, end, generation, block.instance.clone())];
    Ok(if mine { Registration::Registered } else { Registration::Overlaps })
}

fn insert_block(connection: &Connection, block: &BlockEntry, span: Span) -> Result<(), StoreError> {
    let (first, end) = LinkId::range(block.keyspace, span);
    let (generation, incarnation) = (signed(block.generation)?, signed(block.incarnation)?);
    let row = params![first, end, generation, block.holder, incarnation, block.instance];
    let sql = "INSERT INTO block (first_id, end_id, generation, holder, incarnation, instance)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    connection.execute(sql, row)?;
    Ok(())
}

pub(super) fn registered_end(connection: &Connection, keyspace: KeyspaceIndex) -> Result<u64, StoreError> {
    let sql = "SELECT max(end_id) FROM block WHERE first_id >= ?1 AND end_id <= ?2";
    let found = connection.query_row(sql, <[i64; 2]>::from(ids_of(keyspace)), |row| row.get(0))?;
    Ok(number_of_end(keyspace, found))
}

pub(super) fn holds(
    connection: &Connection,
    id: LinkId,
    generation: u64,
    instance: &str,
) -> Result<bool, StoreError> {
    let sql =
        "SELECT 1 FROM block WHERE first_id <= ?1 AND end_id > ?1 AND generation = ?2 AND instance = ?3";
    let found = connection.query_row(sql, params![id.get(), signed(generation)?, instance], |_| Ok(()));
    Ok(found.optional()?.is_some())
}

pub(super) fn unused(
    connection: &Connection,
    keyspace: KeyspaceIndex,
    span: Span,
) -> Result<Vec<Span>, StoreError> {
    let mut gaps = Gaps::new(keyspace, span);
    let mut statement =
        connection.prepare_cached("SELECT id FROM link WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3")?;
    loop {
        let page = params![gaps.next, gaps.end, i64::try_from(SCAN_PAGE).unwrap_or(i64::MAX)];
        let ids = statement.query_map(page, |row| row.get(0))?.collect::<Result<Vec<i64>, _>>()?;
        if gaps.page(&ids) {
            return Ok(gaps.finish());
        }
    }
}

/// Replaces the block's register rows by rows for the spans that are kept.
pub(super) fn release_block(
    connection: &mut Connection,
    block: &BlockEntry,
    kept: &[Span],
) -> Result<(), StoreError> {
    let (first, end) = LinkId::range(block.keyspace, block.span);
    let transaction = begin(connection)?;
    let deleted = transaction.execute(
        "DELETE FROM block WHERE generation = ?1 AND instance = ?2 AND first_id >= ?3 AND end_id <= ?4",
        params![signed(block.generation)?, block.instance, first, end],
    )?;
    if deleted == 0 && !kept.is_empty() {
        return Err(StoreError::Overlap);
    }
    for span in kept {
        let entry = BlockEntry { span: *span, ..block.clone() };
        if enter(&transaction, &entry)? == Registration::Overlaps {
            return Err(StoreError::Overlap);
        }
    }
    Ok(transaction.commit()?)
}

/// Inserts links, and returns the outcome of each. With `raises`, the mark is raised in the same
/// transaction; the second value is the new mark, or 0.
pub(super) fn insert(
    connection: &mut Connection,
    links: &[NewLink],
    raises: bool,
) -> Result<(Vec<Inserted>, Mark), StoreError> {
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

pub(super) fn read(connection: &Connection, ids: &[LinkId]) -> Result<Vec<Link>, StoreError> {
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

fn link(row: &Row<'_>) -> Result<Link, StoreError> {
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

/// Adds an API key if there has never been one, and returns whether it was added.
pub(super) fn add_first_api_key(
    connection: &Connection,
    name: &str,
    hash: &KeyHash,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO api_key (name, hash) SELECT ?1, ?2 WHERE NOT EXISTS (SELECT 1 FROM api_key)";
    Ok(connection.execute(sql, params![name, hash.as_bytes()])? > 0)
}
