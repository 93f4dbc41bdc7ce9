//! The port [`Links`] on Postgres, and events of webhooks within a caller's transaction.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use codes::LinkId;
use links::{
    DomainId, Idempotency, NewLink, Slug, Tag,
    webhook::{EventKind, NewWebhookEvent, Subscription},
};
use numbers::StoreEpoch;
use tokio::sync::mpsc;
use tokio_postgres::Transaction;

use super::{PostgresStore, changes, transaction::PostgresSql};
use crate::{
    Change, FullLink, InsertError, Inserted, InsertedLink, Links, NamedLink, Reading, Result, Source,
    sql::{create, webhooks},
};

/// Records events in a transaction of the caller, such as the one that stores visits.
///
/// # Errors
/// Returns `StoreError` if Postgres refuses the statement. The transaction is then to be rolled
/// back.
pub async fn add_webhook_events(transaction: &Transaction<'_>, events: &[NewWebhookEvent]) -> Result<()> {
    webhooks::add_webhook_events(&mut PostgresSql(transaction), events).await
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
}

#[async_trait]
impl Links for PostgresStore {
    fn insert_lanes(&self) -> usize {
        self.writers.len()
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        if !self.tells_creates() {
            // Its statement records no events, so that it stays as fast as it is.
            return self.insert_batch(history, links).await;
        }
        self.run_insert(async |sql| {
            sql.must_be_of(history).await?;
            create::insert_links(sql, links, true).await
        })
        .await
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        self.run_insert(async |sql| {
            sql.must_be_of(history).await?;
            create::insert_full(sql, link, tags, idempotency, self.tells_creates()).await
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        self.run_insert(async |sql| {
            create::insert_named(sql, link, tags, idempotency, self.tells_creates()).await
        })
        .await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading> {
        self.read_links(ids, source).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>> {
        self.read_slug(domain, slug).await
    }

    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        changes::tell(&self.address, &changes).await;
    }
}
