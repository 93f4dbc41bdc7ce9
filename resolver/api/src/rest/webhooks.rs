//! `/rest/v3/webhooks`: receivers of events. An addition to Shlink's API.

use app::webhooks::{PER_PAGE, ShownWebhook, WebhookFields};
use dto::{DateTime, Flag};
use jiff::Timestamp;
use links::{
    Tag,
    webhook::{Delivery, DeliveryState, OPEN_MAX, WEBHOOKS_MAX, WebhookEdit},
};

use super::prelude::*;

const WEBHOOKS: &str = "/rest/v3/webhooks";
const WEBHOOK: &str = "/rest/v3/webhooks/{webhook}";
const DELIVERIES: &str = "/rest/v3/webhooks/{webhook}/deliveries";
const REDELIVER: &str = "/rest/v3/webhooks/{webhook}/deliveries/{delivery}/redeliver";

pub(super) fn routes() -> Vec<Route> {
    let of = |method, path, handler, id, summary| {
        Route::new(method, path, handler).document(id, Topic::Webhooks, summary).addition()
    };
    vec![
        of(Method::GET, WEBHOOKS, keyed!(Scope::Admin, list), "listWebhooks", "List webhooks")
            .answers::<dto::WebhookList>("All webhooks, without their secrets."),
        of(Method::POST, WEBHOOKS, keyed!(Scope::Admin, create), "createWebhook", "Create a webhook")
            .text(format!("At most {WEBHOOKS_MAX}. The answer shows its secret, for the only time. Events from the answer on are sent, at least once each; creates only if their resolver could read the settings."))
            .body::<dto::NewWebhook>()
            .answers::<dto::Webhook>("The webhook with its secret.")
            .fails(&[Kind::NoDomain, Kind::NoShortUrl, Kind::TooManyWebhooks]),
        of(Method::GET, WEBHOOK, keyed!(Scope::Admin, get), "getWebhook", "Show a webhook")
            .answers::<dto::Webhook>("The webhook, without its secret."),
        of(Method::PATCH, WEBHOOK, keyed!(Scope::Admin, edit), "editWebhook", "Edit a webhook")
            .text("Absent fields stay as they are. Enabling a webhook forgets its earlier failures, and its open deliveries go on.")
            .optional_body::<dto::WebhookEdit>()
            .answers::<dto::Webhook>("The webhook after the edit."),
        of(Method::DELETE, WEBHOOK, keyed!(Scope::Admin, remove), "removeWebhook", "Remove a webhook")
            .done("The webhook is removed with its deliveries."),
        of(Method::POST, "/rest/v3/webhooks/{webhook}/rotate", keyed!(Scope::Admin, rotate), "rotateWebhook", "Replace the secret of a webhook")
            .text("The answer shows the new secret, for the only time. For 24 hours the former one signs too, so that a receiver can change over meanwhile.")
            .answers::<dto::Webhook>("The webhook with its new secret."),
        of(Method::POST, "/rest/v3/webhooks/{webhook}/test", keyed!(Scope::Admin, test), "testWebhook", "Send a test event")
            .text("An event of the kind `ping`, whatever the webhook is called for. Its delivery shows how it went.")
            .answers::<dto::WebhookDelivery>("The queued delivery.")
            .fails(&[Kind::WebhookDisabled]),
        of(Method::GET, DELIVERIES, keyed!(Scope::Admin, deliveries), "listWebhookDeliveries", "List deliveries of a webhook")
            .text(format!("The latest first, {PER_PAGE} on a page. `before` of the answer leads to the next page; null ends the list. Ended deliveries are listed for a week. At most {OPEN_MAX} are open; further ones are dropped and counted."))
            .query::<dto::BeforeQuery>()
            .answers::<dto::DeliveryPage>("Deliveries."),
        of(Method::POST, REDELIVER, keyed!(Scope::Admin, redeliver), "redeliverEvent", "Send an event again")
            .text("With the same `webhook-id`, by a schedule that begins anew. A delivery that is open is attempted at once.")
            .answers::<dto::WebhookDelivery>("The open delivery."),
    ]
}

impl Fields for dto::NewWebhook {}
impl Fields for dto::WebhookEdit {}

async fn list(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let webhooks = call.api.links.webhooks(by).await?;
    let data = webhooks.iter().map(shown).collect();
    Ok(json(&dto::WebhookList { webhooks: dto::Data { data } }))
}

async fn create(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (fields, wrong): (dto::NewWebhook, FieldErrors) = call.fields()?;
    let fields = WebhookFields {
        url: fields.url,
        events: fields.events,
        domain: fields.domain.value(),
        tag: fields.tag.value(),
        short_code: fields.short_code.value(),
        description: fields.description.value(),
    };
    Ok(with_secret(&call.api.links.create_webhook(fields, wrong, by).await?))
}

async fn get(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(json(&shown(&call.api.links.webhook(&call.parameter(), by).await?)))
}

async fn edit(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (fields, wrong): (dto::WebhookEdit, FieldErrors) = call.fields()?;
    let changes = WebhookEdit {
        url: fields.url.value(),
        kinds: fields.events.value(),
        description: fields.description.change(),
        enabled: fields.enabled.value().map(|Flag(enabled)| enabled),
    };
    Ok(json(&shown(&call.api.links.edit_webhook(&call.parameter(), changes, wrong, by).await?)))
}

async fn remove(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    call.api.links.remove_webhook(&call.parameter(), by).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn rotate(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(with_secret(&call.api.links.rotate_webhook(&call.parameter(), by).await?))
}

async fn test(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    Ok(json(&delivery(&call.api.links.test_webhook(&call.parameter(), by).await?)))
}

async fn deliveries(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let found = call.api.links.webhook_deliveries(&call.parameter(), call.before()?, by).await?;
    let before = found.last().filter(|_| found.len() == PER_PAGE).map(|last| last.id.get());
    let data = found.iter().map(delivery).collect();
    Ok(json(&dto::DeliveryPage { deliveries: dto::Backwards { data, before } }))
}

async fn redeliver(call: &Call, by: &Grant) -> Result<Answer, Problem> {
    let (webhook, queued) = (call.parameter(), call.last_parameter());
    Ok(json(&delivery(&call.api.links.redeliver(&webhook, &queued, by).await?)))
}

fn with_secret(found: &ShownWebhook) -> Answer {
    let secret = Some(found.webhook.secret.reveal());
    json(&dto::Webhook { secret, ..shown(found) })
}

fn time(at: Timestamp) -> DateTime {
    DateTime(at.to_string())
}

fn shown(ShownWebhook { webhook, domain, short_code }: &ShownWebhook) -> dto::Webhook<'_> {
    dto::Webhook {
        id: webhook.id.get(),
        url: &webhook.url,
        events: &webhook.subscription.kinds,
        domain: domain.as_deref(),
        tag: webhook.tag.as_ref().map(Tag::as_str),
        short_code: short_code.as_deref(),
        description: webhook.description.as_deref(),
        date_created: time(webhook.created_at),
        enabled: webhook.disabled.is_none(),
        disabled_reason: webhook.disabled.as_ref().map(|disabled| &*disabled.reason),
        failing_since: webhook.failing_since.map(time),
        dropped_deliveries: webhook.dropped,
        former_secret_until: webhook.former.as_ref().map(|(_, until)| time(*until)),
        secret: None,
    }
}

fn delivery(delivery: &Delivery) -> dto::WebhookDelivery<'_> {
    let is_open = delivery.state == DeliveryState::Open;
    dto::WebhookDelivery {
        id: delivery.id.get(),
        message_id: &delivery.message_id,
        event: &delivery.kind,
        state: delivery.state.as_str(),
        attempts: delivery.attempts,
        date_created: time(delivery.created_at),
        date_due: is_open.then(|| time(delivery.due_at)),
        date_ended: delivery.ended_at.map(time),
        last_status: delivery.last_status,
        last_error: delivery.last_error.as_deref(),
        excerpt: delivery.excerpt.as_deref(),
    }
}
