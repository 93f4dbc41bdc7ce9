//! Links one by one: creates, lookups by code or slug, changes, and visit limits.

use std::sync::Arc;

use async_trait::async_trait;
use codes::LinkId;
use jiff::Timestamp;
use links::{
    BulkRefusal, DomainId, Edit, Idempotency, Link, NewLink, Precondition, Record, Refusal, Slug, Tag,
    api_key::ApiKeyId,
};
use numbers::StoreEpoch;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    BatchLink, Bucket, BulkBatch, Change, CustomSlugLink, Database, FullLink, InsertError, Inserted,
    InsertedLink,
    Lane::{List, LongWrite, Read, Write},
    NamedIds, Reading, Result, Source, StoreError, Under,
    buckets::by_bucket,
    operation::{insert, run},
    sql::{blocks, bulk, create, edits, list, restore, slugs, together, uses},
};

/// Creates, reads and changes links.
///
/// 1. I6: an insert reports a link as stored only after its COMMIT.
/// 2. I4: an unknown outcome is a case of its own ([`InsertError::Unknown`]). The caller reads
///    before it decides, and the number is never used for another link.
/// 3. I7: a deleted link keeps its row.
/// 4. I8: a read returns the stored state or fails. A failure is never reported as absence.
#[async_trait]
pub trait Links: Database {
    /// Returns how many concurrent inserts the store benefits from.
    fn insert_lanes(&self) -> usize {
        1
    }

    /// Returns how many concurrent reads the store benefits from.
    fn read_lanes(&self) -> usize {
        1
    }

    /// Returns which of the concurrent reads a link belongs to.
    fn read_lane(&self, _link: LinkId) -> usize {
        0
    }

    /// Returns the bucket of a link. Links of one bucket are best inserted together.
    fn bucket(&self, _link: LinkId) -> Bucket {
        Bucket(0)
    }

    /// Returns the places of the links of each bucket.
    fn by_bucket(&self, links: &[NewLink]) -> Vec<Vec<usize>> {
        by_bucket(links, |link| self.bucket(link))
    }

    /// Returns the bucket whose numbers new links should get; `None` if there is only one.
    fn open_bucket(&self) -> Option<Bucket> {
        None
    }

    /// Returns whether the node of a bucket answered when it was last asked.
    fn is_up(&self, _bucket: Bucket) -> bool {
        true
    }

    /// Inserts at most [`BATCH_MAX`](crate::BATCH_MAX) links, and returns the outcome of each in
    /// the order of `links`. A taken id does not fail the other links. If they are of several
    /// buckets and only some of these fail, all are in doubt.
    ///
    /// # Errors
    /// Returns `StoreError::AnotherHistory` within the error if the database's history is not
    /// `history`. Nothing is stored then.
    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        let Some(first) = links.first() else { return Ok(Vec::new()) };
        let under = Some(Under { history, link: first.id });
        insert(self, under, links.to_vec(), |sql, links| Box::pin(create::insert_links(sql, links))).await
    }

    /// Inserts links without tags at the numbers of their custom slugs, which are mintable codes of
    /// the default domain, and notifies other resolvers. Returns the creation times in the order of
    /// `links`; `None` means that a link is not stored, and
    /// [`insert_with_slug`](Self::insert_with_slug) decides whether its slug is taken.
    async fn insert_slugs(&self, links: &[NewLink]) -> Result<Vec<Option<Timestamp>>, InsertError> {
        insert(self, None, links.to_vec(), |sql, links| Box::pin(create::insert_slugs(sql, links))).await
    }

    /// Inserts a link with its tags under a claimed number, unless `idempotency` matches an earlier
    /// create. The history counts as for [`insert`](Self::insert).
    async fn insert_full(
        &self,
        history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        let args = (link.clone(), tags.to_vec(), idempotency.cloned(), self.announces_creates());
        let under = Some(Under { history, link: link.new.id });
        insert(self, under, args, |sql, (link, tags, idempotency, is_announced)| {
            Box::pin(create::insert_full(sql, link, tags, idempotency.as_ref(), *is_announced))
        })
        .await
    }

    /// Inserts a link under a custom slug, unless `idempotency` matches an earlier create.
    async fn insert_with_slug(
        &self,
        link: &CustomSlugLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        let args = (link.clone(), tags.to_vec(), idempotency.cloned(), self.announces_creates());
        insert(self, None, args, |sql, (link, tags, idempotency, is_announced)| {
            Box::pin(create::insert_with_slug(sql, link, tags, idempotency.as_ref(), *is_announced))
        })
        .await
    }

    /// Inserts at most [`BATCH_MAX`](crate::BATCH_MAX) links in one transaction, and notifies other
    /// resolvers of those with custom slugs. Returns id, creation time and version of each in the
    /// order of `links`; `None` means that a link is not stored, and an insert by itself decides
    /// why. All claimed numbers are of `history`, which counts as for [`insert`](Self::insert).
    async fn insert_together(
        &self,
        history: Option<&StoreEpoch>,
        links: &Arc<Vec<BatchLink>>,
    ) -> Result<Vec<Option<(LinkId, Timestamp, u64)>>, InsertError> {
        let claimed = links.iter().find_map(BatchLink::claimed);
        let under = history.zip(claimed).map(|(history, link)| Under { history, link });
        let args = (Arc::clone(links), self.announces_creates());
        insert(self, under, args, |sql, (links, is_announced)| {
            Box::pin(together::insert_together(sql, links, *is_announced))
        })
        .await
    }

    /// Returns the links with these ids, at most [`BATCH_MAX`](crate::BATCH_MAX), in any order.
    async fn read(&self, ids: &[LinkId], _source: Source) -> Result<Reading> {
        let links = run(self, Read, ids.to_vec(), |sql, ids| Box::pin(list::find_links(sql, ids))).await?;
        Ok(Reading { links, copied: None, complete: true })
    }

    /// Returns the id of the link that a slug leads to, in the best of its spellings. On the
    /// default domain only slugs that cannot be minted are stored; on other domains, all codes.
    async fn find_slug(&self, domain: DomainId, slug: &Slug) -> Result<Option<LinkId>> {
        let found = self.find_slugs(&[(domain, slug.clone())]).await?;
        match found.ids.into_values().next() {
            None if !found.complete => Err(StoreError::ReplicaBehind),
            id => Ok(id),
        }
    }

    /// Returns the ids of the links that slugs lead to, each on its domain, as
    /// [`find_slug`](Links::find_slug) does, with one read.
    async fn find_slugs(&self, places: &[(DomainId, Slug)]) -> Result<NamedIds> {
        run(self, Read, places.to_vec(), |sql, places| Box::pin(slugs::find_slugs(sql, places))).await
    }

    /// Returns whether a number belongs to an open reservation.
    async fn is_reserved(&self, number: LinkId) -> Result<bool> {
        run(self, Read, number, |sql, number| Box::pin(blocks::is_reserved(sql, *number))).await
    }

    /// Returns the most recently deleted link with this name: a slug, or a minted code whose id is
    /// `code`. With `of`, only the links that this API key created count.
    async fn find_deleted(
        &self,
        domain: DomainId,
        name: &str,
        code: Option<LinkId>,
        of: Option<ApiKeyId>,
    ) -> Result<Option<Link>> {
        run(self, List, (domain, name.to_owned(), code, of), |sql, (domain, name, code, of)| {
            Box::pin(restore::find_deleted(sql, *domain, name, *code, *of))
        })
        .await
    }

    /// Sends changes made by other processes to `changes`, until its receiver is dropped. A store
    /// that is not shared sends [`Change::Listening`] and returns.
    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        let _ = changes.send(Change::Listening(Instant::now())).await;
    }

    /// Edits a link. Returns it as it is then.
    async fn edit(&self, id: LinkId, edit: &Edit, by: ApiKeyId) -> Result<Result<Record, Refusal>> {
        let args = (id, edit.clone(), by);
        let mut is_prepared = false;
        if self.is_distributed() && edit.relocation.is_some() {
            let prepare = run(self, Write, args.clone(), |sql, (id, edit, by)| {
                Box::pin(edits::prepare_move(sql, *id, edit, *by))
            });
            is_prepared = prepare.await?;
        }
        let edited = run(self, Write, args, |sql, (id, edit, by)| Box::pin(edits::edit(sql, *id, edit, *by)));
        let edited = edited.await?;
        if is_prepared && edited.is_err() {
            let args = (id, edit.clone());
            run(self, Write, args, |sql, (id, edit)| Box::pin(edits::undo_preparation(sql, *id, edit)))
                .await?;
        }
        Ok(edited)
    }

    /// Deletes a link. Its row stays (I7).
    async fn delete(
        &self,
        id: LinkId,
        precondition: &Precondition,
        by: ApiKeyId,
    ) -> Result<Result<(), Refusal>> {
        run(self, Write, (id, precondition.clone(), by), |sql, (id, precondition, by)| {
            Box::pin(edits::delete(sql, *id, precondition, *by))
        })
        .await
    }

    /// Changes the links of a batch, in one transaction unless links are on nodes. Returns for
    /// each, in the order of the batch, whether it was changed, or why not; one that is as wished
    /// already was not. May be repeated whatever its outcome.
    async fn change_many(&self, batch: &BulkBatch) -> Result<Vec<Result<bool, BulkRefusal>>> {
        if !self.is_distributed() {
            let change =
                run(self, LongWrite, batch.clone(), |sql, batch| Box::pin(bulk::change_many(sql, batch)));
            return change.await;
        }
        let mut outcomes = Vec::with_capacity(batch.items.len());
        for item in &batch.items {
            let args = (item.clone(), Arc::clone(&batch.change), batch.by);
            let change = run(self, Write, args, |sql, (item, change, by)| {
                Box::pin(bulk::change_one(sql, item, change, *by))
            });
            outcomes.push(change.await?);
        }
        Ok(outcomes)
    }

    /// Restores a deleted link, and returns it as it is then. Its slug must not be a code of any
    /// keyspace. The caller has checked that against `keyspaces` of them, the number of keyspaces
    /// that it knows.
    async fn restore(
        &self,
        id: LinkId,
        precondition: &Precondition,
        keyspaces: usize,
        by: ApiKeyId,
    ) -> Result<Result<Record, Refusal>> {
        let args = (id, precondition.clone(), keyspaces, by);
        if self.is_distributed() {
            let prepared = run(self, Write, args.clone(), |sql, (id, precondition, keyspaces, by)| {
                Box::pin(restore::prepare_restoration(sql, *id, precondition, *keyspaces, *by))
            });
            prepared.await?;
        }
        let restored = run(self, Write, args, |sql, (id, precondition, keyspaces, by)| {
            Box::pin(restore::restore(sql, *id, precondition, *keyspaces, *by))
        });
        let restored = restored.await?;
        if self.is_distributed() && restored.is_err() {
            run(self, Write, id, |sql, id| Box::pin(restore::undo_preparation(sql, *id))).await?;
        }
        Ok(restored)
    }

    /// Takes visits from the budgets of visit-limited links, at most as many as wanted of each.
    /// Returns how many were granted, in the order of `wanted`. The ids must ascend, so that two
    /// resolvers cannot deadlock.
    async fn take_visits(&self, wanted: &[(LinkId, u64)]) -> Result<Vec<u64>> {
        run(self, Write, wanted.to_vec(), |sql, wanted| Box::pin(uses::take_visits(sql, wanted))).await
    }

    /// Returns whether a link's visit limit is exhausted.
    async fn is_spent(&self, id: LinkId) -> Result<bool> {
        run(self, Read, id, |sql, id| Box::pin(uses::is_spent(sql, *id))).await
    }
}
