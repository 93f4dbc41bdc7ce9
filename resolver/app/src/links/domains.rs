//! Lists, adds, edits and removes domains, and guards links against leading to themselves.
//!
//! A key that is limited to a domain does not learn of others. A key that is limited to its own
//! links sees only the domains of those links, since names of domains reveal other tenants, and not
//! where the fallbacks of these domains lead.

use links::{
    Authority, Domain, DomainEdit, DomainId, DomainSettings, LongUrl, LongUrlError, Redirects,
    api_key::Grant, scope::Scope,
};
use store::{DomainEdited, DomainRemoved};

use crate::{
    Answer, AppError, Field, LinkService,
    authorize::{require, require_operator},
};

/// A domain with its name.
#[derive(Clone, Debug)]
pub struct NamedDomain {
    /// The authority.
    pub name: String,
    /// Whether it is the default domain.
    pub is_default: bool,
    /// The settings that an operator may change.
    pub settings: DomainSettings,
}

impl LinkService {
    /// Returns the domains that a key may know of, the default one first: those with links or with
    /// settings. With `all`, an operator sees the other domains too, which count towards
    /// `--limit domains`.
    pub async fn domains(&self, all: bool, by: &Grant) -> Result<Vec<NamedDomain>, AppError> {
        require(by, Scope::Read)?;
        let shows_all = all && require_operator(by).is_ok();
        let of = by.limits.own_links_only.then_some(by.id);
        let _turn = self.turns.queries.take(by.id).await?;
        let used = if shows_all { Vec::new() } else { self.store.domains_with_links(of).await? };
        let entries = self.domain_cache.entries();
        let is_shown = |domain: &Domain| match (by.limits.domain, of) {
            _ if shows_all => true,
            (Some(own), _) if own != domain.id => false,
            (_, Some(_)) => used.contains(&domain.id),
            (Some(_), None) => true,
            (None, None) => used.contains(&domain.id) || domain.settings != DomainSettings::default(),
        };
        let shows_default = by.limits.domain.is_none_or(|own| own.is_default());
        let default = || self.named(&entries.default);
        let mut domains: Vec<NamedDomain> = shows_default.then(default).flatten().into_iter().collect();
        // The default domain shadows a row with its name.
        let is_default = |domain: &Domain| self.domain_cache.settled(domain.id).is_default();
        let others = entries.others().into_iter().filter(|domain| is_shown(domain) && !is_default(domain));
        domains.extend(others.filter_map(|domain| self.named(domain)));
        if of.is_some() {
            // They are the other tenants', or the operator's.
            for domain in &mut domains {
                domain.settings.redirects = Redirects::default();
                domain.settings.expired_url = None;
            }
        }
        Ok(domains)
    }

    /// Finds a domain that a key may know of. As in Shlink, every key knows the default domain.
    pub async fn find_domain(&self, name: &str, by: &Grant) -> Result<DomainId, AppError> {
        let found = self.domain_cache.find(name).await?;
        match found {
            Some(id) if id.is_default() || self.is_domain_shown_to(id, by).await? => Ok(id),
            _ => Err(no_domain(name)),
        }
    }

    async fn is_domain_shown_to(&self, id: DomainId, by: &Grant) -> Result<bool, AppError> {
        if !may_reach(id, by) {
            return Ok(false);
        }
        if !by.limits.own_links_only {
            return Ok(true);
        }
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.store.domains_with_links(Some(by.id)).await?.contains(&id))
    }

    /// Edits the fallback targets of a domain, where visitors are redirected if no link matches.
    /// `name` is `None` for the default domain. As in Shlink, an unknown domain is added.
    pub fn edit_domain_redirects<'a>(
        &'a self,
        name: Option<Authority>,
        edit: &'a DomainEdit,
        by: &'a Grant,
    ) -> Answer<'a, Domain> {
        Box::pin(async move {
            may_change_domains(by)?;
            // Before an unknown domain is added.
            let served_by = name.as_ref().map_or(self.domain_cache.default_name(), Authority::as_str);
            self.check_fallback_hosts(served_by, edit)?;
            let id = match name {
                None => DomainId::DEFAULT,
                // A key that is limited to one domain must not add others.
                Some(name) if by.limits.domain.is_some() => self.find_to_change(name.as_str(), by).await?,
                Some(name) => self.find_or_add_domain(&name, by).await?,
            };
            self.change_domain(id, edit, by).await
        })
    }

    /// Edits the other settings of a domain.
    pub async fn edit_domain(
        &self,
        name: &str,
        edit: &DomainEdit,
        by: &Grant,
    ) -> Result<NamedDomain, AppError> {
        may_change_domains(by)?;
        let id = self.find_to_change(name, by).await?;
        // An operator may have disabled the domain; its owner must not enable it again.
        let is_off = self.domain_cache.entries().domain(id).is_some_and(|domain| domain.settings.disabled);
        let enables = is_off && edit.disabled == Some(false);
        if by.limits.hides_links() && (edit.authority.is_some() || enables) {
            return Err(AppError::LimitedKey);
        }
        if id.is_default() && (edit.authority.is_some() || edit.protocol.is_some()) {
            let expected = "cannot be changed here: --public-url names the default domain";
            let field = if edit.authority.is_some() { Field::Domain.name() } else { "protocol" };
            return Err(AppError::invalid(field, expected));
        }
        let served_by = if id.is_default() { self.domain_cache.default_name() } else { name };
        self.check_fallback_hosts(edit.authority.as_ref().map_or(served_by, Authority::as_str), edit)?;
        if let Some(Some(url)) = &edit.expired_url
            && self.domain_cache.slug_at(url, id).is_some()
        {
            // It may end in its turn, and would lead to itself.
            let error = LongUrlError::OwnDomain.to_string();
            return Err(AppError::invalid(Field::ExpiredUrl.name(), error));
        }
        let domain = self.change_domain(id, edit, by).await?;
        self.named(&domain).ok_or_else(|| no_domain(name))
    }

    /// Removes a domain that has neither links nor keys limited to it.
    pub async fn remove_domain(&self, name: &str, by: &Grant) -> Result<(), AppError> {
        require_operator(by)?;
        let in_use = |reason| AppError::DomainInUse { name: name.to_owned(), reason };
        let id = self.domain_cache.find(name).await?.ok_or_else(|| no_domain(name))?;
        if id.is_default() {
            return Err(in_use("it is the one that --public-url names."));
        }
        let _turn = self.turns.writes.take(by.id).await?;
        match self.store.remove_domain(id, by.id).await? {
            DomainRemoved::Done => {
                self.domain_cache.show().await;
                Ok(())
            }
            DomainRemoved::Absent => Err(no_domain(name)),
            DomainRemoved::HasLinks => {
                Err(in_use("it has links. Delete them first; blocked ones have to be unblocked before."))
            }
            DomainRemoved::HasKeys => Err(in_use("API keys are limited to it. Revoke them first.")),
        }
    }

    /// Finds a domain that a key may change. For a key of another domain, it is as if the domain
    /// did not exist. Later checks have other errors, which would reveal that it does.
    async fn find_to_change(&self, name: &str, by: &Grant) -> Result<DomainId, AppError> {
        let found = self.domain_cache.find(name).await?;
        found.filter(|id| may_reach(*id, by)).ok_or_else(|| no_domain(name))
    }

    async fn change_domain(&self, id: DomainId, edit: &DomainEdit, by: &Grant) -> Result<Domain, AppError> {
        let domain_cache = &self.domain_cache;
        let name = || domain_cache.shown_name(id).unwrap_or_else(|| domain_cache.default_name().to_owned());
        if !may_reach(id, by) {
            return Err(no_domain(&name()));
        }
        let taken = |name: &Authority| AppError::DomainTaken(name.to_string());
        if let Some(new) = edit.authority.as_ref().filter(|new| domain_cache.is_default_name(new.as_str())) {
            return Err(taken(new));
        }
        let _turn = self.turns.writes.take(by.id).await?;
        match self.store.edit_domain(id, edit, by.id).await? {
            DomainEdited::Done(domain) => {
                domain_cache.show().await;
                Ok(*domain)
            }
            DomainEdited::Absent => Err(no_domain(&name())),
            DomainEdited::Taken => Err(edit.authority.as_ref().map_or(AppError::Internal, taken)),
        }
    }

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
        // Another create may have added it during the wait: a call for many links waits with all.
        if let Some(id) = self.domain_cache.find_for_link(name.as_str()).await? {
            return Ok(id);
        }
        self.domain_cache.add(name, by.id).await?.ok_or(AppError::TooManyDomains(most))
    }

    /// Rejects URLs of this field that are the short URL of this name on this domain. Longer
    /// cycles, over links of other domains, end in the browser.
    pub(crate) fn refuse_circle<'a>(
        &self,
        field: Field,
        urls: impl IntoIterator<Item = &'a LongUrl>,
        domain: DomainId,
        name: &str,
    ) -> Result<(), AppError> {
        let is_itself = urls.into_iter().any(|url| self.domain_cache.is_short_url(url, domain, name));
        if !is_itself {
            return Ok(());
        }
        Err(AppError::invalid(field.name(), LongUrlError::Itself.to_string()))
    }

    /// Returns a domain with its name; `None` for a domain that was removed and has no name.
    fn named(&self, domain: &Domain) -> Option<NamedDomain> {
        let is_default = domain.id.is_default();
        let name = match &domain.authority {
            _ if is_default => self.domain_cache.default_name(),
            Some(authority) => authority.as_str(),
            None => return None,
        };
        Some(NamedDomain { name: name.to_owned(), is_default, settings: domain.settings.clone() })
    }
}

/// Requires an administrator's key that sees all links of its domain, because a change of a domain
/// affects the links of other keys.
fn may_change_domains(by: &Grant) -> Result<(), AppError> {
    require(by, Scope::Admin)?;
    if by.limits.own_links_only { Err(AppError::LimitedKey) } else { Ok(()) }
}

/// Returns whether the key is limited to this domain, or to none.
fn may_reach(id: DomainId, by: &Grant) -> bool {
    by.limits.domain.is_none_or(|own| own == id)
}

fn no_domain(name: &str) -> AppError {
    AppError::NoDomain(name.to_owned())
}
