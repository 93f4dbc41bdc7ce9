//! Errors of a store.

use tokio_postgres::error::SqlState;

pub(crate) type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Error of an insert. It separates a definite failure from an unknown outcome (I4).
#[derive(Debug, thiserror::Error)]
pub enum InsertError {
    /// Nothing was stored: the database answered with an error, or nothing was sent that it could
    /// commit.
    #[error("surely not stored")]
    Failed(#[source] StoreError),
    /// The outcome is unknown: the links may be stored already, or may still be committed.
    #[error("it is unknown whether the link is stored")]
    Unknown(#[source] StoreError),
}

/// Error of a call to a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store did not answer within the deadline.
    #[error("the database did not answer in time")]
    TimedOut,
    /// The database's address is invalid.
    #[error("{0}")]
    Address(String),
    /// A file of certificates that the address names cannot be used.
    #[error(transparent)]
    Tls(#[from] tls::TlsError),
    /// No connection could be established, or the system refused a file or random bytes.
    #[error("no connection to the database")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Postgres answered with an error, or the connection failed during a statement.
    #[error("Postgres")]
    Postgres(#[from] tokio_postgres::Error),
    /// SQLite returned an error.
    #[error("SQLite")]
    Sqlite(#[from] rusqlite::Error),
    /// A migration failed.
    #[error("migrate the schema")]
    Migration(#[from] Box<refinery_core::Error>),
    /// The schema is older than the version that this build needs.
    #[error(
        "the database's schema is at version {found}, this version needs {needed}: run `resolver migrate`"
    )]
    SchemaBehind {
        /// The schema version found; 0 for an empty database.
        found: i64,
        /// The schema version needed.
        needed: i64,
    },
    /// No code key was adopted, so there is nothing to redirect.
    #[error("no process that serves the API has used this database yet")]
    NotSetUp,
    /// A stored value cannot be read by this version, or a row that must exist is missing.
    #[error("unexpected content in the database: {0}")]
    Corrupt(String),
    /// A change would lose what a later release has stored, and this one cannot read.
    #[error("a later release has stored what this change would lose")]
    LaterRelease,
    /// A keyspace conflicts with the stored ones: its definition changed, it overlaps an earlier
    /// keyspace or an existing slug, or a keyspace was added that this process does not know.
    #[error("{0}")]
    Keyspace(String),
    /// Another allocation holds numbers of a block, or the block's own entry is gone.
    #[error("the register has these numbers under another allocation")]
    Overlap,
    /// Every candidate code of an item of an import is taken. Nothing of the batch is stored.
    #[error("item {item} of the batch: every candidate code is taken")]
    NoFreeCode {
        /// The index of the item in its batch.
        item: usize,
    },
    /// LISTEN receives no notifications: the connection ends at a transaction pooler.
    #[error("notifications of the database do not arrive: expected a connection to the server itself")]
    Deaf,
    /// A standby lags too far behind, or follows another server.
    #[error("a standby cannot prove that its rows are recent enough")]
    ReplicaBehind,
    /// The database belongs to another history: a standby or a restored copy has taken over, and
    /// may lack the last links.
    #[error("the database has failed over")]
    AnotherHistory,
    /// The database's mark has not been compared with the ledger's since the server's start.
    #[error(
        "the database's server has restarted: nothing is stored under a number until it is known not to be an older copy"
    )]
    NotCompared,
    /// The store's thread or connection task has stopped.
    #[error("the store has stopped")]
    Stopped,
}

impl From<InsertError> for StoreError {
    fn from(error: InsertError) -> Self {
        let (InsertError::Failed(error) | InsertError::Unknown(error)) = error;
        error
    }
}

impl StoreError {
    /// Returns whether the database did not answer in time, or gave a statement up.
    pub fn is_timeout(&self) -> bool {
        let is_given_up = |error: &tokio_postgres::Error| error.code() == Some(&SqlState::QUERY_CANCELED);
        matches!(self, Self::TimedOut) || matches!(self, Self::Postgres(error) if is_given_up(error))
    }

    /// Returns whether another transaction has written the same unique value since this one looked
    /// for it.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Postgres(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION))
    }
}
