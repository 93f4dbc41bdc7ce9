//! Inserts of links: custom slugs that are no codes, tags, domains, deduplication and events of
//! webhooks, which the batch inserts of Postgres do not support.

use std::collections::HashMap;

use codes::LinkId;
use jiff::Timestamp;
use links::{Details, DomainId, Draft, Idempotency, Link, NewLink, PickedCode, Slug, Tag};

use super::{
    Dialect, Notice, ROWS_AT_ONCE, Sql, Value,
    blocks::is_reserved,
    details::{DELETED_AT, DOMAIN_OR_DEFAULT, IS_ON_DEFAULT_DOMAIN, SLUG, VERSION},
    details_text,
    edits::lock,
    idempotency::{claim, release},
    places,
    slugs::{free_slug, keep_domain, take_slug},
    tags::set_tags,
    webhooks::{record_create, record_creates, wants_creates},
};
use crate::{CustomSlugLink, FullLink, Inserted, InsertedLink, Result, StoreError};

/// Inserts links without tags, and returns the outcome of each in the order of `links`. If a
/// webhook is called for new links, records an event for each that is stored.
pub(crate) async fn insert_links(sql: &mut dyn Sql, links: &[NewLink]) -> Result<Vec<Inserted>> {
    // In the order of their ids, so that concurrent inserts cannot deadlock.
    let mut order: Vec<&NewLink> = links.iter().collect();
    // Of two with one id, the first one is stored.
    order.sort_by_key(|link| link.id);
    // A statement of many rows saves round trips, of which SQLite has none: it keeps one prepared.
    let at_once = if sql.dialect() == Dialect::Sqlite { 1 } else { ROWS_AT_ONCE };
    let mut stored: HashMap<LinkId, Timestamp> = HashMap::with_capacity(links.len());
    for links in order.chunks(at_once) {
        let mut values = Vec::with_capacity(7 * links.len());
        for link in links {
            values.extend(self::values(link.id, &link.draft)?);
        }
        for row in sql.query(&insert_of(sql.dialect(), links.len()), &values).await? {
            stored.insert(LinkId::from_stored(row.int(0)?), row.time(1)?);
        }
    }
    let outcome = |link: &NewLink| stored.remove(&link.id).map_or(Inserted::Taken, Inserted::Stored);
    let outcomes: Vec<Inserted> = links.iter().map(outcome).collect();
    if wants_creates(sql).await? {
        let no_tags: &[Tag] = &[];
        let created = |(new, outcome): (&NewLink, &Inserted)| match outcome {
            Inserted::Stored(at) => Some((Link::stored(new.id, new.draft.clone(), *at), no_tags, Vec::new())),
            Inserted::Taken => None,
        };
        record_creates(sql, links.iter().zip(&outcomes).filter_map(created).collect()).await?;
    }
    Ok(outcomes)
}

/// Inserts links without tags at the numbers of their custom slugs. Returns their creation times,
/// or `None` for those that have something in their way, or an event to record.
pub(crate) async fn insert_slugs(sql: &mut dyn Sql, links: &[NewLink]) -> Result<Vec<Option<Timestamp>>> {
    let mut stored = vec![None; links.len()];
    if wants_creates(sql).await? {
        return Ok(stored);
    }
    for (NewLink { id, draft }, stored) in links.iter().zip(&mut stored) {
        let slug = draft.details().slug.clone().ok_or_else(|| corrupt("a link without its slug"))?;
        let link = CustomSlugLink { slug, mintable: Some(*id), keyspaces: 0, draft: draft.clone() };
        let spot = spot(sql, &link).await?;
        if matches!(spot, Spot::Number(_))
            && next_version(sql, draft.domain(), &link.slug).await? == 0
            && let Some((_, at, _)) = place_at(sql, spot, &link, None).await?
        {
            sql.notify(Notice::Picked(*id)).await?;
            *stored = Some(at);
        }
    }
    Ok(stored)
}

fn insert_of(dialect: Dialect, count: usize) -> String {
    let row = |first: usize| {
        let at = |column: usize| format!("${}", first + column);
        let (plain, details, id) = (places(first, 5), dialect.json(&at(5)), at(6));
        format!("({plain}, {details}, {id})")
    };
    let rows: Vec<String> = (0..count).map(|row_index| row(7 * row_index + 1)).collect();
    format!(
        "INSERT INTO link (long_url, title, crawlable, forward_query, created_by, details, id) VALUES {}
         ON CONFLICT (id) DO NOTHING RETURNING id, created_at",
        rows.join(", ")
    )
}

/// Inserts a link under a claimed number, unless `idempotency` matches an earlier one. With
/// `is_announced`, records an event if a webhook is called for it.
pub(crate) async fn insert_full(
    sql: &mut dyn Sql,
    FullLink { new: NewLink { id, draft }, code }: &FullLink,
    tags: &[Tag],
    idempotency: Option<&Idempotency>,
    is_announced: bool,
) -> Result<InsertedLink> {
    if let Some(answer) = claim(sql, *id, draft.created_by, idempotency).await? {
        return Ok(answer);
    }
    let domain = draft.domain();
    if !domain.is_default() && !take_slug(sql, domain, code, *id).await? {
        release(sql, *id, idempotency).await?;
        let is_there = keep_domain(sql, domain).await?;
        return Ok(if is_there { InsertedLink::CodeTaken } else { InsertedLink::NoDomain });
    }
    let Some(at) = insert_link(sql, *id, draft, None).await? else {
        if !domain.is_default() {
            free_slug(sql, domain, code, *id).await?;
        }
        release(sql, *id, idempotency).await?;
        return Ok(InsertedLink::Taken);
    };
    set_tags(sql, *id, tags).await?;
    if is_announced {
        record_create(sql, &Link::stored(*id, draft.clone(), at), tags).await?;
    }
    Ok(InsertedLink::Stored(*id, at, draft.details().version))
}

pub(crate) async fn insert_with_slug(
    sql: &mut dyn Sql,
    link: &CustomSlugLink,
    tags: &[Tag],
    idempotency: Option<&Idempotency>,
    is_announced: bool,
) -> Result<InsertedLink> {
    // The id is known before the first write, so that deduplication can record it.
    let spot = spot(sql, link).await?;
    if let Some(answer) = claim(sql, spot.id(), link.draft.created_by, idempotency).await? {
        return Ok(answer);
    }
    if link.mintable.is_none() && link.slug.code_on(link.draft.domain()).is_some() {
        same_keyspaces(sql, link.keyspaces).await?;
    }
    let Some((id, at, version)) = place_at(sql, spot, link, None).await? else {
        release(sql, spot.id(), idempotency).await?;
        let is_there = keep_domain(sql, link.draft.domain()).await?;
        return Ok(if is_there { InsertedLink::Taken } else { InsertedLink::NoDomain });
    };
    set_tags(sql, id, tags).await?;
    // A new id is announced as well. After a fail-over the sequence may give an id again whose link
    // was lost, and other resolvers may still have that link cached.
    match spot {
        Spot::Number(_) => sql.notify(Notice::Picked(id)).await?,
        Spot::Entry(_) | Spot::Taken(_) => sql.notify(Notice::Changed(&[id])).await?,
    }
    if is_announced {
        let mut draft = link.draft.clone();
        draft.details.get_or_insert_default().version = version;
        record_create(sql, &Link::stored(id, draft, at), tags).await?;
    }
    Ok(InsertedLink::Stored(id, at, version))
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
async fn spot(sql: &mut dyn Sql, link: &CustomSlugLink) -> Result<Spot> {
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

/// Inserts a link under a custom slug, without tags or deduplication. `created_at` replaces the
/// current time as its creation time.
pub(super) async fn place(
    sql: &mut dyn Sql,
    link: &CustomSlugLink,
    created_at: Option<Timestamp>,
) -> Result<Option<(LinkId, Timestamp, u64)>> {
    let spot = spot(sql, link).await?;
    place_at(sql, spot, link, created_at).await
}

/// Inserts a link under a custom slug at this spot. Returns its id, creation time and version, or
/// `None` if the slug is taken. The slug is claimed first: a concurrent claim
/// waits here, and writes nothing else.
async fn place_at(
    sql: &mut dyn Sql,
    spot: Spot,
    CustomSlugLink { slug, draft, .. }: &CustomSlugLink,
    created_at: Option<Timestamp>,
) -> Result<Option<(LinkId, Timestamp, u64)>> {
    let domain = draft.domain();
    let id = match spot {
        Spot::Taken(_) => return Ok(None),
        Spot::Entry(id) if !take_slug(sql, domain, slug.as_str(), id).await? => return Ok(None),
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
        (None, Spot::Number(_)) => return Ok(None),
        (None, _) => return Err(corrupt("the next id is taken")),
        (Some(at), Spot::Number(_)) => pick(sql, id).await.map(|()| at),
        (Some(at), _) => Ok(at),
    }
    .map(|at| Some((id, at, version)))
}

/// The query for deleted links that had a slug on the default domain.
pub(crate) fn former_of(slug: &str) -> String {
    format!(
        "SELECT link.id FROM link WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = {slug} AND {IS_ON_DEFAULT_DOMAIN}"
    )
}

/// Returns the first version of a link under a slug. It continues those of the links that had the
/// slug before, until they were deleted or got another address, so that what was meant for a
/// version of one of them never applies to the new one.
async fn next_version(sql: &mut dyn Sql, domain: DomainId, slug: &Slug) -> Result<u64> {
    let next = format!(
        "SELECT max(coalesce({VERSION}, 0)) + 1 FROM link
         WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = $1 AND {DOMAIN_OR_DEFAULT} = $2"
    );
    let values = [Value::Text(slug.as_str().to_owned()), Value::Int(domain.get())];
    let next = sql.number(&next, &values).await?;
    Ok(next.and_then(|next| u64::try_from(next).ok()).unwrap_or(0))
}

/// Continues the versions of the links that had this name before, on the domain to which a link
/// comes back, or moves.
pub(super) async fn continue_versions(sql: &mut dyn Sql, link: &mut Link, name: &Slug) -> Result<()> {
    let next = next_version(sql, link.domain(), name).await?;
    let details = link.details.get_or_insert_default();
    details.version = details.version.max(next);
    Ok(())
}

/// Checks that no keyspace was added whose codes this resolver takes for slugs: that the database
/// has `known` of them. Keeps others from adding one before the transaction ends.
pub(super) async fn same_keyspaces(sql: &mut dyn Sql, known: usize) -> Result<()> {
    sql.query(&sql.dialect().lock_table("keyspace", "SHARE"), &[]).await?;
    let counted = sql.number("SELECT count(*) FROM keyspace", &[]).await?;
    if counted == i64::try_from(known).ok() {
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
) -> Result<Option<LinkId>> {
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
        if draft.details().slug.is_none() || !had.is_some_and(is_picked) {
            return Ok(None);
        }
    }
    let id = next_id(sql).await?;
    let stored = insert_link(sql, id, draft, created_at).await?;
    stored.ok_or_else(|| corrupt("the next id is taken")).map(|_| Some(id))
}

/// Leaves the code of a number to a link with another id that gets it as its name. A number that no
/// link has had gets one that is deleted, so that it is never minted and lookups go on to the entry
/// in `slug`. Returns false if the number has a link, or is reserved.
pub(super) async fn leave_code(
    sql: &mut dyn Sql,
    (number, slug): (LinkId, &Slug),
    to: &Link,
    now: Timestamp,
) -> Result<bool> {
    if is_reserved(sql, number).await? {
        return Ok(false);
    }
    if let Some((former, _)) = lock(sql, number).await? {
        return Ok(former.leaves_code(slug));
    }
    let draft = given_up(to, slug, now, 0);
    if insert_link(sql, number, &draft, None).await?.is_none() {
        return Ok(false);
    }
    pick(sql, number).await?;
    sql.notify(Notice::Picked(number)).await.map(|()| true)
}

/// Notes the version at which a link leaves a custom slug, with a row that is no link, because the
/// versions of the next link under that slug continue it.
pub(super) async fn note_left_slug(
    sql: &mut dyn Sql,
    link: &Link,
    slug: &Slug,
    now: Timestamp,
) -> Result<()> {
    let (id, draft) = (next_id(sql).await?, given_up(link, slug, now, link.version()));
    let stored = insert_link(sql, id, &draft, None).await?;
    stored.ok_or_else(|| corrupt("the next id is taken")).map(drop)
}

/// Returns a row that is no link, for a name on a link's domain. It has no protection of that link,
/// such as a password, so it leads nowhere, also where a former release restores it.
fn given_up(link: &Link, slug: &Slug, now: Timestamp, version: u64) -> Draft {
    let details = Details {
        slug: Some(slug.clone()),
        given_up: true,
        disabled: true,
        domain: Some(link.domain()).filter(|domain| !domain.is_default()),
        deleted_at: Some(now),
        version,
        ..Details::default()
    };
    Draft {
        long_url: link.long_url.clone(),
        title: None,
        crawlable: false,
        forward_query: true,
        created_by: link.created_by,
        details: Some(Box::new(details)),
    }
}

/// Records the id of a custom slug that is mintable. Only resolvers of the release before read
/// these ids: while they trust their set, they deny such codes.
async fn pick(sql: &mut dyn Sql, id: LinkId) -> Result<()> {
    let pick = "INSERT INTO picked (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    sql.query(pick, &[Value::Int(id.get())]).await.map(drop)
}

/// Inserts the row of a link. Returns its creation time, or `None` if the id is taken.
async fn insert_link(
    sql: &mut dyn Sql,
    id: LinkId,
    draft: &Draft,
    created_at: Option<Timestamp>,
) -> Result<Option<Timestamp>> {
    let (details, now) = (sql.dialect().json("$6"), sql.dialect().now());
    let insert = format!(
        "INSERT INTO link (long_url, title, crawlable, forward_query, created_by, details, id, created_at)
         VALUES ($1, $2, $3, $4, $5, {details}, $7, coalesce($8, {now})) ON CONFLICT (id) DO NOTHING RETURNING created_at"
    );
    let mut values = Vec::from(values(id, draft)?);
    values.push(Value::OptTime(created_at));
    sql.first(&insert, &values).await?.map(|row| row.time(0)).transpose()
}

/// Parameters `$1` to `$7` of an insert or update of a link.
pub(super) fn values(id: LinkId, draft: &Draft) -> Result<[Value; 7]> {
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
async fn next_id(sql: &mut dyn Sql) -> Result<LinkId> {
    let next = sql.number(sql.dialect().next_slug_link_id(), &[]).await?;
    next.map(LinkId::from_stored).ok_or_else(|| corrupt("no next id"))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("hand-picked codes: {what}"))
}
