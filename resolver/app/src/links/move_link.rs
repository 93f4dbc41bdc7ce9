//! Moves a link to another domain, where it keeps its name.
//!
//! 1. A minted code stays with its number, so it may move anywhere and back. On another domain it
//!    may be another link's slug, and the move is refused. Where the link was, no other link gets
//!    the code: it may be in print.
//! 2. A custom slug that is a code of some keyspace cannot move to the default domain: there the
//!    code belongs to its number.
//! 3. The link's new address is acknowledged when no resolver denies it any more. Its former one
//!    may lead to it until the other resolvers are notified, as after an edit.

use links::{Authority, DomainId, Edit, Link, Record, Relocation, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkService, authorize::require, edit_link::Target,
    find_link::LinkName, values::check_kept_slug,
};

impl LinkService {
    /// Moves the link that the target names to a domain. An unknown domain is added as for a new
    /// link. The link is looked up as for an edit.
    pub fn move_link<'a>(
        &'a self,
        target: &'a Target,
        domain: Option<&'a str>,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            let named = domain.ok_or_else(|| "expected the name of a domain".to_owned());
            let named = wrong.note(Field::Domain.name(), named.and_then(|name| self.check_domain(name)));
            wrong.finish()?;
            let domain = match self.find_link(&target.name, by).await {
                // The link is found first, so that a move that is refused adds no domain.
                Ok(link) => {
                    let domain = self.domain_to_move_to(named.flatten(), by).await?;
                    if link.domain() == domain {
                        return self.get_link(&target.name, by).await;
                    }
                    domain
                }
                Err(error @ AppError::NoLink { .. }) => {
                    return self.moved_already(target, named.flatten(), by).await.ok_or(error);
                }
                Err(error) => return Err(error),
            };
            self.check_unclaimed(&target.name.code, domain, by).await?;
            let edit_for = |link: &Link| -> Result<Edit, AppError> {
                let relocation = self.relocation(link, domain);
                let relocation = relocation.ok_or_else(|| self.slug_taken(&target.name.code, domain))?;
                check_kept_slug(link)?;
                let urls = link.rules().iter().map(|rule| &rule.long_url).chain([&link.long_url]);
                self.refuse_circle(Field::LongUrl, urls, domain, &target.name.code)?;
                let expired_url = &link.details().expired_url;
                self.refuse_circle(Field::ExpiredUrl, expired_url, domain, &target.name.code)?;
                Ok(Edit { relocation: Some(relocation), ..Edit::default() })
            };
            let record = self.change_found(target, edit_for, by).await?;
            self.lookup.wait_until_shown(record.link.id).await;
            Ok(record)
        })
    }

    /// Returns the domain of a name, which is added if it does not exist. A key that is limited to
    /// a domain neither adds others nor learns which there are.
    async fn domain_to_move_to(&self, named: Option<Authority>, by: &Grant) -> Result<DomainId, AppError> {
        let Some(name) = named else {
            let may = by.limits.domain.is_none_or(DomainId::is_default);
            return if may { Ok(DomainId::DEFAULT) } else { Err(AppError::LimitedKey) };
        };
        match by.limits.domain {
            None => self.find_or_add_domain(&name, by).await,
            Some(own) if self.domain_cache.find(name.as_str()).await? == Some(own) => Ok(own),
            Some(_) => Err(AppError::LimitedKey),
        }
    }

    /// Returns the link if an earlier call, whose answer was lost, has moved it already. Only the
    /// code of its number proves that: a custom slug there may be another link's.
    async fn moved_already(&self, target: &Target, named: Option<Authority>, by: &Grant) -> Option<Record> {
        let id = self.lookup.id_of(&target.name.code)?;
        let domain = named.map(|name| name.to_string());
        let name = LinkName { code: target.name.code.clone(), domain };
        let record = self.get_link(&name, by).await.ok()?;
        Some(record).filter(|record| record.link.id == id && record.link.slug().is_none())
    }

    /// Returns the move of a link under its name; `None` if the name is another link's code there,
    /// or may become one.
    fn relocation(&self, link: &Link, domain: DomainId) -> Option<Relocation> {
        let relocation = self.relocation_to(link, domain, None)?;
        let is_others = relocation.number.is_some_and(|number| number != link.id);
        Some(relocation).filter(|_| !(domain.is_default() && is_others))
    }
}
