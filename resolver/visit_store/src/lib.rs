//! Where visits are kept: rows, texts and counters, on Postgres, SQLite and ClickHouse.

mod clickhouse;
mod erased_rows;
mod error;
mod link_visits;
mod port;
mod postgres;
mod rows_record;
mod sql;
mod sqlite;
mod values;

pub use clickhouse::{ClickhouseAddress, ClickhouseVisits};
pub use error::{Result, VisitStoreError, WriteError};
pub(crate) use port::{LEAVING, MERGED};
pub use port::{TokenSecret, VisitReader, VisitStore};
pub use postgres::PostgresVisits;
pub use rows_record::RowsRecord;
pub use sqlite::SqliteVisits;
pub use values::{
    Batch, Changes, Columns, Cut, DayCounters, DayDelta, Days, Erased, Erasure, ErasureId, LinkVisits,
    Producer, Remaining, RowQuery, SILENT, SpoolId, Standing, StoredText, TextRef,
};
