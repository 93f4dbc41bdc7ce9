//! The port [`Links`] on Postgres.

use async_trait::async_trait;
use codes::LinkId;
use links::{DomainId, Edit, Idempotency, Link, NewLink, Precondition, Slug, Tag, api_key::ApiKeyId};
use numbers::StoreEpoch;
use tokio::sync::mpsc;

use super::{PostgresStore, changes, transaction::insert};
use crate::{
    Change, Deleted, Edited, FullLink, InsertError, Inserted, InsertedFull, InsertedNamed, Links, NamedLink,
    Reading, Restored, Source, StoreError, sql,
};

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

    async fn read(&self, ids: &[LinkId], source: Source) -> Result<Reading, StoreError> {
        self.read_links(ids, source).await
    }

    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>, StoreError> {
        self.read_slug(domain, slug).await
    }

    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
        of: Option<ApiKeyId>,
    ) -> Result<Option<Link>, StoreError> {
        self.run_on(&self.lists, async |sql| sql::find_deleted(sql, domain, name, code, of).await).await
    }

    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        changes::tell(&self.address, &changes).await;
    }

    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Edited, StoreError> {
        self.run(async |sql| sql::edit(sql, id, edit, by).await).await
    }

    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Deleted, StoreError> {
        self.run(async |sql| sql::delete(sql, id, precondition, by).await).await
    }

    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Restored, StoreError> {
        self.run(async |sql| sql::restore(sql, id, precondition, keyspaces, by).await).await
    }

    async fn take_visits(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>, StoreError> {
        self.run(async |sql| sql::take_visits(sql, wanted).await).await
    }

    async fn is_spent(&self, id: LinkId) -> Result<bool, StoreError> {
        self.run(async |sql| sql::is_spent(sql, id).await).await
    }
}
