//! The store as one process reaches it: the real SQLite store behind a faulty connection (`ways`).
//!
//! Every operation passes through [`Database::run`]. The methods below do what Postgres does and
//! SQLite does not, or tell the simulation what has changed.

use std::sync::Arc;

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{BulkRefusal, Edit, Idempotency, NewLink, Precondition, Record, Refusal, Tag, api_key::ApiKeyId};
use numbers::{Mark, StoreEpoch};
use store::{
    Advanced, BatchLink, BlockEntry, BulkBatch, Change, Comparison, CustomSlugLink, Database, Done, FullLink,
    InsertError, Inserted, InsertedLink, Lane, Links, Operation, Reading, Register, Registration, Schema,
    Settings, SettingsPoll, SettingsVersion, Source, Store, StoreError, Under,
};
use tokio::sync::{mpsc, watch};

use super::{
    database,
    rules::{self, StoreRule},
    ways::FaultyStore,
};

#[async_trait]
impl Database for FaultyStore {
    fn is_shared(&self) -> bool {
        true
    }

    async fn run(&self, lane: Lane, operation: Operation) -> Result<Done, StoreError> {
        self.pass(self.database.sqlite.run(lane, operation)).await
    }

    /// Never called: the inserts below have faults of their own.
    async fn run_insert(&self, under: Option<Under<'_>>, insert: Operation) -> Result<Done, InsertError> {
        self.database.sqlite.run_insert(under, insert).await
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        self.pass(self.database.sqlite.migrate()).await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        self.pass(self.database.sqlite.schema()).await
    }
}

#[async_trait]
impl Settings for FaultyStore {
    async fn poll_settings(&self, known: Option<&SettingsVersion>) -> Result<SettingsPoll, StoreError> {
        self.poll(known).await
    }
}

#[async_trait]
impl Register for FaultyStore {
    async fn take_over_block(&self, block: &BlockEntry, leaked: u64) -> Result<Registration, StoreError> {
        self.pass(async {
            if !rules::keep(StoreRule::OpenReservation) {
                self.database.forget_holders(block, leaked);
            }
            self.database.sqlite.take_over_block(block, leaked).await
        })
        .await
    }

    async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        self.pass(self.database.epoch()).await
    }

    async fn advance(&self, at_least: Mark, how: Comparison) -> Result<Advanced, StoreError> {
        self.pass(async {
            match how.since {
                Some(seen) if Some(seen) != *self.database.start.borrow() => Ok(Advanced::Restarted),
                seen => {
                    let advanced = self.database.sqlite.advance(at_least, how).await?;
                    if seen.is_some() {
                        self.database.note_compared();
                    }
                    Ok(advanced)
                }
            }
        })
        .await
    }

    fn server_start(&self) -> Option<watch::Receiver<Option<Timestamp>>> {
        Some(self.database.start.subscribe())
    }
}

/// Nothing is stored in another history than the one that the numbers are of: the real store asks
/// in its statement.
async fn must_be_of(database: &database::Database, history: &StoreEpoch) -> Result<(), InsertError> {
    if !database.is_compared() {
        return Err(InsertError::Failed(StoreError::NotCompared));
    }
    match database.epoch().await {
        Ok(epoch) if epoch == *history || !rules::keep(StoreRule::History) => Ok(()),
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
    ) -> Result<InsertedLink, InsertError> {
        let (database, history, link) = (Arc::clone(&self.database), history.clone(), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            must_be_of(&database, &history).await?;
            let mut inserted =
                database.sqlite.insert_full(&history, &link, &tags, idempotency.as_ref()).await?;
            if let InsertedLink::Stored(id, at, _) = &mut inserted {
                *at = database.stamp(*id);
            }
            Ok(inserted)
        })
        .await
    }

    async fn insert_slugs(&self, links: &[NewLink]) -> Result<Vec<Option<Timestamp>>, InsertError> {
        let (database, links) = (Arc::clone(&self.database), links.to_vec());
        self.write(async move {
            let mut stored = database.sqlite.insert_slugs(&links).await?;
            for (link, stored) in links.iter().zip(&mut stored) {
                if let Some(at) = stored {
                    *at = database.stamp(link.id);
                    database.tell(&Change::Links(vec![link.id]));
                }
            }
            Ok(stored)
        })
        .await
    }

    async fn insert_with_slug(
        &self,
        link: &CustomSlugLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        let (database, link) = (Arc::clone(&self.database), link.clone());
        let (tags, idempotency) = (tags.to_vec(), idempotency.cloned());
        self.write(async move {
            let mut inserted = database.sqlite.insert_with_slug(&link, &tags, idempotency.as_ref()).await?;
            if let InsertedLink::Stored(id, at, _) = &mut inserted {
                let id = *id;
                *at = database.stamp(id);
                database.tell(&Change::Links(vec![id]));
            }
            Ok(inserted)
        })
        .await
    }

    async fn insert_together(
        &self,
        history: Option<&StoreEpoch>,
        links: &Arc<Vec<BatchLink>>,
    ) -> Result<Vec<Option<(LinkId, Timestamp, u64)>>, InsertError> {
        let (database, history, links) = (Arc::clone(&self.database), history.cloned(), Arc::clone(links));
        self.write(async move {
            if let Some(history) = &history {
                must_be_of(&database, history).await?;
            }
            let mut stored = database.sqlite.insert_together(history.as_ref(), &links).await?;
            for (link, stored) in links.iter().zip(&mut stored) {
                if let Some((id, at, _)) = stored {
                    *at = database.stamp(*id);
                    if link.claimed().is_none() {
                        database.tell(&Change::Links(vec![*id]));
                    }
                }
            }
            Ok(stored)
        })
        .await
    }

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        self.read_links(ids, source).await
    }

    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        self.tell_all(&changes).await;
    }

    async fn edit(
        &self,
        id: LinkId,
        edit: &Edit,
        by: ApiKeyId,
    ) -> Result<Result<Record, Refusal>, StoreError> {
        self.change(id, self.database.sqlite.edit(id, edit, by)).await
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Result<(), Refusal>, StoreError> {
        self.change(id, self.database.sqlite.delete(id, precondition, by)).await
    }

    async fn change_many(&self, batch: &BulkBatch) -> Result<Vec<Result<bool, BulkRefusal>>, StoreError> {
        let ids: Vec<LinkId> = batch.items.iter().map(|(id, _)| *id).collect();
        self.change_all(&ids, self.database.sqlite.change_many(batch)).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Result<Record, Refusal>, StoreError> {
        self.change(id, self.database.sqlite.restore(id, precondition, keyspaces, by)).await
    }
}
