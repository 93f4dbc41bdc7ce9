//! Moves a link to another domain, where it keeps its name.
//!
//! 1. A minted code stays with its number, so it may move anywhere and back. On another domain it
//!    may be another link's slug, and the move is refused.
//! 2. A custom slug that is a code of some keyspace cannot move to the default domain: there the
//!    code belongs to its number.
//! 3. The link's new address is acknowledged when no resolver denies it any more. Its former one
//!    may lead to it for as long as an edit takes to be heard of.

use links::{DomainId, Edit, Link, Precondition, Record, Relocation, Slug, api_key::Grant, scope::Scope};
use store::Edited;

use super::{
    AppError, Field, FieldErrors, LinkService,
    authorize::require,
    edit_link::{LOOKUPS, Target},
};

impl LinkService {
    /// Moves the link with the target's name to the domain of a name. An unknown domain is added as
    /// for a new link. The link is looked up as for an edit. `wrong` holds the fields that the
    /// adapter could not read.
    pub async fn move_link(
        &self,
        target: &Target,
        domain: Option<&str>,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<Record, AppError> {
        require(by, Scope::Edit)?;
        let named = domain.ok_or_else(|| "expected the name of a domain".to_owned());
        let named = wrong.note(Field::Domain.name(), named.and_then(|name| self.check_domain(name)));
        wrong.finish()?;
        // Before a domain is added for it.
        self.find_link(&target.name, by).await?;
        let domain = match named.flatten() {
            None => DomainId::DEFAULT,
            Some(name) => Box::pin(self.find_or_add_domain(&name, by)).await?,
        };
        if by.limits.domain.is_some_and(|own| own != domain) {
            return Err(AppError::LimitedKey);
        }
        let taken = || {
            let domain = self.domain_cache.shown_name(domain);
            AppError::SlugTaken { slug: target.name.code.clone(), domain }
        };
        for _ in 0..LOOKUPS {
            let link = self.find_link(&target.name, by).await?;
            let relocation = self.relocation(&link, &target.name.code, domain).ok_or_else(taken)?;
            let urls = link.rules().iter().map(|rule| &rule.long_url).chain([&link.long_url]);
            self.refuse_circle(urls, domain, &target.name.code)?;
            let precondition = Precondition { versions: target.versions.clone(), ..Precondition::of(&link) };
            let name = relocation.name.clone();
            let edit = Edit { relocation: Some(relocation), precondition, ..Edit::default() };
            match self.store_edit(link.id, &edit, by).await? {
                Edited::Done(record) => {
                    self.lookup.taken(domain, &name);
                    self.creator.wait_until_shown(&record.link).await;
                    return Ok(*record);
                }
                Edited::Absent => {}
                Edited::Superseded => return Err(AppError::Superseded),
                Edited::Blocked => return Err(AppError::Blocked),
                Edited::Taken => return Err(taken()),
            }
        }
        Err(self.no_link(&target.name))
    }

    /// Returns the move of a link that has this name; `None` if the name is another link's code
    /// there, or may become one.
    fn relocation(&self, link: &Link, name: &str, domain: DomainId) -> Option<Relocation> {
        // Counted before the code is looked up: a keyspace that this process hears of in between is
        // one more than the database is asked to have, and the move is refused.
        let keyspaces = self.creator.keyspaces();
        if domain.is_default() && self.lookup.id_of(name).is_some_and(|id| id != link.id) {
            return None;
        }
        Some(Relocation { domain, name: Slug::parse(name).ok()?, keyspaces })
    }
}
