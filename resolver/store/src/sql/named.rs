//! Inserts of single links: custom slugs, tags, domains and deduplication, which the batch insert
//! does not support.

use codes::{Code, LinkId};
use jiff::Timestamp;
use links::{DomainId, Draft, NewLink, Slug, Tag, api_key::ApiKeyId};

use super::{
    Sql, Told, Value,
    details::{DELETED_AT, VERSION},
    details_text,
    tags::set_tags,
};
use crate::{FullLink, InsertedFull, InsertedNamed, NamedLink, Same, StoreError};

/// Inserts a link under a claimed number, unless `same` matches an earlier link.
pub(crate) async fn insert_full<S: Sql>(
    sql: &mut S,
    FullLink { new: NewLink { id, draft }, code }: &FullLink,
    tags: &[Tag],
    same: Option<&Same>,
) -> Result<InsertedFull, StoreError> {
    match given(sql, *id, draft.created_by, same).await? {
        Given::Nothing => {}
        Given::Link(other) => return Ok(InsertedFull::Same(other)),
        Given::OtherWish => return Ok(InsertedFull::OtherWish),
    }
    let domain = draft.domain();
    if !domain.is_default() && !take_slug(sql, domain, code, *id).await? {
        withdraw(sql, *id, same).await?;
        let is_there = keep_domain(sql, domain).await?;
        return Ok(if is_there { InsertedFull::CodeTaken } else { InsertedFull::NoDomain });
    }
    let Some(at) = insert_link(sql, *id, draft, None).await? else {
        if !domain.is_default() {
            free_slug(sql, domain, code, *id).await?;
        }
        withdraw(sql, *id, same).await?;
        return Ok(InsertedFull::Taken);
    };
    set_tags(sql, *id, tags).await?;
    Ok(InsertedFull::Stored(at))
}

/// Claims a code on a domain. Returns false if another link has it there, or if the domain was
/// removed.
///
/// Minted codes of the default domain are not in the table.
pub(super) async fn take_slug<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    slug: &str,
    id: LinkId,
) -> Result<bool, StoreError> {
    let values = [Value::Text(slug.to_owned()), Value::Int(id.get()), Value::Int(domain.get())];
    // The default domain is never removed, and a lock on its row would be shared by all creates.
    let row = if domain.is_default() {
        "VALUES (CAST($1 AS text), CAST($2 AS bigint), CAST($3 AS bigint))".to_owned()
    } else {
        let lock = S::DIALECT.for_key_share();
        format!("SELECT CAST($1 AS text), CAST($2 AS bigint), id FROM domain WHERE id = $3 {lock}")
    };
    let take = format!(
        "INSERT INTO slug (slug, link_id, domain_id) {row}
         ON CONFLICT (domain_id, slug) DO NOTHING RETURNING link_id"
    );
    Ok(!sql.query(&take, &values).await?.is_empty())
}

/// Protects a domain from removal until the transaction ends. Returns false if it was removed
/// already: a caller that tried further codes there would never succeed.
pub(super) async fn keep_domain<S: Sql>(sql: &mut S, domain: DomainId) -> Result<bool, StoreError> {
    // The default domain is never removed.
    if domain.is_default() {
        return Ok(true);
    }
    let keep = format!("SELECT id FROM domain WHERE id = $1 {}", S::DIALECT.for_key_share());
    Ok(!sql.query(&keep, &[Value::Int(domain.get())]).await?.is_empty())
}

/// Releases a code on a domain.
pub(super) async fn free_slug<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    slug: &str,
    id: LinkId,
) -> Result<(), StoreError> {
    let free = "DELETE FROM slug WHERE domain_id = $1 AND slug = $2 AND link_id = $3";
    let values = [Value::Int(domain.get()), Value::Text(slug.to_owned()), Value::Int(id.get())];
    sql.query(free, &values).await.map(drop)
}

/// The link that an earlier equal request has made.
enum Given {
    Nothing,
    Link(LinkId),
    OtherWish,
}

/// Looks up the link of an earlier equal request, if the request is deduplicated.
async fn given<S: Sql>(
    sql: &mut S,
    id: LinkId,
    by: ApiKeyId,
    same: Option<&Same>,
) -> Result<Given, StoreError> {
    match same {
        Some(same) => agree(sql, id, by, same).await,
        None => Ok(Given::Nothing),
    }
}

/// Releases the deduplication entry after a failed insert: another link has the id or the code.
async fn withdraw<S: Sql>(sql: &mut S, id: LinkId, same: Option<&Same>) -> Result<(), StoreError> {
    let Some(same) = same else { return Ok(()) };
    let withdraw = "DELETE FROM dedupe WHERE digest = $1 AND link_id = $2";
    sql.query(withdraw, &[Value::Text(same.digest.clone()), Value::Int(id.get())]).await.map(drop)
}

/// Returns the link that an earlier equal request made, if it is still valid; otherwise this
/// request takes its place. Each request renews the entry.
///
/// Of concurrent equal requests one is first, and the others wait for its COMMIT.
async fn agree<S: Sql>(sql: &mut S, id: LinkId, by: ApiKeyId, same: &Same) -> Result<Given, StoreError> {
    let (dialect, digest) = (S::DIALECT, Value::Text(same.digest.clone()));
    let lifetime = Value::Int(super::milliseconds(same.lifetime));
    let fingerprint = Value::OptText(same.fingerprint.clone());
    let begin = format!(
        "INSERT INTO dedupe (digest, link_id, expires_at, fingerprint) VALUES ($1, $2, {}, $4)
         ON CONFLICT (digest) DO NOTHING RETURNING link_id",
        dialect.now_plus("$3")
    );
    let now = dialect.now();
    let look = format!(
        "SELECT fingerprint, expires_at > {now} FROM dedupe WHERE digest = $1 {}",
        dialect.for_update()
    );
    for _ in 0..AGREE_TRIES {
        let mine = [digest.clone(), Value::Int(id.get()), lifetime.clone(), fingerprint.clone()];
        if !sql.query(&begin, &mine).await?.is_empty() {
            clean_up(sql).await?;
            return Ok(Given::Nothing);
        }
        let rows = sql.query(&look, std::slice::from_ref(&digest)).await?;
        // The request that held the entry has released it.
        let Some(row) = rows.first() else { continue };
        if row.flag(1)? && row.opt_text(0)? != same.fingerprint.as_deref() {
            return Ok(Given::OtherWish);
        }
        let found = sql.query(&alive::<S>(same), &[digest.clone(), Value::Int(by.0)]).await?;
        let found = found.first().map(|row| row.int(0)).transpose()?;
        let renew = format!(
            "UPDATE dedupe SET link_id = $1, expires_at = {}, fingerprint = $3 WHERE digest = $4",
            dialect.now_plus("$2")
        );
        let renewed = Value::Int(found.unwrap_or(id.get()));
        sql.query(&renew, &[renewed, lifetime, fingerprint, digest]).await?;
        return Ok(found.map_or(Given::Nothing, |id| Given::Link(LinkId::from_stored(id))));
    }
    Err(StoreError::TimedOut)
}

/// SQL query for the link of a deduplication entry, if it may still be returned.
fn alive<S: Sql>(same: &Same) -> String {
    // An edited link is no longer what was requested. Neither is another link under the code of a
    // deleted one: its version is not 0. A repeated request with an idempotency key gets the link
    // that it made itself, and no link that another API key has made under its code since.
    let its = if same.fingerprint.is_some() {
        "AND link.created_by = $2".to_owned()
    } else {
        format!("AND {VERSION} IS NULL AND $2 = $2")
    };
    format!(
        "SELECT link.id FROM dedupe JOIN link ON link.id = dedupe.link_id
         WHERE dedupe.digest = $1 AND dedupe.expires_at > {} AND {DELETED_AT} IS NULL {its}",
        S::DIALECT.now()
    )
}

/// Maximum number of attempts at an entry that other requests release meanwhile.
const AGREE_TRIES: usize = 5;

/// Deletes a few expired entries with each new one, so that they do not pile up.
async fn clean_up<S: Sql>(sql: &mut S) -> Result<(), StoreError> {
    let (now, skip) = (S::DIALECT.now(), S::DIALECT.skip_locked());
    let some =
        format!("SELECT digest FROM dedupe WHERE expires_at < {now} ORDER BY expires_at LIMIT 3 {skip}");
    sql.query(&format!("DELETE FROM dedupe WHERE digest IN ({some})"), &[]).await.map(drop)
}

/// Inserts a link under a custom slug, unless `same` matches an earlier link.
pub(crate) async fn insert_named<S: Sql>(
    sql: &mut S,
    link: &NamedLink,
    tags: &[Tag],
    same: Option<&Same>,
) -> Result<InsertedNamed, StoreError> {
    // Allocates the link id before the first write, so that deduplication can record it.
    let id = match link.mintable {
        Some(id) => id,
        None => next_id(sql).await?,
    };
    match given(sql, id, link.draft.created_by, same).await? {
        Given::Nothing => {}
        Given::Link(other) => return Ok(InsertedNamed::Same(other)),
        Given::OtherWish => return Ok(InsertedNamed::OtherWish),
    }
    if link.mintable.is_none() && link.draft.domain().is_default() && Code::parse(link.slug.as_str()).is_ok()
    {
        same_keyspaces(sql, link.keyspaces).await?;
    }
    let Placed::Stored(id, at, version) = place_at(sql, id, link, None).await? else {
        withdraw(sql, id, same).await?;
        let is_there = keep_domain(sql, link.draft.domain()).await?;
        return Ok(if is_there { InsertedNamed::Taken } else { InsertedNamed::NoDomain });
    };
    set_tags(sql, id, tags).await?;
    match link.mintable {
        Some(_) => sql.tell(Told::Picked(id)).await?,
        None => sql.tell(Told::Changed(&[id])).await?,
    }
    Ok(InsertedNamed::Stored(id, at, version))
}

/// The outcome of an insert under a custom slug.
pub(super) enum Placed {
    Stored(LinkId, Timestamp, u64),
    Taken,
}

/// Inserts a link under a custom slug, without tags or deduplication. `created_at` replaces the
/// current time as its creation time.
pub(super) async fn place<S: Sql>(
    sql: &mut S,
    link: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Placed, StoreError> {
    let id = match link.mintable {
        Some(id) => id,
        None => next_id(sql).await?,
    };
    place_at(sql, id, link, created_at).await
}

/// Inserts a link under a custom slug at this id.
async fn place_at<S: Sql>(
    sql: &mut S,
    id: LinkId,
    link: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Placed, StoreError> {
    let stored = match link.mintable {
        Some(_) => insert_picked(sql, id, link, created_at).await?,
        None => insert_slug(sql, id, link, created_at).await?,
    };
    Ok(stored.map_or(Placed::Taken, |(at, version)| Placed::Stored(id, at, version)))
}

/// Checks that no keyspace was added whose codes this resolver takes for slugs, and keeps others
/// from adding one before the transaction ends.
///
/// # Errors
/// Returns [`StoreError::Keyspace`] if the database has another number of keyspaces than `known`.
pub(super) async fn same_keyspaces<S: Sql>(sql: &mut S, known: usize) -> Result<(), StoreError> {
    sql.query(S::DIALECT.keep_keyspaces(), &[]).await?;
    let counted = sql.query("SELECT count(*) FROM keyspace", &[]).await?;
    let counted = counted.first().ok_or_else(|| corrupt("no count"))?.int(0)?;
    if counted == i64::try_from(known).unwrap_or(-1) {
        return Ok(());
    }
    Err(StoreError::Keyspace("a keyspace was added: this resolver has to be restarted".to_owned()))
}

/// Inserts a link under a mintable slug, at the id of that code. Returns `None` if the code is
/// taken.
async fn insert_picked<S: Sql>(
    sql: &mut S,
    id: LinkId,
    NamedLink { slug, draft, .. }: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    // A reservation that is made at this very moment finds the code taken when it is filled.
    if is_reserved(sql, id).await? {
        return Ok(None);
    }
    let Some(at) = insert_link(sql, id, draft, created_at).await? else {
        return revive(sql, id, slug, draft).await;
    };
    pick(sql, id).await?;
    Ok(Some((at, 0)))
}

/// Inserts a link that was deleted in another system: at the id of its mintable code, or at a new
/// one. Returns `None` if the id is taken or reserved.
pub(super) async fn insert_deleted<S: Sql>(
    sql: &mut S,
    mintable: Option<LinkId>,
    draft: &Draft,
    created_at: Option<Timestamp>,
) -> Result<Option<LinkId>, StoreError> {
    let id = match mintable {
        Some(id) if is_reserved(sql, id).await? => return Ok(None),
        Some(id) => id,
        None => next_id(sql).await?,
    };
    let Some(_) = insert_link(sql, id, draft, created_at).await? else { return Ok(None) };
    if mintable.is_some() {
        pick(sql, id).await?;
    }
    Ok(Some(id))
}

/// Returns whether an open reservation owns the id. Its holder knows the code, and may have printed
/// it.
async fn is_reserved<S: Sql>(sql: &mut S, id: LinkId) -> Result<bool, StoreError> {
    Ok(!sql.query(S::DIALECT.reservation_of(), &[Value::Int(id.get())]).await?.is_empty())
}

/// Records the id of a custom slug that is mintable.
async fn pick<S: Sql>(sql: &mut S, id: LinkId) -> Result<(), StoreError> {
    let pick = "INSERT INTO picked (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    sql.query(pick, &[Value::Int(id.get())]).await.map(drop)
}

/// Inserts the row of a link. Returns its creation time, or `None` if the id is taken.
async fn insert_link<S: Sql>(
    sql: &mut S,
    id: LinkId,
    draft: &Draft,
    created_at: Option<Timestamp>,
) -> Result<Option<Timestamp>, StoreError> {
    let (details, now) = (S::DIALECT.json("$6"), S::DIALECT.now());
    let insert = format!(
        "INSERT INTO link (long_url, title, crawlable, forward_query, created_by, details, id, created_at)
         VALUES ($1, $2, $3, $4, $5, {details}, $7, coalesce($8, {now})) ON CONFLICT (id) DO NOTHING RETURNING created_at"
    );
    let mut values = Vec::from(values(id, draft)?);
    values.push(Value::OptTime(created_at));
    let rows = sql.query(&insert, &values).await?;
    rows.first().map(|row| row.time(0)).transpose()
}

/// Parameters `$1` to `$7` of an insert or update of a link.
fn values(id: LinkId, draft: &Draft) -> Result<[Value; 7], StoreError> {
    Ok([
        Value::Text(draft.long_url.as_str().to_owned()),
        Value::OptText(draft.title.clone()),
        Value::Bool(draft.crawlable),
        Value::Bool(draft.forward_query),
        Value::Int(draft.created_by.0),
        Value::OptText(details_text(draft.details.as_deref())?),
        Value::Int(id.get()),
    ])
}

/// Reuses the row and code of a deleted link for a new one. Returns `None` if the code cannot be
/// reused.
///
/// Only a custom slug can be reused: a minted code stays with its link. The new link continues the
/// old one's version, so that an edit of one never applies to the other.
async fn revive<S: Sql>(
    sql: &mut S,
    id: LinkId,
    slug: &Slug,
    draft: &Draft,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    let (link, lock) = (S::DIALECT.link(), S::DIALECT.for_update());
    let select = format!("SELECT {link} FROM link WHERE id = $1 {lock}");
    let rows = sql.query(&select, &[Value::Int(id.get())]).await?;
    let old = rows.first().ok_or_else(|| corrupt("a row is gone"))?.link()?;
    let Some(was) = old.details.as_ref().filter(|was| {
        // The row of a blocked link keeps its block, which a new link in its place would overwrite.
        was.deleted_at.is_some() && was.blocked.is_none() && was.slug.as_ref() == Some(slug)
    }) else {
        return Ok(None);
    };
    let mut draft = draft.clone();
    let version = was.version + 1;
    draft.details.get_or_insert_default().version = version;
    let (details, now) = (S::DIALECT.json("$6"), S::DIALECT.now());
    let update = format!(
        "UPDATE link SET long_url = $1, title = $2, crawlable = $3, forward_query = $4, created_by = $5,
                details = {details}, created_at = {now} WHERE id = $7 RETURNING created_at"
    );
    let rows = sql.query(&update, &values(id, &draft)?).await?;
    // The row of `link_use` stays: a transaction that takes visits at this moment locks it, and its
    // visits count towards the new limit.
    sql.query("UPDATE link_use SET used = 0 WHERE link_id = $1", &[Value::Int(id.get())]).await?;
    rows.first().map(|row| Ok((row.time(0)?, version))).transpose()
}

/// Allocates an id that belongs to no minted code.
async fn next_id<S: Sql>(sql: &mut S) -> Result<LinkId, StoreError> {
    let drawn = sql.query(S::DIALECT.next_slug_link_id(), &[]).await?;
    Ok(LinkId::from_stored(drawn.first().ok_or_else(|| corrupt("no next id"))?.int(0)?))
}

/// Inserts a link under a slug that is not mintable, or on another domain. The slug is claimed
/// first: a concurrent claim waits here, and writes nothing else.
async fn insert_slug<S: Sql>(
    sql: &mut S,
    id: LinkId,
    NamedLink { slug, draft, .. }: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    if !take_slug(sql, draft.domain(), slug.as_str(), id).await? {
        return Ok(None);
    }
    let at = insert_link(sql, id, draft, created_at).await?;
    Ok(Some((at.ok_or_else(|| corrupt("the next id is taken"))?, 0)))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("hand-picked codes: {what}"))
}

/// SQL query for the link of a slug. On the default domain only slugs that cannot be minted are
/// stored; on other domains, all codes. On Postgres visitors wait for it, so a dedicated connection
/// has it prepared.
pub(crate) const FIND_SLUG: &str = "SELECT link_id FROM slug WHERE domain_id = $1 AND slug = $2";

/// Returns the id of the link that a slug leads to, within a transaction.
pub(crate) async fn find_slug<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    slug: &str,
) -> Result<Option<LinkId>, StoreError> {
    let rows = sql.query(FIND_SLUG, &[Value::Int(domain.get()), Value::Text(slug.to_owned())]).await?;
    rows.first().map(|row| Ok(LinkId::from_stored(row.int(0)?))).transpose()
}

/// Returns at most `most` ids of mintable custom slugs above `after`, ascending.
pub(crate) async fn picked<S: Sql>(sql: &mut S, after: i64, most: i64) -> Result<Vec<LinkId>, StoreError> {
    let page = "SELECT id FROM picked WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = sql.query(page, &[Value::Int(after), Value::Int(most)]).await?;
    rows.iter().map(|row| Ok(LinkId::from_stored(row.int(0)?))).collect()
}
