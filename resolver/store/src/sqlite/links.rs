//! The port [`Links`] on SQLite.

use async_trait::async_trait;
use codes::LinkId;
use links::NewLink;
use numbers::StoreEpoch;
use tokio::{sync::mpsc, time::Instant};

use super::SqliteStore;
use crate::{
    Change, InsertError, Inserted, Lane, Links, Reading, Result, Source,
    operation::{insert, run},
    sql::{create, list, webhooks},
};

#[async_trait]
impl Links for SqliteStore {
    async fn insert(&self, history: &StoreEpoch, links: &[NewLink]) -> Result<Vec<Inserted>, InsertError> {
        insert(self, Some(history), links.to_vec(), |sql, links| {
            Box::pin(async move {
                let is_announced = webhooks::wants_creates(sql).await?;
                create::insert_links(sql, links, is_announced).await
            })
        })
        .await
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
