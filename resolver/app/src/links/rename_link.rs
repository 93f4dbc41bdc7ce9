//! Gives a link another name on its domain. It stays the same link, with its visits and its log.
//!
//! 1. The former name leads nowhere from then on. A custom slug that is no code is free again. A
//!    code stays with its number, because it may be in print, and the link may get it back.
//! 2. The new name may be a code that no link has had. Its number is given up for it.
//! 3. The new name is acknowledged when no resolver denies it any more. The former one may lead to
//!    the link until the other resolvers are notified, as after an edit.

use links::{DomainId, Edit, Link, Record, Relocation, Slug, api_key::Grant, scope::Scope};

use crate::{
    Answer, AppError, Field, FieldErrors, LinkFields, LinkService, authorize::require, edit_link::Target,
    values::custom_slug,
};

impl LinkService {
    /// Edits the link that the target names, and gives it this slug. With the slug that it has,
    /// that is an edit alone.
    pub fn rename_link<'a>(
        &'a self,
        target: &'a Target,
        slug: &'a str,
        fields: LinkFields,
        mut wrong: FieldErrors,
        by: &'a Grant,
    ) -> Answer<'a, Record> {
        Box::pin(async move {
            require(by, Scope::Edit)?;
            let slug = custom_slug(slug, None);
            let slug = slug.and_then(|slug| self.check_given(slug.as_str()).map(|()| slug));
            let slug = wrong.check(Field::CustomSlug, slug);
            let edit = self.prepare_edit(fields, wrong, by).await?;
            let slug = slug.ok_or(AppError::Internal)?;
            // The link that is found has this domain.
            let domain = self.domain_of(&target.name).await?;
            let kept = self.slug_on(domain, &slug).await?;
            self.check_unclaimed(kept.as_str(), domain, by).await?;
            let edit_for =
                |link: &Link| self.with_name(link, (&slug, &kept), self.check_against(link, &edit)?);
            let record = self.change_found(target, edit_for, by).await?;
            self.lookup.wait_until_shown(record.link.id).await;
            if let Some(number) = record.link.slug().and_then(|slug| self.lookup.id_of(slug.as_str())) {
                // A link that a fail-over lost may still be cached under it, as for a create.
                self.lookup.changed(number);
                self.lookup.wait_until_shown(number).await;
            }
            Ok(record)
        })
    }

    /// Adds another name to an edit of a link, unless the link has it: a slug as it was sent, and
    /// as the link's domain keeps it.
    fn with_name(&self, link: &Link, (slug, kept): (&Slug, &Slug), edit: Edit) -> Result<Edit, AppError> {
        let domain = link.domain();
        let relocation = self.relocation_to(link, domain, Some(kept.clone())).ok_or(AppError::Internal)?;
        let former = relocation.former.as_str();
        // Its own may have capitals, and be older than a setting of the domain.
        if slug.is_same(former) || relocation.name.is_same(former) {
            return Ok(edit);
        }
        let name = relocation.name.as_str();
        let long_url = edit.long_url.as_ref().unwrap_or(&link.long_url);
        let rules = edit.details.rules.as_deref().unwrap_or(link.rules());
        let long_urls = rules.iter().map(|rule| &rule.long_url).chain([long_url]);
        self.refuse_circle(Field::LongUrl, long_urls, domain, name)?;
        let expired_url = edit.details.expired_url.as_ref().unwrap_or(&link.details().expired_url);
        self.refuse_circle(Field::ExpiredUrl, expired_url, domain, name)?;
        Ok(Edit { relocation: Some(relocation), ..edit })
    }

    /// Returns the change of a link's address to a domain, and to a name in place of its own.
    /// Returns `None` for a link without a name, whose keyspace is unknown.
    pub(super) fn relocation_to(
        &self,
        link: &Link,
        domain: DomainId,
        name: Option<Slug>,
    ) -> Option<Relocation> {
        let former = Slug::parse(&self.lookup.name_of(link)?).ok()?;
        // Counted before the code is looked up: a keyspace that this process hears of in between is
        // one more than the database is asked to have, and the change is refused.
        let keyspaces = self.lookup.mint.keyspaces();
        let name = name.map_or_else(|| former.clone(), |name| name.as_minted(&self.lookup.mint));
        let number = self.lookup.id_of(name.as_str());
        Some(Relocation { domain, name, former, number, keyspaces })
    }
}
