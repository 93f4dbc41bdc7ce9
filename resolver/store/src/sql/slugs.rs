//! The table of slugs: which link a hand-picked code leads to on a domain. On a domain other than
//! the default one, minted codes have an entry as well.

use codes::LinkId;
use links::{DomainId, slug_spellings};

use super::{Sql, Value};
use crate::StoreError;

/// SQL query for the link of a slug. On the default domain only slugs that cannot be minted are
/// stored; on other domains, all codes. On Postgres visitors wait for it, so a dedicated connection
/// has it prepared.
pub(crate) const FIND_SLUG: &str = "SELECT link_id FROM slug WHERE domain_id = $1 AND slug = $2";

/// Returns the id of the link that a slug leads to, in the best of its spellings.
pub(crate) async fn find_slug<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    slug: &str,
) -> Result<Option<LinkId>, StoreError> {
    for spelling in slug_spellings(slug) {
        let values = [Value::Int(domain.get()), Value::Text(spelling.into_owned())];
        if let Some(row) = sql.query(FIND_SLUG, &values).await?.first() {
            return Ok(Some(LinkId::from_stored(row.int(0)?)));
        }
    }
    Ok(None)
}

/// Claims a code on a domain. Returns false if another link has it there in any spelling, or if the
/// domain was removed.
///
/// Minted codes of the default domain are not in the table.
pub(super) async fn take_slug<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    slug: &str,
    id: LinkId,
) -> Result<bool, StoreError> {
    // Of ASCII there is one spelling, for which the insert itself finds out.
    if !slug.is_ascii() && find_slug(sql, domain, slug).await?.is_some() {
        return Ok(false);
    }
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

/// Returns at most `most` ids of mintable custom slugs above `after`, ascending.
pub(crate) async fn unminted_slugs<S: Sql>(
    sql: &mut S,
    after: i64,
    most: i64,
) -> Result<Vec<LinkId>, StoreError> {
    let page = "SELECT id FROM picked WHERE id > $1 ORDER BY id LIMIT $2";
    let rows = sql.query(page, &[Value::Int(after), Value::Int(most)]).await?;
    rows.iter().map(|row| Ok(LinkId::from_stored(row.int(0)?))).collect()
}
