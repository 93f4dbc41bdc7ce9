//! The application's ports to its database: seven, each for one noun of the application, and
//! [`Store`], which is all of them.
//!
//! 1. The code that opens a database hands out its parts: `Arc<dyn Store>` coerces to
//!    `Arc<dyn Links>` and to the others. Use cases share the `Store`; code below them names only
//!    the ports that it needs.
//! 2. Most methods are written here, for every database: they run an operation of `sql` in a
//!    transaction ([`Database::run`]). A database has its own of those in which it differs.
//! 3. What decides is not here: rules are functions of the crate `links`, which an operation
//!    calls within its transaction.

mod catalog;
mod keys;
mod links;
mod register;
mod schedule;
mod settings;
mod webhooks;

use async_trait::async_trait;

pub use self::{
    catalog::Catalog,
    keys::Keys,
    links::Links,
    register::Register,
    schedule::{Schedule, Scheduled},
    settings::Settings,
    webhooks::{AfterAttempt, AttemptEnd, Backlog, ClaimedDelivery, Disable, FanOut, FannedOut, Webhooks},
};
pub(crate) use register::Gaps;

use crate::{Result, Schema, postgres::PoolCount};

/// A database with all its ports.
///
/// On Postgres every attempt at a statement or transaction has a deadline of at most 3 seconds, or
/// of 60 seconds for imports, sweeps and steps of the long URL index; COMMIT has as much again.
/// [`migrate`](Self::migrate) and [`send_changes`](Links::send_changes) have none. On SQLite a call
/// waits for its turn on the store's thread, and up to 3 seconds for a lock of another process.
///
/// # Errors
/// Methods of all ports return `StoreError` if the database cannot be reached, does not answer in
/// time or refuses the statement. Inserts return [`InsertError`](crate::InsertError), which says
/// whether the links may be stored all the same.
#[async_trait]
pub trait Store: Links + Catalog + Register + Settings + Keys + Schedule + Webhooks {
    /// Applies all pending migrations.
    async fn migrate(&self) -> Result<()>;

    /// Returns the version of the schema, and the one that this build needs.
    async fn schema(&self) -> Result<Schema>;

    /// Checks that notifications arrive, as they do not behind a pooler in transaction mode. A
    /// store without other processes needs none.
    ///
    /// # Errors
    /// Returns `StoreError::Deaf` if they do not.
    async fn prove_notifications(&self) -> Result<()> {
        Ok(())
    }

    /// Asks the replica whether it answers, if there is one. The observer of the connections is
    /// told.
    async fn ping_replica(&self) {}

    /// Returns the connections of each pool.
    fn pools(&self) -> Vec<PoolCount> {
        Vec::new()
    }

    /// Checks that the store answers and that its schema is recent enough.
    ///
    /// # Errors
    /// Returns `StoreError::SchemaBehind` if a migration is missing.
    async fn check(&self) -> Result<()> {
        self.schema().await?.check()
    }

    /// Checkpoints the write-ahead log into the main database file, so that a copy of that file is
    /// complete. Called when the process is about to end; a store without such a file does nothing.
    async fn close(&self) {}
}
