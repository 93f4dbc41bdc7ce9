//! Visits in SQLite: in a file of their own beside that of the links, so that creates of links do
//! not wait for batches of visits.
//!
//! 1. One thread writes. So batches, deletions and chores take turns, and each sees all that were
//!    before it. Chores write in bounded steps, and a batch waits for one step at most.
//! 2. Two threads read: one of them rows, which may take long, and the other one everything else.
//! 3. Visits of links are added to the links' database by a protocol between two files
//!    (`link_visits.rs`): no crash between them loses visits or counts them twice.
//! 4. The links' file is only read here: for the links of a tag, and for links with many visits.
//!
//! Rejected: the same file. Each batch would hold the lock that a create waits for.

mod chores;
mod events;
mod link_visits;
mod migrations;
mod write;

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use rusqlite::Connection;
use store::{
    Done, Lane, Operation, Store,
    sqlite::{Worker, attach, open_reader, open_writer},
};
use tokio::sync::Mutex;
use visits::{Day, Subject, VisitId};

use crate::{
    Batch, MERGED, Producer, Remaining, Result, VisitReader, VisitStore, VisitStoreError, WriteError,
    sql::{
        self, closing, deletion, months, old_counters,
        tags::{remove_gone_counters, remove_gone_links},
        transferred::NothingTransferred,
    },
};

pub(crate) const LINKS: &str = "links_db";

/// A store of visits in a SQLite file.
pub struct SqliteVisits {
    writer: Worker,
    reader: Worker,
    /// A reader of its own for rows: they may take long, and no page of counters waits for one.
    lister: Worker,
    links: Arc<dyn Store>,
    /// Held while batches are added to the links, so that no two callers send the same ones, and
    /// while visits are deleted.
    folding: Mutex<()>,
}

impl SqliteVisits {
    /// Opens or creates the file. `file` is that of the links, which exists. `links` is where
    /// visits of links are added up for lists, and where webhooks are. Blocks on the disk: call it
    /// at start-up.
    pub fn open(visits: &Path, file: &Path, links: Arc<dyn Store>) -> Result<Self> {
        let writer = open_writer(visits)?;
        let (reader, lister) = (open_reader(visits)?, open_reader(visits)?);
        attach(&lister, LINKS, file)?;
        Ok(Self {
            writer: Worker::start("visits-writer", writer),
            reader: Worker::start("visits-reader", reader),
            lister: Worker::start("visits-lister", lister),
            links,
            folding: Mutex::new(()),
        })
    }

    /// Adds some batches to the links, as [`fold_link_visits`](VisitStore::fold_link_visits) says.
    /// The caller has its turn at `folding`.
    async fn fold(&self) -> Result<bool> {
        let Some(waiting) = self.writer.write(async move |sql| link_visits::begin(sql.0)).await? else {
            return Ok(false);
        };
        self.links.add_visits(waiting.up_to, &waiting.items).await?;
        self.writer.write(async move |sql| link_visits::end(sql.0, waiting.up_to)).await?;
        Ok(waiting.has_more)
    }
}

/// Items on their way into the links' database.
struct Waiting<T> {
    /// The number of the last one.
    up_to: i64,
    items: Vec<T>,
    /// Whether others may follow.
    has_more: bool,
}

#[async_trait]
impl VisitReader for SqliteVisits {
    async fn run(&self, lane: Lane, operation: Operation<VisitStoreError>) -> Result<Done> {
        match lane {
            Lane::Read | Lane::Authenticate => {
                self.reader.read(async move |sql| operation.run(sql).await).await
            }
            Lane::List => self.lister.read(async move |sql| operation.run(sql).await).await,
            Lane::Write | Lane::LongWrite => {
                self.writer.write(async move |sql| operation.run(sql).await).await
            }
        }
    }
}

#[async_trait]
impl VisitStore for SqliteVisits {
    async fn migrate(&self) -> Result<()> {
        self.writer.run(migrations::run).await
    }

    async fn store(&self, producer: &Producer, batch: &Batch, known: i64) -> Result<(), WriteError> {
        let (producer, batch) = (*producer, batch.clone());
        let write = move |connection: &mut Connection| -> Result<_> {
            Ok(write::write(connection, &producer, &batch, known))
        };
        // The thread has ended, at any point of the batch.
        self.writer.run(write).await.map_err(WriteError::Unknown)?
    }

    async fn delete(&self, subject: Subject, before: VisitId) -> Result<u64> {
        // No batch is on its way between the two files meanwhile, so the total stays as it is.
        let _turn = self.folding.lock().await;
        let added = match subject {
            Subject::Link(link) => {
                while self.fold().await? {}
                Some(self.links.counted_visits(link).await?)
            }
            Subject::Tag(..) | Subject::All(_) | Subject::Orphans(..) => None,
        };
        self.writer
            .write(async move |sql| deletion::delete(sql, subject, before, &NothingTransferred, added).await)
            .await
    }

    async fn delete_rows(&self) -> Result<Option<u64>> {
        self.writer.run(chores::delete_securely).await
    }

    async fn keep(&self, rows_from: Day) -> Result<()> {
        self.writer.write(async move |sql| chores::note_rows_from(sql.0, rows_from)).await?;
        self.writer.write(async move |sql| sql::erasures::forget(sql, rows_from).await).await?;
        // A transaction for each step: a batch waits for one of them at most.
        for aging in sql::rows::Aging::ALL {
            let remove = async || {
                self.writer.write(async move |sql| sql::rows::remove_old(sql, aging, rows_from).await).await
            };
            while remove().await? {}
        }
        self.writer.run(chores::erase_secrets).await
    }

    async fn merge(&self) -> Result<Remaining> {
        let closed = self.writer.write(async move |sql| closing::close(sql, MERGED).await).await?;
        if closed != Remaining::Nothing {
            return Ok(closed);
        }
        let months = self.lister.read(async move |sql| months::outdated(sql).await).await?;
        let (mut merged, is_full) = (0, months.len() == months::STEP);
        for month in months {
            let is_merged = self.writer.write(async move |sql| months::merge(sql, &month).await).await?;
            merged += usize::from(is_merged);
        }
        Ok(Remaining::from(merged > 0 && is_full))
    }

    async fn remove_old_counters(&self, counts_from: Day) -> Result<Remaining> {
        let more = self.writer.write(async move |sql| old_counters::remove(sql, counts_from).await).await?;
        Ok(more.into())
    }

    async fn fold_link_visits(&self) -> Result<bool> {
        let _turn = self.folding.lock().await;
        self.fold().await
    }

    async fn pass_on_events(&self) -> Result<bool> {
        let _turn = self.folding.lock().await;
        let Some(waiting) = self.reader.read(async move |sql| events::oldest(sql.0)).await? else {
            return Ok(false);
        };
        self.links.pass_on_webhook_events(waiting.up_to, &waiting.items).await?;
        self.writer.write(async move |sql| events::forget(sql.0, waiting.up_to)).await?;
        Ok(waiting.has_more)
    }

    async fn follow_tags(&self) -> Result<bool> {
        let _turn = self.folding.lock().await;
        if let Some(tag) = self.links.gone_tag().await? {
            let has_links =
                self.writer.write(async move |sql| remove_gone_links(sql, &["visit_tag"], tag).await).await?;
            if !has_links && !self.writer.write(async move |sql| remove_gone_counters(sql, tag).await).await?
            {
                self.links.remove_gone_tag(tag).await?;
            }
            return Ok(true);
        }
        let changes = self.links.tag_changes(sql::tags::STEP).await?;
        let Some(last) = changes.last().map(|change| change.number) else { return Ok(false) };
        let is_whole = changes.len() < sql::tags::STEP;
        let done = self
            .writer
            .write(async move |sql| sql::tags::follow(sql, &changes, &NothingTransferred).await)
            .await?;
        if let Some(done) = done {
            self.links.forget_tag_changes(done).await?;
        }
        Ok(!is_whole || done != Some(last))
    }

    async fn close(&self) {
        self.writer.checkpoint().await;
    }
}

/// SQL: the next number of a table. It follows the clock, and the last number while the clock
/// stands or is set back.
pub(crate) fn next_number(table: &str) -> String {
    format!(
        "max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{table}'), 0) + 1,
             CAST(unixepoch('subsec') * 1000000 AS INTEGER))"
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Opens an empty database in memory.
    pub(crate) fn memory() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::run(&mut connection).unwrap();
        connection
    }

    pub(crate) fn number(connection: &Connection, query: &str) -> i64 {
        connection.query_row(query, [], |row| row.get(0)).unwrap()
    }
}
