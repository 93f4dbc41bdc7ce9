//! The domain of a link: found or added for a new link, and guarded against links to themselves.

use links::{Authority, DomainId, LongUrl, LongUrlError, api_key::Grant, scope::Scope};

use crate::{AppError, Field, LinkService};

impl LinkService {
    /// Returns the domain of a new link; `None` for the default domain. A key that is limited to a
    /// domain creates links on that domain, whatever was requested.
    pub(crate) async fn domain_for_new_link(
        &self,
        asked: Option<Authority>,
        by: &Grant,
    ) -> Result<Option<DomainId>, AppError> {
        let domain = match (by.limits.domain, asked) {
            (Some(own), _) => own,
            (None, None) => DomainId::DEFAULT,
            (None, Some(name)) => self.find_or_add_domain(&name, by).await?,
        };
        Ok(Some(domain).filter(|domain| !domain.is_default()))
    }

    /// Finds a domain by its name, or adds it if it does not exist and the key may add domains.
    pub async fn find_or_add_domain(&self, name: &Authority, by: &Grant) -> Result<DomainId, AppError> {
        if let Some(id) = self.domain_cache.find_for_link(name.as_str()).await? {
            return Ok(id);
        }
        if !by.scopes.allow(Scope::Domains) {
            return Err(AppError::MayNotAddDomain(name.to_string()));
        }
        let most = self.domain_cache.config.policy.domains_max;
        let _turn = self.turns.writes.take(by.id).await?;
        self.domain_cache.add(name, by.id).await?.ok_or(AppError::TooManyDomains(most))
    }

    /// Rejects URLs that are the short URL of this name on this domain. Longer cycles, over links
    /// of other domains, end in the browser.
    pub(crate) fn refuse_circle<'a>(
        &self,
        urls: impl IntoIterator<Item = &'a LongUrl>,
        domain: DomainId,
        name: &str,
    ) -> Result<(), AppError> {
        let is_itself = urls.into_iter().any(|url| self.domain_cache.is_short_url(url, domain, name));
        if !is_itself {
            return Ok(());
        }
        Err(AppError::invalid(Field::LongUrl.name(), LongUrlError::Itself.to_string()))
    }
}
