//! Reservations. Their numbers are rows of the block register, whose holder is the reservation's
//! name.

use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::Span;

use super::{Row, Sql, Value};
use crate::{RESERVATIONS_MAX, Result, StoreError};

pub(crate) async fn add_reservation(
    sql: &mut dyn Sql,
    id: &ReservationId,
    keyspace: KeyspaceIndex,
    key: ApiKeyId,
) -> Result<Timestamp> {
    let add = "INSERT INTO reservation (id, keyspace, created_by) VALUES ($1, $2, $3) RETURNING created_at";
    let values = [Value::Text(id.as_str().to_owned()), keyspace.get().into(), key.0.into()];
    sql.first(add, &values).await?.ok_or_else(|| corrupt("no row"))?.time(0)
}

pub(crate) async fn reservation(sql: &mut dyn Sql, id: &ReservationId) -> Result<Option<Reservation>> {
    Ok(select(sql, "WHERE id = $1", Value::Text(id.as_str().to_owned())).await?.pop())
}

pub(crate) async fn reservations(sql: &mut dyn Sql, of: Option<ApiKeyId>) -> Result<Vec<Reservation>> {
    select(sql, "WHERE $1 IS NULL OR created_by = $1", Value::OptInt(of.map(|key| key.0))).await
}

pub(crate) async fn count_reserved(sql: &mut dyn Sql, of: ApiKeyId) -> Result<OpenReservations> {
    let (low, high) = sql.dialect().block_bounds();
    let count = format!(
        "SELECT count(DISTINCT reservation.id), CAST(coalesce(sum({high} - {low}), 0) AS bigint)
         FROM reservation LEFT JOIN block ON block.holder = 'reservation-' || reservation.id
         WHERE reservation.created_by = $1 AND reservation.closed_at IS NULL"
    );
    let row = sql.first(&count, &[of.0.into()]).await?.ok_or_else(|| corrupt("no count"))?;
    Ok(OpenReservations { count: row.count(0)?, codes: row.count(1)? })
}

pub(crate) async fn close_reservation(sql: &mut dyn Sql, id: &ReservationId) -> Result<()> {
    let now = sql.dialect().now();
    let close = format!("UPDATE reservation SET closed_at = {now} WHERE id = $1 AND closed_at IS NULL");
    sql.query(&close, &[Value::Text(id.as_str().to_owned())]).await.map(drop)
}

/// Reads reservations: a row for each of their blocks, the blocks of one after another.
async fn select(sql: &mut dyn Sql, wanted: &str, value: Value) -> Result<Vec<Reservation>> {
    let (low, high) = sql.dialect().block_bounds();
    let order = "closed_at IS NOT NULL, created_at DESC, id";
    let select = format!(
        "SELECT id, keyspace, created_by, created_at, closed_at, {low}, {high}
         FROM (SELECT * FROM reservation {wanted} ORDER BY {order} LIMIT {RESERVATIONS_MAX}) AS found
         LEFT JOIN block ON block.holder = 'reservation-' || found.id
         ORDER BY {order}, {low}"
    );
    let mut found: Vec<Reservation> = Vec::new();
    for row in &sql.query(&select, &[value]).await? {
        if found.last().is_none_or(|last| last.id.as_str() != row.text(0).unwrap_or_default()) {
            found.push(without_blocks(row)?);
        }
        if let (Some(last), false) = (found.last_mut(), row.is_null(5)) {
            last.spans.push(span(row.int(5)?, row.int(6)?).ok_or_else(|| corrupt("ids"))?);
        }
    }
    Ok(found)
}

fn without_blocks(row: &Row) -> Result<Reservation> {
    Ok(Reservation {
        id: ReservationId::parse(row.text(0)?).ok_or_else(|| corrupt("id"))?,
        keyspace: KeyspaceIndex::new(row.int(1)?).map_err(|error| corrupt(&error.to_string()))?,
        created_by: ApiKeyId(row.int(2)?),
        created_at: row.time(3)?,
        closed_at: row.opt_time(4)?,
        spans: Vec::new(),
    })
}

fn span(first: i64, end: i64) -> Option<Span> {
    let (_, start) = LinkId::from_stored(first).unpack()?;
    Span::new(start, u64::try_from(end - first).ok()?).ok()
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("table reservation: {what}"))
}
