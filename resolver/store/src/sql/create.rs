//! Inserts of single links: custom slugs, tags, domains and deduplication, which the batch insert
//! does not support.

use codes::LinkId;
use jiff::Timestamp;
use links::{DomainId, Draft, Idempotency, Link, NewLink, PickedCode, Slug, Tag};

use super::{
    Notice, Sql, Value,
    blocks::is_reserved,
    details::{DELETED_AT, DOMAIN_OR_DEFAULT, SLUG, VERSION},
    details_text,
    edits::lock,
    idempotency::{Earlier, claim, release},
    slugs::{free_slug, keep_domain, take_slug},
    tags::set_tags,
};
use crate::{FullLink, InsertedFull, InsertedNamed, NamedLink, StoreError};

/// Inserts a link under a claimed number, unless `idempotency` matches an earlier
/// one.
pub(crate) async fn insert_full(
    sql: &mut dyn Sql,
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
pub(crate) async fn insert_named(
    sql: &mut dyn Sql,
    link: &NamedLink,
    tags: &[Tag],
    idempotency: Option<&Idempotency>,
) -> Result<InsertedNamed, StoreError> {
    // The id is known before the first write, so that deduplication can record it.
    let spot = spot(sql, link).await?;
    match claim(sql, spot.id(), link.draft.created_by, idempotency).await? {
        Earlier::None => {}
        Earlier::Made(other) => return Ok(InsertedNamed::Existing(other)),
        Earlier::KeyReused => return Ok(InsertedNamed::KeyReused),
    }
    if link.mintable.is_none() && link.slug.code_on(link.draft.domain()).is_some() {
        same_keyspaces(sql, link.keyspaces).await?;
    }
    let Placed::Stored(id, at, version) = place_at(sql, spot, link, None).await? else {
        release(sql, spot.id(), idempotency).await?;
        let is_there = keep_domain(sql, link.draft.domain()).await?;
        return Ok(if is_there { InsertedNamed::Taken } else { InsertedNamed::NoDomain });
    };
    set_tags(sql, id, tags).await?;
    // A new id is announced as well. After a fail-over the sequence may give an id again whose link
    // was lost, and other resolvers may still have that link cached.
    match spot {
        Spot::Number(_) => sql.notify(Notice::Picked(id)).await?,
        Spot::Entry(_) | Spot::Taken(_) => sql.notify(Notice::Changed(&[id])).await?,
    }
    Ok(InsertedNamed::Stored(id, at, version))
}

/// Where a link under a custom slug is stored.
#[derive(Clone, Copy, Debug)]
enum Spot {
    /// At the number of its code, which no link has had.
    Number(LinkId),
    /// At an id of its own, with an entry in `slug`.
    Entry(LinkId),
    /// Nowhere: the number of its code has a link, or is reserved.
    Taken(LinkId),
}

impl Spot {
    fn id(self) -> LinkId {
        let (Self::Number(id) | Self::Entry(id) | Self::Taken(id)) = self;
        id
    }
}

/// Finds the spot of a link, and locks the link that had its code before. Of two links that are
/// picked at once under a code that was left, the primary key of `slug` decides.
async fn spot(sql: &mut dyn Sql, link: &NamedLink) -> Result<Spot, StoreError> {
    let Some(number) = link.mintable else { return Ok(Spot::Entry(next_id(sql).await?)) };
    // A reservation that is made at this very moment finds the code taken when it is filled.
    if is_reserved(sql, number).await? {
        return Ok(Spot::Taken(number));
    }
    Ok(match lock(sql, number).await? {
        None => Spot::Number(number),
        Some((former, _)) if former.leaves_code(&link.slug) => Spot::Entry(next_id(sql).await?),
        Some(_) => Spot::Taken(number),
    })
}

/// The outcome of an insert under a custom slug.
pub(super) enum Placed {
    Stored(LinkId, Timestamp, u64),
    Taken,
}

/// Inserts a link under a custom slug, without tags or deduplication. `created_at` replaces the
/// current time as its creation time.
pub(super) async fn place(
    sql: &mut dyn Sql,
    link: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Placed, StoreError> {
    let spot = spot(sql, link).await?;
    place_at(sql, spot, link, created_at).await
}

/// Inserts a link under a custom slug at this spot. The slug is claimed first: a concurrent claim
/// waits here, and writes nothing else.
async fn place_at(
    sql: &mut dyn Sql,
    spot: Spot,
    NamedLink { slug, draft, .. }: &NamedLink,
    created_at: Option<Timestamp>,
) -> Result<Placed, StoreError> {
    let domain = draft.domain();
    let id = match spot {
        Spot::Taken(_) => return Ok(Placed::Taken),
        Spot::Entry(id) if !take_slug(sql, domain, slug.as_str(), id).await? => return Ok(Placed::Taken),
        Spot::Number(id) | Spot::Entry(id) => id,
    };
    let version = next_version(sql, domain, slug).await?.max(draft.details().version);
    let mut draft = draft.clone();
    let details = draft.details.get_or_insert_default();
    details.version = version;
    if matches!(spot, Spot::Entry(_)) && details.slug.is_none() {
        // A code that another system minted. Here its number has another link.
        details.slug = Some(slug.clone());
        details.origin.get_or_insert_default().minted = true;
    }
    match (insert_link(sql, id, &draft, created_at).await?, spot) {
        (None, Spot::Number(_)) => return Ok(Placed::Taken),
        (None, _) => return Err(corrupt("the next id is taken")),
        (Some(at), Spot::Number(_)) => pick(sql, id).await.map(|()| at),
        (Some(at), _) => Ok(at),
    }
    .map(|at| Placed::Stored(id, at, version))
}

/// Returns the first version of a link under a slug. It continues those of the deleted links that
/// had the slug, so that what was meant for a version of one of them never applies to the new one.
async fn next_version(sql: &mut dyn Sql, domain: DomainId, slug: &Slug) -> Result<u64, StoreError> {
    let next = format!(
        "SELECT max(coalesce({VERSION}, 0)) + 1 FROM link
         WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = $1 AND {DOMAIN_OR_DEFAULT} = $2"
    );
    let values = [Value::Text(slug.as_str().to_owned()), Value::Int(domain.get())];
    let rows = sql.query(&next, &values).await?;
    let next = rows.first().filter(|row| !row.is_null(0)).map(|row| row.int(0)).transpose()?;
    Ok(next.and_then(|next| u64::try_from(next).ok()).unwrap_or(0))
}

/// Continues the versions of the deleted links that had this name on the domain to which a link
/// comes back, or moves.
pub(super) async fn continue_versions(
    sql: &mut dyn Sql,
    link: &mut Link,
    name: &Slug,
) -> Result<(), StoreError> {
    let next = next_version(sql, link.domain(), name).await?;
    let details = link.details.get_or_insert_default();
    details.version = details.version.max(next);
    Ok(())
}

/// Checks that no keyspace was added whose codes this resolver takes for slugs, and keeps others
/// from adding one before the transaction ends.
///
/// # Errors
/// Returns [`StoreError::Keyspace`] if the database has another number of keyspaces than `known`.
pub(super) async fn same_keyspaces(sql: &mut dyn Sql, known: usize) -> Result<(), StoreError> {
    sql.query(sql.dialect().keep_keyspaces(), &[]).await?;
    let counted = sql.query("SELECT count(*) FROM keyspace", &[]).await?;
    let counted = counted.first().ok_or_else(|| corrupt("no count"))?.int(0)?;
    if counted == i64::try_from(known).unwrap_or(-1) {
        return Ok(());
    }
    Err(StoreError::Keyspace("a keyspace was added: this resolver has to be restarted".to_owned()))
}

/// Inserts a link that was deleted in another system: at the id of its mintable code, or at a new
/// one. Returns `None` if the code is reserved, or minted for another link.
pub(super) async fn insert_deleted(
    sql: &mut dyn Sql,
    code: &PickedCode,
    draft: &Draft,
    created_at: Option<Timestamp>,
) -> Result<Option<LinkId>, StoreError> {
    if let Some(number) = code.mintable {
        if is_reserved(sql, number).await? {
            return Ok(None);
        }
        if insert_link(sql, number, draft, created_at).await?.is_some() {
            pick(sql, number).await?;
            return Ok(Some(number));
        }
        let had = lock(sql, number).await?;
        let is_picked = |(link, _): (Link, _)| link.slug() == Some(&code.slug);
        // A minted link is known by its number alone, so there is no second one of the same code.
        if draft.slug().is_none() || !had.is_some_and(is_picked) {
            return Ok(None);
        }
    }
    let id = next_id(sql).await?;
    let stored = insert_link(sql, id, draft, created_at).await?;
    stored.ok_or_else(|| corrupt("the next id is taken")).map(|_| Some(id))
}

/// Records the id of a custom slug that is mintable. Only resolvers of the release before read
/// these ids: while they trust their set, they deny such codes.
async fn pick(sql: &mut dyn Sql, id: LinkId) -> Result<(), StoreError> {
    let pick = "INSERT INTO picked (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    sql.query(pick, &[Value::Int(id.get())]).await.map(drop)
}

/// Inserts the row of a link. Returns its creation time, or `None` if the id is taken.
async fn insert_link(
    sql: &mut dyn Sql,
    id: LinkId,
    draft: &Draft,
    created_at: Option<Timestamp>,
) -> Result<Option<Timestamp>, StoreError> {
    let (details, now) = (sql.dialect().json("$6"), sql.dialect().now());
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

/// Allocates an id that belongs to no minted code.
async fn next_id(sql: &mut dyn Sql) -> Result<LinkId, StoreError> {
    let drawn = sql.query(sql.dialect().next_slug_link_id(), &[]).await?;
    Ok(LinkId::from_stored(drawn.first().ok_or_else(|| corrupt("no next id"))?.int(0)?))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("hand-picked codes: {what}"))
}
