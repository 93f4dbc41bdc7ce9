//! Batches of new links with custom slugs, tags or domains: one transaction for each.
//!
//! 1. A batch stores the links that nothing is in the way of. What became of any other link is not
//!    decided here: it is reported as not stored, with nothing of it left behind, and a create of
//!    its own decides ([`insert_full`], [`insert_with_slug`]). So all rules of those hold.
//! 2. On SQLite, which has no round trips to save, each link is such a create within the batch's
//!    transaction. On Postgres a batch is about a dozen statements. On nodes of Citus it stores
//!    nothing: what belongs to a link is on one node there, and its name is not.
//! 3. Locks are taken in the order of single creates: domains, keyspaces, names, rows of links,
//!    tags; those of each kind are sorted, but for tags that are new. So a batch hardly ever
//!    deadlocks with others, and is repeated if it does, as with an import
//!    ([`Database::run_insert`](crate::Database::run_insert)).
//! 4. The version of a link continues those of the links that had its slug before. These are read
//!    by a statement of its own, after the slug was claimed: only then are they all committed.
//! 5. Imports store most of their links by the same statements ([`insert_imported`]), within a
//!    transaction that adds all else ([`import`](super::import)).

use std::collections::{BTreeSet, HashMap};

use codes::LinkId;
use jiff::Timestamp;
use links::{Details, DomainId, Draft, Link, PickedCode, Slug, Tag};

use super::{
    Dialect, Notice, Sql, Value,
    blocks::reservation_of,
    create::{former_of, insert_full, insert_with_slug, same_keyspaces},
    details::{DELETED_AT, DOMAIN_OR_DEFAULT, SLUG, VERSION},
    details_text,
    import::TOLD_AT_ONCE,
    slugs::free_slug,
    tags::add_tags_to_all,
    webhooks::{record_creates, wants_creates},
};
use crate::{BatchLink, InsertedLink, Result};

/// Id, creation time and version of a stored link.
type Stored = (LinkId, Timestamp, u64);

/// Inserts links, and returns what is stored in the order of `links`. With `is_announced`, records
/// an event for each if a webhook is called for it.
pub(crate) async fn insert_together(
    sql: &mut dyn Sql,
    links: &[BatchLink],
    is_announced: bool,
) -> Result<Vec<Option<Stored>>> {
    if sql.is_distributed() {
        return Ok(vec![None; links.len()]);
    }
    match sql.dialect() {
        Dialect::Sqlite => insert_each(sql, links, is_announced).await,
        Dialect::Postgres => insert_all(sql, links, is_announced).await,
    }
}

async fn insert_each(
    sql: &mut dyn Sql,
    links: &[BatchLink],
    is_announced: bool,
) -> Result<Vec<Option<Stored>>> {
    let mut stored = Vec::with_capacity(links.len());
    for link in links {
        let inserted = match link {
            BatchLink::Minted(link, tags) => insert_full(sql, link, tags, None, is_announced).await?,
            BatchLink::Custom(link, tags) => insert_with_slug(sql, link, tags, None, is_announced).await?,
        };
        stored.push(match inserted {
            InsertedLink::Stored(id, at, version) => Some((id, at, version)),
            _ => None,
        });
    }
    Ok(stored)
}

/// A link on its way into the database.
struct Entry<'a> {
    /// Its index in the batch.
    place: usize,
    draft: &'a Draft,
    tags: &'a [Tag],
    /// The name that it gets an entry for in `slug`, with its domain. A minted code of the default
    /// domain needs none, nor does a custom slug at the number of its code.
    name: Option<(DomainId, &'a str)>,
    /// Its id; `None` before an entry has given it one.
    id: Option<LinkId>,
    /// Its custom slug.
    slug: Option<&'a Slug>,
    version: u64,
    /// The creation time that it had in another system.
    created_at: Option<Timestamp>,
    /// Its creation time, once it is stored.
    at: Option<Timestamp>,
}

impl<'a> Entry<'a> {
    fn new(place: usize, link: &'a BatchLink) -> Self {
        let (draft, tags) = (link.draft(), link.tags());
        let (domain, version) = (draft.domain(), draft.details().version);
        let (name, id, slug) = match link {
            BatchLink::Minted(link, _) => {
                let name = (!domain.is_default()).then_some((domain, link.code.as_str()));
                (name, Some(link.new.id), None)
            }
            BatchLink::Custom(link, _) => {
                let name = link.mintable.is_none().then_some((domain, link.slug.as_str()));
                (name, link.mintable, Some(&link.slug))
            }
        };
        Self { place, draft, tags, name, id, slug, version, created_at: None, at: None }
    }

    /// Makes an entry of an import, which adds the tags itself. `id` is an unused one that belongs
    /// to no minted code.
    fn imported(place: usize, link: &'a ImportedLink<'_>, id: LinkId) -> Self {
        let ImportedLink { code, draft, created_at } = link;
        let (id, name) = match code.mintable {
            Some(number) => (number, None),
            None => (id, Some((draft.domain(), code.slug.as_str()))),
        };
        let (slug, version) = (Some(&code.slug), draft.details().version);
        let created_at = *created_at;
        Self { place, draft, tags: &[], name, id: Some(id), slug, version, created_at, at: None }
    }

    /// Returns whether its name has one spelling. A slug that is not ASCII may be there in another.
    fn is_plain(&self) -> bool {
        self.slug.is_none_or(|slug| slug.as_str().is_ascii())
    }

    /// Returns the slug of a link that is stored at the number of its code.
    fn picked(&self) -> Option<&'a Slug> {
        self.slug.filter(|_| self.name.is_none())
    }

    /// Returns the link as it is stored.
    fn stored(&self) -> Option<Link> {
        let mut draft = self.draft.clone();
        if self.version > 0 {
            draft.details.get_or_insert_default().version = self.version;
        }
        Some(Link::stored(self.id?, draft, self.at?))
    }
}

async fn insert_all(
    sql: &mut dyn Sql,
    links: &[BatchLink],
    is_announced: bool,
) -> Result<Vec<Option<Stored>>> {
    let entries = links.iter().enumerate().map(|(place, link)| Entry::new(place, link));
    let mut entries: Vec<Entry<'_>> = entries.filter(Entry::is_plain).collect();
    keep_domains(sql, &mut entries).await?;
    check_keyspaces(sql, links).await?;
    insert_entries(sql, &mut entries).await?;
    let tagged: Vec<(LinkId, &[Tag])> =
        entries.iter().filter_map(|entry| Some((entry.id?, entry.tags))).collect();
    let numbers = add_tags_to_all(sql, &tagged).await?;
    if is_announced && wants_creates(sql).await? {
        let created = entries.iter().zip(numbers);
        let created = created.filter_map(|(entry, numbers)| Some((entry.stored()?, entry.tags, numbers)));
        record_creates(sql, created.collect()).await?;
    }
    notify(sql, &entries).await?;
    let mut stored = vec![None; links.len()];
    for entry in entries {
        stored[entry.place] = entry.id.zip(entry.at).map(|(id, at)| (id, at, entry.version));
    }
    Ok(stored)
}

/// A link of an import.
pub(super) struct ImportedLink<'a> {
    pub(super) code: &'a PickedCode,
    /// The link as it is stored under the code.
    pub(super) draft: Draft,
    pub(super) created_at: Option<Timestamp>,
}

/// Inserts links of an import under their codes, without tags and without notifying anyone. Returns
/// the ids of those that are stored, in the order of `links`; what becomes of any other one is not
/// decided. New ids ascend in that order, by which links with one creation time are listed. The
/// caller has checked the keyspaces. Only for Postgres without nodes.
pub(super) async fn insert_imported(
    sql: &mut dyn Sql,
    links: &[ImportedLink<'_>],
) -> Result<Vec<Option<LinkId>>> {
    let mut stored = vec![None; links.len()];
    if links.is_empty() {
        return Ok(stored);
    }
    let next = "SELECT nextval('slug_link_id') FROM generate_series(1, $1)";
    let ids = sql.query(next, &[Value::count(links.len())]).await?;
    let mut entries = Vec::with_capacity(links.len());
    for (place, (link, id)) in links.iter().zip(&ids).enumerate() {
        entries.push(Entry::imported(place, link, LinkId::from_stored(id.int(0)?)));
    }
    entries.retain(Entry::is_plain);
    keep_domains(sql, &mut entries).await?;
    insert_entries(sql, &mut entries).await?;
    for entry in entries {
        stored[entry.place] = entry.id;
    }
    Ok(stored)
}

/// Inserts links with their names, and leaves out those that have something in their way.
async fn insert_entries(sql: &mut dyn Sql, entries: &mut Vec<Entry<'_>>) -> Result<()> {
    claim_names(sql, entries).await?;
    continue_versions(sql, entries).await?;
    insert_rows(sql, entries).await
}

/// Leaves out links of domains that were removed, and protects the others' from removal until the
/// transaction ends. The default domain is never removed.
async fn keep_domains(sql: &mut dyn Sql, entries: &mut Vec<Entry<'_>>) -> Result<()> {
    let domains = entries.iter().map(|entry| entry.draft.domain());
    let domains: BTreeSet<i64> = domains.filter(|domain| !domain.is_default()).map(DomainId::get).collect();
    if domains.is_empty() {
        return Ok(());
    }
    let keep = "SELECT id FROM domain WHERE id = ANY($1) ORDER BY id FOR KEY SHARE";
    let kept = sql.query(keep, &[Value::IntArray(domains.into_iter().collect())]).await?;
    let kept: BTreeSet<i64> = kept.iter().map(|row| row.int(0)).collect::<Result<_>>()?;
    entries.retain(|entry| {
        let domain = entry.draft.domain();
        domain.is_default() || kept.contains(&domain.get())
    });
    Ok(())
}

/// Checks that no keyspace was added whose codes this process takes for slugs.
async fn check_keyspaces(sql: &mut dyn Sql, links: &[BatchLink]) -> Result<()> {
    let known = links.iter().find_map(|link| match link {
        BatchLink::Custom(link, _) if link.mintable.is_none() => {
            link.slug.code_on(link.draft.domain()).map(|_| link.keyspaces)
        }
        _ => None,
    });
    match known {
        Some(known) => same_keyspaces(sql, known).await,
        None => Ok(()),
    }
}

/// Claims the names of links, and leaves out links whose names are taken. Custom slugs get ids that
/// belong to no minted code. Of two links with one name, the first one in `links` has it.
async fn claim_names(sql: &mut dyn Sql, entries: &mut Vec<Entry<'_>>) -> Result<()> {
    entries.sort_by_key(|entry| entry.name);
    let (mut domains, mut names, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries.iter() {
        if let Some((domain, name)) = entry.name {
            domains.push(domain.get());
            names.push(Some(name.to_owned()));
            ids.push(entry.id.map_or(0, LinkId::get));
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let claim = "INSERT INTO slug (domain_id, slug, link_id)
                 SELECT new.domain_id, new.slug, coalesce(nullif(new.link_id, 0), nextval('slug_link_id'))
                 FROM unnest($1::bigint[], $2::text[], $3::bigint[]) AS new (domain_id, slug, link_id)
                 ON CONFLICT (domain_id, slug) DO NOTHING RETURNING domain_id, slug, link_id";
    let values = [Value::IntArray(domains), Value::TextArray(names), Value::IntArray(ids)];
    let rows = sql.query(claim, &values).await?;
    let mut claimed = HashMap::with_capacity(rows.len());
    for row in &rows {
        claimed.insert((DomainId::from_stored(row.int(0)?), row.text(1)?), LinkId::from_stored(row.int(2)?));
    }
    entries.retain_mut(|entry| {
        let Some(name) = entry.name else { return true };
        entry.id = claimed.remove(&name);
        entry.id.is_some()
    });
    Ok(())
}

/// Sets the versions of links whose slugs other links had before.
async fn continue_versions(sql: &mut dyn Sql, entries: &mut [Entry<'_>]) -> Result<()> {
    let custom = entries.iter().filter(|entry| entry.slug.is_some()).filter_map(|entry| entry.name);
    let (domains, slugs): (Vec<i64>, Vec<Option<String>>) =
        custom.map(|(domain, slug)| (domain.get(), Some(slug.to_owned()))).unzip();
    if slugs.is_empty() {
        return Ok(());
    }
    // An aggregate without groups is no join: it looks into the index of deleted links for each.
    let next = format!(
        "SELECT new.domain_id, new.slug, former.next
         FROM unnest($1::bigint[], $2::text[]) AS new (domain_id, slug) CROSS JOIN LATERAL (
             SELECT max(coalesce({VERSION}, 0)) + 1 AS next FROM link
             WHERE {DELETED_AT} IS NOT NULL AND {SLUG} = new.slug AND {DOMAIN_OR_DEFAULT} = new.domain_id
         ) AS former WHERE former.next IS NOT NULL"
    );
    for row in sql.query(&next, &[Value::IntArray(domains), Value::TextArray(slugs)]).await? {
        let (name, next) = ((DomainId::from_stored(row.int(0)?), row.text(1)?), row.count(2)?);
        for entry in entries.iter_mut().filter(|entry| entry.slug.is_some() && entry.name == Some(name)) {
            entry.version = entry.version.max(next);
        }
    }
    Ok(())
}

/// Inserts the rows of links, and leaves out those whose ids are taken. A link at the number of its
/// slug is also left out if that is reserved, or if a deleted link had the slug. Of two links with
/// one id, the second one is left out whatever becomes of the first: rows are told by their ids.
async fn insert_rows(sql: &mut dyn Sql, entries: &mut Vec<Entry<'_>>) -> Result<()> {
    entries.sort_by_key(|entry| entry.id);
    let mut unnamed = Vec::new();
    entries.dedup_by(|next, first| {
        let is_same = next.id == first.id;
        if is_same {
            unnamed.extend(next.name.zip(next.id));
        }
        is_same
    });
    let insert = format!(
        "INSERT INTO link (id, long_url, title, crawlable, forward_query, created_by, details, created_at)
         SELECT new.id, new.url, new.name, new.flags % 2 = 1, new.flags > 1, new.creator, new.rest::jsonb,
                coalesce(new.since, now())
         FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
                     $8::timestamptz[])
             AS new (id, url, name, flags, creator, rest, slug, since)
         WHERE new.slug IS NULL OR (NOT EXISTS ({} OFFSET 0) AND NOT EXISTS ({} OFFSET 0))
         ON CONFLICT (id) DO NOTHING RETURNING id, created_at",
        reservation_of(Dialect::Postgres, "new.id", "new.id + 1"),
        former_of("new.slug")
    );
    let mut inserted = HashMap::with_capacity(entries.len());
    if !entries.is_empty() {
        for row in sql.query(&insert, &columns(entries)?).await? {
            inserted.insert(LinkId::from_stored(row.int(0)?), row.time(1)?);
        }
    }
    entries.retain_mut(|entry| {
        entry.at = entry.id.and_then(|id| inserted.remove(&id));
        if entry.at.is_none() {
            unnamed.extend(entry.name.zip(entry.id));
        }
        entry.at.is_some()
    });
    for ((domain, name), id) in unnamed {
        free_slug(sql, domain, name, id).await?;
    }
    let picked = entries.iter().filter(|entry| entry.picked().is_some()).filter_map(|entry| entry.id);
    let picked: Vec<i64> = picked.map(LinkId::get).collect();
    if !picked.is_empty() {
        // As with a single create: for resolvers of the release before.
        let pick = "INSERT INTO picked (id) SELECT unnest($1::bigint[]) ON CONFLICT (id) DO NOTHING";
        sql.execute(pick, &[Value::IntArray(picked)]).await?;
    }
    Ok(())
}

/// Returns the columns of links for the insert of their rows.
fn columns(entries: &[Entry<'_>]) -> Result<[Value; 8]> {
    let details = |entry: &Entry<'_>| match entry.version {
        0 => details_text(entry.draft.details.as_deref()),
        version => details_text(Some(&Details { version, ..entry.draft.details().clone() })),
    };
    let drafts = || entries.iter().map(|entry| entry.draft);
    let flags = |draft: &Draft| i64::from(draft.crawlable) + 2 * i64::from(draft.forward_query);
    let slug = |entry: &Entry<'_>| entry.picked().map(|slug| slug.as_str().to_owned());
    Ok([
        Value::IntArray(entries.iter().filter_map(|entry| entry.id).map(LinkId::get).collect()),
        Value::TextArray(drafts().map(|draft| Some(draft.long_url.as_str().to_owned())).collect()),
        Value::TextArray(drafts().map(|draft| draft.title.clone()).collect()),
        Value::IntArray(drafts().map(flags).collect()),
        Value::IntArray(drafts().map(|draft| draft.created_by.0).collect()),
        Value::TextArray(entries.iter().map(details).collect::<Result<_>>()?),
        Value::TextArray(entries.iter().map(slug).collect()),
        Value::TimeArray(entries.iter().map(|entry| entry.created_at).collect()),
    ])
}

/// Notifies other resolvers of links with custom slugs, for the reasons that a single create has.
async fn notify(sql: &mut dyn Sql, entries: &[Entry<'_>]) -> Result<()> {
    let (mut picked, mut changed) = (Vec::<LinkId>::new(), Vec::<LinkId>::new());
    for entry in entries.iter().filter(|entry| entry.slug.is_some()) {
        if entry.picked().is_some() { &mut picked } else { &mut changed }.extend(entry.id);
    }
    notify_all(sql, &picked, &changed).await
}

/// Notifies other resolvers of mintable codes that were taken as custom slugs, and of other changed
/// links.
pub(super) async fn notify_all(sql: &mut dyn Sql, picked: &[LinkId], changed: &[LinkId]) -> Result<()> {
    if sql.is_distributed() || sql.dialect() == Dialect::Sqlite {
        for ids in changed.chunks(TOLD_AT_ONCE) {
            sql.notify(Notice::Changed(ids)).await?;
        }
        for id in picked {
            sql.notify(Notice::Picked(*id)).await?;
        }
        return Ok(());
    }
    let some = |ids: &[LinkId]| ids.iter().map(|id| id.get().to_string()).collect::<Vec<_>>().join(",");
    let picked = picked.iter().map(|id| format!("+{}", id.get()));
    let texts: Vec<Option<String>> = picked.chain(changed.chunks(TOLD_AT_ONCE).map(some)).map(Some).collect();
    if texts.is_empty() {
        return Ok(());
    }
    let notify = "SELECT pg_notify('shortmint_links', new.text) FROM unnest($1::text[]) AS new (text)";
    sql.execute(notify, &[Value::TextArray(texts)]).await.map(drop)
}
