//! The domain of a link: found or added for a new one, and guarded against circles.

use links::{Authority, DomainId, LongUrl, LongUrlError, api_key::Grant, scope::Scope};

use super::{AppError, Field, LinkService};

impl LinkService {
    /// Returns the domain of a new link; `None` for the default one. A key that is limited to a
    /// domain makes links of that one, whatever was asked for.
    pub(super) async fn domain_for_new_link(
        &self,
        asked: Option<Authority>,
        by: &Grant,
    ) -> Result<Option<DomainId>, AppError> {
        let domain = match (by.limits.domain, asked) {
            (Some(own), _) => own,
            (None, None) => DomainId::DEFAULT,
            (None, Some(name)) => Box::pin(self.find_or_add_domain(&name, by)).await?,
        };
        Ok(Some(domain).filter(|domain| !domain.is_default()))
    }

    /// Finds a domain by its name, and adds it if there is none and the key may add domains.
    pub async fn find_or_add_domain(&self, name: &Authority, by: &Grant) -> Result<DomainId, AppError> {
        if let Some(id) = self.directory.find_for_link(name.as_str()).await? {
            return Ok(id);
        }
        if !by.scopes.allow(Scope::Domains) {
            return Err(AppError::MayNotAddDomain { name: name.to_string() });
        }
        let most = self.directory.domains_max();
        let _turn = self.turns.write(by.id).await?;
        self.directory.add(name, by.id).await?.ok_or(AppError::TooManyDomains { most })
    }

    /// Refuses URLs that are the short URL of this name on this domain. Longer circles, over links
    /// of other domains, end in the browser.
    pub(super) fn refuse_circle<'a>(
        &self,
        urls: impl IntoIterator<Item = &'a LongUrl>,
        domain: DomainId,
        name: &str,
    ) -> Result<(), AppError> {
        let is_itself = urls.into_iter().any(|url| self.directory.is_short_url(url, domain, name));
        if !is_itself {
            return Ok(());
        }
        Err(AppError::invalid(Field::LongUrl.name(), LongUrlError::Itself.to_string()))
    }
}
