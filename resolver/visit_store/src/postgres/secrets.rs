//! Secrets of the deployment and of days.

use store::StoreError;
use tokio_postgres::{Client, types::Type};
use visits::{AddressSecret, Day, DaySecret, TextKey};

use crate::{TokenSecret, VisitStoreError};

/// Returns the secrets of the deployment, and creates them at the first call.
pub(super) async fn of_deployment(client: &Client) -> Result<(TextKey, AddressSecret), VisitStoreError> {
    Ok((TextKey::new(of(client, "text").await?), AddressSecret::new(of(client, "address").await?)))
}

/// Returns the secret of tokens for live visits, and creates it at the first call.
pub(super) async fn of_tokens(client: &Client) -> Result<TokenSecret, VisitStoreError> {
    of(client, "token").await.map(TokenSecret::new)
}

/// Returns the secret of a day. It is created only while the day is near, by the database's clock: a
/// secret that was erased must not come back under another value.
pub(super) async fn of_day(client: &Client, day: Day) -> Result<Option<DaySecret>, VisitStoreError> {
    let name = format!("day-{}", day.get());
    let near = "SELECT 1::bigint WHERE abs(extract(epoch FROM now())::bigint / 86400 - $1) <= 1";
    let is_near = !client.query_typed(near, &[(&i64::from(day.get()), Type::INT8)]).await?.is_empty();
    if is_near {
        return of(client, &name).await.map(|secret| Some(DaySecret::new(secret)));
    }
    Ok(find(client, &name).await?.map(DaySecret::new))
}

async fn of<const N: usize>(client: &Client, name: &str) -> Result<[u8; N], VisitStoreError> {
    if let Some(secret) = find(client, name).await? {
        return Ok(secret);
    }
    let mut secret = [0; N];
    getrandom::fill(&mut secret).map_err(|error| StoreError::Unreachable(Box::new(error)))?;
    let insert = "INSERT INTO visit_secret (name, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    client.execute_typed(insert, &[(&name, Type::TEXT), (&&secret[..], Type::BYTEA)]).await?;
    // Another resolver may have been first.
    let missing = || StoreError::Corrupt(format!("expected a secret of visits named {name}")).into();
    find(client, name).await?.ok_or_else(missing)
}

async fn find<const N: usize>(client: &Client, name: &str) -> Result<Option<[u8; N]>, VisitStoreError> {
    let query = "SELECT secret FROM visit_secret WHERE name = $1";
    let rows = client.query_typed(query, &[(&name, Type::TEXT)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let secret = row.get::<_, &[u8]>(0).try_into();
    let wrong = |_| StoreError::Corrupt(format!("expected {N} bytes as the secret of visits named {name}"));
    Ok(Some(secret.map_err(wrong)?))
}
