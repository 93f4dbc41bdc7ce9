//! The SQLite implementation of [`Store`], for one machine.
//!
//! SQLite allows one writer, so one thread owns the writing connection. Two other threads read: one
//! of them serves lists. Calls reach the threads over bounded queues. A commit is durable when it
//! returns: write-ahead log with `synchronous = FULL`.
//!
//! Rejected: an asynchronous mutex around a connection. It blocks a worker thread for each disk
//! flush.

mod backup;
mod migrations;
mod open;
mod transaction;
mod worker;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use numbers::{Mark, StoreEpoch};
use rusqlite::{Connection, OptionalExtension as _};

use super::{
    Database, Done, InsertError, Lane, Links, Operation, Register, Result, Schema, Settings, Store,
    StoreError, Under, Witness, sql::history::raise,
};

pub use backup::Snapshot;
pub use open::{attach, open_reader, open_writer};
pub use transaction::{SqliteSql, write};
pub use worker::Worker;

/// A store in a SQLite file.
pub struct SqliteStore {
    writer: Worker,
    reader: Worker,
    /// A reader of its own for lists: they may take long, and no redirect waits for one.
    lister: Worker,
    /// The witness file, which outlasts the database file, if the operator keeps one.
    pub witness: Option<Arc<Witness>>,
}

#[async_trait]
impl Database for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }

    fn witness(&self) -> Option<&Arc<Witness>> {
        self.witness.as_ref()
    }

    async fn run(&self, lane: Lane, operation: Operation) -> Result<Done> {
        match lane {
            Lane::Write | Lane::LongWrite => {
                self.writer.write(async move |sql| operation.run(sql).await).await
            }
            Lane::Read | Lane::Authenticate => {
                self.reader.read(async move |sql| operation.run(sql).await).await
            }
            Lane::List => self.lister.read(async move |sql| operation.run(sql).await).await,
        }
    }

    /// With a witness file, an insert under numbers raises the mark.
    ///
    /// The history is not checked. One begins before a number of it is claimed, and no other
    /// process uses the file.
    async fn run_insert(&self, under: Option<Under<'_>>, insert: Operation) -> Result<Done, InsertError> {
        let witness = self.witness.clone().filter(|_| under.is_some());
        self.writer
            .run(move |connection| {
                let (done, mark) = write::<_, StoreError>(connection, async |sql| {
                    let done = insert.run(&mut *sql).await?;
                    let mark = if witness.is_some() { raise(sql).await? } else { Mark(0) };
                    Ok((done, mark))
                })?;
                // Recorded before any caller learns of the links.
                if let Some(witness) = &witness {
                    witness.note_mark(mark);
                }
                Ok(done)
            })
            .await
            // After any error of SQLite the transaction was rolled back; only a thread that ended
            // leaves the outcome unknown.
            .map_err(|error: StoreError| match error {
                StoreError::Stopped => InsertError::Unknown(error),
                error => InsertError::Failed(error),
            })
    }
}

#[async_trait]
impl Register for SqliteStore {
    /// Only a restored file begins a new history: nothing else can take over from a SQLite file.
    async fn epoch(&self) -> Result<StoreEpoch> {
        let epoch = |connection: &mut Connection| {
            let sql = "SELECT 'sqlite:' || history FROM deployment WHERE history > 0";
            let text: Option<String> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
            StoreEpoch::new(text.as_deref().unwrap_or("sqlite"))
                .map_err(|error| StoreError::Corrupt(error.to_string()))
        };
        self.reader.run(epoch).await
    }

    async fn begin_after_restore(&self) -> Result<Option<Timestamp>> {
        self.writer.write(backup::begin_after_restore).await
    }
}

impl Links for SqliteStore {}

impl Settings for SqliteStore {}

#[async_trait]
impl Store for SqliteStore {
    async fn migrate(&self) -> Result<()> {
        self.writer.run(migrations::run).await
    }

    async fn schema(&self) -> Result<Schema> {
        self.reader.run(migrations::schema).await
    }

    async fn close(&self) {
        self.writer.checkpoint().await;
    }
}
