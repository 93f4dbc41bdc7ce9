//! Metrics of the supply of numbers. Handles are created once.

use std::sync::Arc;

use daemon::Recorder;
use metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_gauge, gauge};
use tls::Certificate;

use crate::{IssuerClient, Minting};

/// The handles of the supply's metrics, which [`SupplyMetrics::new`] describes.
pub struct SupplyMetrics {
    recorder: Recorder,
    /// Counts blocks that overlapped the register.
    pub blocks_overlapping: Counter,
    pub(crate) reclaimed: Counter,
    pub(crate) refills_refused: Counter,
    refills_unanswered: Counter,
    pub(crate) refill_seconds: Histogram,
}

impl SupplyMetrics {
    /// Registers all metrics, so that the first scrape shows zeros instead of no series.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        let refills_failed = |reason| counter!("resolver_refills_failed_total", "reason" => reason);
        let [refills_refused, refills_unanswered] = recorder.with(|| {
            describe();
            ["refused", "unanswered"].map(refills_failed)
        });
        Arc::new(Self {
            recorder: recorder.clone(),
            blocks_overlapping: recorder.counter(
                "resolver_blocks_overlapping_total",
                "Blocks refused because they overlapped the register.",
            ),
            reclaimed: recorder
                .counter("resolver_numbers_reclaimed_total", "Unused numbers found in leaked blocks."),
            refills_refused,
            refills_unanswered,
            refill_seconds: recorder
                .histogram("resolver_refill_duration_seconds", "Time from wanting a block to having it."),
        })
    }

    /// Sets when a certificate ends, if there is one.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 stay below 2^53")]
    pub fn certificate(&self, of: &'static str, certificate: Option<Certificate>) {
        if let Some(certificate) = certificate {
            let ends = certificate.not_after as f64;
            self.recorder.with(|| {
                gauge!("resolver_certificate_expiry_timestamp_seconds", "certificate" => of).set(ends);
            });
        }
    }

    /// Sets the gauges of the numbers in hand, and the count of calls without an answer.
    #[expect(clippy::cast_precision_loss, reason = "numbers in hand stay below 2^48")]
    pub fn report(&self, client: &IssuerClient, mintings: &[Arc<Minting>]) {
        self.refills_unanswered.absolute(client.unanswered());
        self.recorder.with(|| {
            for minting in mintings {
                let name = minting.namespace.to_string();
                let stock = minting.stock();
                gauge!("resolver_numbers_in_hand", "namespace" => name.clone()).set(stock.in_hand as f64);
                gauge!("resolver_supply_seconds", "namespace" => name.clone()).set(stock.supply_seconds());
                gauge!("resolver_claims_per_second", "namespace" => name.clone()).set(stock.rate);
                gauge!("resolver_pool_numbers", "namespace" => name.clone()).set(stock.pooled as f64);
                counter!("resolver_pool_overflows_total", "namespace" => name).absolute(stock.overflowed);
            }
        });
    }
}

fn describe() {
    describe_gauge!(
        "resolver_certificate_expiry_timestamp_seconds",
        Unit::Seconds,
        "End of the validity of an own certificate, in seconds since 1970: public, of the listener; issuer, shown to issuers."
    );
    describe_counter!(
        "resolver_refills_failed_total",
        "Calls to the issuer that failed, by reason: refused; unanswered: no connection, no answer in time, or no leader."
    );
    describe_gauge!(
        "resolver_supply_seconds",
        "How long the numbers in hand last at the rate of the last minute, by namespace."
    );
    describe_gauge!("resolver_claims_per_second", "Numbers claimed per second over the last minute.");
    describe_gauge!(
        "resolver_pool_numbers",
        "Numbers that came back after a failed insert and are used first, by namespace."
    );
    describe_counter!(
        "resolver_pool_overflows_total",
        "Numbers that came back and found the pool full, by namespace."
    );
    describe_gauge!("resolver_numbers_in_hand", "Numbers that can be claimed at once, by namespace.");
}
