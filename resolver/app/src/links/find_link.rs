//! Finds a link by its code or slug.

use std::sync::Arc;

use codes::{Code, LinkId};
use links::{DomainId, Link, Record, Slug, api_key::Grant, is_catch_all, scope::Scope, slug_spellings};
use numbers::Namespace;

use crate::{Answer, AppError, Field, LinkService, authorize::require, key_names::Names};

/// The name of a link: a code or a slug, on a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkName {
    /// The code or slug.
    pub code: String,
    /// The domain's authority; `None` for the default domain.
    pub domain: Option<String>,
}

impl LinkService {
    /// Returns a link with its tags.
    pub async fn get_link(&self, name: &LinkName, by: &Grant) -> Result<Record, AppError> {
        require(by, Scope::Read)?;
        let link = self.find_link(name, by).await?;
        let _turn = self.turns.writes.take(by.id).await?;
        Ok(Record { tags: self.store.tags_of(link.id).await?, link: Link::clone(&link) })
    }

    /// Finds a link that the key sees and that is not deleted, whether or not it redirects now.
    pub async fn find_link(&self, name: &LinkName, by: &Grant) -> Result<Arc<Link>, AppError> {
        let domain = self.domain_of(name).await?;
        let found = self.domain_cache.find_named(domain, &name.code).await;
        let found = found.map_err(|_| AppError::Unavailable)?;
        found.filter(|link| !link.is_deleted() && by.sees(link)).ok_or_else(|| self.no_link(name))
    }

    /// Returns the name of the link with an id, if the key sees it and it is not deleted. Ids
    /// follow each other, so by them a key without the scope `read` could find all names.
    pub async fn name_of_id(&self, id: LinkId, by: &Grant) -> Result<LinkName, AppError> {
        require(by, Scope::Read)?;
        let found = self.lookup.read_fresh(id).await.map_err(|_| AppError::Unavailable)?;
        let seen = found.filter(|link| !link.is_deleted() && by.sees(link));
        let named = seen.and_then(|link| Some((self.lookup.name_of(&link)?, link.domain())));
        let unknown = || AppError::NoLink(LinkName { code: String::new(), domain: None });
        let (code, domain) = named.ok_or_else(unknown)?;
        Ok(LinkName { code, domain: self.domain_cache.shown_name(domain) })
    }

    /// Finds the most recently deleted link with this name, of those that the key may see.
    pub(crate) async fn find_deleted(&self, name: &LinkName, by: &Grant) -> Result<Link, AppError> {
        let missing = || self.no_link(name);
        let domain = self.domain_of(name).await?;
        if !Slug::parse(&name.code).is_ok_and(|slug| slug.as_str() == name.code) {
            return Err(missing());
        }
        let _turn = self.turns.queries.take(by.id).await?;
        let of = by.limits.own_links_only.then_some(by.id);
        let code = self.lookup.id_of(&name.code);
        for spelling in slug_spellings(&name.code) {
            if let Some(found) = self.store.find_deleted(domain, &spelling, code, of).await? {
                return Some(found).filter(|link| by.sees(link)).ok_or_else(missing);
            }
        }
        Err(missing())
    }

    /// Returns the error for a name without a link. It does not mention the default domain.
    pub fn no_link(&self, LinkName { code, domain }: &LinkName) -> AppError {
        let is_other = |name: &&String| *name != "DEFAULT" && *name != self.domain_cache.default_name();
        let domain = domain.as_ref().filter(is_other).cloned();
        AppError::NoLink(LinkName { code: code.clone(), domain })
    }

    /// Returns the error for a slug that another link has on this domain.
    pub(crate) fn slug_taken(&self, slug: &str, domain: DomainId) -> AppError {
        let domain = self.domain_cache.shown_name(domain);
        AppError::SlugTaken(LinkName { code: slug.to_owned(), domain })
    }

    /// Rejects a custom slug that a create of this key would not get now. Nothing is stored or
    /// kept, so the create may find it taken after all. On a domain that does not exist yet, every
    /// slug is free.
    pub fn check_free<'a>(&'a self, slug: &'a str, on: Option<&'a str>, by: &'a Grant) -> Answer<'a, ()> {
        Box::pin(async move {
            require(by, Scope::Create)?;
            // As in `domain_for_new_link`, the domain of the key goes first.
            let domain = match (by.limits.domain, on) {
                (Some(own), _) => Some(own),
                (None, None) => Some(DomainId::DEFAULT),
                (None, Some(name)) => self.domain_cache.find(name).await?,
            };
            let (Some(domain), Ok(slug)) = (domain, Slug::pick(slug)) else { return Ok(()) };
            let slug = self.slug_on(domain, &slug).await?;
            let named = self.domain_cache.find_named(domain, slug.as_str()).await;
            if named.map_err(|_| AppError::Unavailable)?.is_some_and(|link| !link.is_deleted()) {
                return Err(self.slug_taken(slug.as_str(), domain));
            }
            self.check_unclaimed(slug.as_str(), domain, by).await
        })
    }

    /// Rejects a new name of a link under which visitors get another one already
    /// ([`LinkService::is_claimed`]), or which a typing error makes of a printed code. The name
    /// that catches all paths is no business of a key that sees its own links only: it takes the
    /// visitors of what other keys delete, like a target of the domain, which such a key cannot set
    /// either.
    pub(crate) fn check_unclaimed<'a>(
        &'a self,
        slug: &'a str,
        domain: DomainId,
        by: &'a Grant,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            if by.limits.own_links_only && is_catch_all(slug) {
                return Err(AppError::LimitedKey);
            }
            let keyspace = self.mistyped(slug, domain);
            if keyspace.is_none() && !self.is_claimed(&format!("/{slug}"), domain, by).await? {
                return Ok(());
            }
            // A link that has the name is found before the other one. This may be a repetition of
            // the call that created it.
            let named = self.domain_cache.find_named(domain, slug).await;
            let is_there = named.map_err(|_| AppError::Unavailable)?.is_some_and(|link| !link.is_deleted());
            match keyspace {
                _ if is_there => Ok(()),
                None => Err(self.slug_taken(slug, domain)),
                Some(name) => {
                    let expected = format!(
                        "expected another name: a typing error makes this one of a code of the keyspace \
                         {name}, which has a check character"
                    );
                    Err(AppError::invalid(Field::CustomSlug.name(), expected))
                }
            }
        })
    }

    /// Returns the keyspace with check characters from whose codes a typing error makes this name
    /// on a domain.
    fn mistyped(&self, slug: &str, domain: DomainId) -> Option<Namespace> {
        let code = Code::parse(slug).ok().filter(|_| domain.is_default())?;
        self.lookup.mint.mistyped(&code)
    }

    /// Rejects a prefix of codes if visitors of all paths that begin with it get another link
    /// already. The caller chooses the long URL, and so can choose a short code from its digest.
    pub(crate) fn check_unclaimed_below<'a>(
        &'a self,
        prefix: &'a str,
        domain: DomainId,
        by: &'a Grant,
    ) -> Answer<'a, ()> {
        Box::pin(async move {
            // No link has such a name.
            if !self.is_claimed(&format!("/{prefix}|"), domain, by).await? {
                return Ok(());
            }
            let expected = "expected another prefix: what begins with this one is another link's";
            Err(AppError::invalid(Field::PathPrefix.name(), expected))
        })
    }

    /// Returns whether a path leads to another tenant's link without being its name, or to one that
    /// an operator took down. A new link with the path would take the visitors of the one, and
    /// bring the other back.
    async fn is_claimed(&self, path: &str, domain: DomainId, by: &Grant) -> Result<bool, AppError> {
        let found = self.domain_cache.find_other(domain, path).await.map_err(|_| AppError::Unavailable)?;
        let is_foreign = |link: &Link| link.is_blocked() || !by.sees(link);
        Ok(found.is_some_and(|link| link.domain() == domain && is_foreign(&link)))
    }

    pub(crate) async fn domain_of(&self, name: &LinkName) -> Result<DomainId, AppError> {
        match &name.domain {
            None => Ok(DomainId::DEFAULT),
            Some(domain) => self.domain_cache.find(domain).await?.ok_or_else(|| self.no_link(name)),
        }
    }

    /// Looks up the names of the keys that created and edited these links.
    ///
    /// If the store does not answer, the links are shown without them: a committed write must not
    /// be reported as failed because a name is missing.
    pub async fn names(&self, records: &[Record]) -> Names {
        let links = records.iter().map(|record| &record.link);
        self.key_names.of_links(&*self.store, links).await.unwrap_or_else(|error| {
            tracing::warn!(error = &error as &dyn std::error::Error, "look up names of API keys");
            Names::default()
        })
    }

    /// Looks up the names of the keys that created and edited a link, for the answer to this key. A
    /// link that no other key has touched needs no query.
    pub async fn names_for(&self, record: &Record, by: &Grant) -> Names {
        if record.is_only_of(by.id) {
            return Names::only(by.id, &by.name);
        }
        self.names(std::slice::from_ref(record)).await
    }
}
