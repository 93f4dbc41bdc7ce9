//! Secrets of the deployment and of days.

use store::{Sql, StoreError, Value};
use visits::{AddressSecret, Day, DaySecret, TextKey};

use crate::{Result, TokenSecret};

pub(crate) async fn of_deployment(sql: &mut dyn Sql) -> Result<(TextKey, AddressSecret)> {
    Ok((TextKey::new(of(sql, "text").await?), AddressSecret::new(of(sql, "address").await?)))
}

pub(crate) async fn of_tokens(sql: &mut dyn Sql) -> Result<TokenSecret> {
    of(sql, "token").await.map(TokenSecret)
}

/// Returns the secret of a day. It is created only while the day is near, by the database's clock:
/// a secret that was erased must not come back under another value.
pub(crate) async fn of_day(sql: &mut dyn Sql, day: Day) -> Result<Option<DaySecret>> {
    let name = format!("day-{}", day.get());
    let near = format!("SELECT 1 WHERE abs({} / 86400000 - $1) <= 1", sql.dialect().now_millis());
    if !sql.query(&near, &[day.get().into()]).await?.is_empty() {
        return of(sql, &name).await.map(|secret| Some(DaySecret::new(secret)));
    }
    Ok(find(sql, &name).await?.map(DaySecret::new))
}

async fn of<const N: usize>(sql: &mut dyn Sql, name: &str) -> Result<[u8; N]> {
    if let Some(secret) = find(sql, name).await? {
        return Ok(secret);
    }
    let mut secret = [0; N];
    getrandom::fill(&mut secret).map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    let insert = "INSERT INTO visit_secret (name, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    sql.execute(insert, &[Value::Text(name.to_owned()), Value::Bytes(secret.to_vec())]).await?;
    // Another resolver may have been first.
    let missing = || StoreError::Corrupt(format!("no secret of visits named {name}")).into();
    find(sql, name).await?.ok_or_else(missing)
}

async fn find<const N: usize>(sql: &mut dyn Sql, name: &str) -> Result<Option<[u8; N]>> {
    let query = "SELECT secret FROM visit_secret WHERE name = $1";
    let row = sql.first(query, &[Value::Text(name.to_owned())]).await?;
    let Some(mut row) = row else { return Ok(None) };
    let wrong = |_| StoreError::Corrupt(format!("the secret of visits named {name} has not {N} bytes"));
    Ok(Some(row.take_bytes(0)?.try_into().map_err(wrong)?))
}
