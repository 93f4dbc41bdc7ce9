//! Secrets of the deployment and of days.

use rusqlite::{Connection, OptionalExtension as _, params};
use store::StoreError;
use visits::{AddressSecret, Day, DaySecret, TextKey};

use crate::{TokenSecret, VisitStoreError};

/// Returns the secrets of the deployment, and creates them at the first call.
pub(super) fn of_deployment(connection: &Connection) -> Result<(TextKey, AddressSecret), VisitStoreError> {
    Ok((TextKey::new(of(connection, "text")?), AddressSecret::new(of(connection, "address")?)))
}

/// Returns the secret of tokens for live visits, and creates it at the first call.
pub(super) fn of_tokens(connection: &Connection) -> Result<TokenSecret, VisitStoreError> {
    of(connection, "token").map(TokenSecret::new)
}

/// Returns the secret of a day. It is created only while the day is near, by the database's clock: a
/// secret that was erased must not come back under another value.
pub(super) fn of_day(connection: &Connection, day: Day) -> Result<Option<DaySecret>, VisitStoreError> {
    let name = format!("day-{}", day.get());
    let near = "SELECT abs(unixepoch() / 86400 - ?1) <= 1";
    if connection.query_row(near, [day.get()], |row| row.get(0))? {
        return of(connection, &name).map(|secret| Some(DaySecret::new(secret)));
    }
    Ok(find(connection, &name)?.map(DaySecret::new))
}

fn of<const N: usize>(connection: &Connection, name: &str) -> Result<[u8; N], VisitStoreError> {
    if let Some(secret) = find(connection, name)? {
        return Ok(secret);
    }
    let mut secret = [0; N];
    getrandom::fill(&mut secret).map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    let insert = "INSERT INTO visit_secret (name, secret) VALUES (?1, ?2)";
    connection.execute(insert, params![name, secret])?;
    Ok(secret)
}

fn find<const N: usize>(connection: &Connection, name: &str) -> Result<Option<[u8; N]>, VisitStoreError> {
    let query = "SELECT secret FROM visit_secret WHERE name = ?1";
    Ok(connection.query_row(query, [name], |row| row.get(0)).optional()?)
}
