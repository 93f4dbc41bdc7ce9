//! What webhooks are told of stored visits.
//!
//! Visits of a batch are grouped by link, and those that no link redirected by domain. Nothing is
//! collected while no webhook is called for visits.

use std::{cell::Cell, collections::HashMap, time::Duration};

use codes::LinkId;
use jiff::Timestamp;
use links::{
    DomainId,
    webhook::{NewWebhookEvent, RecordedVisits},
};
use serde_json::{Value, json};
use visits::{Event, PlaceText};

use crate::enrich::Derived;

/// Visits of a group that are told of one by one.
const SAMPLES: usize = 20;

/// Bytes of such visits in a minute. They are kept with their deliveries for a week, and visitors
/// could fill the database with them. Events beyond have counts alone.
const SAMPLED_PER_MINUTE: usize = 1 << 20;
const MINUTE: Duration = Duration::from_secs(60);

/// How much may be told of single visits.
#[derive(Debug, Default)]
pub(crate) struct SampleRoom {
    minute: Option<Duration>,
    left: usize,
}

impl SampleRoom {
    /// Returns the bytes that are left of the minute. `now` is the time since any fixed instant.
    pub(crate) fn left(&mut self, now: Duration) -> usize {
        if self.minute.is_none_or(|minute| now >= minute + MINUTE) {
            *self = Self { minute: Some(now), left: SAMPLED_PER_MINUTE };
        }
        self.left
    }

    /// Notes how many bytes a batch has left.
    pub(crate) fn leave(&mut self, left: usize) {
        self.left = left;
    }
}

/// Decides which events tell of visits.
pub trait Announcer: Send + Sync {
    /// Returns whether no webhook is called for visits.
    fn is_idle(&self) -> bool;

    /// Returns the beginning of the URLs of a domain.
    fn base(&self, domain: DomainId) -> String;

    /// Returns the events of some groups of visits.
    fn events(&self, groups: &[RecordedVisits]) -> Vec<NewWebhookEvent>;
}

/// The visits of a batch, by link or domain.
#[derive(Default)]
pub(crate) struct Groups(HashMap<(Option<LinkId>, DomainId), RecordedVisits>);

impl Groups {
    /// Adds a visit that `link` redirected. `tags` are those of the link, and `room` is left for
    /// single visits, in bytes.
    pub(crate) fn add(
        &mut self,
        event: &Event<'_>,
        link: Option<LinkId>,
        derived: &Derived,
        tags: &[i64],
        (announcer, room): (&dyn Announcer, &Cell<usize>),
    ) {
        let at = Timestamp::from_microsecond(event.at).unwrap_or_default();
        let group = self.0.entry((link, event.domain)).or_insert_with(|| RecordedVisits {
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
        if derived.is_listed && group.samples.len() < SAMPLES && room.get() > 0 {
            let sample = sample(event, link, at, derived, &announcer.base(event.domain));
            room.set(room.get().saturating_sub(sample.to_string().len()));
            group.samples.push(sample);
        }
    }

    /// Returns the events of the visits.
    pub(crate) fn events(self, announcer: &dyn Announcer) -> Vec<NewWebhookEvent> {
        let mut groups: Vec<RecordedVisits> = self.0.into_values().collect();
        groups.sort_unstable_by_key(|group| (group.link, group.domain));
        announcer.events(&groups)
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
mod tests {
    use super::*;

    #[test]
    fn the_room_for_single_visits_is_that_of_a_minute() {
        let mut room = SampleRoom::default();
        let at = |second| Duration::from_secs(second);
        assert_eq!(room.left(at(7)), SAMPLED_PER_MINUTE);
        room.leave(100);
        assert_eq!(room.left(at(66)), 100);
        room.leave(0);
        assert_eq!([room.left(at(66)), room.left(at(67))], [0, SAMPLED_PER_MINUTE]);
    }
}
