//! The port [`Webhooks`] on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    api_key::ApiKeyId,
    webhook::{
        Delivery, DeliveryId, NewWebhook, NewWebhookEvent, StoredSecret, Webhook, WebhookEdit, WebhookEvent,
        WebhookId,
    },
};

use super::SqliteStore;
use crate::{AttemptEnd, Backlog, ClaimedDelivery, FanOut, FannedOut, StoreError, Webhooks, sql};

#[async_trait]
impl Webhooks for SqliteStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.reader.read(async |sql| sql::webhooks(sql).await).await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
        self.reader.read(async move |sql| sql::webhook(sql, id).await).await
    }

    async fn add_webhook(
        &self,
        new: &NewWebhook,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        let new = new.clone();
        self.writer.write(async move |sql| sql::add_webhook(sql, &new, most, by).await).await
    }

    async fn edit_webhook(
        &self,
        id: WebhookId,
        edit: &WebhookEdit,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        let edit = edit.clone();
        self.writer.write(async move |sql| sql::edit_webhook(sql, id, &edit, by).await).await
    }

    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &StoredSecret,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        let (secret, keep) = (secret.clone(), sql::milliseconds(keep));
        self.writer.write(async move |sql| sql::rotate_webhook(sql, id, &secret, keep, by).await).await
    }

    async fn remove_webhook(&self, id: WebhookId, by: ApiKeyId) -> Result<bool, StoreError> {
        self.writer.write(async move |sql| sql::remove_webhook(sql, id, by).await).await
    }

    async fn pass_on_webhook_events(&self, up_to: i64, events: &[NewWebhookEvent]) -> Result<(), StoreError> {
        let events = events.to_vec();
        self.writer.write(async move |sql| sql::pass_on_webhook_events(sql, up_to, &events).await).await
    }

    async fn waiting_webhook_events(&self, most: usize) -> Result<Vec<WebhookEvent>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.reader.read(async move |sql| sql::waiting_webhook_events(sql, most).await).await
    }

    async fn fan_out(&self, events: &[FanOut]) -> Result<FannedOut, StoreError> {
        let events = events.to_vec();
        self.writer.write(async move |sql| sql::fan_out(sql, &events).await).await
    }

    async fn add_test_delivery(
        &self,
        webhook: WebhookId,
        message_id: &str,
        body: &str,
    ) -> Result<Option<Delivery>, StoreError> {
        let (message_id, body) = (message_id.to_owned(), body.to_owned());
        self.writer
            .write(async move |sql| sql::add_test_delivery(sql, webhook, &message_id, &body).await)
            .await
    }

    async fn due_webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.reader.read(async |sql| sql::due_webhooks(sql).await).await
    }

    async fn claim_deliveries(
        &self,
        most: &[(WebhookId, u32)],
        lease: Duration,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        let (most, lease) = (most.to_vec(), sql::milliseconds(lease));
        self.writer.write(async move |sql| sql::claim_deliveries(sql, &most, lease).await).await
    }

    async fn end_attempt(&self, end: &AttemptEnd) -> Result<bool, StoreError> {
        let end = end.clone();
        self.writer.write(async move |sql| sql::end_attempt(sql, &end).await).await
    }

    async fn deliveries(
        &self,
        webhook: WebhookId,
        before: Option<DeliveryId>,
        most: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.lister.read(async move |sql| sql::deliveries(sql, webhook, before, most).await).await
    }

    async fn redeliver(
        &self,
        webhook: WebhookId,
        delivery: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        self.writer.write(async move |sql| sql::redeliver(sql, webhook, delivery).await).await
    }

    async fn webhook_backlog(&self) -> Result<Backlog, StoreError> {
        self.lister.read(async |sql| sql::webhook_backlog(sql).await).await
    }

    async fn purge_webhooks(&self, kept: Duration, most: u32) -> Result<bool, StoreError> {
        self.writer.write(async move |sql| sql::purge_webhooks(sql, kept, most).await).await
    }
}
