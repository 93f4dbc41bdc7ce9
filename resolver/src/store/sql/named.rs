//! Links that more is said of than the batch of new ones takes: hand-picked codes and tags.

use jiff::Timestamp;

use super::{DEFAULT_DOMAIN, Sql, Told, Value, details_text, tags::set_tags};
use crate::{
    codes::{Code, LinkId},
    links::{Draft, NewLink, Slug, Tag},
    store::{InsertedFull, InsertedNamed, NamedLink, Same, StoreError},
};

/// Stores a link under a number that was claimed; or finds the one that the same was asked for before.
pub(in crate::store) async fn insert_full<S: Sql>(
    sql: &mut S,
    NewLink { id, draft }: &NewLink,
    tags: &[Tag],
    same: Option<&Same>,
) -> Result<InsertedFull, StoreError> {
    if let Some(other) = given(sql, *id, same).await? {
        return Ok(InsertedFull::Same(other));
    }
    let Some(at) = insert_link(sql, *id, draft).await? else {
        withdraw(sql, *id, same).await?;
        return Ok(InsertedFull::Taken);
    };
    set_tags(sql, *id, tags).await?;
    Ok(InsertedFull::Stored(at))
}

async fn given<S: Sql>(sql: &mut S, id: LinkId, same: Option<&Same>) -> Result<Option<LinkId>, StoreError> {
    match same {
        Some(same) => agree(sql, id, same).await,
        None => Ok(None),
    }
}

/// Takes back what was agreed on: the id is somebody else's.
async fn withdraw<S: Sql>(sql: &mut S, id: LinkId, same: Option<&Same>) -> Result<(), StoreError> {
    let Some(same) = same else { return Ok(()) };
    let withdraw = "DELETE FROM dedupe WHERE digest = $1 AND link_id = $2";
    sql.query(withdraw, &[Value::Text(same.digest.clone()), Value::Int(id.get())]).await.map(drop)
}

/// The link that was stored before for the same wish, if it is still what was wished for; else this one takes its place. Each who asks renews it.
/// Of those who ask at the same time one is first, and the others wait for its COMMIT.
async fn agree<S: Sql>(sql: &mut S, id: LinkId, same: &Same) -> Result<Option<LinkId>, StoreError> {
    let (dialect, digest) = (S::DIALECT, Value::Text(same.digest.clone()));
    let lifetime = Value::Int(i64::try_from(same.lifetime.as_millis()).unwrap_or(i64::MAX));
    let begin = format!(
        "INSERT INTO dedupe (digest, link_id, expires_at) VALUES ($1, $2, {})
         ON CONFLICT (digest) DO NOTHING RETURNING link_id",
        dialect.now_plus("$3")
    );
    let look = format!("SELECT link_id FROM dedupe WHERE digest = $1 {}", dialect.for_update());
    // What was edited is not what was wished for any more, and neither is another link under the code of a deleted one: its version is not 0.
    let alive = format!(
        "SELECT link.id FROM dedupe JOIN link ON link.id = dedupe.link_id
         WHERE dedupe.digest = $1 AND dedupe.expires_at > {} AND link.details->>'deletedAt' IS NULL AND link.details->>'version' IS NULL",
        dialect.now()
    );
    for _ in 0..AGREE_TRIES {
        let mine = [digest.clone(), Value::Int(id.get()), lifetime.clone()];
        if !sql.query(&begin, &mine).await?.is_empty() {
            clean_up(sql).await?;
            return Ok(None);
        }
        if sql.query(&look, std::slice::from_ref(&digest)).await?.is_empty() {
            // Whoever had it has withdrawn.
            continue;
        }
        let found = sql.query(&alive, std::slice::from_ref(&digest)).await?;
        let found = found.first().map(|row| row.int(0)).transpose()?;
        let renew = format!(
            "UPDATE dedupe SET link_id = $1, expires_at = {} WHERE digest = $3",
            dialect.now_plus("$2")
        );
        sql.query(&renew, &[Value::Int(found.unwrap_or(id.get())), lifetime, digest]).await?;
        return Ok(found.map(LinkId::from_stored));
    }
    Err(StoreError::TimedOut)
}

/// How often a wish is looked at that others withdraw meanwhile.
const AGREE_TRIES: usize = 5;

/// Takes a few wishes away that have lapsed, with each new one: so they never pile up.
async fn clean_up<S: Sql>(sql: &mut S) -> Result<(), StoreError> {
    let (now, skip) = (S::DIALECT.now(), S::DIALECT.skip_locked());
    let some =
        format!("SELECT digest FROM dedupe WHERE expires_at < {now} ORDER BY expires_at LIMIT 3 {skip}");
    sql.query(&format!("DELETE FROM dedupe WHERE digest IN ({some})"), &[]).await.map(drop)
}

/// Stores a link under a hand-picked code.
pub(in crate::store) async fn insert_named<S: Sql>(
    sql: &mut S,
    link: &NamedLink,
    tags: &[Tag],
    same: Option<&Same>,
) -> Result<InsertedNamed, StoreError> {
    let id = match link.mintable {
        Some(id) => id,
        None => next_id(sql).await?,
    };
    if let Some(other) = given(sql, id, same).await? {
        return Ok(InsertedNamed::Same(other));
    }
    let stored = match link.mintable {
        Some(_) => insert_picked(sql, id, link).await?,
        None => insert_slug(sql, id, link).await?,
    };
    let Some((at, version)) = stored else {
        withdraw(sql, id, same).await?;
        return Ok(InsertedNamed::Taken);
    };
    set_tags(sql, id, tags).await?;
    sql.tell(if link.mintable.is_some() { Told::Picked(id) } else { Told::Changed(id) }).await?;
    Ok(InsertedNamed::Stored(id, at, version))
}

/// Under the id that the code stands for.
async fn insert_picked<S: Sql>(
    sql: &mut S,
    id: LinkId,
    NamedLink { slug, draft, .. }: &NamedLink,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    // Its holder was told this code, and may have printed it. (Who reserves it at this very moment finds it taken when it is filled.)
    if !sql.query(S::DIALECT.reservation_of(), &[Value::Int(id.get())]).await?.is_empty() {
        return Ok(None);
    }
    let Some(at) = insert_link(sql, id, draft).await? else { return revive(sql, id, slug, draft).await };
    let pick = "INSERT INTO picked (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
    sql.query(pick, &[Value::Int(id.get())]).await?;
    Ok(Some((at, 0)))
}

/// When it was stored; none when the id is taken.
async fn insert_link<S: Sql>(
    sql: &mut S,
    id: LinkId,
    draft: &Draft,
) -> Result<Option<Timestamp>, StoreError> {
    let details = S::DIALECT.json("$6");
    let insert = format!(
        "INSERT INTO link (long_url, title, crawlable, forward_query, created_by, details, id)
         VALUES ($1, $2, $3, $4, $5, {details}, $7) ON CONFLICT (id) DO NOTHING RETURNING created_at"
    );
    let rows = sql.query(&insert, &values(id, draft)?).await?;
    rows.first().map(|row| row.time(0)).transpose()
}

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

/// Gives the code of a deleted link to a new one. Only what a person picked may be picked again: a minted code stays with its link. The new link
/// goes on from the old one's version, so that nobody edits the one and means the other.
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
    let Some(was) =
        old.details.as_ref().filter(|was| was.deleted_at.is_some() && was.slug.as_ref() == Some(slug))
    else {
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
    // Its row stays: whoever counts visits at this moment holds it, and what is counted then is counted of the new limit.
    sql.query("UPDATE link_use SET used = 0 WHERE link_id = $1", &[Value::Int(id.get())]).await?;
    rows.first().map(|row| Ok((row.time(0)?, version))).transpose()
}

/// An id that no minted code stands for.
async fn next_id<S: Sql>(sql: &mut S) -> Result<LinkId, StoreError> {
    let drawn = sql.query(S::DIALECT.next_slug_link_id(), &[]).await?;
    Ok(LinkId::from_stored(drawn.first().ok_or_else(|| corrupt("no next id"))?.int(0)?))
}

/// First the slug: whoever else takes it waits here, and writes nothing more.
async fn insert_slug<S: Sql>(
    sql: &mut S,
    id: LinkId,
    NamedLink { slug, draft, keyspaces, .. }: &NamedLink,
) -> Result<Option<(Timestamp, u64)>, StoreError> {
    if Code::parse(slug.as_str()).is_ok() {
        // Another resolver may have begun to mint such codes just now.
        sql.query(S::DIALECT.keep_keyspaces(), &[]).await?;
        let known = sql.query("SELECT count(*) FROM keyspace", &[]).await?;
        if known.first().ok_or_else(|| corrupt("no count"))?.int(0)?
            != i64::try_from(*keyspaces).unwrap_or(-1)
        {
            return Err(StoreError::Keyspace(
                "a keyspace was added: this resolver has to be restarted".to_owned(),
            ));
        }
    }
    let take = "INSERT INTO slug (domain_id, slug, link_id) VALUES ($1, $2, $3)
                ON CONFLICT (domain_id, slug) DO NOTHING RETURNING link_id";
    let values = [Value::Int(DEFAULT_DOMAIN), Value::Text(slug.to_string()), Value::Int(id.get())];
    if sql.query(take, &values).await?.is_empty() {
        return Ok(None);
    }
    let at = insert_link(sql, id, draft).await?.ok_or_else(|| corrupt("the next id is taken"))?;
    Ok(Some((at, 0)))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("hand-picked codes: {what}"))
}

/// The link of a slug that could not have been minted. On Postgres visitors wait for it: a connection of its own has this text prepared.
pub(in crate::store) const FIND_SLUG: &str = "SELECT link_id FROM slug WHERE domain_id = $1 AND slug = $2";

/// The same over a transaction.
pub(in crate::store) async fn find_slug<S: Sql>(
    sql: &mut S,
    slug: &str,
) -> Result<Option<LinkId>, StoreError> {
    let rows = sql.query(FIND_SLUG, &[Value::Int(DEFAULT_DOMAIN), Value::Text(slug.to_owned())]).await?;
    rows.first().map(|row| Ok(LinkId::from_stored(row.int(0)?))).transpose()
}

/// Ids of hand-picked codes after one of them, ascending, at most so many.
pub(in crate::store) async fn picked<S: Sql>(
    sql: &mut S,
    after: i64,
    most: i64,
) -> Result<Vec<LinkId>, StoreError> {
    let page = "SELECT id FROM picked WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = sql.query(page, &[Value::Int(after), Value::Int(most)]).await?;
    rows.iter().map(|row| Ok(LinkId::from_stored(row.int(0)?))).collect()
}
