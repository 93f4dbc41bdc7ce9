//! Reservations in Postgres. Their numbers are rows of the block register, whose holder is the
//! reservation's name.

use codes::{KeyspaceIndex, LinkId};
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    reservation::{OpenReservations, Reservation, ReservationId},
};
use numbers::Span;
use tokio_postgres::{Client, Row};

use super::timestamp::timestamp;
use crate::{RESERVATIONS_MAX, StoreError};

const SELECT: &str = "
    SELECT r.id, r.keyspace, r.created_by, r.created_at, r.closed_at,
           coalesce(array_agg(lower(b.ids) ORDER BY b.ids) FILTER (WHERE b.ids IS NOT NULL), '{}'),
           coalesce(array_agg(upper(b.ids) ORDER BY b.ids) FILTER (WHERE b.ids IS NOT NULL), '{}')
    FROM reservation r LEFT JOIN block b ON b.holder = 'reservation-' || r.id";

pub(super) async fn add(
    client: &Client,
    id: &ReservationId,
    keyspace: KeyspaceIndex,
    key: ApiKeyId,
) -> Result<Timestamp, StoreError> {
    let index = i16::try_from(keyspace.get()).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    let sql = "INSERT INTO reservation (id, keyspace, created_by) VALUES ($1, $2, $3) RETURNING created_at";
    timestamp(&client.query_one(sql, &[&id.as_str(), &index, &key.0]).await?, 0)
}

pub(super) async fn find(client: &Client, id: &ReservationId) -> Result<Option<Reservation>, StoreError> {
    let sql = format!("{SELECT} WHERE r.id = $1 GROUP BY r.id");
    client.query_opt(&sql, &[&id.as_str()]).await?.as_ref().map(reservation).transpose()
}

pub(super) async fn list(client: &Client, of: Option<ApiKeyId>) -> Result<Vec<Reservation>, StoreError> {
    let sql = format!(
        "{SELECT} WHERE $1::bigint IS NULL OR r.created_by = $1 GROUP BY r.id
         ORDER BY r.closed_at IS NOT NULL, r.created_at DESC, r.id LIMIT {RESERVATIONS_MAX}"
    );
    client.query(&sql, &[&of.map(|key| key.0)]).await?.iter().map(reservation).collect()
}

pub(super) async fn reserved(client: &Client, of: ApiKeyId) -> Result<OpenReservations, StoreError> {
    let sql = "SELECT count(DISTINCT r.id), coalesce(sum(upper(b.ids) - lower(b.ids)), 0)::bigint
               FROM reservation r LEFT JOIN block b ON b.holder = 'reservation-' || r.id
               WHERE r.created_by = $1 AND r.closed_at IS NULL";
    let row = client.query_one(sql, &[&of.0]).await?;
    let (count, codes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    let unsigned = |count: i64| u64::try_from(count).unwrap_or(0);
    Ok(OpenReservations { count: unsigned(count), codes: unsigned(codes) })
}

pub(super) async fn close(client: &Client, id: &ReservationId) -> Result<(), StoreError> {
    let sql = "UPDATE reservation SET closed_at = now() WHERE id = $1 AND closed_at IS NULL";
    client.execute(sql, &[&id.as_str()]).await?;
    Ok(())
}

fn reservation(row: &Row) -> Result<Reservation, StoreError> {
    let corrupt = |what: &str| StoreError::Corrupt(format!("table reservation: {what}"));
    let id: String = row.try_get(0)?;
    let closed: Option<std::time::SystemTime> = row.try_get(4)?;
    let (firsts, ends): (Vec<i64>, Vec<i64>) = (row.try_get(5)?, row.try_get(6)?);
    let span = |(first, end): (i64, i64)| {
        let (_, start) = LinkId::from_stored(first).unpack()?;
        Span::new(start, u64::try_from(end - first).ok()?).ok()
    };
    let spans: Option<Vec<Span>> = firsts.into_iter().zip(ends).map(span).collect();
    let keyspace = KeyspaceIndex::new(i64::from(row.try_get::<_, i16>(1)?));
    Ok(Reservation {
        id: ReservationId::parse(&id).ok_or_else(|| corrupt("id"))?,
        keyspace: keyspace.map_err(|error| corrupt(&error.to_string()))?,
        created_by: ApiKeyId(row.try_get(2)?),
        created_at: timestamp(row, 3)?,
        closed_at: closed.map(|_| timestamp(row, 4)).transpose()?,
        spans: spans.ok_or_else(|| corrupt("ids"))?,
    })
}
