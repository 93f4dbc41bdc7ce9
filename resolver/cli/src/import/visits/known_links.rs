//! The links here that visits of another system belong to.

use std::{collections::HashMap, sync::Arc};

use codes::{LinkId, Mint};
use links::{Authority, DomainId, Link, Slug};
use store::{SharedSettings, Store, StoreError};

/// Maximum number of cached links. The cache is emptied when it is full.
const REMEMBERED: usize = 100_000;

/// A link and its domain.
pub(super) type FoundLink = (LinkId, DomainId);

pub(super) struct KnownLinks {
    store: Arc<dyn Store>,
    mint: Arc<Mint>,
    domains: HashMap<String, DomainId>,
    found: HashMap<(DomainId, Slug), Option<LinkId>>,
}

impl KnownLinks {
    /// `default_domains` of the other system are the default domain here.
    pub(super) fn new(
        store: Arc<dyn Store>,
        mint: Arc<Mint>,
        settings: &SharedSettings,
        default_domains: &[String],
    ) -> Self {
        let own = settings.domains.iter().filter_map(|domain| {
            let name = domain.authority.as_ref().map(|name| name.as_str().to_owned())?;
            Some((name, domain.id))
        });
        let defaults = default_domains.iter().map(|name| (name.to_lowercase(), DomainId::DEFAULT));
        Self { store, mint, domains: own.chain(defaults).collect(), found: HashMap::new() }
    }

    /// Returns the link that has a code on a domain of the other system, by its exact name.
    pub(super) async fn find(
        &mut self,
        domain: Option<&str>,
        code: &str,
    ) -> Result<Option<FoundLink>, StoreError> {
        // What is no slug names no link, and may be long.
        let (Some(domain), Ok(slug)) = (self.domain(domain), Slug::parse(code)) else { return Ok(None) };
        let key = (domain, slug);
        let found = match self.found.get(&key) {
            Some(found) => *found,
            None => {
                let found = self.read(domain, &key.1).await?;
                if self.found.len() >= REMEMBERED {
                    self.found.clear();
                }
                self.found.insert(key, found);
                found
            }
        };
        Ok(found.map(|link| (link, domain)))
    }

    fn domain(&self, name: Option<&str>) -> Option<DomainId> {
        let Some(name) = name else { return Some(DomainId::DEFAULT) };
        let lower = name.to_lowercase();
        let parsed = || Authority::parse(&lower).ok();
        let found = self.domains.get(&lower).copied();
        found.or_else(|| self.domains.get(parsed()?.as_str()).copied())
    }

    async fn read(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        let entry = self.store.find_slug(domain, slug).await?;
        let minted = slug.code_on(domain).and_then(|code| self.mint.read(&code));
        let ids: Vec<LinkId> = minted.into_iter().chain(entry).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let is_meant = |link: &Link| {
            let has_name = Some(link.id) == entry || link.is_named_by_id();
            has_name && !link.is_deleted() && link.domain() == domain
        };
        Ok(self.store.plain_links(&ids).await?.into_iter().find(is_meant).map(|link| link.id))
    }
}
