//! The port [`Links`] on SQLite.

use async_trait::async_trait;
use codes::LinkId;
use links::{Idempotency, NewLink, Tag};
use numbers::{Mark, StoreEpoch};
use tokio::{sync::mpsc, time::Instant};

use super::{
    SqliteStore,
    transaction::{SqliteSql, insert_error, write},
};
use crate::{
    Change, FullLink, InsertError, Inserted, InsertedLink, Lane, Links, NamedLink, Reading, Result, Source,
    StoreError,
    operation::run,
    sql::{create, history, list, webhooks},
};

impl SqliteStore {
    /// Runs an insert under numbers. With a witness file, it raises the mark.
    ///
    /// The history is not checked. One begins before a number of it is claimed, and no other
    /// process uses the file.
    async fn insert_numbers<T: Send + 'static>(
        &self,
        insert: impl AsyncFnOnce(&mut SqliteSql<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T, InsertError> {
        let witness = self.witness.clone();
        self.writer
            .run(move |connection| {
                let (done, mark) = write::<_, StoreError>(connection, async |sql| {
                    let done = insert(&mut *sql).await?;
                    let mark = if witness.is_some() { history::raise(sql).await? } else { Mark(0) };
                    Ok((done, mark))
                })?;
                // Recorded before any caller learns of the links.
                if let Some(witness) = &witness {
                    witness.note_mark(mark);
                }
                Ok(done)
            })
            .await
            .map_err(insert_error)
    }
}

#[async_trait]
impl Links for SqliteStore {
    /// One lane: SQLite has one writer.
    fn insert_lanes(&self) -> usize {
        1
    }

    async fn insert(&self, _history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        let links = links.to_vec();
        self.insert_numbers(async move |sql| {
            let is_announced = webhooks::wants_creates(sql).await?;
            create::insert_links(sql, &links, is_announced).await
        })
        .await
    }

    async fn insert_full(
        &self,
        _history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        self.insert_numbers(async move |sql| {
            create::insert_full(sql, &link, &tags, idempotency.as_ref(), true).await
        })
        .await
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedLink, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        self.writer
            .write(async move |sql| create::insert_named(sql, &link, &tags, idempotency.as_ref(), true).await)
            .await
            .map_err(insert_error)
    }

    async fn read(&self, ids: &[LinkId], _source: Source) -> Result<Reading> {
        let links =
            run(self, Lane::Read, ids.to_vec(), |sql, ids| Box::pin(list::find_links(sql, ids))).await?;
        Ok(Reading { links, copied: None, complete: true })
    }

    /// Reports that it listens: one process uses the file, so no other process changes links.
    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        let _ = changes.send(Change::Listening(Instant::now())).await;
    }
}
