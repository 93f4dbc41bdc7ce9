//! Webhooks, the outbox of their events, and deliveries.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use links::{
    api_key::ApiKeyId,
    webhook::{
        Delivery, DeliveryId, EventId, NewWebhook, NewWebhookEvent, StoredSecret, Webhook, WebhookEdit,
        WebhookEvent, WebhookId,
    },
};

use crate::{
    Database,
    Lane::{List, LongWrite, Read, Write},
    Result,
    operation::run,
    sql::webhooks,
};

/// An event with its whole body and the webhooks that it is for. Without webhooks it is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FanOut {
    /// The event.
    pub event: EventId,
    /// The body that receivers get.
    pub body: String,
    /// The webhooks, each with the id of its message.
    pub webhooks: Vec<(WebhookId, String)>,
}

/// Counts of deliveries from a fan-out of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FannedOut {
    /// Number of deliveries that were queued.
    pub queued: u64,
    /// Number of deliveries that were dropped, because too many are open for their webhooks.
    pub dropped: u64,
}

/// A delivery that this process is to attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedDelivery {
    /// The delivery.
    pub id: DeliveryId,
    /// Its webhook.
    pub webhook: WebhookId,
    /// The receiver's idempotency key.
    pub message_id: String,
    /// Number of attempts, this one included. With [`due_at`](Self::due_at) it is the fencing token
    /// of the lease.
    pub attempts: u32,
    /// When the attempt was due. A redelivery that is asked for meanwhile is due later.
    pub due_at: Timestamp,
    /// The body.
    pub body: String,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// The delivery, as it was claimed.
    pub delivery: ClaimedDelivery,
    /// Status of the answer.
    pub status: Option<u16>,
    /// Error of the attempt.
    pub error: Option<String>,
    /// Beginning of the answer's body.
    pub excerpt: String,
    /// The next step.
    pub next: AfterAttempt,
    /// Whether the webhook is to be disabled.
    pub disable: Option<Disable>,
}

/// The next step after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAttempt {
    /// Nothing: the receiver has the event.
    Delivered,
    /// Another attempt after this time.
    RetryIn(Duration),
    /// Nothing: the delivery is dead.
    Dead,
}

/// Why a webhook is to be disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disable {
    /// Its receiver wants no more events.
    Gone,
    /// It has failed for too long, unless it has succeeded meanwhile.
    Failing,
}

impl Disable {
    /// Returns the reason for people.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Gone => "the receiver answered 410: it wants no more events",
            Self::Failing => "all deliveries have failed for five days",
        }
    }
}

/// The open deliveries of all webhooks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of open deliveries.
    pub open: u64,
    /// How long the oldest one of an enabled webhook is due.
    pub overdue: Duration,
}

/// Webhooks, the outbox of their events, and deliveries.
///
/// 1. An event of a change is recorded in the transaction of the change. It is turned into
///    deliveries later ([`fan_out`](Self::fan_out)), by one process.
/// 2. A process that attempts a delivery has a lease of it. If it does not report the end in time,
///    another one attempts the delivery again: at least once.
#[async_trait]
pub trait Webhooks: Database {
    /// Returns all webhooks in the order of their creation.
    async fn webhooks(&self) -> Result<Vec<Webhook>> {
        run(self, Read, (), |sql, ()| Box::pin(webhooks::webhooks(sql))).await
    }

    /// Returns a webhook.
    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>> {
        run(self, Read, id, |sql, id| Box::pin(webhooks::webhook(sql, *id))).await
    }

    /// Adds a webhook. Returns `None` if there are `most` of them.
    async fn add_webhook(&self, new: &NewWebhook, most: u32, by: ApiKeyId) -> Result<Option<Webhook>> {
        let args = (new.clone(), most, by);
        run(self, Write, args, |sql, (new, most, by)| Box::pin(webhooks::add_webhook(sql, new, *most, *by)))
            .await
    }

    /// Edits a webhook, and returns it; `None` if it does not exist.
    async fn edit_webhook(&self, id: WebhookId, edit: &WebhookEdit, by: ApiKeyId) -> Result<Option<Webhook>> {
        let args = (id, edit.clone(), by);
        run(self, Write, args, |sql, (id, edit, by)| Box::pin(webhooks::edit_webhook(sql, *id, edit, *by)))
            .await
    }

    /// Replaces the secret of a webhook, and returns it; `None` if it does not exist. The former
    /// secret signs too for `keep`.
    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &StoredSecret,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>> {
        run(self, Write, (id, secret.clone(), keep, by), |sql, (id, secret, keep, by)| {
            Box::pin(webhooks::rotate_webhook(sql, *id, secret, *keep, *by))
        })
        .await
    }

    /// Removes a webhook, and ends its open deliveries. Returns whether it existed.
    async fn remove_webhook(&self, id: WebhookId, by: ApiKeyId) -> Result<bool> {
        run(self, Write, (id, by), |sql, (id, by)| Box::pin(webhooks::remove_webhook(sql, *id, *by))).await
    }

    /// Records events of visits of a store in another database, and sets the position of what was
    /// recorded to `up_to`, in one transaction. Does nothing if the position is there already, so a
    /// retry records nothing twice.
    async fn pass_on_webhook_events(&self, up_to: i64, events: &[NewWebhookEvent]) -> Result<()> {
        run(self, Write, (up_to, events.to_vec()), |sql, (up_to, events)| {
            Box::pin(webhooks::pass_on_webhook_events(sql, *up_to, events))
        })
        .await
    }

    /// Returns at most `most` events without deliveries yet, the oldest first.
    async fn waiting_webhook_events(&self, most: usize) -> Result<Vec<WebhookEvent>> {
        run(self, Read, most, |sql, most| Box::pin(webhooks::waiting_webhook_events(sql, *most))).await
    }

    /// Turns events into deliveries. An event that another process has turned into deliveries, and
    /// a webhook that is disabled or removed, are left out.
    async fn fan_out(&self, events: &[FanOut]) -> Result<FannedOut> {
        run(self, Write, events.to_vec(), |sql, events| Box::pin(webhooks::fan_out(sql, events))).await
    }

    /// Adds a delivery of a test event with this body. Returns `None` if the webhook does not exist
    /// or is disabled.
    async fn add_test_delivery(
        &self,
        webhook: WebhookId,
        message_id: &str,
        body: &str,
    ) -> Result<Option<Delivery>> {
        run(self, Write, (webhook, message_id.to_owned(), body.to_owned()), |sql, (webhook, id, body)| {
            Box::pin(webhooks::add_test_delivery(sql, *webhook, id, body))
        })
        .await
    }

    /// Returns the enabled webhooks with deliveries that are due.
    async fn due_webhooks(&self) -> Result<Vec<Webhook>> {
        run(self, Read, (), |sql, ()| Box::pin(webhooks::due_webhooks(sql))).await
    }

    /// Claims due deliveries for an attempt, at most so many of each webhook, until `lease` from
    /// now.
    async fn claim_deliveries(
        &self,
        most: &[(WebhookId, u32)],
        lease: Duration,
    ) -> Result<Vec<ClaimedDelivery>> {
        let args = (most.to_vec(), lease);
        run(self, Write, args, |sql, (most, lease)| Box::pin(webhooks::claim_deliveries(sql, most, *lease)))
            .await
    }

    /// Records the end of an attempt, unless another process has claimed the delivery since.
    /// Returns whether this disabled the webhook.
    async fn end_attempt(&self, end: &AttemptEnd) -> Result<bool> {
        run(self, Write, end.clone(), |sql, end| Box::pin(webhooks::end_attempt(sql, end))).await
    }

    /// Returns the latest deliveries of a webhook, at most `most`, only those before `before` if
    /// given.
    async fn deliveries(
        &self,
        webhook: WebhookId,
        before: Option<DeliveryId>,
        most: usize,
    ) -> Result<Vec<Delivery>> {
        run(self, List, (webhook, before, most), |sql, (webhook, before, most)| {
            Box::pin(webhooks::deliveries(sql, *webhook, *before, *most))
        })
        .await
    }

    /// Makes a delivery due again, as if it were new; one whose attempt is under way, once that has
    /// ended. Returns `None` if the webhook has no such delivery.
    async fn redeliver(&self, webhook: WebhookId, delivery: DeliveryId) -> Result<Option<Delivery>> {
        run(self, Write, (webhook, delivery), |sql, (webhook, delivery)| {
            Box::pin(webhooks::redeliver(sql, *webhook, *delivery))
        })
        .await
    }

    /// Returns the open deliveries of all webhooks.
    async fn webhook_backlog(&self) -> Result<Backlog> {
        run(self, List, (), |sql, ()| Box::pin(webhooks::webhook_backlog(sql))).await
    }

    /// Removes ended deliveries and events that are older than `kept`, at most `most` of each, and
    /// ends deliveries of webhooks that have been disabled for so long. Returns whether more may be
    /// left.
    async fn purge_webhooks(&self, kept: Duration, most: u32) -> Result<bool> {
        let args = (kept, most);
        run(self, LongWrite, args, |sql, (kept, most)| Box::pin(webhooks::purge_webhooks(sql, *kept, *most)))
            .await
    }
}

impl<D: Database> Webhooks for D {}
