//! The store as one process reaches it: the real SQLite store behind a faulty connection (`ways`).

mod catalog;
mod keys;
mod links;
mod register;
mod settings;
mod webhooks;

use async_trait::async_trait;
use store::{Database, Schema, Store, StoreError};

use super::ways::FaultyStore;

impl Database for FaultyStore {
    fn is_shared(&self) -> bool {
        true
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
