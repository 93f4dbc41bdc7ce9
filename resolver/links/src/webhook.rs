//! Webhooks as they are stored: receivers of events, the events, and their deliveries.
//!
//! Addresses, signatures and the schedule of attempts are not known here, so a URL and a secret are
//! texts, and a kind of event is a name.

mod body;
mod event;

use std::fmt;

use jiff::Timestamp;
use url::Url;

use crate::{DomainId, Tag, api_key::ApiKeyId};
use codes::LinkId;

pub use body::{BODY_BYTES, Shown, body};
pub use event::{EventId, EventKind, NewWebhookEvent, PING, RecordedVisits, WebhookEvent};

/// Maximum number of webhooks.
pub const WEBHOOKS_MAX: u32 = 100;
/// Maximum number of open deliveries of a webhook. Further ones are dropped and counted.
pub const OPEN_MAX: u32 = 10_000;
/// Maximum length of a description, in bytes.
pub const DESCRIPTION_BYTES: usize = 255;

codes::stored_number! {
    /// Number of a webhook in the database.
    pub struct WebhookId(i64);
}

impl fmt::Display for WebhookId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A secret as it is stored. Its debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct StoredSecret(Box<str>);

impl StoredSecret {
    /// Wraps a secret.
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the secret.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StoredSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredSecret(hidden)")
    }
}

/// The events of a webhook: their kinds by name, and conditions that all have to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Names of kinds, of [`EventKind::NAMES`].
    pub kinds: Vec<String>,
    /// Only events of this domain.
    pub domain: Option<DomainId>,
    /// Only events of links with the tag of this number.
    pub tag: Option<i64>,
    /// Only events of this link.
    pub link: Option<LinkId>,
}

impl Subscription {
    /// Returns whether the webhook is called for an event: every condition that is set has to hold.
    /// All are ids, so that a domain or a tag that is renamed keeps its webhooks.
    pub fn matches(&self, kind: &str, domain: Option<DomainId>, link: Option<LinkId>, tags: &[i64]) -> bool {
        // A webhook for one link follows it to other domains.
        let is_on_domain = self.link.is_some() || self.domain.is_none() || self.domain == domain;
        self.kinds.iter().any(|asked| asked == kind)
            && is_on_domain
            && self.tag.is_none_or(|tag| tags.contains(&tag))
            && (self.link.is_none() || self.link == link)
    }
}

/// Why and since when a webhook is disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disabled {
    /// The time.
    pub at: Timestamp,
    /// The reason, for people.
    pub reason: String,
}

/// A stored webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Number.
    pub id: WebhookId,
    /// Receiver.
    pub url: String,
    /// Secret that signs.
    pub secret: StoredSecret,
    /// Secret before the last rotation, with the end of its use.
    pub former: Option<(StoredSecret, Timestamp)>,
    /// Its events.
    pub subscription: Subscription,
    /// Name of the tag of the subscription; `None` also for a tag that was deleted.
    pub tag: Option<Tag>,
    /// Text for people.
    pub description: Option<String>,
    /// API key that created the webhook.
    pub created_by: ApiKeyId,
    /// Creation time.
    pub created_at: Timestamp,
    /// Whether the webhook is disabled.
    pub disabled: Option<Disabled>,
    /// First failed attempt since the last success.
    pub failing_since: Option<Timestamp>,
    /// Number of deliveries that were dropped, because [`OPEN_MAX`] were open.
    pub dropped: u64,
    /// Version, which grows with each change by an API key.
    pub version: u64,
}

/// Returns the host of a receiver's URL, without path and query, which may carry a token.
pub fn host(url: &str) -> String {
    Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
}

/// A webhook to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// Receiver.
    pub url: String,
    /// Secret.
    pub secret: StoredSecret,
    /// Its events. The number of the tag follows from `tag`.
    pub subscription: Subscription,
    /// Tag of the subscription. It is added if it does not exist.
    pub tag: Option<Tag>,
    /// Text for people.
    pub description: Option<String>,
}

/// A partial update of a webhook; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookEdit {
    /// Receiver.
    pub url: Option<String>,
    /// Names of the kinds of events.
    pub kinds: Option<Vec<String>>,
    /// Text for people; `Some(None)` removes it.
    pub description: Option<Option<String>>,
    /// Whether the webhook is called. Enabling it forgets earlier failures.
    pub enabled: Option<bool>,
}

codes::stored_number! {
    /// Number of a delivery in the database.
    pub struct DeliveryId(i64);
}

codes::named_values! {
    /// How far a delivery has come. The numbers are stored.
    pub enum DeliveryState {
        /// Another attempt is due, now or later.
        Open = 0 => "open",
        /// The receiver has the event.
        Delivered = 1 => "delivered",
        /// Every attempt failed, and there is no other one.
        Dead = 2 => "dead",
    }
}

impl DeliveryState {
    /// Returns the state as it is stored.
    pub const fn stored(self) -> i64 {
        self as i64
    }

    /// Reads a stored state.
    pub fn from_stored(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.stored() == number)
    }
}

/// A delivery with its last attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Number.
    pub id: DeliveryId,
    /// Webhook.
    pub webhook: WebhookId,
    /// Receiver's idempotency key, the same in all attempts.
    pub message_id: String,
    /// Name of the event's kind.
    pub kind: String,
    /// How far it has come.
    pub state: DeliveryState,
    /// Number of attempts, the one under way included.
    pub attempts: u32,
    /// When the delivery was queued.
    pub created_at: Timestamp,
    /// When the next attempt of an open delivery is due.
    pub due_at: Timestamp,
    /// Status of the last answer.
    pub last_status: Option<u16>,
    /// Error of the last attempt.
    pub last_error: Option<String>,
    /// Beginning of the last answer's body.
    pub excerpt: Option<String>,
    /// When the delivery ended.
    pub ended_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_that_is_set_has_to_hold() {
        let domain = |number| Some(DomainId::from_stored(number));
        let link = |number| Some(LinkId::from_stored(number));
        let (tags, none): (&[i64], &[i64]) = (&[500, 501], &[]);
        let edit = ("link.updated", domain(3), link(40), tags);
        let orphans = ("orphan-visits.recorded", domain(3), None, none);
        let of_domains = ("orphan-visits.recorded", None, None, none);
        let kinds = vec![edit.0.to_owned(), orphans.0.to_owned()];
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
            let found = [edit, orphans, of_domains]
                .map(|(kind, domain, link, tags)| subscription.matches(kind, domain, link, tags));
            assert_eq!(found, [is_for_edit, is_for_orphans, is_for_domains], "{subscription:?}");
        }
    }

    #[test]
    fn neither_a_secret_nor_the_path_of_a_url_is_shown() {
        assert_eq!(format!("{:?}", StoredSecret::new("whsec_x")), "StoredSecret(hidden)");
        assert_eq!(host("https://a.test:8080/token?x=1"), "a.test");
        assert_eq!(host("no URL"), "");
    }
}
