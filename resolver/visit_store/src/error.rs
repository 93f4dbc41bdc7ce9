//! Errors of a store of visits.

use store::StoreError;

/// The result of a call to a store of visits.
pub type Result<T, E = VisitStoreError> = std::result::Result<T, E>;

/// Error of a call to a store of visits.
#[derive(Debug, thiserror::Error)]
pub enum VisitStoreError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] StoreError),
    /// The engine that keeps the rows failed.
    #[error("the engine of visits")]
    Engine(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// All slots belong to spools that stored recently.
    #[error(
        "{} spools store visits already: expected fewer resolvers, or one whose spool is released",
        visits::Slot::COUNT
    )]
    NoSlot,
    /// Stored counters cannot be read.
    #[error("stored counters cannot be read")]
    Damaged(#[from] visits::tally::Damaged),
}

impl From<tokio_postgres::Error> for VisitStoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl From<rusqlite::Error> for VisitStoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error.into())
    }
}

/// Why a batch was not stored, or may not be.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another process stores this spool now, or the position is another one. Nothing was stored.
    #[error("another process stores this spool")]
    Fenced,
    /// Visits were deleted, or tags changed, after the batch was made. Nothing was stored.
    #[error("visits were deleted, or tags of links changed, meanwhile")]
    Outdated,
    /// Nothing was stored.
    #[error("surely not stored")]
    Failed(#[source] VisitStoreError),
    /// COMMIT was sent and not answered. The position tells whether the batch was stored.
    #[error("it is unknown whether the visits are stored")]
    Unknown(#[source] VisitStoreError),
}
