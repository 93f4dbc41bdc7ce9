//! The port [`Links`] of a process in the simulated world.

use std::sync::Arc;

use async_trait::async_trait;
use codes::LinkId;
use links::{DomainId, Edit, Idempotency, Link, NewLink, Precondition, Slug, Tag, api_key::ApiKeyId};
use numbers::StoreEpoch;
use store::{
    Change, Deleted, Edited, FullLink, InsertError, Inserted, InsertedFull, InsertedNamed, Links, NamedLink,
    Reading, Restored, Source, StoreError,
};
use tokio::sync::mpsc;

use super::super::{database::Database, ways::FaultyStore};
use supply::safety_rule::{self, SafetyRule};

/// Nothing is stored in another history than the one that the numbers are of: the real store asks
/// in its statement.
async fn must_be_of(database: &Database, history: &StoreEpoch) -> Result<(), InsertError> {
    if !database.is_compared() {
        return Err(InsertError::Failed(StoreError::NotCompared));
    }
    match database.epoch().await {
        Ok(epoch) if epoch == *history || !safety_rule::is_on(SafetyRule::History) => Ok(()),
        Ok(_) => Err(InsertError::Failed(StoreError::AnotherHistory)),
        Err(error) => Err(InsertError::Failed(error)),
    }
}

#[async_trait]
impl Links for FaultyStore {
    fn insert_lanes(&self) -> usize {
        2
    }

    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        self.insert_links(history, links).await
    }

    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let (database, history, link) = (Arc::clone(&self.database), history.clone(), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            must_be_of(&database, &history).await?;
            let inserted = database.sqlite.insert_full(&history, &link, &tags, idempotency.as_ref()).await?;
            Ok(match inserted {
                InsertedFull::Stored(_) => InsertedFull::Stored(database.stamp(link.new.id)),
                other => other,
            })
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let (database, link) = (Arc::clone(&self.database), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            let mut inserted = database.sqlite.insert_named(&link, &tags, idempotency.as_ref()).await?;
            if let InsertedNamed::Stored(id, at, _) = &mut inserted {
                *at = database.stamp(*id);
                database.tell(&Change::Links(vec![*id]));
            }
            Ok(inserted)
        })
        .await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        self.read_links(ids, source).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        self.pass(self.database.sqlite.find_slug(domain, slug)).await
    }

    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
        of: Option<ApiKeyId>,
    ) -> Result<Option<Link>, StoreError> {
        self.pass(self.database.sqlite.find_deleted(domain, name, code, of)).await
    }

    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        self.tell_all(&changes).await;
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        self.change(id, self.database.sqlite.edit(id, edit, by)).await
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        self.change(id, self.database.sqlite.delete(id, precondition, by)).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError> {
        self.change(id, self.database.sqlite.restore(id, precondition, keyspaces, by)).await
    }

    async fn take_visits(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
        self.pass(self.database.sqlite.take_visits(wanted)).await
    }

    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError> {
        self.pass(self.database.sqlite.is_spent(id)).await
    }
}
