//! Events, as transactions record them.

use codes::LinkId;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::body::SAMPLE_BYTES;
use crate::{DomainId, audit::Action};

/// Name of a test event, which every webhook gets when it is tested.
pub const PING: &str = "ping";

codes::named_values! {
    /// Kinds of events that a webhook can ask for.
    pub enum EventKind {
        /// Visits of a link were stored.
        Visits => "visits.recorded",
        /// Visits that no link redirected were stored.
        OrphanVisits => "orphan-visits.recorded",
        /// A link was created.
        Created => "link.created",
        /// A link was edited.
        Updated => "link.updated",
        /// A link was deleted.
        Deleted => "link.deleted",
        /// A deleted link was restored.
        Restored => "link.restored",
        /// A link was blocked.
        Blocked => "link.blocked",
        /// A blocked link was unblocked.
        Unblocked => "link.unblocked",
    }
}

impl EventKind {
    /// Returns the event of an audited change; `None` for a change of anything but a link.
    pub const fn of(action: Action) -> Option<Self> {
        match action {
            Action::EditLink => Some(Self::Updated),
            Action::DeleteLink => Some(Self::Deleted),
            Action::RestoreLink => Some(Self::Restored),
            Action::BlockLink => Some(Self::Blocked),
            Action::UnblockLink => Some(Self::Unblocked),
            _ => None,
        }
    }
}

codes::stored_number! {
    /// Number of an event in the database.
    pub struct EventId(i64);
}

/// An event to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhookEvent {
    /// Name of its kind.
    pub kind: &'static str,
    /// Domain; `None` for an event of several domains.
    pub domain: Option<DomainId>,
    /// Link; `None` for an event of several links or of none.
    pub link: Option<LinkId>,
    /// Numbers of the link's tags.
    pub tags: Vec<i64>,
    /// JSON object with the members that only the transaction knows.
    pub data: String,
}

/// A recorded event that has no deliveries yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookEvent {
    /// Number.
    pub id: EventId,
    /// Name of its kind.
    pub kind: String,
    /// Domain; `None` for an event of several domains.
    pub domain: Option<DomainId>,
    /// Link; `None` for an event of several links or of none.
    pub link: Option<LinkId>,
    /// Numbers of the link's tags.
    pub tags: Vec<i64>,
    /// JSON object with the members that only the transaction knew.
    pub data: String,
    /// Time of the event.
    pub at: Timestamp,
}

/// Visits of a link, or of a domain's paths without a link, that were stored in one batch.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedVisits {
    /// Link; `None` for orphan visits.
    pub link: Option<LinkId>,
    /// Domain.
    pub domain: DomainId,
    /// Numbers of the link's tags.
    pub tags: Vec<i64>,
    /// Number of visits, those of bots included.
    pub visits: u64,
    /// Number of visits of bots.
    pub bots: u64,
    /// Time of the first visit.
    pub first: Timestamp,
    /// Time of the last visit.
    pub last: Timestamp,
    /// Some of the visits, in the form of the API.
    pub samples: Vec<Value>,
}

impl RecordedVisits {
    /// Returns the name of the kind of their event.
    pub const fn kind(&self) -> &'static str {
        let kind = if self.link.is_some() { EventKind::Visits } else { EventKind::OrphanVisits };
        kind.as_str()
    }

    /// Returns the event with at most `most` sample visits, fewer if they are large.
    pub fn event(&self, most: usize) -> NewWebhookEvent {
        let mut room = SAMPLE_BYTES;
        let mut samples = Vec::new();
        for sample in self.samples.iter().take(most) {
            let Some(left) = room.checked_sub(sample.to_string().len()) else { break };
            room = left;
            samples.push(sample);
        }
        let mut data = self.counts();
        data["sample"] = json!(samples);
        NewWebhookEvent {
            kind: self.kind(),
            domain: Some(self.domain),
            link: self.link,
            tags: self.tags.clone(),
            data: data.to_string(),
        }
    }

    /// Returns one event with the counts of several groups of one kind; `None` for no group.
    pub fn summary(groups: &[&Self]) -> Option<NewWebhookEvent> {
        let first = groups.first()?;
        let mut all = Self { samples: Vec::new(), ..(*first).clone() };
        for group in &groups[1..] {
            all.visits = all.visits.saturating_add(group.visits);
            all.bots = all.bots.saturating_add(group.bots);
            (all.first, all.last) = (all.first.min(group.first), all.last.max(group.last));
        }
        let mut data = all.counts();
        data[if first.link.is_some() { "links" } else { "domains" }] = json!(groups.len());
        let kind = first.kind();
        Some(NewWebhookEvent { kind, domain: None, link: None, tags: Vec::new(), data: data.to_string() })
    }

    fn counts(&self) -> Value {
        json!({
            "visits": self.visits,
            "bots": self.bots,
            "firstVisit": self.first.to_string(),
            "lastVisit": self.last.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visits(link: i64, visits: u64, samples: usize) -> RecordedVisits {
        RecordedVisits {
            link: (link > 0).then(|| LinkId::from_stored(link)),
            domain: DomainId::DEFAULT,
            tags: vec![7],
            visits,
            bots: 1,
            first: Timestamp::from_second(i64::try_from(visits).unwrap()).unwrap(),
            last: Timestamp::from_second(100).unwrap(),
            samples: vec![json!({ "referer": "r".repeat(1_000) }); samples],
        }
    }

    fn data(event: &NewWebhookEvent) -> Value {
        serde_json::from_str(&event.data).unwrap()
    }

    #[test]
    fn an_event_has_as_many_samples_as_fit() {
        let event = visits(5, 3, 30).event(20);
        assert_eq!(
            (event.kind, event.link, &event.tags),
            (EventKind::Visits.as_str(), Some(LinkId::from_stored(5)), &vec![7])
        );
        assert_eq!(
            (&data(&event)["visits"], data(&event)["sample"].as_array().unwrap().len()),
            (&json!(3), 20)
        );
        let sampled = data(&visits(5, 3, 1_000).event(1_000))["sample"].as_array().unwrap().len();
        assert!((100..SAMPLE_BYTES / 1_000).contains(&sampled), "{sampled}");
        assert_eq!(visits(0, 3, 0).event(20).kind, "orphan-visits.recorded");
    }

    #[test]
    fn a_summary_adds_up_and_belongs_to_no_link() {
        let (one, other) = (visits(5, 3, 1), visits(6, 2, 1));
        let event = RecordedVisits::summary(&[&one, &other]).unwrap();
        assert_eq!((event.kind, event.link, event.domain), (EventKind::Visits.as_str(), None, None));
        let expected = json!({
            "visits": 5, "bots": 2, "links": 2,
            "firstVisit": "1970-01-01T00:00:02Z", "lastVisit": "1970-01-01T00:01:40Z",
        });
        assert_eq!(data(&event), expected);
        assert_eq!(RecordedVisits::summary(&[]), None);
    }

    #[test]
    fn changes_of_links_have_events_and_others_have_none() {
        let events: Vec<_> = Action::ALL.into_iter().filter_map(EventKind::of).collect();
        assert_eq!(events.len(), 5);
        assert_eq!(EventKind::of(Action::BlockLink), Some(EventKind::Blocked));
    }
}
