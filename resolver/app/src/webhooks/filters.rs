//! Which webhooks an event is for.

use codes::LinkId;
use links::{DomainId, webhook::Subscription};

use ::webhooks::EventKind;

/// Returns whether a webhook with this subscription is called for an event; never for a kind that
/// this version does not know. Every condition that is set has to hold. Conditions compare ids, so
/// that a domain or a tag that is renamed keeps its webhooks.
pub(super) fn matches(
    subscription: &Subscription,
    kind: &str,
    domain: Option<DomainId>,
    link: Option<LinkId>,
    tags: &[i64],
) -> bool {
    let Subscription { kinds, domain: of_domain, tag, link: of_link } = subscription;
    // A webhook for one link follows it to other domains.
    let of_domain = of_domain.filter(|_| of_link.is_none());
    kinds.iter().any(|of_kind| of_kind == kind)
        && kind.parse::<EventKind>().is_ok()
        && of_domain.is_none_or(|of_domain| domain == Some(of_domain))
        && tag.is_none_or(|tag| tags.contains(&tag))
        && of_link.is_none_or(|of_link| link == Some(of_link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_has_to_hold() {
        let (domain, link) = (DomainId::from_stored(3), LinkId::from_stored(40));
        let kinds = ["link.updated", "visits.forgotten"].map(str::to_owned).to_vec();
        let any = Subscription { kinds, domain: None, tag: None, link: None };
        let updated = |subscription: &Subscription| {
            matches(subscription, "link.updated", Some(domain), Some(link), &[500, 501])
        };
        let of = |domain: u32, tag, link| {
            let domain = Some(DomainId::from_stored(domain.into()));
            Subscription { domain, tag: Some(tag), link: Some(LinkId::from_stored(link)), ..any.clone() }
        };
        assert!(updated(&any) && updated(&of(3, 501, 40)));
        assert!(updated(&of(4, 501, 40)), "a link that has moved");
        assert!(!updated(&of(3, 502, 40)) && !updated(&of(3, 501, 41)));
        let on_domain = Subscription { domain: Some(domain), ..any.clone() };
        assert!(updated(&on_domain));
        for (subscription, kind, of_domain) in [
            (&any, "link.deleted", Some(domain)),
            (&any, "visits.forgotten", Some(domain)),
            (&on_domain, "link.updated", Some(DomainId::DEFAULT)),
            // An event of several domains.
            (&on_domain, "link.updated", None),
        ] {
            assert!(!matches(subscription, kind, of_domain, None, &[]), "{kind}");
        }
        assert!(matches(&any, "link.updated", None, None, &[]));
    }
}
