//! Which webhooks an event is for.

use codes::LinkId;
use links::{DomainId, webhook::Subscription};

/// What a subscription is compared with in an event. All are ids, so that a domain or a tag that is
/// renamed keeps its webhooks.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventSubject<'a> {
    /// The name of the event's kind.
    pub(super) kind: &'a str,
    /// The domain; `None` for an event of several domains.
    pub(super) domain: Option<DomainId>,
    /// The link; `None` for orphan visits.
    pub(super) link: Option<LinkId>,
    /// The tags of the link.
    pub(super) tags: &'a [i64],
}

/// Returns whether a webhook is called for an event: every condition that is set has to hold.
pub(super) fn matches(subscription: &Subscription, event: EventSubject<'_>) -> bool {
    let Subscription { kinds, domain, tag, link } = subscription;
    // A webhook for one link follows it to other domains.
    let is_on_domain = link.is_some() || domain.is_none() || *domain == event.domain;
    kinds.iter().any(|kind| kind == event.kind)
        && is_on_domain
        && tag.is_none_or(|tag| event.tags.contains(&tag))
        && (link.is_none() || *link == event.link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(number: i64) -> Option<DomainId> {
        Some(DomainId::from_stored(number))
    }

    fn link(number: i64) -> Option<LinkId> {
        Some(LinkId::from_stored(number))
    }

    #[test]
    fn every_condition_that_is_set_has_to_hold() {
        let edit =
            EventSubject { kind: "link.updated", domain: domain(3), link: link(40), tags: &[500, 501] };
        let orphans =
            EventSubject { kind: "orphan-visits.recorded", domain: domain(3), link: None, tags: &[] };
        let of_domains = EventSubject { domain: None, ..orphans };
        let kinds = vec![edit.kind.to_owned(), orphans.kind.to_owned()];
        let any = Subscription { kinds, domain: None, tag: None, link: None };
        let all = Subscription { domain: domain(3), tag: Some(501), link: link(40), ..any.clone() };
        for (subscription, is_for_edit, is_for_orphans, is_for_domains) in [
            (any.clone(), true, true, true),
            (Subscription { kinds: Vec::new(), ..any.clone() }, false, false, false),
            (Subscription { kinds: vec!["link.deleted".to_owned()], ..any.clone() }, false, false, false),
            (Subscription { domain: domain(3), ..any.clone() }, true, true, false),
            (Subscription { domain: domain(4), ..any.clone() }, false, false, false),
            (Subscription { tag: Some(501), ..any.clone() }, true, false, false),
            (Subscription { tag: Some(502), ..any.clone() }, false, false, false),
            (Subscription { link: link(40), ..any.clone() }, true, false, false),
            (Subscription { link: link(40), domain: domain(4), ..any }, true, false, false),
            (all.clone(), true, false, false),
            (Subscription { link: link(41), ..all.clone() }, false, false, false),
            (Subscription { tag: Some(502), ..all }, false, false, false),
        ] {
            let found = [edit, orphans, of_domains].map(|event| matches(&subscription, event));
            assert_eq!(found, [is_for_edit, is_for_orphans, is_for_domains], "{subscription:?}");
        }
    }
}
