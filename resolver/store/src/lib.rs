//! The database of the application: seven ports with two implementations, Postgres and SQLite.
//!
//! [`Links`], [`Catalog`], [`Register`], [`Settings`], [`Keys`], [`Schedule`] and [`Webhooks`] say
//! what use cases need; [`Store`] is all of them.

mod buckets;
mod error;
mod migrations;
mod operation;
mod outcomes;
mod ports;
pub mod postgres;
mod requests;
mod sql;
pub mod sqlite;
mod witness;

pub use buckets::Bucket;
pub(crate) use error::Result;
pub use error::{InsertError, StoreError};
pub use migrations::runner;
pub use operation::{Database, Done, Lane, Operation, Under, Work};
pub use outcomes::{
    Advanced, Change, DomainEdited, DomainRemoved, Exported, Imported, Indexed, Inserted, InsertedLink,
    LinkIndex, NamedIds, Reading, Registration, Renamed, Schema, SettingsPoll, SettingsVersion,
    SharedSettings, TagChange, TagCount, VisitTotals, Walked,
};
pub use ports::{
    AfterAttempt, AttemptEnd, Backlog, Catalog, ClaimedDelivery, Disable, FanOut, FannedOut, Keys, Links,
    Register, Schedule, Scheduled, Settings, Store, Webhooks,
};
pub use requests::{
    BatchLink, BlockEntry, BulkBatch, Comparison, CustomSlugLink, FullLink, ImportBatch, ImportPosition,
    LinkVisits, Source, Sweep, Visible,
};
pub use sql::{
    Dialect, Notice, Row, Sql, Value, add_to_links, add_webhook_events, counted_visits, insert_rows,
    tag_changes,
};
pub use witness::Witness;

/// Maximum number of links in one insert, and of ids in one read. Larger batches gain nothing and
/// hold memory.
pub const BATCH_MAX: usize = 1_000;

/// Maximum number of links in one read for redirects. Redirect rules take up to a quarter of a
/// megabyte per link, and few links have them. A read of such links only must fit into memory, and
/// end before the primary's deadline.
pub const READ_MAX: usize = 128;
/// Maximum number of reservations in one list.
pub const RESERVATIONS_MAX: usize = 1_000;
