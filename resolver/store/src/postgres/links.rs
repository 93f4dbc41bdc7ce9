//! The port [`Links`] on Postgres, and events of webhooks within a caller's transaction.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use codes::LinkId;
use links::{
    DomainId, NewLink, Slug,
    webhook::{EventKind, NewWebhookEvent, Subscription},
};
use numbers::StoreEpoch;
use tokio::sync::mpsc;
use tokio_postgres::Transaction;

use super::{PostgresStore, changes, transaction::PostgresSql};
use crate::{
    Change, Database as _, InsertError, Inserted, Links, Reading, Result, Source,
    operation::insert,
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
}

#[async_trait]
impl Links for PostgresStore {
    fn insert_lanes(&self) -> usize {
        self.writers.len()
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        if !self.announces_creates() {
            // Its statement records no events, so that it stays as fast as it is.
            return self.insert_batch(history, links).await;
        }
        insert(self, Some(history), links.to_vec(), |sql, links| {
            Box::pin(create::insert_links(sql, links, true))
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
