//! Times in columns of results.

use jiff::Timestamp;
use tokio_postgres::Row;

use crate::{Result, StoreError};

pub(super) fn optional_timestamp(row: &Row, column: usize) -> Result<Option<Timestamp>> {
    let time: Option<std::time::SystemTime> = row.try_get(column)?;
    time.map(|time| {
        Timestamp::try_from(time).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
    })
    .transpose()
}

pub(super) fn timestamp(row: &Row, column: usize) -> Result<Timestamp> {
    let time: std::time::SystemTime = row.try_get(column)?;
    Timestamp::try_from(time).map_err(|error| StoreError::Corrupt(format!("a time: {error}")))
}
