//! The port [`Webhooks`] of a process in the simulated world.

use std::time::Duration;

use async_trait::async_trait;
use links::{
    api_key::ApiKeyId,
    webhook::{
        Delivery, DeliveryId, NewWebhook, NewWebhookEvent, StoredSecret, Webhook, WebhookEdit, WebhookEvent,
        WebhookId,
    },
};
use store::{AttemptEnd, Backlog, ClaimedDelivery, FanOut, FannedOut, StoreError, Webhooks};

use super::super::ways::FaultyStore;

#[async_trait]
impl Webhooks for FaultyStore {
    async fn webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.pass(self.database.sqlite.webhooks()).await
    }

    async fn webhook(&self, id: WebhookId) -> Result<Option<Webhook>, StoreError> {
        self.pass(self.database.sqlite.webhook(id)).await
    }

    async fn add_webhook(
        &self,
        new: &NewWebhook,
        most: u32,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.pass(self.database.sqlite.add_webhook(new, most, by)).await
    }

    async fn edit_webhook(
        &self,
        id: WebhookId,
        edit: &WebhookEdit,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.pass(self.database.sqlite.edit_webhook(id, edit, by)).await
    }

    async fn rotate_webhook(
        &self,
        id: WebhookId,
        secret: &StoredSecret,
        keep: Duration,
        by: ApiKeyId,
    ) -> Result<Option<Webhook>, StoreError> {
        self.pass(self.database.sqlite.rotate_webhook(id, secret, keep, by)).await
    }

    async fn remove_webhook(&self, id: WebhookId, by: ApiKeyId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.remove_webhook(id, by)).await
    }

    async fn pass_on_webhook_events(&self, up_to: i64, events: &[NewWebhookEvent]) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.pass_on_webhook_events(up_to, events)).await
    }

    async fn waiting_webhook_events(&self, most: usize) -> Result<Vec<WebhookEvent>, StoreError> {
        self.pass(self.database.sqlite.waiting_webhook_events(most)).await
    }

    async fn fan_out(&self, events: &[FanOut]) -> Result<FannedOut, StoreError> {
        self.pass(self.database.sqlite.fan_out(events)).await
    }

    async fn add_test_delivery(
        &self,
        webhook: WebhookId,
        message_id: &str,
        body: &str,
    ) -> Result<Option<Delivery>, StoreError> {
        self.pass(self.database.sqlite.add_test_delivery(webhook, message_id, body)).await
    }

    async fn due_webhooks(&self) -> Result<Vec<Webhook>, StoreError> {
        self.pass(self.database.sqlite.due_webhooks()).await
    }

    async fn claim_deliveries(
        &self,
        most: &[(WebhookId, u32)],
        lease: Duration,
    ) -> Result<Vec<ClaimedDelivery>, StoreError> {
        self.pass(self.database.sqlite.claim_deliveries(most, lease)).await
    }

    async fn end_attempt(&self, end: &AttemptEnd) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.end_attempt(end)).await
    }

    async fn deliveries(
        &self,
        webhook: WebhookId,
        before: Option<DeliveryId>,
        most: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.pass(self.database.sqlite.deliveries(webhook, before, most)).await
    }

    async fn redeliver(
        &self,
        webhook: WebhookId,
        delivery: DeliveryId,
    ) -> Result<Option<Delivery>, StoreError> {
        self.pass(self.database.sqlite.redeliver(webhook, delivery)).await
    }

    async fn webhook_backlog(&self) -> Result<Backlog, StoreError> {
        self.pass(self.database.sqlite.webhook_backlog()).await
    }

    async fn purge_webhooks(&self, kept: Duration, most: u32) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.purge_webhooks(kept, most)).await
    }
}
