//! Finds an existing link for a long URL (`findIfExists`), however it was created.
//!
//! The rules are Shlink's. Only fields that the request sets are compared, and tags have to be
//! equal if the request has any. Of several links the one with the lowest id is returned, the
//! oldest of its keyspace. Rules for fields that Shlink lacks:
//! 1. A link with a password is never found this way, nor is one with redirect rules, which may
//!    lead elsewhere.
//! 2. A disabled link is found only by a request for a disabled link. If the request sets a status,
//!    what a path behind the name does, or a URL for after its end, the link must have the same.
//! 3. A key finds only links within its limits, and without the scope `read` only its own.

use std::sync::Arc;

use links::{Draft, Link, Record, Tag, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, LinkService,
    authorize::visible,
    creator::{CodeChoice, CreateOptions},
};

/// Maximum number of links of one URL that are compared with a request. Each may have hundreds of
/// kilobytes of rules.
const COMPARED_MAX: usize = 32;

impl LinkService {
    /// Finds a link that answers the request: the one under its custom slug, or any for its URL.
    pub(crate) fn find_existing<'a>(
        &'a self,
        draft: &'a Draft,
        options: &'a CreateOptions,
        by: &'a Grant,
    ) -> Answer<'a, Option<Record>> {
        Box::pin(async move {
            let found = match &options.code {
                CodeChoice::CustomSlug(slug) => {
                    self.find_under_slug(slug.as_str(), draft, &options.tags, by).await?
                }
                _ => self.find_for_url(draft, options, by).await?,
            };
            if let Some(found) = &found {
                self.lookup.wait_until_shown(found.link.id).await;
            }
            Ok(found)
        })
    }

    async fn find_for_url(
        &self,
        draft: &Draft,
        options: &CreateOptions,
        by: &Grant,
    ) -> Result<Option<Record>, AppError> {
        let mut of = visible(by);
        if !by.scopes.allow(Scope::Read) {
            of.created_by = Some(by.id);
        }
        let _turn = self.turns.queries.take(by.id).await?;
        let found = self.store.links_of_url(&draft.long_url, &of, COMPARED_MAX).await?;
        let answers = |Record { link, tags }: &Record| {
            is_wanted(draft, link, by)
                && draft.details().domain.is_none_or(|domain| link.domain() == domain)
                && has_tags(&options.tags, tags)
                && self.has_code(&options.code, link)
        };
        Ok(found.into_iter().find(answers))
    }

    async fn find_under_slug(
        &self,
        slug: &str,
        draft: &Draft,
        tags: &[Tag],
        by: &Grant,
    ) -> Result<Option<Record>, AppError> {
        let found = self.lookup.find_named(draft.domain(), slug).await;
        let answers = |link: &Arc<Link>| {
            is_wanted(draft, link, by)
                && !link.is_deleted()
                && link.long_url == draft.long_url
                && link.domain() == draft.domain()
        };
        let Some(link) = found.map_err(|_| AppError::Unavailable)?.filter(&answers) else { return Ok(None) };
        // The cached copy may not reflect a recent edit, move, new name or deletion yet.
        let fresh = self.lookup.read_fresh(link.id).await.map_err(|_| AppError::Unavailable)?;
        let still = |fresh: &Arc<Link>| answers(fresh) && fresh.slug() == link.slug();
        let Some(link) = fresh.filter(still) else { return Ok(None) };
        let _turn = self.turns.writes.take(by.id).await?;
        let has = self.store.tags_of(link.id).await?;
        Ok(has_tags(tags, &has).then(|| Record { link: Link::clone(&link), tags: has }))
    }

    /// Returns whether a link's code is of the requested kind: its keyspace and prefix are
    /// compared. As in Shlink, the length is not.
    fn has_code(&self, code: &CodeChoice, link: &Link) -> bool {
        match code {
            CodeChoice::In(index) => link.id.unpack().is_some_and(|(keyspace, _)| keyspace == *index),
            CodeChoice::Digest { prefix, .. } if !prefix.is_empty() => {
                self.lookup.name_of(link).is_some_and(|name| name.starts_with(prefix.as_str()))
            }
            _ => true,
        }
    }
}

/// Returns whether the key may be given a link, which has the requested limits and redirects in the
/// requested way: enabled or not, with the requested status, treatment of paths and URL for after
/// its end if there are any, and without password and rules.
fn is_wanted(draft: &Draft, link: &Link, by: &Grant) -> bool {
    let (wanted, has) = (draft.details(), link.details());
    by.may_be_given(link)
        && !link.is_blocked()
        && wanted.valid_since.is_none_or(|time| has.valid_since == Some(time))
        && wanted.valid_until.is_none_or(|time| has.valid_until == Some(time))
        && wanted.max_visits.is_none_or(|count| has.max_visits == Some(count))
        && wanted.disabled == has.disabled
        && wanted.status.is_none_or(|_| has.status == wanted.status)
        && wanted.extra_path.is_none_or(|_| has.extra_path == wanted.extra_path)
        && (wanted.expired_url.is_none() || has.expired_url == wanted.expired_url)
        && has.password.is_none()
        && has.rules.is_empty()
}

fn has_tags(wanted: &[Tag], has: &[Tag]) -> bool {
    wanted.is_empty() || wanted.len() == has.len() && wanted.iter().all(|tag| has.contains(tag))
}
