//! Bringing deleted links back: their rows stay (I7), and so does what was said of them.

use codes::{Code, LinkId};
use jiff::Timestamp;
use links::{
    DomainId, Edit, Link, Meant, Record,
    api_key::ApiKeyId,
    audit::{Action, state},
};

use super::{
    Sql, Told, Value,
    audit::note,
    edits::{lock, write},
    named::{find_slug, keep_domain, same_keyspaces, take_slug},
    sweep::note_arrived,
    tags::set_tags,
};
use crate::{Restored, StoreError};

/// The link that was deleted last under a name: a slug, or a code whose number is `code`.
pub(crate) async fn find_deleted<S: Sql>(
    sql: &mut S,
    domain: DomainId,
    name: &str,
    code: Option<LinkId>,
) -> Result<Option<Link>, StoreError> {
    let link = S::DIALECT.link();
    // A slug's deleted links are told from minted ones by their slug: a number has one link at most.
    let find = format!(
        "SELECT {link} FROM link
         WHERE details->>'deletedAt' IS NOT NULL AND coalesce(CAST(details->>'domain' AS bigint), 0) = $1
           AND (details->>'slug' = $2 OR (details->>'slug' IS NULL AND id = $3))
         ORDER BY CAST(details->>'deletedAt' AS bigint) DESC LIMIT 1"
    );
    // No link has the number -1.
    let code = code.map_or(-1, LinkId::get);
    let values = [Value::Int(domain.get()), Value::Text(name.to_owned()), Value::Int(code)];
    let rows = sql.query(&find, &values).await?;
    rows.first().map(super::Row::link).transpose()
}

/// Brings a deleted link back, unless another link has its slug by now or its domain was removed.
/// `keyspaces` is how many the caller knows of, who has seen that its slug is no code of theirs.
pub(crate) async fn restore<S: Sql>(
    sql: &mut S,
    id: LinkId,
    meant: &Meant,
    keyspaces: usize,
    by: ApiKeyId,
) -> Result<Restored, StoreError> {
    let is_meant = |(link, _): &(Link, Timestamp)| link.is_deleted() && meant.is_of(link);
    let Some((link, now)) = lock(sql, id).await?.filter(is_meant) else {
        return Ok(Restored::Absent);
    };
    if !keep_domain(sql, link.domain()).await? {
        return Ok(Restored::Absent);
    }
    let mut link = Edit::default().apply(link, now, by);
    let mut tags = Vec::new();
    if let Some(details) = &mut link.details {
        details.deleted_at = None;
        tags = std::mem::take(&mut details.deleted_tags);
    }
    // A slug that could have been minted is its number's, and has no row of its own on the default domain.
    if let Some(slug) = link.slug().filter(|_| id.unpack().is_none()) {
        if link.domain().is_default() && Code::parse(slug.as_str()).is_ok() {
            same_keyspaces(sql, keyspaces).await?;
        }
        // A link that was taken down holds its slug already.
        let is_held = link.is_blocked() && find_slug(sql, link.domain(), slug.as_str()).await? == Some(id);
        if !is_held && !take_slug(sql, link.domain(), slug.as_str(), id).await? {
            return Ok(Restored::Taken);
        }
    }
    write(sql, &link).await?;
    set_tags(sql, id, &tags).await?;
    // Or the next removal of unvisited links would take it away again.
    note_arrived(sql, &mut [id]).await?;
    note(sql, by, Action::RestoreLink, &id.get().to_string(), Some(state(&link))).await?;
    sql.tell(Told::Changed(&[id])).await?;
    tags.sort_unstable();
    Ok(Restored::Done(Box::new(Record { link, tags })))
}
