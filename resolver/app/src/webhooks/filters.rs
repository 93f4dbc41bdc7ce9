//! Which webhooks an event is for.

use links::{DomainId, webhook::Subscription};

use ::webhooks::{EventKind, Filter, Kinds, Subject};
use codes::LinkId;

/// The number of no domain: that of events of several domains, and of conditions that cannot hold.
const NO_DOMAIN: u32 = u32::MAX;

/// Returns the filter of a subscription. A kind that this version does not know is left out.
pub(super) fn filter_of(subscription: &Subscription) -> Filter {
    let kinds: Kinds = subscription.kinds.iter().filter_map(|kind| kind.parse().ok()).collect();
    // A webhook for one link follows it to other domains.
    let domain = subscription.domain.filter(|_| subscription.link.is_none());
    Filter {
        kinds,
        domain: domain.map(|domain| number_of(Some(domain))),
        tag: subscription.tag,
        link: subscription.link.map(LinkId::get),
    }
}

/// Tells whether a filter matches an event; never for a kind that this version does not know.
pub(super) fn matches(
    filter: &Filter,
    kind: &str,
    domain: Option<DomainId>,
    link: Option<LinkId>,
    tags: &[i64],
) -> bool {
    let Ok(kind) = kind.parse::<EventKind>() else { return false };
    filter.matches(&Subject { kind, domain: number_of(domain), link: link.map(LinkId::get), tags })
}

fn number_of(domain: Option<DomainId>) -> u32 {
    domain.and_then(|domain| u32::try_from(domain.get()).ok()).unwrap_or(NO_DOMAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_several_domains_matches_no_condition() {
        let any =
            Subscription { kinds: vec!["visits.recorded".to_owned()], domain: None, tag: None, link: None };
        let on_default = Subscription { domain: Some(DomainId::DEFAULT), ..any.clone() };
        let check = |subscription: &Subscription, domain| {
            matches(&filter_of(subscription), "visits.recorded", domain, None, &[])
        };
        assert!(check(&any, None) && check(&any, Some(DomainId::DEFAULT)));
        assert!(!check(&on_default, None) && check(&on_default, Some(DomainId::DEFAULT)));
        assert!(!matches(&filter_of(&any), "visits.forgotten", None, None, &[]));
    }
}
