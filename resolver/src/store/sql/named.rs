//! Links that more is said of than the batch of new ones takes: hand-picked codes and tags.

use jiff::Timestamp;

use super::{Sql, Told, Value, details_text, tags::set_tags};
use crate::{
    codes::LinkId,
    links::{Draft, NewLink, Slug, Tag},
    store::{InsertedFull, NamedLink, Same, StoreError},
};

/// Stores a link under a number that was claimed; or finds the one that the same was asked for before.
pub(in crate::store) async fn insert_full<S: Sql>(
    sql: &mut S,
    NewLink { id, draft }: &NewLink,
    tags: &[Tag],
    same: Option<&Same>,
) -> Result<InsertedFull, StoreError> {
    let Some(at) = insert_link(sql, *id, draft).await? else { return Ok(InsertedFull::Taken) };
    if let Some(same) = same
        && let Some(other) = agree(sql, *id, same).await?
    {
        // The row goes again, within the transaction: its number was never anybody's.
        sql.query("DELETE FROM link WHERE id = $1", &[Value::Int(id.get())]).await?;
        return Ok(InsertedFull::Same(other));
    }
    set_tags(sql, *id, tags).await?;
    Ok(InsertedFull::Stored(at))
}

/// The link that was stored before for the same wish, if it lives; else this one takes its place. Each who asks renews it. Of those who ask
/// at the same time one is first, and the others wait for its COMMIT.
async fn agree<S: Sql>(sql: &mut S, id: LinkId, same: &Same) -> Result<Option<LinkId>, StoreError> {
    let (now, until) = (S::DIALECT.now(), S::DIALECT.now_plus("$3"));
    let renew = format!(
        "INSERT INTO dedupe (digest, link_id, expires_at) VALUES ($1, $2, {until})
         ON CONFLICT (digest) DO UPDATE SET expires_at = excluded.expires_at,
             link_id = CASE WHEN dedupe.expires_at > {now} THEN dedupe.link_id ELSE excluded.link_id END
         RETURNING link_id"
    );
    let lifetime = i64::try_from(same.lifetime.as_millis()).unwrap_or(i64::MAX);
    let values = [Value::Text(same.digest.clone()), Value::Int(id.get()), Value::Int(lifetime)];
    let rows = sql.query(&renew, &values).await?;
    let found = LinkId::from_stored(rows.first().ok_or_else(|| corrupt("nothing was agreed on"))?.int(0)?);
    if found == id {
        return Ok(None);
    }
    let alive = "SELECT id FROM link WHERE id = $1 AND details->>'deletedAt' IS NULL";
    if !sql.query(alive, &[Value::Int(found.get())]).await?.is_empty() {
        return Ok(Some(found));
    }
    let replace = "UPDATE dedupe SET link_id = $1 WHERE digest = $2";
    sql.query(replace, &[Value::Int(id.get()), Value::Text(same.digest.clone())]).await?;
    Ok(None)
}

/// Stores a link under a hand-picked code; none when somebody has it. Then the transaction is to be rolled back.
pub(in crate::store) async fn insert_named<S: Sql>(
    sql: &mut S,
    link: &NamedLink,
    tags: &[Tag],
) -> Result<Option<(LinkId, Timestamp)>, StoreError> {
    let NamedLink { slug, mintable, draft } = link;
    let placed = match *mintable {
        Some(id) => match insert_link(sql, id, draft).await? {
            Some(at) => {
                let pick = "INSERT INTO picked (id) VALUES ($1) ON CONFLICT (id) DO NOTHING";
                sql.query(pick, &[Value::Int(id.get())]).await?;
                Some((id, at))
            }
            None => revive(sql, id, slug, draft).await?.map(|at| (id, at)),
        },
        None => insert_slug(sql, slug, draft).await?,
    };
    let Some((id, at)) = placed else { return Ok(None) };
    set_tags(sql, id, tags).await?;
    sql.tell(if mintable.is_some() { Told::Picked(id) } else { Told::Changed(id) }).await?;
    Ok(Some((id, at)))
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

/// Gives the code of a deleted link to a new one. Only what a person picked may be picked again: a minted code stays with its link.
async fn revive<S: Sql>(
    sql: &mut S,
    id: LinkId,
    slug: &Slug,
    draft: &Draft,
) -> Result<Option<Timestamp>, StoreError> {
    let (details, now) = (S::DIALECT.json("$6"), S::DIALECT.now());
    let update = format!(
        "UPDATE link SET long_url = $1, title = $2, crawlable = $3, forward_query = $4, created_by = $5,
                details = {details}, created_at = {now}
         WHERE id = $7 AND details->>'deletedAt' IS NOT NULL AND details->>'slug' = $8 RETURNING created_at"
    );
    let mut values = values(id, draft)?.to_vec();
    values.push(Value::Text(slug.to_string()));
    let rows = sql.query(&update, &values).await?;
    rows.first().map(|row| row.time(0)).transpose()
}

async fn insert_slug<S: Sql>(
    sql: &mut S,
    slug: &Slug,
    draft: &Draft,
) -> Result<Option<(LinkId, Timestamp)>, StoreError> {
    let next = S::DIALECT.next_slug_link_id();
    let drawn = sql.query(next, &[]).await?;
    let id = LinkId::from_stored(drawn.first().ok_or_else(|| corrupt("no next id"))?.int(0)?);
    // First the slug: whoever else takes it waits here, and writes nothing more.
    let take = "INSERT INTO slug (domain_id, slug, link_id) VALUES ($1, $2, $3)
                ON CONFLICT (domain_id, slug) DO NOTHING RETURNING link_id";
    let values = [Value::Int(DEFAULT_DOMAIN), Value::Text(slug.to_string()), Value::Int(id.get())];
    if sql.query(take, &values).await?.is_empty() {
        return Ok(None);
    }
    let at = insert_link(sql, id, draft).await?.ok_or_else(|| corrupt("the next id is taken"))?;
    Ok(Some((id, at)))
}

fn corrupt(what: &str) -> StoreError {
    StoreError::Corrupt(format!("hand-picked codes: {what}"))
}

/// The domain that --public-url names.
const DEFAULT_DOMAIN: i64 = 0;

/// The link of a slug that could not have been minted.
pub(in crate::store) async fn find_slug<S: Sql>(
    sql: &mut S,
    slug: &str,
) -> Result<Option<LinkId>, StoreError> {
    let find = "SELECT link_id FROM slug WHERE domain_id = $1 AND slug = $2";
    let rows = sql.query(find, &[Value::Int(DEFAULT_DOMAIN), Value::Text(slug.to_owned())]).await?;
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
