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
mod counters;
mod days;
mod delete;
mod erase;
mod events;
mod link_visits;
mod merge;
mod migrations;
mod producers;
mod rows;
mod secrets;
mod tags;
mod write;

use std::{collections::HashMap, path::Path, sync::Arc};

use async_trait::async_trait;
use codes::LinkId;
use rusqlite::{Connection, TransactionBehavior};
use store::{
    Store, VisitTotals,
    sqlite::{Worker, attach, open_reader, open_writer},
};
use tokio::sync::Mutex;
use visits::{AddressSecret, Day, DaySecret, Subject, TextKey, VisitId, VisitRow};

use crate::{
    Batch, Changes, Columns, DayCounters, Days, DeletionStep, Erased, Erasure, ErasureId, Producer, RowQuery,
    SpoolId, Standing, StoredText, TextRef, TokenSecret, VisitReader, VisitStore, VisitStoreError,
    WriteError,
};

/// Name of the links' database in statements.
const LINKS: &str = "links_db";

/// SQL expression for the present time in milliseconds since 1970.
const NOW: &str = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/// A store of visits in a SQLite file.
pub struct SqliteVisits {
    writer: Worker,
    reader: Worker,
    /// A reader of its own for rows: they may take long, and no page of counters waits for one.
    lister: Worker,
    links: Arc<dyn Store>,
    /// Whether the readers see the links' database.
    has_links: bool,
    /// Held while batches are added to the links, so that no two callers send the same ones.
    folding: Mutex<()>,
}

impl SqliteVisits {
    /// Opens or creates the file. `file` is that of the links, which exists; without it, rows of
    /// tags cannot be read, and months of links are not merged. `links` is where visits of links
    /// are added up for lists, and where webhooks are. Blocks on the disk: call it at start-up.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened.
    pub fn open(visits: &Path, file: Option<&Path>, links: Arc<dyn Store>) -> Result<Self, VisitStoreError> {
        let writer = open_writer(visits)?;
        let (reader, lister) = (open_reader(visits)?, open_reader(visits)?);
        if let Some(file) = file {
            attach(&lister, LINKS, file)?;
        }
        Ok(Self {
            writer: Worker::start("visits-writer", writer),
            reader: Worker::start("visits-reader", reader),
            lister: Worker::start("visits-lister", lister),
            links,
            has_links: file.is_some(),
            folding: Mutex::new(()),
        })
    }

    /// Runs a call in a transaction that writes, and commits it.
    async fn write<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Connection) -> Result<T, VisitStoreError> + Send + 'static,
    ) -> Result<T, VisitStoreError> {
        self.writer.run(move |connection| within(connection, TransactionBehavior::Immediate, call)).await
    }

    /// Runs a call in a transaction that reads, so that all its statements see the same state.
    async fn read<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Connection) -> Result<T, VisitStoreError> + Send + 'static,
    ) -> Result<T, VisitStoreError> {
        self.reader.run(move |connection| within(connection, TransactionBehavior::Deferred, call)).await
    }

    /// Runs a call like [`read`](Self::read), on the thread for long reads.
    async fn list<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Connection) -> Result<T, VisitStoreError> + Send + 'static,
    ) -> Result<T, VisitStoreError> {
        self.lister.run(move |connection| within(connection, TransactionBehavior::Deferred, call)).await
    }

    /// Checks that the rows of a subject can be found.
    fn must_find(&self, subject: Subject) -> Result<(), VisitStoreError> {
        match subject {
            Subject::Tag(..) if !self.has_links => Err(VisitStoreError::Engine(
                "rows of a tag: expected the links' database, which was not given to `open`".into(),
            )),
            Subject::Tag(..) | Subject::Link(_) | Subject::All(_) | Subject::Orphans(..) => Ok(()),
        }
    }
}

fn within<T>(
    connection: &mut Connection,
    behavior: TransactionBehavior,
    call: impl FnOnce(&Connection) -> Result<T, VisitStoreError>,
) -> Result<T, VisitStoreError> {
    let transaction = connection.transaction_with_behavior(behavior)?;
    let done = call(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

#[async_trait]
impl VisitReader for SqliteVisits {
    async fn days(
        &self,
        subject: Subject,
        days: Days,
        columns: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        self.read(move |connection| counters::days(connection, subject, days, columns)).await
    }

    async fn spans(
        &self,
        subject: Subject,
        days: Days,
        columns: Columns,
    ) -> Result<Vec<DayCounters>, VisitStoreError> {
        self.read(move |connection| counters::spans(connection, subject, days, columns)).await
    }

    async fn rows(&self, query: &RowQuery) -> Result<Vec<VisitRow>, VisitStoreError> {
        self.must_find(query.subject)?;
        let query = *query;
        self.list(move |connection| rows::rows(connection, &query)).await
    }

    async fn count_rows(&self, query: &RowQuery) -> Result<u64, VisitStoreError> {
        self.must_find(query.subject)?;
        let query = *query;
        self.list(move |connection| rows::count(connection, &query)).await
    }

    async fn rows_from(&self) -> Result<Option<Day>, VisitStoreError> {
        self.read(chores::rows_from).await
    }
}

#[async_trait]
impl VisitStore for SqliteVisits {
    async fn migrate(&self) -> Result<(), VisitStoreError> {
        self.writer.run(migrations::run).await
    }

    async fn register(&self, spool: SpoolId, holder: &str) -> Result<Producer, VisitStoreError> {
        let holder = holder.to_owned();
        self.write(move |connection| producers::register(connection, spool, &holder)).await
    }

    async fn standing(&self, producer: &Producer) -> Result<Standing, VisitStoreError> {
        let producer = *producer;
        self.write(move |connection| producers::standing(connection, &producer)).await
    }

    async fn release(&self, producer: &Producer) -> Result<(), VisitStoreError> {
        let producer = *producer;
        self.write(move |connection| producers::release(connection, &producer)).await
    }

    async fn store(&self, producer: &Producer, batch: &Batch, known: i64) -> Result<(), WriteError> {
        let (producer, batch) = (*producer, batch.clone());
        let write = move |connection: &mut Connection| -> Result<_, VisitStoreError> {
            Ok(write::write(connection, &producer, &batch, known))
        };
        // The thread has ended, at any point of the batch.
        self.writer.run(write).await.map_err(WriteError::Unknown)?
    }

    async fn changes(&self, after: i64) -> Result<Changes, VisitStoreError> {
        self.read(move |connection| delete::changes(connection, after)).await
    }

    async fn tags_of(&self, links: &[LinkId]) -> Result<HashMap<LinkId, Vec<i64>>, VisitStoreError> {
        let links = links.to_vec();
        self.read(move |connection| delete::tags_of(connection, &links)).await
    }

    async fn secrets(&self) -> Result<(TextKey, AddressSecret), VisitStoreError> {
        self.write(secrets::of_deployment).await
    }

    async fn token_secret(&self) -> Result<TokenSecret, VisitStoreError> {
        self.write(secrets::of_tokens).await
    }

    async fn day_secret(&self, day: Day) -> Result<Option<DaySecret>, VisitStoreError> {
        self.write(move |connection| secrets::of_day(connection, day)).await
    }

    async fn link_totals(
        &self,
        links: &[LinkId],
        days: Days,
    ) -> Result<HashMap<LinkId, VisitTotals>, VisitStoreError> {
        let links = links.to_vec();
        self.read(move |connection| counters::link_totals(connection, &links, days)).await
    }

    async fn texts(&self, texts: &[TextRef]) -> Result<Vec<StoredText>, VisitStoreError> {
        let texts = texts.to_vec();
        self.read(move |connection| rows::texts(connection, &texts)).await
    }

    async fn delete(&self, subject: Subject, before: VisitId) -> Result<u64, VisitStoreError> {
        self.write(move |connection| delete::delete(connection, subject, before)).await
    }

    async fn erase(&self, erasure: &Erasure) -> Result<Option<ErasureId>, VisitStoreError> {
        let erasure = *erasure;
        self.write(move |connection| erase::erase(connection, &erasure)).await
    }

    async fn erased(&self, id: ErasureId) -> Result<Erased, VisitStoreError> {
        self.read(move |connection| erase::erased(connection, id)).await
    }

    async fn delete_rows(&self) -> Result<DeletionStep, VisitStoreError> {
        self.writer.run(erase::delete_securely).await
    }

    async fn keep(&self, rows_from: Day) -> Result<(), VisitStoreError> {
        self.write(move |connection| chores::note_rows_from(connection, rows_from)).await?;
        self.write(move |connection| erase::forget(connection, rows_from)).await?;
        for remove in chores::REMOVALS {
            while self.write(move |connection| remove(connection, rows_from)).await? > 0 {}
        }
        self.writer.run(chores::erase_secrets).await
    }

    async fn merge(&self) -> Result<bool, VisitStoreError> {
        let has_links = self.has_links;
        let months = self.list(move |connection| merge::outdated(connection, has_links)).await?;
        let has_more = months.len() == merge::STEP;
        for month in months {
            self.write(move |connection| merge::merge_month(connection, &month)).await?;
        }
        Ok(has_more)
    }

    async fn fold_link_visits(&self) -> Result<bool, VisitStoreError> {
        let _turn = self.folding.lock().await;
        let Some(waiting) = self.write(link_visits::begin).await? else { return Ok(false) };
        self.links.add_visits(waiting.up_to, &waiting.links).await?;
        self.write(move |connection| link_visits::end(connection, waiting.up_to)).await?;
        Ok(waiting.has_more)
    }

    async fn pass_on_events(&self) -> Result<bool, VisitStoreError> {
        let _turn = self.folding.lock().await;
        let Some(waiting) = self.read(events::oldest).await? else { return Ok(false) };
        self.links.pass_on_webhook_events(waiting.up_to, &waiting.events).await?;
        self.write(move |connection| events::forget(connection, waiting.up_to)).await?;
        Ok(waiting.has_more)
    }

    async fn follow_tags(&self) -> Result<bool, VisitStoreError> {
        let _turn = self.folding.lock().await;
        if let Some(tag) = self.links.gone_tag().await? {
            if !self.write(move |connection| tags::remove_gone(connection, tag)).await? {
                self.links.remove_gone_tag(tag).await?;
            }
            return Ok(true);
        }
        let changes = self.links.tag_changes(tags::STEP).await?;
        let Some(last) = changes.last().map(|change| change.number) else { return Ok(false) };
        let is_whole = changes.len() < tags::STEP;
        let done = self.write(move |connection| tags::follow(connection, &changes)).await?;
        if let Some(done) = done {
            self.links.forget_tag_changes(done).await?;
        }
        Ok(!is_whole || done != Some(last))
    }

    async fn latest(&self, after: VisitId, most: usize) -> Result<Vec<VisitRow>, VisitStoreError> {
        self.list(move |connection| rows::latest(connection, after, most)).await
    }

    async fn close(&self) {
        self.writer.checkpoint().await;
    }
}

/// SQL: the next number of a table. It follows the clock, and the last number while the clock
/// stands or is set back.
fn next_number(table: &str) -> String {
    format!(
        "max(coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{table}'), 0) + 1,
             CAST(unixepoch('subsec') * 1000000 AS INTEGER))"
    )
}

/// Converts a bound of rows, or a position, to a parameter.
fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens an empty database in memory.
    pub(super) fn memory() -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        migrations::run(&mut connection).unwrap();
        connection
    }
}
