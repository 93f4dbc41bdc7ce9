//! Webhooks and their deliveries in the words of a language.

use app::webhooks::ShownWebhook;
use links::{
    REMOVED, Tag,
    webhook::{Delivery, DeliveryState, EventKind, Webhook},
};

use crate::{context::Context, locale::Locale};

/// Whether a webhook is called, and whether that works.
pub(super) struct WebhookState {
    /// With `state-` the name of a class of the style sheet.
    pub(super) class: &'static str,
    pub(super) text: String,
    pub(super) detail: Option<String>,
}

impl WebhookState {
    pub(super) fn of(context: &Context<'_>, webhook: &Webhook) -> Self {
        let (class, text) = state_of(webhook);
        let reason = webhook.disabled.as_ref().map(|disabled| disabled.reason.clone());
        let since = webhook.failing_since.map(|at| context.pages.shown_time(&at));
        let since = since.map(|at| context.t.with("webhooks-failing-since", at));
        Self { class, text: context.t.text(text), detail: reason.or(since) }
    }
}

/// Returns the class of a webhook's state, and the name of its text.
fn state_of(webhook: &Webhook) -> (&'static str, &'static str) {
    match (&webhook.disabled, webhook.failing_since) {
        (Some(_), _) => ("disabled", "state-disabled"),
        (None, Some(_)) => ("expired", "webhooks-failing"),
        (None, None) => ("live", "webhooks-enabled"),
    }
}

/// Returns the class of a delivery's state in the style sheet.
pub(super) fn delivery_class(delivery: &Delivery) -> &'static str {
    match delivery.state {
        DeliveryState::Open => "not-yet",
        DeliveryState::Delivered => "live",
        DeliveryState::Dead => "expired",
    }
}

pub(super) fn delivery_text(delivery: &Delivery, t: &Locale) -> String {
    t.text(&format!("webhooks-delivery-{}", delivery.state.as_str()))
}

/// Returns the status and the error of a delivery's last attempt.
pub(super) fn answer_text(delivery: &Delivery) -> String {
    let status = delivery.last_status.map(|status| status.to_string());
    let parts: Vec<String> = status.into_iter().chain(delivery.last_error.clone()).collect();
    parts.join(": ")
}

/// Returns the kinds of events that a form offers, with their texts.
pub(super) fn kinds(t: &Locale) -> Vec<(&'static str, String)> {
    EventKind::NAMES.map(|kind| (kind, event_text(kind, t))).to_vec()
}

/// Returns the text of a kind of events; its name for one of a later release.
pub(super) fn event_text(kind: &str, t: &Locale) -> String {
    t.try_text(&format!("webhooks-event-{}", kind.replace('.', "-"))).unwrap_or_else(|| kind.to_owned())
}

/// Returns what the events of a webhook have to be about.
pub(super) fn conditions(shown: &ShownWebhook, t: &Locale) -> Vec<String> {
    let subscription = &shown.webhook.subscription;
    let named = |is_set: bool, text: &str, name: Option<&str>| {
        is_set.then(|| format!("{}: {}", t.text(text), name.unwrap_or(REMOVED)))
    };
    let tag = shown.webhook.tag.as_ref().map(Tag::as_str);
    let conditions = [
        named(subscription.domain.is_some(), "field-domain", shown.domain.as_deref()),
        named(subscription.tag.is_some(), "field-tag", tag),
        named(subscription.link.is_some(), "column-link", shown.short_code.as_deref()),
    ];
    conditions.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use codes::LinkId;
    use jiff::Timestamp;
    use links::{
        DomainId,
        api_key::OPERATOR,
        webhook::{DeliveryId, Disabled, PING, StoredSecret, Subscription, WebhookId},
    };

    use super::*;
    use crate::locale::{Locales, english};

    fn webhook() -> Webhook {
        Webhook {
            id: WebhookId::from_stored(1),
            url: "https://hooks.example/".to_owned(),
            secret: StoredSecret::new("whsec_x"),
            former: None,
            subscription: Subscription { kinds: Vec::new(), domain: None, tag: None, link: None },
            tag: None,
            description: None,
            created_by: OPERATOR,
            created_at: Timestamp::UNIX_EPOCH,
            disabled: None,
            failing_since: None,
            dropped: 0,
            version: 0,
        }
    }

    #[test]
    fn a_webhook_works_or_fails_or_is_disabled() {
        let failing = Webhook { failing_since: Some(Timestamp::UNIX_EPOCH), ..webhook() };
        let disabled = Disabled { at: Timestamp::UNIX_EPOCH, reason: "x".to_owned() };
        let disabled = Webhook { disabled: Some(disabled), ..failing.clone() };
        let classes = [webhook(), failing, disabled].map(|webhook| state_of(&webhook).0);
        assert_eq!(classes, ["live", "expired", "disabled"]);
    }

    #[test]
    fn a_condition_whose_object_is_gone_is_still_shown() {
        let subscription = Subscription {
            kinds: Vec::new(),
            domain: Some(DomainId::from_stored(3)),
            tag: Some(7),
            link: Some(LinkId::from_stored(9)),
        };
        let webhook = Webhook { subscription, ..webhook() };
        let shown = ShownWebhook { webhook, domain: Some("s.example".to_owned()), short_code: None };
        let expected = ["Domain: s.example", "Tag: (removed)", "Short link: (removed)"];
        assert_eq!(conditions(&shown, english()), expected);
    }

    fn delivery(last_status: Option<u16>, error: Option<&str>) -> Delivery {
        Delivery {
            id: DeliveryId::from_stored(1),
            webhook: WebhookId::from_stored(1),
            message_id: "msg".to_owned(),
            kind: PING.to_owned(),
            state: DeliveryState::Open,
            attempts: 1,
            created_at: Timestamp::UNIX_EPOCH,
            due_at: Timestamp::UNIX_EPOCH,
            last_status,
            last_error: error.map(str::to_owned),
            excerpt: None,
            ended_at: None,
        }
    }

    #[test]
    fn an_answer_has_its_status_and_the_error() {
        assert_eq!(answer_text(&delivery(Some(500), None)), "500");
        assert_eq!(answer_text(&delivery(Some(302), Some("a redirect"))), "302: a redirect");
        assert_eq!(answer_text(&delivery(None, None)), "");
    }

    #[test]
    fn every_state_and_kind_has_a_text_in_every_language() {
        for locale in &Locales::embedded().0 {
            for kind in EventKind::NAMES.into_iter().chain([PING]) {
                assert_ne!(event_text(kind, locale), kind, "{}", locale.tag);
            }
            for state in DeliveryState::ALL {
                let text = delivery_text(&Delivery { state, ..delivery(None, None) }, locale);
                assert!(!text.starts_with("webhooks-"), "{} {state:?}", locale.tag);
            }
            for text in ["webhooks-enabled", "webhooks-failing", "state-disabled"] {
                assert!(locale.try_text(text).is_some(), "{} {text}", locale.tag);
            }
        }
    }
}
