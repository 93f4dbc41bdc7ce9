//! The port [`Links`] on SQLite.

use async_trait::async_trait;
use codes::LinkId;
use links::{Idempotency, Link, NewLink, Tag};
use numbers::{Mark, StoreEpoch};
use rusqlite::Connection;
use tokio::{sync::mpsc, time::Instant};

use super::{
    SqliteStore, calls,
    transaction::{insert_error, read, write},
};
use crate::{
    Change, FullLink, InsertError, Inserted, InsertedFull, InsertedNamed, Links, NamedLink, Reading, Result,
    Source, Witness, sql,
};

/// Inserts links, with an event for each if a webhook is called for new links.
fn insert(connection: &mut Connection, links: &[NewLink], raises: bool) -> Result<(Vec<Inserted>, Mark)> {
    if !read(connection, async |sql| sql::wants_creates(sql).await)? {
        return calls::insert(connection, links, raises);
    }
    write(connection, async |sql| {
        let outcomes = sql::insert_announced(sql, links).await?;
        let mark = if raises { sql::raise(sql).await? } else { Mark(0) };
        Ok((outcomes, mark))
    })
}

#[async_trait]
impl Links for SqliteStore {
    /// One lane: SQLite has one writer.
    fn insert_lanes(&self) -> usize {
        1
    }

    /// Inserts links without a check of the history. A history begins before a number of it is
    /// claimed, and no other process uses the file.
    async fn insert(&self, _history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        let (links, witness) = (links.to_vec(), self.witness.clone());
        self.writer
            .run(move |connection| {
                let (outcomes, mark) = insert(connection, &links, witness.is_some())?;
                // Recorded before any caller learns of the links.
                Witness::note_mark_in(witness.as_ref(), mark);
                Ok(outcomes)
            })
            .await
            .map_err(insert_error)
    }

    async fn insert_full(
        &self,
        _history: &StoreEpoch,
        link: &FullLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedFull, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        let witness = self.witness.clone();
        self.writer
            .run(move |connection| {
                let (outcome, mark) = write::<_>(connection, async |sql| {
                    let outcome = sql::insert_full(sql, &link, &tags, idempotency.as_ref()).await?;
                    if let InsertedFull::Stored(at) = outcome {
                        let stored = Link::stored(link.new.id, link.new.draft.clone(), at);
                        sql::record_create(sql, &stored, &tags).await?;
                    }
                    let mark = if witness.is_some() { sql::raise(sql).await? } else { Mark(0) };
                    Ok((outcome, mark))
                })?;
                Witness::note_mark_in(witness.as_ref(), mark);
                Ok(outcome)
            })
            .await
            .map_err(insert_error)
    }

    async fn insert_named(
        &self,
        link: &NamedLink,
        tags: &[Tag],
        idempotency: Option<&Idempotency>,
    ) -> Result<InsertedNamed, InsertError> {
        let (link, tags, idempotency) = (link.clone(), tags.to_vec(), idempotency.cloned());
        self.writer
            .write(async move |sql| {
                let outcome = sql::insert_named(sql, &link, &tags, idempotency.as_ref()).await?;
                if let InsertedNamed::Stored(id, at, version) = outcome {
                    sql::record_create(sql, &link.stored(id, at, version), &tags).await?;
                }
                Ok(outcome)
            })
            .await
            .map_err(insert_error)
    }

    async fn read(&self, ids: &[LinkId], _source: Source) -> Result<Reading> {
        let ids = ids.to_vec();
        let links = self.reader.run(move |connection| calls::read(connection, &ids)).await?;
        Ok(Reading { links, copied: None, complete: true })
    }

    /// Reports that it listens: one process uses the file, so no other process changes links.
    async fn send_changes(&self, changes: mpsc::Sender<Change>) {
        let _ = changes.send(Change::Listening(Instant::now())).await;
    }
}
