//! The SQLite implementation of [`Store`], for one machine.
//!
//! SQLite allows one writer, so one thread owns the writing connection. Two other threads read: one
//! of them serves lists. Calls reach the threads over bounded queues. A commit is durable when it
//! returns: write-ahead log with `synchronous = FULL`.
//!
//! Rejected: an asynchronous mutex around a connection. It blocks a worker thread for each disk
//! flush.

mod backup;
mod calls;
mod catalog;
mod keys;
mod links;
mod migrations;
mod open;
mod register;
mod reservations;
mod settings;
mod transaction;
mod webhooks;
mod worker;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Database, Schema, Store, StoreError, Witness};

pub use backup::Snapshot;
pub use open::{attach, open_reader, open_writer};
pub use worker::Worker;

/// A store in a SQLite file.
pub struct SqliteStore {
    writer: Worker,
    reader: Worker,
    /// A reader of its own for lists: they may take long, and no redirect waits for one.
    lister: Worker,
    /// The witness file, if the operator keeps one.
    witness: Option<Arc<Witness>>,
}

impl SqliteStore {
    /// Adds a witness file, which outlasts the database file.
    #[must_use]
    pub fn witnessed_by(self, witness: Arc<Witness>) -> Self {
        Self { witness: Some(witness), ..self }
    }
}

impl Database for SqliteStore {
    fn is_shared(&self) -> bool {
        false
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn migrate(&self) -> Result<(), StoreError> {
        self.writer.run(migrations::run).await
    }

    async fn schema(&self) -> Result<Schema, StoreError> {
        self.reader.run(migrations::schema).await
    }

    async fn close(&self) {
        self.writer.checkpoint().await;
    }
}
