//! Subjects of the visits that a call asks for, and which of them its key may see.
//!
//! 1. A key that is limited to a domain sees the visits of links on that domain, and those of the
//!    domain that no link redirected.
//! 2. A key that is limited to its own links sees the visits of exactly these links, deleted ones
//!    excepted: their counters are added up, and their rows are merged. That takes a query for each
//!    link, so such a key asks about a tag, a domain or everything only as long as it has few links
//!    ([`OWN_LINKS_MAX`]). It never sees visits that no link redirected.
//! 3. A domain that does not exist, or that the key does not see, has no visits, as in Shlink. A
//!    link or a tag that the key does not see is missing.

use codes::LinkId;
use links::{DomainId, Filter, OrderBy, OrderField, Tag, api_key::Grant};
use store::Visible;
use visits::{OrphanKind, Subject};

use crate::{AppError, LinkService, find_link::LinkName};

/// Maximum number of links whose visits are added up for a key that sees only its own.
pub const OWN_LINKS_MAX: u64 = 1_000;

/// The subject of the visits that a call asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisitsOf {
    /// A link.
    Link(LinkName),
    /// The links with a tag, on one domain if given.
    Tag {
        /// The tag.
        tag: String,
        /// The domain's authority, or `DEFAULT`.
        domain: Option<String>,
    },
    /// The links of a domain, which must exist: its authority, or `DEFAULT`.
    Domain(String),
    /// All links, or those on one domain.
    Links {
        /// The domain's authority, or `DEFAULT`.
        domain: Option<String>,
    },
    /// Visits that no link redirected.
    Orphans {
        /// The kind of visit; `None` for all.
        kind: Option<OrphanKind>,
        /// The domain's authority, or `DEFAULT`.
        domain: Option<String>,
    },
}

/// The domains whose visits a key asks for and sees: one, `Some(None)` for all, `None` for none.
type Reach = Option<Option<DomainId>>;

/// Returns the part of what a key asks for that it sees. It asks for one domain, or `None` for all.
fn seen(asked: Option<DomainId>, by: &Grant) -> Reach {
    match (asked, by.limits.domain) {
        (None, own) => Some(own),
        (Some(asked), Some(own)) if asked != own => None,
        _ => Some(asked),
    }
}

impl LinkService {
    /// Returns the subjects that make up the visits which a key asks for: none if there are none
    /// that it sees, one, or all of its own links.
    pub(crate) async fn visit_subjects(&self, of: &VisitsOf, by: &Grant) -> Result<Vec<Subject>, AppError> {
        let (reach, tag) = match of {
            VisitsOf::Link(name) => return Ok(vec![Subject::Link(self.find_link(name, by).await?.id)]),
            VisitsOf::Tag { tag, domain } => {
                let tag = self.find_tag(tag, by).await?;
                (self.reach(domain.as_deref(), by).await?, Some(tag))
            }
            VisitsOf::Domain(name) => (seen(Some(self.find_domain(name, by).await?), by), None),
            VisitsOf::Links { domain } => (self.reach(domain.as_deref(), by).await?, None),
            VisitsOf::Orphans { kind, domain } => {
                let reach = self.reach(domain.as_deref(), by).await?.filter(|_| by.limits.sees_orphans());
                return Ok(reach.map(|domain| Subject::Orphans(*kind, domain)).into_iter().collect());
            }
        };
        let Some(domain) = reach else { return Ok(Vec::new()) };
        if by.limits.own_links_only {
            let own = self.own_links(domain, tag, by).await?;
            return Ok(own.into_iter().map(Subject::Link).collect());
        }
        let Some(tag) = tag else { return Ok(vec![Subject::All(domain)]) };
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self
            .store
            .tag_id(&tag, &Visible::default())
            .await?
            .map(|id| Subject::Tag(id, domain))
            .into_iter()
            .collect())
    }

    async fn reach(&self, domain: Option<&str>, by: &Grant) -> Result<Reach, AppError> {
        let Some(name) = domain else { return Ok(seen(None, by)) };
        Ok(self.domain_cache.find(name).await?.and_then(|asked| seen(Some(asked), by)))
    }

    /// Returns the links that a key has created and sees: at most [`OWN_LINKS_MAX`].
    pub(crate) async fn own_links(
        &self,
        domain: Option<DomainId>,
        tag: Option<Tag>,
        by: &Grant,
    ) -> Result<Vec<LinkId>, AppError> {
        let filter = Filter {
            domain: domain.or(by.limits.domain),
            created_by: Some(vec![by.id]),
            tags: tag.into_iter().collect(),
            order: OrderBy { field: OrderField::Id, descending: false },
            page: 1,
            per_page: Some(OWN_LINKS_MAX),
            ..Filter::default()
        };
        let _turn = self.turns.queries.take(by.id).await?;
        let outline = self.store.outline(&filter, None).await?;
        if outline.total > OWN_LINKS_MAX {
            return Err(AppError::TooManyOwnLinks(OWN_LINKS_MAX));
        }
        Ok(outline.ids)
    }
}

#[cfg(test)]
mod tests {
    use links::api_key::KeyLimits;

    use super::*;
    use crate::visits::visit_memory::grant;

    #[test]
    fn a_key_of_a_domain_reaches_no_other() {
        let (own, other) = (DomainId::from_stored(3), DomainId::from_stored(4));
        for (asked, domain, expected) in [
            (None, None, Some(None)),
            (Some(other), None, Some(Some(other))),
            (None, Some(own), Some(Some(own))),
            (Some(own), Some(own), Some(Some(own))),
            (Some(other), Some(own), None),
        ] {
            let by = grant(KeyLimits { domain, ..KeyLimits::default() });
            assert_eq!(seen(asked, &by), expected, "{asked:?} {domain:?}");
        }
    }
}
