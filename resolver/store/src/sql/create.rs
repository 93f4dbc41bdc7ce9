//! Inserts of single links: custom slugs, tags, domains and deduplication, which the batch insert
//! does not support.

use codes::LinkId;
use jiff::Timestamp;
use links::{Draft, Idempotency, NewLink, Slug, Tag};

use super::{
    Sql, Told, Value, details_text,
    idempotency::{Earlier, claim, release},
    slugs::{free_slug, keep_domain, take_slug},
    tags::set_tags,
};
use crate::{FullLink, InsertedFull, InsertedNamed, NamedLink, StoreError};

/// Inserts a link under a claimed number, unless `idempotency` matches an earlier
/// one.
pub(crate) async fn insert_full<S: Sql>(
    sql: &mut S,
    FullLink { new: NewLink { id, draft }, code }: &FullLink,
    tags: &[Tag],
    idempotency: Option<&Idempotency>,
) -> Result<InsertedFull, StoreError> {
    match claim(sql, *id, draft.created_by, idempotency).await? {
        Earlier::None => {}
        Earlier::Made(other) => return Ok(InsertedFull::Existing(other)),
        Earlier::KeyReused => return Ok(InsertedFull::KeyReused),
    }
    let domain = draft.domain();
    if !domain.is_default() && !take_slug(sql, domain, code, *id).await? {
        release(sql, *id, idempotency).await?;
        let is_there = keep_domain(sql, domain).await?;
        return Ok(if is_there { InsertedFull::CodeTaken } else { InsertedFull::NoDomain });
    }
    let Some(at) = insert_link(sql, *id, draft, None).await? else {
        if !domain.is_default() {
            free_slug(sql, domain, code, *id).await?;
        }
        release(sql, *id, idempotency).await?;
        return Ok(InsertedFull::Taken);
    };
    set_tags(sql, *id, tags).await?;
    Ok(InsertedFull::Stored(at))
}

/// Inserts a link under a custom slug, unless `idempotency` matches an earlier
/// one.
pub(crate) async fn insert_named<S: Sql>(
    sql: &mut S,
    link: &NamedLink,
    tags: &[Tag],
    idempotency: Option<&Idempotency>,
) -> Result<InsertedNamed, StoreError> {
    // Allocates the link id before the first write, so that deduplication can record it.
    let id = match link.mintable {
        Some(id) => id,
        None => next_id(sql).await?,
    };
    match claim(sql, id, link.draft.created_by, idempotency).await? {
        Earlier::None => {}
        Earlier::Made(other) => return Ok(InsertedNamed::Existing(other)),
        Earlier::KeyReused => return Ok(InsertedNamed::KeyReused),
    }
    if link.mintable.is_none() && link.slug.code_on(link.draft.domain()).is_some() {
        same_keyspaces(sql, link.keyspaces).await?;
    }
    let Placed::Stored(id, at, version) = place_at(sql, id, link, None).await? else {
        release(sql, id, idempotency).await?;
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
        return reuse(sql, id, slug, draft).await;
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
pub(super) fn values(id: LinkId, draft: &Draft) -> Result<[Value; 7], StoreError> {
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
async fn reuse<S: Sql>(
    sql: &mut S,
    id: LinkId,
    slug: &Slug,
    draft: &Draft,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    let (link, lock) = (S::DIALECT.link(), S::DIALECT.for_update());
    let select = format!("SELECT {link} FROM link WHERE id = $1 {lock}");
    let rows = sql.query(&select, &[Value::Int(id.get())]).await?;
    let old = rows.first().ok_or_else(|| corrupt("a row is gone"))?.link()?;
    let Some((draft, version)) = draft.in_place_of(&old, slug) else { return Ok(None) };
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
