//! Browser sessions: table `session`.
//!
//! 1. A session grants what its API key does. It is read together with the key's row, so that a key
//!    which is revoked, expires or has another secret ends its sessions, and nothing has to remove
//!    their rows.
//! 2. Only a sign-in adds a row, and it removes others: expired ones, and those of its key beyond
//!    [`OPEN_MAX`]. So the table needs no chore to stay small.

use std::time::Duration;

use links::{
    SessionHash,
    api_key::{ApiKeyId, Grant, SecretNumber},
};

use super::{
    Sql, Value,
    keys::{grant, is_valid_with_secret},
};
use crate::Result;

/// Maximum number of open sessions of an API key.
const OPEN_MAX: usize = 50;
/// Maximum number of rows that one statement removes. It ends long before its deadline.
const REMOVED_AT_ONCE: usize = 1_000;

/// A key that does not exist has no sessions.
pub(crate) async fn open_session(
    sql: &mut dyn Sql,
    hash: &SessionHash,
    (key, secret): (ApiKeyId, SecretNumber),
    lasts: Duration,
) -> Result<()> {
    // Locks the key's row: concurrent sign-ins with one key then count each other's sessions.
    let open = format!(
        "INSERT INTO session (hash, api_key_id, secret, expires_at)
         SELECT $1, id, $2, {} FROM api_key WHERE id = $4 {}
         ON CONFLICT (hash) DO NOTHING",
        sql.dialect().now_plus("$3"),
        sql.dialect().for_update()
    );
    let values = [bytes(hash), Value::Int(secret.0), Value::milliseconds(lasts), Value::Int(key.0)];
    sql.query(&open, &values).await?;
    remove_expired(sql).await?;
    remove_surplus(sql, key, hash).await
}

pub(crate) async fn find_session(sql: &mut dyn Sql, hash: &SessionHash) -> Result<Option<Grant>> {
    let of = format!(
        "session JOIN api_key ON api_key.id = session.api_key_id
         WHERE session.hash = $1 AND session.expires_at > {} AND {}",
        sql.dialect().now(),
        is_valid_with_secret(sql.dialect(), "session.secret")
    );
    grant(sql, "session.secret", &of, &[bytes(hash)]).await
}

pub(crate) async fn end_session(sql: &mut dyn Sql, hash: &SessionHash) -> Result<()> {
    sql.query("DELETE FROM session WHERE hash = $1", &[bytes(hash)]).await.map(drop)
}

/// Removes expired sessions of any key, except rows that another sign-in is removing.
async fn remove_expired(sql: &mut dyn Sql) -> Result<()> {
    let (now, skip) = (sql.dialect().now(), sql.dialect().skip_locked());
    let expired = format!(
        "SELECT hash FROM session WHERE expires_at <= {now}
         ORDER BY expires_at LIMIT {REMOVED_AT_ONCE} {skip}"
    );
    sql.query(&format!("DELETE FROM session WHERE hash IN ({expired})"), &[]).await.map(drop)
}

/// Ends the sessions of a key beyond [`OPEN_MAX`]: those that expire first, and never `opened`,
/// which may be shorter than the others.
async fn remove_surplus(sql: &mut dyn Sql, key: ApiKeyId, opened: &SessionHash) -> Result<()> {
    // Without expired rows: another sign-in may have locked some, and would wait for this one.
    let surplus = format!(
        "SELECT hash FROM session WHERE api_key_id = $1 AND hash <> $2 AND expires_at > {}
         ORDER BY expires_at DESC LIMIT {REMOVED_AT_ONCE} OFFSET {}",
        sql.dialect().now(),
        OPEN_MAX - 1
    );
    let remove = format!("DELETE FROM session WHERE hash IN ({surplus})");
    sql.query(&remove, &[Value::Int(key.0), bytes(opened)]).await.map(drop)
}

fn bytes(hash: &SessionHash) -> Value {
    Value::Bytes(hash.as_bytes().to_vec())
}
