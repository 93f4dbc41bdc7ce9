//! Why a store could not do what it was asked.

/// Why an insert did not say what became of its links.
#[derive(Debug, thiserror::Error)]
pub enum InsertError {
    /// Surely nothing was stored.
    #[error("surely not stored")]
    Failed(#[source] StoreError),
    /// It may or may not be stored, now or a moment later.
    #[error("nobody knows whether it is stored")]
    Unknown(#[source] StoreError),
}

/// A store that could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It did not answer within its deadline.
    #[error("the database did not answer in time")]
    TimedOut,
    /// No connection was to be had.
    #[error("no connection to the database")]
    Unreachable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Postgres said no.
    #[error("Postgres")]
    Postgres(#[from] tokio_postgres::Error),
    /// SQLite said no.
    #[error("SQLite")]
    Sqlite(#[from] rusqlite::Error),
    /// A migration failed.
    #[error("migrate the schema")]
    Migration(#[from] Box<refinery::Error>),
    /// The schema is older than this version needs.
    #[error(
        "the database's schema is at version {found}, this version needs {needed}: run `resolver migrate`"
    )]
    SchemaBehind {
        /// The version found; 0 for an empty database.
        found: i64,
        /// The version needed.
        needed: i64,
    },
    /// What is stored is not what this version writes.
    #[error("the database holds something unexpected: {0}")]
    Corrupt(String),
    /// A keyspace is defined otherwise than before, or overlaps an earlier one.
    #[error("{0}")]
    Keyspace(String),
    /// What was to be kept of a block has been taken over.
    #[error("the register has these numbers under another allocation")]
    Overlap,
    /// What is told is not heard: whoever answers LISTEN is no server, but a pooler that shares servers between transactions.
    #[error("notifications of the database do not arrive: expected a connection to the server itself")]
    Deaf,
    /// A replica lags longer than it may, or is no standby and cannot say how far it is.
    #[error("the replica cannot prove that it lags less than --replica-lag")]
    ReplicaBehind,
    /// A copy has taken over, and may lack the last links.
    #[error("the database has failed over")]
    AnotherHistory,
    /// The server has restarted, and nobody has compared the mark with the ledger's since.
    #[error(
        "the database's server has restarted: nothing is stored under a number until it is known not to be an older copy"
    )]
    NotCompared,
    /// The writer has stopped.
    #[error("the store has stopped")]
    Stopped,
}
