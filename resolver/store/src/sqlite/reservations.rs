//! Reservations in SQLite. Their numbers are rows of the block register, whose holder is the
//! reservation's name.

use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::Span;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::calls::timestamp;
use crate::{RESERVATIONS_MAX, StoreError};

const SELECT: &str = "SELECT id, keyspace, created_by, created_at, closed_at FROM reservation";

/// A row of table `reservation`: id, keyspace, creator, creation time and closing time, without its
/// numbers.
type Fields = (String, i64, i64, i64, Option<i64>);

pub(super) fn add(
    connection: &Connection,
    id: &ReservationId,
    keyspace: KeyspaceIndex,
    key: ApiKeyId,
) -> Result<Timestamp, StoreError> {
    let sql = "INSERT INTO reservation (id, keyspace, created_by) VALUES (?1, ?2, ?3) RETURNING created_at";
    let row = params![id.as_str(), keyspace.get(), key.0];
    timestamp(connection.query_row(sql, row, |row| row.get(0))?)
}

pub(super) fn find(connection: &Connection, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
    let sql = format!("{SELECT} WHERE id = ?1");
    let row = connection.query_row(&sql, [id.as_str()], fields).optional()?;
    row.map(|row| reservation(connection, row)).transpose()
}

pub(super) fn list(connection: &Connection, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE ?1 IS NULL OR created_by = ?1
         ORDER BY closed_at IS NOT NULL, created_at DESC, id LIMIT {RESERVATIONS_MAX}"
    );
    let rows =
        connection.prepare(&sql)?.query_map([of.map(|key| key.0)], fields)?.collect::<Result<Vec<_>, _>>()?;
    rows.into_iter().map(|row| reservation(connection, row)).collect()
}

pub(super) fn reserved(connection: &Connection, of: ApiKeyId) -> Result<OpenReservations, StoreError> {
    let sql = "SELECT count(DISTINCT reservation.id), coalesce(sum(block.end_id - block.first_id), 0)
               FROM reservation LEFT JOIN block ON block.holder = 'reservation-' || reservation.id
               WHERE reservation.created_by = ?1 AND reservation.closed_at IS NULL";
    let (count, codes): (i64, i64) =
        connection.query_row(sql, [of.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok(OpenReservations { count: unsigned(count), codes: unsigned(codes) })
}

pub(super) fn close(connection: &Connection, id: &ReservationId) -> Result<(), StoreError> {
    let sql = "UPDATE reservation SET closed_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
               WHERE id = ?1 AND closed_at IS NULL";
    connection.execute(sql, [id.as_str()])?;
    Ok(())
}

fn fields(row: &Row<'_>) -> rusqlite::Result<Fields> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
}

fn reservation(
    connection: &Connection,
    (id, keyspace, key, created, closed): Fields,
) -> Result<Reservation, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt(format!("table reservation: {what}"));
    let id = ReservationId::parse(&id).ok_or_else(|| corrupt("id"))?;
    let blocks = connection
        .prepare("SELECT first_id, end_id FROM block WHERE holder = ?1 ORDER BY first_id")?
        .query_map([id.holder()], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(i64, i64)>, _>>()?;
    let span = |(first, end): (i64, i64)| {
        let (_, start) = LinkId::from_stored(first).unpack()?;
        Span::new(start, u64::try_from(end - first).ok()?).ok()
    };
    let spans: Option<Vec<Span>> = blocks.into_iter().map(span).collect();
    Ok(Reservation {
        id,
        keyspace: KeyspaceIndex::new(keyspace).map_err(|error| corrupt(&error.to_string()))?,
        created_by: ApiKeyId(key),
        created_at: timestamp(created)?,
        closed_at: closed.map(timestamp).transpose()?,
        spans: spans.ok_or_else(|| corrupt("ids"))?,
    })
}
