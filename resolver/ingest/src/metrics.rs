//! Metrics of the way from the spool to the store.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use daemon::Recorder;
use jiff::Timestamp;
use metrics::{Counter, Gauge, counter};
use spool::{Backlog, DropReason};
use tokio::time::Instant;

/// Interval over which the rate of recorded visits is measured.
const SECOND: Duration = Duration::from_secs(1);

/// Metrics of stored visits, which [`IngestMetrics::new`] describes.
pub struct IngestMetrics {
    pub(crate) rows: Counter,
    pub(crate) batches: Counter,
    pub(crate) unknown: Counter,
    pub(crate) malformed: Counter,
    pub(crate) deleted: Counter,
    pub(crate) spool_errors: Counter,
    pub(crate) fenced: Gauge,
    pub(crate) registered: Gauge,
    pub(crate) slots_missing: Counter,
    waiting: Gauge,
    rows_waiting: Gauge,
    rows_oldest: Gauge,
    spool_bytes: Gauge,
    spool_bytes_max: Gauge,
    oldest: Gauge,
    pub(crate) last_stored: Gauge,
    /// By reason, in the order of [`DropReason::ALL`], which is that of its values.
    dropped: [Counter; DropReason::ALL.len()],
    pub(crate) other_texts: Counter,
    rate: Mutex<Rate>,
    /// The number of rows that ClickHouse has not taken, and the time of the first visit among
    /// them, in microseconds since 1970.
    waiting_rows: Mutex<(u64, Option<i64>)>,
}

struct Rate {
    since: Instant,
    recorded: u64,
    per_second: u64,
}

impl IngestMetrics {
    /// Registers the metrics.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        let last_stored = recorder.gauge(
            "resolver_visit_last_stored_timestamp_seconds",
            "Time of the latest visit that this process has stored since its start.",
        );
        // Not known yet, so that it is not on the page.
        last_stored.set(f64::NAN);
        let dropped =
            |reason: DropReason| counter!("resolver_visits_dropped_total", "reason" => reason.name());
        Arc::new(Self {
            rows: recorder.counter("resolver_visits_stored_total", "Visits stored with a row."),
            batches: recorder.counter("resolver_visit_batches_total", "Batches of visits stored."),
            unknown: recorder.counter(
                "resolver_visit_batches_in_doubt_total",
                "Batches of visits whose COMMIT was not answered; their outcome was asked for.",
            ),
            malformed: recorder
                .counter("resolver_visit_blocks_malformed_total", "Spooled blocks that could not be read."),
            deleted: recorder.counter(
                "resolver_visits_deleted_before_stored_total",
                "Visits that were deleted while they were still in the spool.",
            ),
            spool_errors: recorder.counter(
                "resolver_visit_spool_errors_total",
                "Reads of the spool that failed, or skipped damaged blocks.",
            ),
            fenced: recorder
                .gauge("resolver_visits_fenced", "1 if another process stores the spool of this one."),
            registered: recorder.gauge(
                "resolver_visits_registered",
                "1 while this process has one of the 128 slots, without which it stores no visits.",
            ),
            slots_missing: recorder.counter(
                "resolver_visit_slots_missing_total",
                "Attempts to get a slot that found all of them taken.",
            ),
            waiting: recorder
                .gauge("resolver_visit_blocks_waiting", "Spooled blocks of visits that are not stored yet."),
            rows_waiting: recorder.gauge(
                "resolver_visit_rows_waiting",
                "Visits that are counted, and whose rows are not in ClickHouse yet.",
            ),
            rows_oldest: recorder.gauge(
                "resolver_visit_rows_oldest_waiting_seconds",
                "Age of the oldest visit that is counted and whose row is not in ClickHouse yet; 0 if none \
                 waits.",
            ),
            spool_bytes: recorder.gauge("resolver_visit_spool_bytes", "Size of the spool of visits."),
            spool_bytes_max: recorder.gauge(
                "resolver_visit_spool_bytes_max",
                "Size at which the spool of visits is full: newer ones are dropped then.",
            ),
            oldest: recorder.gauge(
                "resolver_visit_oldest_waiting_seconds",
                "Age of the oldest visit that is not stored yet; 0 if all are.",
            ),
            last_stored,
            dropped: recorder.with(|| DropReason::ALL.map(dropped)),
            other_texts: recorder.counter(
                "resolver_visit_texts_other_total",
                "Texts of rows that were not kept, because too many new ones came at once.",
            ),
            waiting_rows: Mutex::default(),
            rate: Mutex::new(Rate { since: Instant::now(), recorded: 0, per_second: 0 }),
        })
    }

    /// Counts visits that the spool refused.
    pub fn count_dropped(&self, reason: DropReason, count: u32) {
        self.dropped[reason as usize].increment(u64::from(count));
    }

    /// Publishes what waits in the spool. Called when a metrics page is requested: the task that
    /// stores visits cannot tell while it waits for the store.
    pub fn show(&self, backlog: &Backlog, now: Timestamp) {
        self.waiting.set(gauge_value(backlog.blocks));
        self.spool_bytes.set(gauge_value(backlog.bytes));
        self.spool_bytes_max.set(gauge_value(backlog.bytes_max));
        let age = |oldest: Option<i64>| {
            seconds(oldest.map_or(0, |oldest| now.as_microsecond().saturating_sub(oldest)).max(0))
        };
        self.oldest.set(age(backlog.oldest));
        let (count, oldest) = *self.waiting_rows.lock().expect("no code panics while it holds this lock");
        self.rows_waiting.set(gauge_value(count));
        self.rows_oldest.set(age(oldest));
    }

    /// Notes how many rows are counted and not stored yet, and the time of the first of them.
    pub(crate) fn set_rows_waiting(&self, rows: usize, oldest: Option<i64>) {
        *self.waiting_rows.lock().expect("no code panics while it holds this lock") = (rows as u64, oldest);
    }

    /// Returns how many visits are recorded in a second. `recorded` is their number so far.
    pub(crate) fn recorded_per_second(&self, recorded: u64) -> u64 {
        let mut rate = self.rate.lock().expect("no code panics while it holds this lock");
        let elapsed = rate.since.elapsed();
        if elapsed >= SECOND {
            let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
            let per_second = recorded.saturating_sub(rate.recorded).saturating_mul(1_000) / millis;
            *rate = Rate { since: Instant::now(), recorded, per_second };
        }
        rate.per_second
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact far beyond the bound of a spool")]
fn gauge_value(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a fraction of a microsecond does not matter")]
pub(crate) fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}
