//! The port [`Links`] on Postgres, and events of webhooks within a caller's transaction.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use codes::LinkId;
use links::{
    DomainId, Idempotency, Link, NewLink, Slug, Tag,
    webhook::{EventKind, NewWebhookEvent, Subscription},
};
use numbers::StoreEpoch;
use tokio::sync::mpsc;
use tokio_postgres::Transaction;

use super::{
    PostgresStore, changes,
    transaction::{PostgresSql, insert},
};
use crate::{
    Change, FullLink, InsertError, Inserted, InsertedFull, InsertedNamed, Links, NamedLink, Reading, Result,
    Source, sql,
};

/// Records events in a transaction of the caller, such as the one that stores visits.
///
/// # Errors
/// Returns `StoreError` if Postgres refuses the statement. The transaction is then to be rolled
/// back.
pub async fn add_webhook_events(transaction: &Transaction<'_>, events: &[NewWebhookEvent]) -> Result<()> {
    sql::add_webhook_events(&mut PostgresSql(transaction), events).await
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
impl Links for PostgresStore {
    fn insert_lanes(&self) -> usize {
        self.writers.len()
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        // The batch statement records no events, so that it stays as fast as it is.
        match self.tells_creates() {
            true => self.insert_announced(history, links).await,
            false => self.insert_batch(history, links).await,
        }
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let mut connection = self.connection().await.map_err(InsertError::Failed)?;
        insert(&self.address, &mut connection, async |sql| {
            sql.must_be_of(history).await?;
            let inserted = sql::insert_full(sql, link, tags, idempotency).await?;
            if let (InsertedFull::Stored(at), true) = (inserted, self.tells_creates()) {
                sql::record_create(sql, &Link::stored(link.new.id, link.new.draft.clone(), at), tags).await?;
            }
            Ok(inserted)
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let mut connection = self.connection().await.map_err(InsertError::Failed)?;
        insert(&self.address, &mut connection, async |sql| {
            let inserted = sql::insert_named(sql, link, tags, idempotency).await?;
            if let (InsertedNamed::Stored(id, at, version), true) = (inserted, self.tells_creates()) {
                sql::record_create(sql, &link.clone().stored(id, at, version), tags).await?;
            }
            Ok(inserted)
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
