//! The port [`Webhooks`] on Postgres, and its events within a caller's transaction.

use std::{sync::atomic::Ordering, time::Duration};

use async_trait::async_trait;
use links::{
    NewLink,
    api_key::ApiKeyId,
    webhook::{
        Delivery, DeliveryId, EventKind, NewWebhook, NewWebhookEvent, StoredSecret, Subscription, Webhook,
        WebhookEdit, WebhookEvent, WebhookId,
    },
};
use numbers::StoreEpoch;
use tokio_postgres::Transaction;

use super::{
    PostgresStore,
    transaction::{SharedSql, insert},
};
use crate::{
    AttemptEnd, Backlog, ClaimedDelivery, FanOut, FannedOut, InsertError, Inserted, StoreError, Webhooks, sql,
};

/// Records events in a transaction of the caller, such as the one that stores visits.
///
/// # Errors
/// Returns [`StoreError`] if Postgres refuses the statement. The transaction is then to be rolled
/// back.
pub async fn add_webhook_events(
    transaction: &Transaction<'_>,
    events: &[NewWebhookEvent],
) -> Result<(), StoreError> {
    sql::add_webhook_events(&mut SharedSql(transaction), events).await
}

impl PostgresStore {
    /// Notes whether a webhook is called for new links. Each insert of a link would otherwise ask.
    pub(super) fn note_subscriptions(&self, subscriptions: &[Subscription]) {
        let creates = |one: &Subscription| one.kinds.iter().any(|kind| kind == EventKind::Created.as_str());
        self.tells_creates.store(subscriptions.iter().any(creates), Ordering::Relaxed);
    }

    /// Returns whether a webhook was called for new links at the last poll of the settings.
    pub(super) fn tells_creates(&self) -> bool {
        self.tells_creates.load(Ordering::Relaxed)
    }

    /// Inserts links with an event for each.
    pub(super) async fn insert_announced(
        &self,
        history: &StoreEpoch,
        links: &[NewLink],
    ) -> Result<Vec<Inserted>, InsertError> {
        let mut connection = self.connection().await.map_err(InsertError::Failed)?;
        insert(&self.address, &mut connection, async |sql| {
            sql.must_be_of(history).await?;
            sql::insert_announced(sql, links).await
        })
        .await
    }
}

#[async_trait]
impl Webhooks for PostgresStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.run(async |sql| sql::webhooks(sql).await).await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
        self.run(async |sql| sql::webhook(sql, id).await).await
    }

    async fn add_webhook(
        &self,
        new: &NewWebhook,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.run(async |sql| sql::add_webhook(sql, new, most, by).await).await
    }

    async fn edit_webhook(
        &self,
        id: WebhookId,
        edit: &WebhookEdit,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.run(async |sql| sql::edit_webhook(sql, id, edit, by).await).await
    }

    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &StoredSecret,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        let keep = sql::milliseconds(keep);
        self.run(async |sql| sql::rotate_webhook(sql, id, secret, keep, by).await).await
    }

    async fn remove_webhook(&self, id: WebhookId, by: ApiKeyId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::remove_webhook(sql, id, by).await).await
    }

    async fn pass_on_webhook_events(&self, up_to: i64, events: &[NewWebhookEvent]) -> Result<(), StoreError> {
        self.run(async |sql| sql::pass_on_webhook_events(sql, up_to, events).await).await
    }

    async fn waiting_webhook_events(&self, most: usize) -> Result<Vec<WebhookEvent>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run(async |sql| sql::waiting_webhook_events(sql, most).await).await
    }

    async fn fan_out(&self, events: &[FanOut]) -> Result<FannedOut, StoreError> {
        self.run(async |sql| sql::fan_out(sql, events).await).await
    }

    async fn add_test_delivery(
        &self,
        webhook: WebhookId,
        message_id: &str,
        body: &str,
    ) -> Result<Option<Delivery>, StoreError> {
        self.run(async |sql| sql::add_test_delivery(sql, webhook, message_id, body).await).await
    }

    async fn due_webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.run(async |sql| sql::due_webhooks(sql).await).await
    }

    async fn claim_deliveries(
        &self,
        most: &[(WebhookId, u32)],
        lease: Duration,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let lease = sql::milliseconds(lease);
        self.run(async |sql| sql::claim_deliveries(sql, most, lease).await).await
    }

    async fn end_attempt(&self, end: &AttemptEnd) -> Result<bool, StoreError> {
        self.run(async |sql| sql::end_attempt(sql, end).await).await
    }

    async fn deliveries(
        &self,
        webhook: WebhookId,
        before: Option<DeliveryId>,
        most: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.run_on(&self.lists, async |sql| sql::deliveries(sql, webhook, before, most).await).await
    }

    async fn redeliver(
        &self,
        webhook: WebhookId,
        delivery: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        self.run(async |sql| sql::redeliver(sql, webhook, delivery).await).await
    }

    async fn webhook_backlog(&self) -> Result<Backlog, StoreError> {
        self.run_on(&self.lists, async |sql| sql::webhook_backlog(sql).await).await
    }

    async fn purge_webhooks(&self, kept: Duration, most: u32) -> Result<bool, StoreError> {
        self.run_long(async |sql| sql::purge_webhooks(sql, kept, most).await).await
    }
}
