//! Events of stored visits. The store of visits asks for them with each batch, and records them in
//! the transaction of the batch where it can.

use links::webhook::{NewWebhookEvent, RecordedVisits, Subscription};

use super::filters::{EventSubject, matches};

/// Maximum number of events of links and domains in one batch, without summaries.
const EVENTS_MAX: usize = 998;
/// Maximum number of sample visits in an event.
const SAMPLES_MAX: usize = 20;

/// The webhooks that are called for visits.
#[derive(Clone, Debug, Default)]
pub struct VisitEvents {
    subscriptions: Vec<Subscription>,
}

impl VisitEvents {
    /// Selects the webhooks that are called for visits from those of the settings
    /// (`DomainCache::entries`, `webhooks`).
    pub fn of(subscriptions: &[Subscription]) -> Self {
        let is_for_visits = |subscription: &&Subscription| {
            subscription.kinds.iter().any(|kind| kind.ends_with("visits.recorded"))
        };
        Self { subscriptions: subscriptions.iter().filter(is_for_visits).cloned().collect() }
    }

    /// Returns whether no webhook is called for visits, so that nothing has to be collected.
    pub fn is_idle(&self) -> bool {
        self.subscriptions.is_empty()
    }

    /// Returns the events of a batch: one for each group that a webhook is called for, at most
    /// 1,000. If there are more groups, those with the fewest visits share a summary for each kind.
    pub fn events(&self, groups: &[RecordedVisits]) -> Vec<NewWebhookEvent> {
        let mut matched: Vec<&RecordedVisits> =
            groups.iter().filter(|group| self.is_for_webhook(group)).collect();
        if matched.len() > EVENTS_MAX {
            matched.sort_by_key(|group| std::cmp::Reverse(group.visits));
        }
        let rest = matched.split_off(matched.len().min(EVENTS_MAX));
        let (links, orphans): (Vec<_>, Vec<_>) = rest.into_iter().partition(|group| group.link.is_some());
        let summaries = [links, orphans].into_iter().filter_map(|groups| RecordedVisits::summary(&groups));
        matched.iter().map(|group| group.event(SAMPLES_MAX)).chain(summaries).collect()
    }

    fn is_for_webhook(&self, group: &RecordedVisits) -> bool {
        let RecordedVisits { link, tags, .. } = group;
        let event = EventSubject { kind: group.kind(), domain: Some(group.domain), link: *link, tags };
        self.subscriptions.iter().any(|subscription| matches(subscription, event))
    }
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use jiff::Timestamp;
    use links::DomainId;

    use super::*;

    fn subscription(kind: &str) -> Subscription {
        Subscription { kinds: vec![kind.to_owned()], domain: None, tag: None, link: None }
    }

    fn group(link: Option<i64>, visits: u64) -> RecordedVisits {
        RecordedVisits {
            link: link.map(LinkId::from_stored),
            domain: DomainId::DEFAULT,
            tags: vec![7],
            visits,
            bots: 0,
            first: Timestamp::UNIX_EPOCH,
            last: Timestamp::UNIX_EPOCH,
            samples: Vec::new(),
        }
    }

    #[test]
    fn only_groups_that_a_webhook_is_called_for_have_events() {
        let groups = [group(Some(1), 5), group(Some(2), 6), group(None, 7)];
        let links = |subscriptions: &[Subscription]| -> Vec<Option<i64>> {
            let events = VisitEvents::of(subscriptions).events(&groups);
            events.iter().map(|event| event.link.map(LinkId::get)).collect()
        };
        assert_eq!(links(&[subscription("visits.recorded")]), [Some(1), Some(2)]);
        assert_eq!(links(&[subscription("orphan-visits.recorded")]), [None]);
        let of_two = Subscription { link: Some(LinkId::from_stored(2)), ..subscription("visits.recorded") };
        assert_eq!(links(std::slice::from_ref(&of_two)), [Some(2)]);
        let tagged = Subscription { tag: Some(8), ..subscription("visits.recorded") };
        assert_eq!(links(&[tagged]), []);
        assert!(VisitEvents::of(&[subscription("link.created")]).is_idle());
        assert!(!VisitEvents::of(&[of_two]).is_idle());
    }

    #[test]
    fn a_batch_of_many_links_has_a_summary_of_those_with_the_fewest_visits() {
        let groups: Vec<RecordedVisits> =
            (1..=1_500).map(|link| group(Some(link), u64::try_from(link).unwrap())).collect();
        let events = VisitEvents::of(&[subscription("visits.recorded")]).events(&groups);
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events[0].link, Some(LinkId::from_stored(1_500)));
        let summary = events.last().unwrap();
        assert_eq!((summary.link, summary.domain), (None, None));
        assert!(summary.data.contains("\"links\":502"), "{}", summary.data);
        assert!(summary.data.contains(&format!("\"visits\":{}", 502 * 503 / 2)), "{}", summary.data);
    }
}
