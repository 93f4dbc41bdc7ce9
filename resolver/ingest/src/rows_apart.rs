//! Rows of batches, for a store that keeps them in a database of their own.
//!
//! 1. The rows of a batch are on disk before its counters are stored, and until the rows are.
//! 2. One batch at a time: while the other database is away, visits wait in the spool. Redirects go
//!    on; statistics and lists stand still together, so that pages show what was counted.

use std::{error::Error, io, sync::Arc};

use spool::{Sidecars, SpoolError};
use visit_store::{Batch, RowsRecord, VisitStore, VisitStoreError};

use crate::{metrics::IngestMetrics, storer::Attempts};

/// The name of the record beside the spool's segments.
const RECORD: &str = "rows";

/// The rows that may not be stored yet.
pub(crate) struct RowsApart {
    store: Arc<dyn VisitStore>,
    sidecars: Sidecars,
    metrics: Arc<IngestMetrics>,
    record: Option<RowsRecord>,
}

impl RowsApart {
    pub(crate) fn new(store: Arc<dyn VisitStore>, sidecars: Sidecars, metrics: Arc<IngestMetrics>) -> Self {
        Self { store, sidecars, metrics, record: None }
    }

    /// Returns whether rows are in a database of their own.
    pub(crate) fn is_used(&self) -> bool {
        self.store.keeps_rows_apart()
    }

    /// Takes up the record that an earlier process has left, and stores its rows if the batch was
    /// stored: the producer's position is beyond it.
    pub(crate) async fn resume(&mut self, position: u64) {
        let record = match self.sidecars.get(RECORD) {
            Ok(record) => record,
            Err(error) => return self.lose(&error),
        };
        let Some(record) = record else { return };
        let Some(record) = RowsRecord::from_bytes(&record) else {
            return self
                .lose(&io::Error::new(io::ErrorKind::InvalidData, "expected a record of this release"));
        };
        if record.to <= position {
            self.record = Some(record);
            self.store().await;
        } else {
            // Its batch was not stored, and is made again from the spool.
            self.remove();
        }
    }

    /// Records the rows of a batch that is about to be stored.
    pub(crate) fn record(&mut self, batch: &Batch, known: i64) -> Result<(), SpoolError> {
        if self.is_used() && !batch.rows.is_empty() {
            let record = RowsRecord::of(batch, known);
            self.sidecars.put(RECORD, &record.to_bytes())?;
            self.record = Some(record);
        }
        Ok(())
    }

    /// Stores the recorded rows, whose batch is stored, and repeats that until it succeeds.
    pub(crate) async fn store(&mut self) {
        let Some(record) = self.record.take() else { return };
        let mut attempts = Attempts::default();
        self.metrics.set_rows_waiting(record.rows.len());
        while let Err(error) = self.try_store(&record, attempts.is_first()).await {
            attempts.failed("store the rows of visits", &error).await;
        }
        self.metrics.set_rows_waiting(0);
        self.remove();
    }

    async fn try_store(&self, record: &RowsRecord, is_first: bool) -> Result<(), VisitStoreError> {
        if !is_first {
            // The database may not have been there when this process started.
            self.store.migrate().await?;
        }
        self.store.store_rows(record).await
    }

    fn remove(&self) {
        if let Err(error) = self.sidecars.remove(RECORD) {
            // Harmless: rows that are there are not stored again.
            tracing::warn!(error = &error as &dyn Error, "remove the record of visits' rows");
        }
    }

    /// Gives up a record that cannot be read. Its visits are counted, and the latest of them are not
    /// listed.
    fn lose(&self, error: &(dyn Error + 'static)) {
        self.metrics.spool_errors.increment(1);
        tracing::error!(error, "read the record of visits' rows: rows of one batch may be missing");
        self.remove();
    }
}
