//! Which visits a subscription sees: what it asks for, within what its key may see.

use std::collections::BTreeSet;

use codes::LinkId;
use links::{DomainId, Tag, api_key::Grant};

use super::LiveVisit;

/// Kinds of visits, any of which is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Topics {
    /// Visits that a link redirected.
    pub links: bool,
    /// Visits of links with these codes or slugs, on any domain.
    pub names: BTreeSet<String>,
    /// Visits that no link redirected.
    pub orphans: bool,
}

impl Topics {
    /// All visits.
    pub fn all() -> Self {
        Self { links: true, orphans: true, names: BTreeSet::new() }
    }
}

/// The visits that a subscription sees: those that fit all of this.
#[derive(Clone, Debug)]
pub struct LiveFilter {
    /// The key, whose limits apply.
    pub by: Grant,
    /// The kinds of visits.
    pub topics: Topics,
    /// The link.
    pub link: Option<LinkId>,
    /// A tag of the link.
    pub tag: Option<Tag>,
    /// The domain that was visited.
    pub domain: Option<DomainId>,
}

impl LiveFilter {
    /// Returns whether the subscription sees a visit. As in lists of visits, a key of a domain sees
    /// the visits of that domain, and some keys see no orphan visits.
    pub fn matches(&self, visit: &LiveVisit) -> bool {
        let (link, limits, topics) = (visit.link.as_deref(), &self.by.limits, &self.topics);
        let (is_in_topics, is_visible) = match link {
            None => (topics.orphans, limits.sees_orphans()),
            Some(link) => {
                (topics.links || topics.names.contains(&link.name), self.by.sees(&link.record.link))
            }
        };
        is_in_topics
            && is_visible
            && limits.domain.is_none_or(|domain| domain == visit.domain)
            && self.domain.is_none_or(|domain| domain == visit.domain)
            && self.link.is_none_or(|id| link.is_some_and(|link| link.record.link.id == id))
            && self.tag.as_ref().is_none_or(|tag| link.is_some_and(|link| link.record.tags.contains(tag)))
    }

    /// Returns whether the key may know how many visits there are.
    pub(super) fn sees_counts(&self) -> bool {
        !self.by.limits.hide()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use links::{
        Details,
        api_key::{ApiKeyId, KeyLimits},
    };

    use super::{
        super::poller::tests::{live_link, live_visit},
        *,
    };
    use crate::visits::visit_memory::grant;

    pub(in super::super) fn filter(limits: KeyLimits) -> LiveFilter {
        LiveFilter { by: grant(limits), topics: Topics::all(), link: None, tag: None, domain: None }
    }

    fn own_only() -> LiveFilter {
        filter(KeyLimits { own_links_only: true, ..KeyLimits::default() })
    }

    fn of_domain(number: i64) -> LiveFilter {
        filter(KeyLimits { domain: Some(DomainId::from_stored(number)), ..KeyLimits::default() })
    }

    /// A visit on a domain, of a link of that domain that a key has created.
    fn visit(domain: i64, created_by: i64) -> LiveVisit {
        let mut link = live_link(7);
        let domain = DomainId::from_stored(domain);
        link.record.link.created_by = ApiKeyId(created_by);
        link.record.link.details = Some(Box::new(Details {
            domain: Some(domain).filter(|id| !id.is_default()),
            ..Details::default()
        }));
        LiveVisit { domain, ..live_visit(1, Some(link)) }
    }

    fn orphan(domain: i64) -> LiveVisit {
        LiveVisit { domain: DomainId::from_stored(domain), ..live_visit(1, None) }
    }

    #[test]
    fn a_key_sees_only_its_own_links_or_its_own_domain() {
        // A link of the default domain that was visited on another one.
        let there = LiveVisit { domain: DomainId::from_stored(3), ..visit(0, 1) };
        let visits = [visit(0, 1), visit(0, 2), visit(3, 1), orphan(0), orphan(3), there];
        for (filter, sees) in [
            (filter(KeyLimits::default()), [true, true, true, true, true, true]),
            (own_only(), [true, false, true, false, false, true]),
            (of_domain(0), [true, true, false, true, false, false]),
            (of_domain(3), [false, false, true, false, true, false]),
        ] {
            assert_eq!(visits.each_ref().map(|visit| filter.matches(visit)), sees, "{filter:?}");
        }
    }

    #[test]
    fn what_is_asked_for_has_to_fit_in_every_respect() {
        let all = filter(KeyLimits::default());
        let link = live_visit(1, Some(live_link(7)));
        let topics = |names: &[&str], links, orphans| Topics {
            links,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            orphans,
        };
        let id = |number| live_link(number).record.link.id;
        let tag = |name| Some(Tag::exactly(name).unwrap());
        for (filter, sees) in [
            (LiveFilter { topics: topics(&["slug7"], false, false), ..all.clone() }, [true, false]),
            (LiveFilter { topics: topics(&["slug8"], false, true), ..all.clone() }, [false, true]),
            (LiveFilter { topics: topics(&[], true, false), ..all.clone() }, [true, false]),
            (LiveFilter { topics: Topics::default(), ..all.clone() }, [false, false]),
            (LiveFilter { link: Some(id(7)), ..all.clone() }, [true, false]),
            (LiveFilter { link: Some(id(8)), ..all.clone() }, [false, false]),
            (LiveFilter { tag: tag("news"), ..all.clone() }, [true, false]),
            (LiveFilter { tag: tag("other"), link: Some(id(7)), ..all.clone() }, [false, false]),
            (LiveFilter { domain: Some(DomainId::DEFAULT), ..all.clone() }, [true, true]),
            (LiveFilter { domain: Some(DomainId::from_stored(3)), ..all }, [false, false]),
        ] {
            assert_eq!([filter.matches(&link), filter.matches(&orphan(0))], sees, "{filter:?}");
        }
    }
}
