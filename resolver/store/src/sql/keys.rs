//! API keys.

use std::time::Duration;

use links::{
    StoredObject as _,
    api_key::{ApiKeyId, ApiKeyRecord, Grant, KeyHash, KeyLimits, NewKey, SecretNumber},
    audit::Action,
    scope::Scopes,
};

use super::{Dialect, Row, Sql, Value, audit::note};
use crate::{Result, StoreError};

pub(crate) async fn add_api_key(
    sql: &mut dyn Sql,
    NewKey { name, hash, scopes, expires_at, limits }: &NewKey,
    by: ApiKeyId,
) -> Result<Option<ApiKeyId>> {
    let add = format!(
        "INSERT INTO api_key (name, hash, scopes, expires_at, limits) VALUES ($1, $2, $3, $4, {})
         ON CONFLICT (name) DO NOTHING RETURNING id",
        sql.dialect().json("$5")
    );
    let limits = Some(limits).filter(|limits| **limits != KeyLimits::default());
    let corrupt = |error| StoreError::Corrupt(format!("api_key: {error}"));
    let limits = limits.map(serde_json::to_string).transpose().map_err(corrupt)?;
    let values = [
        Value::Text(name.clone()),
        Value::Bytes(hash.as_bytes().to_vec()),
        Value::Text(scopes.to_string()),
        Value::OptTime(*expires_at),
        Value::OptText(limits),
    ];
    let Some(row) = sql.first(&add, &values).await? else { return Ok(None) };
    note(sql, by, Action::CreateKey, name, None).await?;
    Ok(Some(ApiKeyId(row.int(0)?)))
}

/// The table is locked, so that only one of several first starts adds the key.
pub(crate) async fn add_first_api_key(sql: &mut dyn Sql, name: &str, hash: &KeyHash) -> Result<bool> {
    sql.query(&sql.dialect().lock_table("api_key", "EXCLUSIVE"), &[]).await?;
    let add = "INSERT INTO api_key (name, hash)
               SELECT $1, $2 WHERE NOT EXISTS (SELECT 1 FROM api_key) RETURNING id";
    let values = [Value::Text(name.to_owned()), Value::Bytes(hash.as_bytes().to_vec())];
    Ok(!sql.query(add, &values).await?.is_empty())
}

/// The hash may be the one before a recent rotation.
pub(crate) async fn find_api_key(sql: &mut dyn Sql, hash: &KeyHash) -> Result<Option<Grant>> {
    let (now, is_valid) = (sql.dialect().now(), is_valid(sql.dialect()));
    let secret = "CASE WHEN hash = $1 THEN secrets ELSE secrets - 1 END";
    let of = format!("api_key WHERE (hash = $1 OR (old_hash = $1 AND old_until > {now})) AND {is_valid}");
    grant(sql, secret, &of, &[Value::Bytes(hash.as_bytes().to_vec())]).await
}

/// The secret may be the one before a recent rotation.
pub(crate) async fn find_grant(
    sql: &mut dyn Sql,
    id: ApiKeyId,
    secret: SecretNumber,
) -> Result<Option<Grant>> {
    let of = format!("api_key WHERE {} AND api_key.id = $2", is_valid_with_secret(sql.dialect(), "$1"));
    grant(sql, "CAST($1 AS bigint)", &of, &[Value::Int(secret.0), Value::Int(id.0)]).await
}

/// Whichever secret the key has.
pub(crate) async fn find_grant_of_key(sql: &mut dyn Sql, id: ApiKeyId) -> Result<Option<Grant>> {
    let of = format!("api_key WHERE api_key.id = $1 AND {}", is_valid(sql.dialect()));
    grant(sql, "api_key.secrets", &of, &[Value::Int(id.0)]).await
}

/// SQL condition that the API key of a row is neither revoked nor expired.
pub(super) fn is_valid(dialect: Dialect) -> String {
    let now = dialect.now();
    format!("api_key.revoked_at IS NULL AND (api_key.expires_at IS NULL OR api_key.expires_at > {now})")
}

/// SQL condition that the API key of a row is valid for the holder of one of its secrets, which may
/// be the one before a recent rotation. `secret` is an expression for the secret's number.
pub(super) fn is_valid_with_secret(dialect: Dialect, secret: &str) -> String {
    let (now, is_valid) = (dialect.now(), is_valid(dialect));
    format!(
        "(api_key.secrets = {secret} OR (api_key.secrets = {secret} + 1 AND api_key.old_until > {now}))
         AND {is_valid}"
    )
}

/// Reads a grant: `of` is what follows FROM, and `secret` an expression for the secret's number.
/// There is none if a later release has limited the key in a way that this one does not know.
pub(super) async fn grant(
    sql: &mut dyn Sql,
    secret: &str,
    of: &str,
    values: &[Value],
) -> Result<Option<Grant>> {
    let limits_text = sql.dialect().json_text("api_key.limits");
    let select =
        format!("SELECT api_key.id, api_key.name, api_key.scopes, {limits_text}, {secret} FROM {of}");
    let Some(row) = sql.first(&select, values).await? else { return Ok(None) };
    let grant = Grant {
        id: ApiKeyId(row.int(0)?),
        secret: SecretNumber(row.int(4)?),
        name: row.text(1)?.into(),
        scopes: Scopes::from_stored(row.text(2)?),
        limits: limits(row.opt_text(3)?),
    };
    if grant.limits.is_of_later_release() {
        tracing::warn!(key = %grant.name, "a later release has limited this API key: it is refused here");
        return Ok(None);
    }
    Ok(Some(grant))
}

pub(crate) async fn key_names(sql: &mut dyn Sql, ids: &[ApiKeyId]) -> Result<Vec<(ApiKeyId, String)>> {
    let select = format!("SELECT id, name FROM api_key WHERE {}", sql.dialect().among("id", "$1"));
    let rows = sql.query(&select, &[Value::numbers(ids.iter().map(|id| id.0))]).await?;
    rows.iter().map(|row| Ok((ApiKeyId(row.int(0)?), row.text(1)?.to_owned()))).collect()
}

pub(crate) async fn list_api_keys(sql: &mut dyn Sql) -> Result<Vec<ApiKeyRecord>> {
    let list = format!(
        "SELECT id, name, scopes, created_at, revoked_at, expires_at, {}, last_used_at, secrets FROM api_key ORDER BY id",
        sql.dialect().json_text("limits")
    );
    let record = |row: &Row| {
        Ok(ApiKeyRecord {
            id: ApiKeyId(row.int(0)?),
            name: row.text(1)?.to_owned(),
            scopes: Scopes::from_stored(row.text(2)?),
            created_at: row.time(3)?,
            revoked_at: row.opt_time(4)?,
            expires_at: row.opt_time(5)?,
            limits: limits(row.opt_text(6)?),
            last_used_at: row.opt_time(7)?,
            secret: SecretNumber(row.int(8)?),
        })
    };
    sql.query(&list, &[]).await?.iter().map(record).collect()
}

pub(crate) async fn note_keys_used(sql: &mut dyn Sql, ids: &[ApiKeyId]) -> Result<()> {
    let (now, among) = (sql.dialect().now(), sql.dialect().among("id", "$1"));
    let note = format!("UPDATE api_key SET last_used_at = {now} WHERE {among}");
    sql.query(&note, &[Value::numbers(ids.iter().map(|id| id.0))]).await.map(drop)
}

/// Sessions end with the key, because a session is found together with a valid key only.
pub(crate) async fn revoke_api_key(sql: &mut dyn Sql, name: &str, by: ApiKeyId) -> Result<bool> {
    let revoke = format!(
        "UPDATE api_key SET revoked_at = {} WHERE name = $1 AND revoked_at IS NULL RETURNING id",
        sql.dialect().now()
    );
    let is_revoked = !sql.query(&revoke, &[Value::Text(name.to_owned())]).await?.is_empty();
    if is_revoked {
        note(sql, by, Action::RevokeKey, name, None).await?;
    }
    Ok(is_revoked)
}

pub(crate) async fn rotate_api_key(
    sql: &mut dyn Sql,
    name: &str,
    hash: &KeyHash,
    keep: Duration,
    by: ApiKeyId,
) -> Result<bool> {
    let rotate = format!(
        "UPDATE api_key SET old_hash = hash, old_until = {}, hash = $2, secrets = secrets + 1
         WHERE name = $3 AND revoked_at IS NULL RETURNING id",
        sql.dialect().now_plus("$1")
    );
    let values =
        [Value::milliseconds(keep), Value::Bytes(hash.as_bytes().to_vec()), Value::Text(name.to_owned())];
    if sql.query(&rotate, &values).await?.is_empty() {
        return Ok(false);
    }
    note(sql, by, Action::RotateKey, name, None).await?;
    Ok(true)
}

pub(super) fn limits(text: Option<&str>) -> KeyLimits {
    text.map(KeyLimits::from_stored).unwrap_or_default()
}
