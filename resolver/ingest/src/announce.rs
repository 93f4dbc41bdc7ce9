//! Webhook events for stored visits.
//!
//! Visits of a batch are grouped by link, and those that no link redirected by domain. Nothing is
//! collected while no webhook is called for visits.

use std::collections::HashMap;

use codes::LinkId;
use jiff::Timestamp;
use links::{
    DomainId,
    webhook::{NewWebhookEvent, RecordedVisits, Subscription},
};
use serde_json::{Value, json};
use visits::{Event, PlaceText};

use crate::enrich::Derived;

/// Visits of a group that are told of one by one.
const SAMPLES: usize = 20;
/// Maximum number of events of links and domains in one batch, without summaries.
const EVENTS_MAX: usize = 998;

/// Bytes of such visits in a minute. They are kept with their deliveries for a week, and visitors
/// could fill the database with them. Events beyond have counts alone.
pub(crate) const SAMPLED_PER_MINUTE: usize = 1 << 20;

/// The webhooks that a batch is announced to, and what they are told.
pub struct Announcer<'a> {
    /// Subscriptions of the webhooks that are called for visits.
    subscriptions: Vec<Subscription>,
    /// Returns the beginning of the URLs of a domain.
    base: &'a dyn Fn(DomainId) -> String,
    /// Bytes of single visits that may be told still.
    room: &'a mut usize,
    /// The visits of the batch, by link or domain.
    groups: HashMap<(Option<LinkId>, DomainId), RecordedVisits>,
}

impl<'a> Announcer<'a> {
    /// Selects the webhooks that are called for visits; `None` if none is, so that nothing has to
    /// be collected.
    pub fn new(
        mut subscriptions: Vec<Subscription>,
        base: &'a dyn Fn(DomainId) -> String,
        room: &'a mut usize,
    ) -> Option<Self> {
        subscriptions.retain(|one| one.kinds.iter().any(|kind| kind.ends_with("visits.recorded")));
        if subscriptions.is_empty() {
            return None;
        }
        Some(Self { subscriptions, base, room, groups: HashMap::new() })
    }

    /// Adds a visit that `link` redirected. `tags` are those of the link.
    pub(crate) fn add(&mut self, event: &Event<'_>, link: Option<LinkId>, derived: &Derived, tags: &[i64]) {
        let at = Timestamp::from_microsecond(event.at).unwrap_or_default();
        let group = self.groups.entry((link, event.domain)).or_insert_with(|| RecordedVisits {
            link,
            domain: event.domain,
            tags: tags.to_vec(),
            visits: 0,
            bots: 0,
            first: at,
            last: at,
            samples: Vec::new(),
        });
        group.visits += 1;
        group.bots += u64::from(derived.is_bot);
        (group.first, group.last) = (group.first.min(at), group.last.max(at));
        if derived.is_listed && group.samples.len() < SAMPLES && *self.room > 0 {
            let sample = sample(event, link, at, derived, &(self.base)(event.domain));
            *self.room = self.room.saturating_sub(sample.to_string().len());
            group.samples.push(sample);
        }
    }

    /// Returns the events of the batch: one for each group that a webhook is called for, at most
    /// 1,000. If there are more groups, those with the fewest visits share a summary for each kind.
    pub(crate) fn events(self) -> Vec<NewWebhookEvent> {
        let mut matched: Vec<_> = self.groups.values().filter(|group| self.is_called(group)).collect();
        matched.sort_unstable_by_key(|group| (group.link, group.domain));
        if matched.len() > EVENTS_MAX {
            matched.sort_by_key(|group| std::cmp::Reverse(group.visits));
        }
        let rest = matched.split_off(matched.len().min(EVENTS_MAX));
        let (links, orphans): (Vec<_>, Vec<_>) = rest.into_iter().partition(|group| group.link.is_some());
        let summaries = [links, orphans].into_iter().filter_map(|groups| RecordedVisits::summary(&groups));
        matched.iter().map(|group| group.event(SAMPLES)).chain(summaries).collect()
    }

    fn is_called(&self, group: &RecordedVisits) -> bool {
        let (kind, domain) = (group.kind(), Some(group.domain));
        self.subscriptions.iter().any(|one| one.matches(kind, domain, group.link, &group.tags))
    }
}

/// Returns a visit in the form of the API. A URL is null where it is that of the link.
fn sample(event: &Event<'_>, link: Option<LinkId>, at: Timestamp, derived: &Derived, base: &str) -> Value {
    let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let place = Some(PlaceText::split(&derived.located.text)).filter(|place| !place.is_empty());
    let mut sample = json!({
        "date": at.to_string(),
        "referer": text(event.referrer),
        "userAgent": text(event.user_agent),
        "visitLocation": place.map(|place| json!({
            "countryCode": place.country,
            "countryName": place.country_name,
            "regionName": place.region,
            "cityName": place.city,
            "latitude": place.latitude,
            "longitude": place.longitude,
            "timezone": place.time_zone,
            "isEmpty": false,
        })),
        "potentialBot": derived.is_bot,
        "visitedUrl": filled(text(event.request)).map(|path| format!("{base}{path}")),
        "redirectUrl": filled(text(event.target)),
    });
    if let Some(kind) = event.outcome.orphan().filter(|_| link.is_none()) {
        sample["type"] = json!(kind.as_str());
    }
    sample
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn subscription(kind: &str) -> Subscription {
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

    fn events(subscription: Subscription, groups: &[RecordedVisits]) -> Option<Vec<NewWebhookEvent>> {
        let (base, mut room) = (|_: DomainId| String::new(), 0);
        let mut announcer = Announcer::new(vec![subscription], &base, &mut room)?;
        announcer.groups = groups.iter().map(|one| ((one.link, one.domain), one.clone())).collect();
        Some(announcer.events())
    }

    #[test]
    fn only_groups_that_a_webhook_is_called_for_have_events() {
        let groups = [group(Some(1), 5), group(Some(2), 6), group(None, 7)];
        let visits = || subscription("visits.recorded");
        for (subscription, expected) in [
            (visits(), Some(vec![Some(1), Some(2)])),
            (subscription("orphan-visits.recorded"), Some(vec![None])),
            (Subscription { link: Some(LinkId::from_stored(2)), ..visits() }, Some(vec![Some(2)])),
            (Subscription { tag: Some(8), ..visits() }, Some(Vec::new())),
            (subscription("link.created"), None),
        ] {
            let links = |events: Vec<NewWebhookEvent>| -> Vec<Option<i64>> {
                events.iter().map(|event| event.link.map(LinkId::get)).collect()
            };
            assert_eq!(events(subscription, &groups).map(links), expected);
        }
    }

    #[test]
    fn a_batch_of_many_links_has_a_summary_of_those_with_the_fewest_visits() {
        let groups: Vec<RecordedVisits> =
            (1..=1_500).map(|link| group(Some(link), u64::try_from(link).unwrap())).collect();
        let events = events(subscription("visits.recorded"), &groups).unwrap();
        assert_eq!(events.len(), EVENTS_MAX + 1);
        assert_eq!(events[0].link, Some(LinkId::from_stored(1_500)));
        let summary = events.last().unwrap();
        assert_eq!((summary.link, summary.domain), (None, None));
        assert!(summary.data.contains("\"links\":502"), "{}", summary.data);
        assert!(summary.data.contains(&format!("\"visits\":{}", 502 * 503 / 2)), "{}", summary.data);
    }
}
