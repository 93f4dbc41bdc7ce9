//! Webhooks: use cases of their owners, and the task that delivers.
//!
//! 1. An event is recorded in the transaction that it tells of, and delivered later: at least once,
//!    in no particular order. A receiver tells repetitions by the message id.
//! 2. Webhooks are for operators only: a webhook sees the links of all keys.
//! 3. A create is announced if its process knew of a webhook for it. A new webhook is answered when
//!    every process knows of it, unless one cannot reach the database.

mod attempt;
mod dispatcher;
mod fan_out;
pub mod metrics;

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use codes::LinkId;
use links::{
    Tag,
    api_key::Grant,
    webhook::{
        DESCRIPTION_BYTES, Delivery, DeliveryId, EventId, EventKind, NewWebhook, PING, Shown, StoredSecret,
        Subscription, WEBHOOKS_MAX, Webhook, WebhookEdit, WebhookEvent, WebhookId, body,
    },
};
use lookup::Lookup;
use store::{Source, Store, StoreError};

use crate::{
    AppError, FieldErrors, LinkService, authorize::require_operator, find_link::LinkName, values::Checked,
};
use ::webhooks::{WebhookUrl, generate_secret};

pub use dispatcher::{Dispatcher, STOP_WITHIN};

/// Number of deliveries on a page.
pub const PER_PAGE: usize = 100;
/// The number of characters of an unknown kind that its error repeats.
const KIND_CHARS_SHOWN: usize = 40;
/// How long the former secret signs too after a rotation.
pub const FORMER_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The fields of a webhook to be created, as the caller wrote them.
#[derive(Clone, Debug, Default)]
pub struct WebhookFields {
    /// Receiver.
    pub url: Option<String>,
    /// Names of the kinds of events.
    pub events: Option<Vec<String>>,
    /// Only events of this domain; `DEFAULT` for the default one.
    pub domain: Option<String>,
    /// Only events of links with this tag.
    pub tag: Option<String>,
    /// Only events of the link with this code, on `domain`.
    pub short_code: Option<String>,
    /// Text for people.
    pub description: Option<String>,
}

/// A webhook with the names that its conditions are known by.
#[derive(Clone, Debug)]
pub struct ShownWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// Name of the domain of its condition.
    pub domain: Option<String>,
    /// Code of the link of its condition.
    pub short_code: Option<String>,
}

impl LinkService {
    /// Returns all webhooks in the order of their creation.
    pub async fn webhooks(&self, by: &Grant) -> Result<Vec<ShownWebhook>, AppError> {
        require_operator(by)?;
        let _turn = self.turns.queries.take(by.id).await?;
        Ok(self.shown_webhooks(self.store.webhooks().await?).await?)
    }

    /// Returns a webhook.
    pub async fn webhook(&self, id: &str, by: &Grant) -> Result<ShownWebhook, AppError> {
        require_operator(by)?;
        let _turn = self.turns.queries.take(by.id).await?;
        let found = self.store.webhook(webhook_id(id)?).await?;
        self.shown_webhook(found.ok_or_else(|| no_webhook(id))?).await
    }

    /// Creates a webhook with a new secret. `wrong` holds the fields that the adapter could not
    /// read.
    pub async fn create_webhook(
        &self,
        fields: WebhookFields,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<ShownWebhook, AppError> {
        require_operator(by)?;
        let url = fields.url.ok_or_else(|| "expected a URL".to_owned());
        let url = wrong.note("url", url.and_then(|url| self.check_webhook_url(&url)));
        let kinds = wrong.note("events", check_kinds(fields.events.unwrap_or_default()));
        let tag = fields.tag.map(|tag| Tag::parse(&tag).map_err(|error| error.to_string())).transpose();
        let tag = wrong.note("tag", tag).flatten();
        let description = wrong.note("description", check_description(fields.description)).flatten();
        wrong.finish()?;
        let mut subscription =
            Subscription { kinds: kinds.unwrap_or_default(), domain: None, tag: None, link: None };
        if let Some(name) = &fields.domain {
            let found = self.domain_cache.find(name).await?;
            subscription.domain = Some(found.ok_or_else(|| AppError::NoDomain(name.clone()))?);
        }
        if let Some(code) = fields.short_code {
            let name = LinkName { code, domain: fields.domain };
            subscription.link = Some(self.find_link(&name, by).await?.id);
        }
        let url = url.ok_or(AppError::Internal)?;
        let new = NewWebhook { url, secret: draw_secret()?, subscription, tag, description };
        let _turn = self.turns.writes.take(by.id).await?;
        let added = self.store.add_webhook(&new, WEBHOOKS_MAX, by.id).await?;
        let added = added.ok_or(AppError::TooManyWebhooks(WEBHOOKS_MAX))?;
        self.domain_cache.show().await;
        self.shown_webhook(added).await
    }

    /// Edits a webhook. The values of `changes` are as the caller wrote them.
    pub async fn edit_webhook(
        &self,
        id: &str,
        changes: WebhookEdit,
        mut wrong: FieldErrors,
        by: &Grant,
    ) -> Result<ShownWebhook, AppError> {
        require_operator(by)?;
        let url = changes.url.map(|url| self.check_webhook_url(&url)).transpose();
        let description = changes.description.map(check_description).transpose();
        let edit = WebhookEdit {
            url: wrong.note("url", url).flatten(),
            kinds: wrong.note("events", changes.kinds.map(check_kinds).transpose()).flatten(),
            description: wrong.note("description", description).flatten(),
            enabled: changes.enabled,
        };
        wrong.finish()?;
        let _turn = self.turns.writes.take(by.id).await?;
        let edited = self.store.edit_webhook(webhook_id(id)?, &edit, by.id).await?;
        let edited = edited.ok_or_else(|| no_webhook(id))?;
        self.domain_cache.show().await;
        self.shown_webhook(edited).await
    }

    /// Removes a webhook with its deliveries.
    pub async fn remove_webhook(&self, id: &str, by: &Grant) -> Result<(), AppError> {
        require_operator(by)?;
        let _turn = self.turns.writes.take(by.id).await?;
        let is_gone = self.store.remove_webhook(webhook_id(id)?, by.id).await?;
        if is_gone { Ok(()) } else { Err(no_webhook(id)) }
    }

    /// Replaces the secret of a webhook. The former one signs too for [`FORMER_FOR`].
    pub async fn rotate_webhook(&self, id: &str, by: &Grant) -> Result<ShownWebhook, AppError> {
        require_operator(by)?;
        let _turn = self.turns.writes.take(by.id).await?;
        let secret = draw_secret()?;
        let store = &self.store;
        let rotated = store.rotate_webhook(webhook_id(id)?, &secret, FORMER_FOR, by.id).await?;
        self.shown_webhook(rotated.ok_or_else(|| no_webhook(id))?).await
    }

    /// Queues a test event for a webhook.
    pub async fn test_webhook(&self, id: &str, by: &Grant) -> Result<Delivery, AppError> {
        require_operator(by)?;
        let _turn = self.turns.writes.take(by.id).await?;
        let (id_found, store) = (webhook_id(id)?, &self.store);
        let event = WebhookEvent {
            id: EventId::from_stored(0),
            kind: PING.to_owned(),
            domain: None,
            link: None,
            tags: Vec::new(),
            data: String::new(),
            at: self.domain_cache.now(),
        };
        let message = fan_out::draw_message_id()?;
        let body = body(&event, &Shown::default());
        if let Some(queued) = store.add_test_delivery(id_found, &message, &body).await? {
            return Ok(queued);
        }
        let is_there = store.webhook(id_found).await?.is_some();
        Err(if is_there { AppError::WebhookDisabled(id.to_owned()) } else { no_webhook(id) })
    }

    /// Returns a page of the deliveries of a webhook that precede `before`, the latest first.
    pub async fn webhook_deliveries(
        &self,
        id: &str,
        before: Option<i64>,
        by: &Grant,
    ) -> Result<Vec<Delivery>, AppError> {
        require_operator(by)?;
        let _turn = self.turns.queries.take(by.id).await?;
        let (found, store) = (webhook_id(id)?, &self.store);
        let before = before.map(DeliveryId::from_stored);
        let deliveries = store.deliveries(found, before, PER_PAGE).await?;
        if deliveries.is_empty() && store.webhook(found).await?.is_none() {
            return Err(no_webhook(id));
        }
        Ok(deliveries)
    }

    /// Returns the latest delivery of each of these webhooks that has one.
    pub async fn last_deliveries(
        &self,
        webhooks: &[ShownWebhook],
        by: &Grant,
    ) -> Result<HashMap<WebhookId, Delivery>, AppError> {
        require_operator(by)?;
        let _turn = self.turns.queries.take(by.id).await?;
        let mut last = HashMap::new();
        for ShownWebhook { webhook, .. } in webhooks {
            let latest = self.store.deliveries(webhook.id, None, 1).await?;
            last.extend(latest.into_iter().map(|delivery| (webhook.id, delivery)));
        }
        Ok(last)
    }

    /// Makes a delivery due again, with the same message id.
    pub async fn redeliver(&self, id: &str, delivery: &str, by: &Grant) -> Result<Delivery, AppError> {
        require_operator(by)?;
        let _turn = self.turns.writes.take(by.id).await?;
        let (webhook, store) = (webhook_id(id)?, &self.store);
        if store.webhook(webhook).await?.is_none() {
            return Err(no_webhook(id));
        }
        let missing = || AppError::NoDelivery(delivery.to_owned());
        let number = number(delivery).map(DeliveryId::from_stored).ok_or_else(missing)?;
        store.redeliver(webhook, number).await?.ok_or_else(missing)
    }

    fn check_webhook_url(&self, text: &str) -> Checked<String> {
        let url = WebhookUrl::parse(text, &self.webhook_policy).map_err(|error| error.to_string())?;
        Ok(url.as_str().to_owned())
    }

    async fn shown_webhook(&self, webhook: Webhook) -> Result<ShownWebhook, AppError> {
        self.shown_webhooks(vec![webhook]).await?.pop().ok_or(AppError::Internal)
    }

    async fn shown_webhooks(&self, webhooks: Vec<Webhook>) -> Result<Vec<ShownWebhook>, StoreError> {
        let links = webhooks.iter().filter_map(|one| one.subscription.link).collect();
        let codes = codes_of(&*self.store, &self.lookup, links).await?;
        let default = || self.domain_cache.default_name().to_owned();
        let shown = |webhook: Webhook| {
            let Subscription { domain, link, .. } = webhook.subscription;
            let domain = domain.map(|id| self.domain_cache.shown_name(id).unwrap_or_else(default));
            let short_code = link.and_then(|id| codes.get(&id).cloned());
            ShownWebhook { webhook, domain, short_code }
        };
        Ok(webhooks.into_iter().map(shown).collect())
    }
}

async fn codes_of(
    store: &dyn Store,
    lookup: &Lookup,
    links: BTreeSet<LinkId>,
) -> Result<HashMap<LinkId, String>, StoreError> {
    if links.is_empty() {
        return Ok(HashMap::new());
    }
    let ids: Vec<LinkId> = links.into_iter().collect();
    let links = store.read(&ids, Source::Primary).await?.into_links();
    Ok(links.iter().filter_map(|link| Some((link.id, lookup.name_of(link)?))).collect())
}

fn draw_secret() -> Result<StoredSecret, AppError> {
    let secret = generate_secret().map_err(|error| {
        tracing::error!(%error, "draw a secret");
        AppError::Internal
    })?;
    Ok(StoredSecret::new(&secret))
}

fn check_kinds(names: Vec<String>) -> Checked<Vec<String>> {
    let mut kinds: Vec<String> = Vec::new();
    for name in names {
        if EventKind::parse(&name).is_none() {
            let shown: String = name.chars().take(KIND_CHARS_SHOWN).collect();
            return Err(format!("expected some of {}, found {shown:?}", EventKind::NAMES.join(", ")));
        }
        if !kinds.contains(&name) {
            kinds.push(name);
        }
    }
    if kinds.is_empty() {
        return Err(format!("expected at least one of {}", EventKind::NAMES.join(", ")));
    }
    Ok(kinds)
}

/// Checks a description. An empty one counts as none.
fn check_description(text: Option<String>) -> Checked<Option<String>> {
    let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let fits = |text: &String| text.len() <= DESCRIPTION_BYTES && !text.chars().any(char::is_control);
    if text.as_ref().is_none_or(fits) {
        return Ok(text);
    }
    Err(format!("expected a text of at most {DESCRIPTION_BYTES} bytes without control characters"))
}

fn webhook_id(text: &str) -> Result<WebhookId, AppError> {
    number(text).map(WebhookId::from_stored).ok_or_else(|| no_webhook(text))
}

/// Parses a number as answers show it. Another spelling of it is no id.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| *number > 0 && number.to_string() == text)
}

fn no_webhook(id: &str) -> AppError {
    AppError::NoWebhook(id.to_owned())
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use links::api_key::OPERATOR;

    use super::*;

    /// A webhook that is called for nothing.
    pub(super) fn webhook(id: i64, url: &str) -> Webhook {
        Webhook {
            id: WebhookId::from_stored(id),
            url: url.to_owned(),
            secret: StoredSecret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
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
    fn kinds_are_known_and_named_once() {
        let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let twice = check_kinds(texts(&["link.deleted", "link.created", "link.deleted"]));
        assert_eq!(twice, Ok(texts(&["link.deleted", "link.created"])));
        for wrong in [&[][..], &["ping"], &["link.created", "Link.created"], &[&*"ä".repeat(1_000)]] {
            let error = check_kinds(texts(wrong)).unwrap_err();
            assert!(error.starts_with("expected") && error.len() < 300, "{error}");
        }
    }

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(number("12"), Some(12));
        for wrong in ["", "0", "-1", "+1", "01", "1 ", "9223372036854775808", "x"] {
            assert_eq!(number(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_description_is_one_line_or_none() {
        let check = |text: &str| check_description(Some(text.to_owned()));
        assert_eq!(check(" a "), Ok(Some("a".to_owned())));
        assert_eq!(check("  "), Ok(None));
        assert!(check("a\nb").is_err() && check(&"x".repeat(DESCRIPTION_BYTES + 1)).is_err());
    }
}
