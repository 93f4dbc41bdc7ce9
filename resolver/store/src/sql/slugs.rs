//! The table of slugs: which link a hand-picked code leads to on a domain. On a domain other than
//! the default one, minted codes have an entry as well. On the default domain a mintable code has
//! one only after the link of its number left it (`links/src/lifecycle.rs`, `leaves_code`).

use std::collections::HashMap;

use codes::LinkId;
use links::{DomainId, Link, Slug, slug_spellings};

use super::{
    Row, Sql, Value,
    details::{DELETED_AT, IS_ON_DEFAULT_DOMAIN, SLUG},
    edits::lock,
    keyspaces::keyspaces,
};
use crate::{NamedIds, Result};

/// SQL query for the link of a slug. On the default domain a slug that can be minted is stored only
/// if the link of its number was picked and left it; on other domains, all codes are.
const FIND_SLUG: &str = "SELECT link_id FROM slug WHERE domain_id = $1 AND slug = $2";

pub(crate) async fn find_slug(sql: &mut dyn Sql, domain: DomainId, slug: &str) -> Result<Option<LinkId>> {
    for spelling in slug_spellings(slug) {
        let values = [Value::Int(domain.get()), Value::Text(spelling.into_owned())];
        if let Some(row) = sql.first(FIND_SLUG, &values).await? {
            return Ok(Some(LinkId::from_stored(row.int(0)?)));
        }
    }
    Ok(None)
}

/// SQL query of Postgres for the links of slugs, each on its domain, as [`FIND_SLUG`] is for one.
/// Visitors wait for it, so a dedicated connection has it prepared. `OFFSET 0` keeps it from
/// becoming a join: it is a look into the index for each slug. With conditions on two arrays, a
/// plan that was made while there were few slugs would read all slugs of a domain later.
pub(crate) const FIND_SLUGS: &str = "
    SELECT found.domain_id, found.slug, found.link_id
    FROM unnest($1::bigint[], $2::text[]) AS place (domain_id, slug)
    CROSS JOIN LATERAL (
        SELECT slug.domain_id, slug.slug, slug.link_id FROM slug
        WHERE slug.domain_id = place.domain_id AND slug.slug = place.slug OFFSET 0
    ) AS found";

pub(crate) async fn find_slugs(sql: &mut dyn Sql, places: &[(DomainId, Slug)]) -> Result<NamedIds> {
    let mut ids = HashMap::new();
    for (domain, slug) in places {
        if let Some(id) = find_slug(sql, *domain, slug.as_str()).await? {
            ids.insert((*domain, slug.clone()), id);
        }
    }
    Ok(NamedIds { ids, complete: true })
}

/// Claims a code on a domain. Returns false if another link has it there in any spelling, or if the
/// domain was removed.
///
/// Minted codes of the default domain are not in the table.
pub(super) async fn take_slug(sql: &mut dyn Sql, domain: DomainId, slug: &str, id: LinkId) -> Result<bool> {
    // Of ASCII there is one spelling, for which the insert itself finds out.
    if !slug.is_ascii() && find_slug(sql, domain, slug).await?.is_some() {
        return Ok(false);
    }
    let values = [Value::Text(slug.to_owned()), Value::Int(id.get()), Value::Int(domain.get())];
    // The default domain is never removed, and a lock on its row would be shared by all creates.
    let row = if domain.is_default() {
        "VALUES (CAST($1 AS text), CAST($2 AS bigint), CAST($3 AS bigint))".to_owned()
    } else {
        let lock = sql.dialect().for_key_share();
        format!("SELECT CAST($1 AS text), CAST($2 AS bigint), id FROM domain WHERE id = $3 {lock}")
    };
    let take = format!(
        "INSERT INTO slug (slug, link_id, domain_id) {row}
         ON CONFLICT (domain_id, slug) DO NOTHING RETURNING link_id"
    );
    Ok(!sql.query(&take, &values).await?.is_empty())
}

/// Returns whether a link may have an entry for a slug on a domain. A slug that is a code of the
/// default domain belongs to its number, unless the link of that number left it. No keyspace can be
/// adopted, and that link cannot be restored, before the transaction ends.
pub(super) async fn may_have_entry(sql: &mut dyn Sql, domain: DomainId, slug: &Slug) -> Result<bool> {
    let Some(code) = slug.code_on(domain) else { return Ok(true) };
    sql.query(&sql.dialect().lock_table("keyspace", "SHARE"), &[]).await?;
    if !keyspaces(sql).await?.iter().any(|(_, keyspace)| keyspace.contains(&code)) {
        return Ok(true);
    }
    let Some(number) = number_that_was_left(sql, slug).await? else { return Ok(false) };
    Ok(lock(sql, number).await?.is_some_and(|(link, _)| link.leaves_code(slug)))
}

/// Returns the number whose deleted link was picked under a slug of the default domain.
async fn number_that_was_left(sql: &mut dyn Sql, slug: &Slug) -> Result<Option<LinkId>> {
    let select = format!(
        "SELECT {} FROM link WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = $1 AND {IS_ON_DEFAULT_DOMAIN}",
        sql.dialect().link()
    );
    let rows = sql.query(&select, &[Value::Text(slug.as_str().to_owned())]).await?;
    let links: Vec<Link> = rows.iter().map(Row::link).collect::<Result<_, _>>()?;
    Ok(links.iter().find(|link| link.leaves_code(slug)).map(|link| link.id))
}

/// Protects a domain from removal until the transaction ends. Returns false if it was removed
/// already: a caller that tried further codes there would never succeed.
pub(super) async fn keep_domain(sql: &mut dyn Sql, domain: DomainId) -> Result<bool> {
    // The default domain is never removed.
    if domain.is_default() {
        return Ok(true);
    }
    let keep = format!("SELECT id FROM domain WHERE id = $1 {}", sql.dialect().for_key_share());
    Ok(!sql.query(&keep, &[Value::Int(domain.get())]).await?.is_empty())
}

pub(super) async fn free_slug(sql: &mut dyn Sql, domain: DomainId, slug: &str, id: LinkId) -> Result<()> {
    let free = "DELETE FROM slug WHERE domain_id = $1 AND slug = $2 AND link_id = $3";
    let values = [Value::Int(domain.get()), Value::Text(slug.to_owned()), Value::Int(id.get())];
    sql.query(free, &values).await.map(drop)
}
