//! Turns recorded events into deliveries: finds the webhooks that each is for, and writes its body.

use std::collections::HashMap;

use codes::LinkId;
use links::{
    api_key::random_hex,
    webhook::{Shown, Webhook, WebhookEvent, body},
};
use store::{FanOut, StoreError};

use super::{codes_of, dispatcher::Dispatcher};
use crate::AppError;

const PAGE: usize = 100;
/// Maximum number of such transactions in a row. Attempts are started between them.
const PAGES_MAX: usize = 10;

impl Dispatcher {
    /// Turns recorded events into deliveries. Another process may do the same: each event is turned
    /// once.
    pub(super) async fn fan_out(&self) -> Result<(), StoreError> {
        for _ in 0..PAGES_MAX {
            let events = self.store.waiting_webhook_events(PAGE).await?;
            if events.is_empty() {
                return Ok(());
            }
            let webhooks = self.store.webhooks().await?;
            let enabled: Vec<&Webhook> =
                webhooks.iter().filter(|webhook| webhook.disabled.is_none()).collect();
            // Events of visits record no codes.
            let of_visits = events.iter().filter(|event| event.kind.ends_with("visits.recorded"));
            let links = of_visits.filter_map(|event| event.link).collect();
            let codes = codes_of(&*self.store, &self.lookup, links).await?;
            let plan = |event: &WebhookEvent| self.plan(event, &enabled, &codes);
            let plans = events.iter().map(plan).collect::<Result<Vec<_>, _>>()?;
            let done = self.store.fan_out(&plans).await?;
            self.metrics.dropped.increment(done.dropped);
            if events.len() < PAGE {
                return Ok(());
            }
        }
        Ok(())
    }

    fn plan(
        &self,
        event: &WebhookEvent,
        enabled: &[&Webhook],
        codes: &HashMap<LinkId, String>,
    ) -> Result<FanOut, StoreError> {
        let mut webhooks = Vec::new();
        let WebhookEvent { kind, domain, link, tags, .. } = event;
        for webhook in enabled {
            if webhook.subscription.matches(kind, *domain, *link, tags) {
                let message = draw_message_id().map_err(|_| StoreError::Stopped)?;
                webhooks.push((webhook.id, message));
            }
        }
        let text = if webhooks.is_empty() { String::new() } else { body(event, &self.shown(event, codes)) };
        Ok(FanOut { event: event.id, body: text, webhooks })
    }

    fn shown(&self, event: &WebhookEvent, codes: &HashMap<LinkId, String>) -> Shown {
        let recorded = || event.slug();
        let stored = || event.link.and_then(|id| codes.get(&id).cloned());
        let minted = || event.link.and_then(|id| self.lookup.name(id, None));
        let short_code = recorded().or_else(stored).or_else(minted);
        let url = |code: &String| Some(format!("{}/{code}", self.domain_cache.base(event.domain?)));
        Shown {
            short_url: short_code.as_ref().and_then(url),
            short_code,
            domain: event.domain.and_then(|domain| self.domain_cache.shown_name(domain)),
        }
    }
}

/// Draws the id of a message: 128 random bits, so that no two databases have the same. It has no
/// full stop, which separates the id from the rest of what is signed.
pub(super) fn draw_message_id() -> Result<String, AppError> {
    let digits = random_hex::<16>().map_err(|error| {
        tracing::error!(%error, "draw the id of a message");
        AppError::Internal
    })?;
    Ok(format!("msg_{digits}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_ids_are_valid_and_differ() {
        let (one, other) = (draw_message_id().unwrap(), draw_message_id().unwrap());
        assert_ne!(one, other);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        assert!(one.len() <= 64 && one.bytes().all(is_plain), "{one}");
    }
}
