//! Deduplication of creates: table `dedupe`. Which request is a repetition is decided by
//! [`links::Idempotency`].

use codes::LinkId;
use links::{Draft, EarlierRequest, Idempotency, Link, api_key::ApiKeyId};

use super::{Row, Sql, Value};
use crate::{InsertedLink, Result, StoreError};

/// Maximum number of attempts at an entry that other requests release meanwhile.
const TRIES: usize = 5;

/// Looks for an earlier equal request, if the request is deduplicated, and returns what that means
/// for this one. If none counts, the request takes its place, with the link that it is about to
/// store. Each request renews the entry.
///
/// Of concurrent equal requests one is first, and the others wait for its COMMIT.
pub(super) async fn claim(
    sql: &mut dyn Sql,
    id: LinkId,
    by: ApiKeyId,
    request: Option<&Idempotency>,
) -> Result<Option<InsertedLink>> {
    let Some(request) = request else { return Ok(None) };
    for _ in 0..TRIES {
        if keep(sql, id, request).await? {
            clean_up(sql).await?;
            return Ok(None);
        }
        // If there is none, the request that held the entry has released it.
        let Some(earlier) = lock(sql, request).await? else { continue };
        if request.is_key_reused(&earlier) {
            return Ok(Some(InsertedLink::KeyReused));
        }
        let made = if earlier.is_expired { None } else { link_of(sql, request).await? };
        let made = made.filter(|link| request.returns(link, &earlier, by)).map(|link| link.id);
        renew(sql, made.unwrap_or(id), request).await?;
        return Ok(made.map(InsertedLink::Existing));
    }
    Err(StoreError::TimedOut)
}

/// Releases the entry after a failed insert: another link has the id or the code.
pub(super) async fn release(sql: &mut dyn Sql, id: LinkId, request: Option<&Idempotency>) -> Result<()> {
    let Some(request) = request else { return Ok(()) };
    let release = "DELETE FROM dedupe WHERE digest = $1 AND link_id = $2";
    sql.query(release, &[Value::Text(request.digest.clone()), Value::Int(id.get())]).await.map(drop)
}

/// Adds the entry of an imported link. If there is one whose link answers no request any more, such
/// as a deleted one, it becomes that of the imported link, unless this one is deleted as well.
pub(super) async fn keep_imported(
    sql: &mut dyn Sql,
    id: LinkId,
    draft: &Draft,
    request: &Idempotency,
) -> Result<()> {
    if keep(sql, id, request).await? || draft.details().deleted_at.is_some() {
        return Ok(());
    }
    let Some(earlier) = lock(sql, request).await? else { return Ok(()) };
    let by = draft.created_by;
    let answers = link_of(sql, request).await?.is_some_and(|link| request.returns(&link, &earlier, by));
    if answers { Ok(()) } else { renew(sql, id, request).await }
}

/// Adds the entry of a link, and returns false if there is one. It waits for a concurrent request
/// that has added it.
async fn keep(sql: &mut dyn Sql, id: LinkId, request: &Idempotency) -> Result<bool> {
    let keep = format!(
        "INSERT INTO dedupe (digest, link_id, expires_at, fingerprint) VALUES ($1, $2, {}, $4)
         ON CONFLICT (digest) DO NOTHING RETURNING link_id",
        sql.dialect().now_plus("$3")
    );
    let values = [
        Value::Text(request.digest.clone()),
        Value::Int(id.get()),
        Value::milliseconds(request.lifetime),
        Value::OptText(request.fingerprint.clone()),
    ];
    Ok(!sql.query(&keep, &values).await?.is_empty())
}

/// Locks the entry until the transaction ends, and returns it.
async fn lock(sql: &mut dyn Sql, request: &Idempotency) -> Result<Option<EarlierRequest>> {
    let (now, lock) = (sql.dialect().now(), sql.dialect().for_update());
    let look = format!("SELECT fingerprint, expires_at > {now} FROM dedupe WHERE digest = $1 {lock}");
    let earlier = |row: Row| {
        Ok(EarlierRequest { fingerprint: row.opt_text(0)?.map(str::to_owned), is_expired: !row.flag(1)? })
    };
    sql.first(&look, &[Value::Text(request.digest.clone())]).await?.map(earlier).transpose()
}

/// Returns the link of the entry. It is read after the entry was locked: a statement that did both
/// would see the links from before its wait for the lock.
async fn link_of(sql: &mut dyn Sql, request: &Idempotency) -> Result<Option<Link>> {
    let select = format!(
        "SELECT {} FROM dedupe JOIN link ON link.id = dedupe.link_id WHERE dedupe.digest = $1",
        sql.dialect().link()
    );
    sql.first(&select, &[Value::Text(request.digest.clone())]).await?.as_ref().map(Row::link).transpose()
}

/// Renews the entry for this request, with the link that answers it.
async fn renew(sql: &mut dyn Sql, id: LinkId, request: &Idempotency) -> Result<()> {
    let renew = format!(
        "UPDATE dedupe SET link_id = $1, expires_at = {}, fingerprint = $3 WHERE digest = $4",
        sql.dialect().now_plus("$2")
    );
    let values = [
        Value::Int(id.get()),
        Value::milliseconds(request.lifetime),
        Value::OptText(request.fingerprint.clone()),
        Value::Text(request.digest.clone()),
    ];
    sql.query(&renew, &values).await.map(drop)
}

/// Deletes a few expired entries with each new one, so that they do not pile up.
async fn clean_up(sql: &mut dyn Sql) -> Result<()> {
    let (now, skip) = (sql.dialect().now(), sql.dialect().skip_locked());
    let some =
        format!("SELECT digest FROM dedupe WHERE expires_at < {now} ORDER BY expires_at LIMIT 3 {skip}");
    sql.query(&format!("DELETE FROM dedupe WHERE digest IN ({some})"), &[]).await.map(drop)
}
