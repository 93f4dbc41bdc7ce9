//! Rows of batches, for a store that keeps them in a database of their own.
//!
//! 1. The rows of a batch are on disk before its counters are stored, and until the rows are.
//! 2. One batch at a time: while the other database is away, visits wait in the spool, and
//!    redirects go on. So what is counted and what is listed are never far apart.

use std::{error::Error, sync::Arc};

use spool::{Sidecars, SpoolError};
use visit_store::{Batch, RowsRecord, VisitStore};

use crate::{attempts::Attempts, metrics::IngestMetrics};

/// The name of the record beside the spool's segments.
const RECORD: &str = "rows";

/// Attempts from one try to create missing tables to the next.
const TABLES_EVERY: u32 = 4;

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
        let mut attempts = Attempts::default();
        let record = loop {
            match self.sidecars.get(RECORD) {
                Ok(record) => break record.map(|bytes| RowsRecord::from_bytes(&bytes)),
                Err(SpoolError::Sidecar(_)) => break Some(None),
                Err(error) => attempts.failed("read the record of visits' rows", &error).await,
            }
        };
        match record {
            None => {}
            Some(None) => self.set_aside("expected an undamaged record of this release"),
            Some(Some(record)) if record.rows.is_empty() => {}
            Some(Some(_)) if !self.is_used() => {
                self.set_aside("expected --visits-store, which it was written for");
            }
            Some(Some(record)) if record.to <= position => {
                self.record = Some(record);
                self.store().await;
            }
            // Its batch was not stored, and is made again from the spool.
            Some(Some(_)) => self.remove(),
        }
    }

    /// Records the rows of a batch that is about to be stored, in place of those of an earlier one,
    /// which was not: also if there are none.
    pub(crate) fn record(&mut self, batch: &Batch, known: i64) -> Result<(), SpoolError> {
        if self.is_used() {
            let record = RowsRecord::of(batch, known);
            self.sidecars.put(RECORD, &record.to_bytes())?;
            self.record = Some(record);
        }
        Ok(())
    }

    /// Stores the recorded rows, whose batch is stored, and repeats that until it succeeds.
    pub(crate) async fn store(&mut self) {
        let Some(mut record) = self.record.take() else { return };
        if record.rows.is_empty() {
            return;
        }
        let mut attempts = Attempts::default();
        let oldest = record.rows.iter().map(|row| row.id.micros()).min();
        self.metrics.set_rows_waiting(record.rows.len(), oldest);
        while let Err(error) = self.store.store_rows(&record).await {
            record.may_be_stored = true;
            if attempts.count.is_multiple_of(TABLES_EVERY) {
                self.create_tables().await;
            }
            attempts.failed("store the rows of visits", &error).await;
        }
        self.metrics.set_rows_waiting(0, None);
        self.remove();
    }

    /// Creates the tables, if they are missing: the database may not have been there when this
    /// process started. Rows do not wait for its success: a replica that is away would hold them
    /// up.
    async fn create_tables(&self) {
        if let Err(error) = self.store.migrate().await {
            tracing::warn!(error = &error as &dyn Error, "prepare the database of visits' rows");
        }
    }

    fn remove(&self) {
        if let Err(error) = self.sidecars.remove(RECORD) {
            // Harmless: rows that are there are not stored again.
            tracing::warn!(error = &error as &dyn Error, "remove the record of visits' rows");
        }
    }

    /// Keeps a record that cannot be used for a person to look at. Its visits are counted, and the
    /// rows of one batch are missing.
    fn set_aside(&self, reason: &'static str) {
        self.metrics.spool_errors.increment(1);
        let kept = self.sidecars.set_aside(RECORD);
        let kept =
            kept.inspect_err(|error| tracing::error!(error = error as &dyn Error, "keep a record")).ok();
        tracing::error!(reason, ?kept, "rows of visits wait in a record that cannot be used");
    }
}
