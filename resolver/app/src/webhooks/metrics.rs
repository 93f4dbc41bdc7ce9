//! Metrics of webhooks. No label names a webhook, because its URL is private.

use std::sync::Arc;

use daemon::{Contact, Recorder};
use metrics::{Counter, Gauge, counter, describe_counter};
use store::Backlog;

/// The handles of all counters and gauges of webhooks, which [`WebhookMetrics::new`] describes.
pub struct WebhookMetrics {
    pub(super) delivered: Counter,
    pub(super) retried: Counter,
    pub(super) dead: Counter,
    pub(super) dropped: Counter,
    pub(super) disabled: Counter,
    /// When a receiver last took an event.
    pub receivers: Contact,
    open: Gauge,
    overdue: Gauge,
}

impl WebhookMetrics {
    /// Registers all metrics, so that the first scrape shows zeros rather than nothing.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        let [delivered, retried, dead] = recorder.with(|| {
            describe_counter!(
                "resolver_webhook_attempts_total",
                "Attempts to deliver an event, by outcome: delivered; retried: another one follows; dead: it was the last."
            );
            ["delivered", "retried", "dead"]
                .map(|outcome| counter!("resolver_webhook_attempts_total", "outcome" => outcome))
        });
        Arc::new(Self {
            delivered,
            retried,
            dead,
            dropped: recorder.counter(
                "resolver_webhook_deliveries_dropped_total",
                "Deliveries dropped because as many were open for their webhook as there may be.",
            ),
            disabled: recorder.counter(
                "resolver_webhooks_disabled_total",
                "Webhooks disabled because their receiver was gone or had failed for long.",
            ),
            receivers: Contact::on_demand("receivers"),
            open: recorder.gauge(
                "resolver_webhook_deliveries_open",
                "Open deliveries of all webhooks. Every resolver of a database shows the same number.",
            ),
            overdue: recorder.gauge(
                "resolver_webhook_overdue_seconds",
                "How long the oldest open delivery of an enabled webhook is due.",
            ),
        })
    }

    /// Sets the open deliveries, and how long the oldest is due. `None`: the database does not
    /// tell, and the gauges leave the page.
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float, and exact for such numbers")]
    pub fn set_backlog(&self, backlog: Option<Backlog>) {
        let values = |backlog: Backlog| (backlog.open as f64, backlog.overdue.as_secs_f64());
        let (open, overdue) = backlog.map_or((f64::NAN, f64::NAN), values);
        self.open.set(open);
        self.overdue.set(overdue);
    }
}
