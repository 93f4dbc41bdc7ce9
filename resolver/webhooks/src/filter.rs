//! Which events a webhook is called for.

use crate::event::{EventKind, Kinds};

/// The events of a webhook. Every condition that is set has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// The kinds of events. An empty set matches nothing.
    pub kinds: Kinds,
    /// Only events of this domain.
    pub domain: Option<u32>,
    /// Only events of links with this tag.
    pub tag: Option<i64>,
    /// Only events of this link.
    pub link: Option<i64>,
}

/// What a filter looks at in an event. Filters compare ids, so that a domain or a tag that is
/// renamed keeps its webhooks.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The kind of the event.
    pub kind: EventKind,
    /// The id of the domain.
    pub domain: u32,
    /// The id of the link, absent for orphan visits.
    pub link: Option<i64>,
    /// The ids of the link's tags.
    pub tags: &'a [i64],
}

impl Filter {
    /// Creates a filter for all events of some kinds.
    #[must_use]
    pub const fn of_kinds(kinds: Kinds) -> Self {
        Self { kinds, domain: None, tag: None, link: None }
    }

    /// Tells whether a webhook with this filter is called for an event.
    #[must_use]
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        self.kinds.contains(subject.kind)
            && self.domain.is_none_or(|domain| subject.domain == domain)
            && self.tag.is_none_or(|tag| subject.tags.contains(&tag))
            && self.link.is_none_or(|link| subject.link == Some(link))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDIT: Subject<'_> =
        Subject { kind: EventKind::LinkUpdated, domain: 3, link: Some(40), tags: &[500, 501] };

    fn edits() -> Filter {
        Filter::of_kinds([EventKind::LinkUpdated].into_iter().collect())
    }

    #[test]
    fn a_filter_without_conditions_matches_its_kinds_only() {
        assert!(edits().matches(&EDIT));
        assert!(!edits().matches(&Subject { kind: EventKind::LinkDeleted, ..EDIT }));
        assert!(!Filter::of_kinds(Kinds::default()).matches(&EDIT));
    }

    #[test]
    fn each_condition_has_to_hold() {
        let all = Filter { domain: Some(3), tag: Some(501), link: Some(40), ..edits() };
        assert!(all.matches(&EDIT));
        for other in [
            Filter { domain: Some(4), ..all },
            Filter { tag: Some(502), ..all },
            Filter { link: Some(41), ..all },
        ] {
            assert!(!other.matches(&EDIT), "{other:?}");
        }
    }

    #[test]
    fn orphan_visits_match_no_filter_of_a_link_or_tag() {
        let orphans = Subject { kind: EventKind::OrphanVisitsRecorded, domain: 3, link: None, tags: &[] };
        let filter = Filter::of_kinds([EventKind::OrphanVisitsRecorded].into_iter().collect());
        assert!(Filter { domain: Some(3), ..filter }.matches(&orphans));
        assert!(!Filter { link: Some(0), ..filter }.matches(&orphans));
        assert!(!Filter { tag: Some(0), ..filter }.matches(&orphans));
    }
}
