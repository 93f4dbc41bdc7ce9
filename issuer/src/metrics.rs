//! Metrics of the issuer. Handles are created once, so that no request looks a metric up by name.

use std::{sync::Arc, time::Duration};

use daemon::{Contact, Recorder};
use metrics::{Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, gauge};
use numbers::{Epoch, Namespace};
use tls::Certificate;
use tokio::{sync::watch, time::Instant};

use crate::{
    core::{Answer, NamespaceReport, Refusal},
    forecast::Outlook,
    ledger::TxnOutcome,
};

/// Metric handles of the driver and the service.
#[derive(Clone)]
pub struct Metrics {
    recorder: Recorder,
    lease_deadline: watch::Sender<Option<Instant>>,
    lease_remaining: Gauge,
    etcd: Arc<Contact>,
    leader: Gauge,
    epoch: Gauge,
    allocations: Counter,
    issued: Counter,
    refusals: Counter,
    applied: Counter,
    refused: Counter,
    unknown: Counter,
    pub(crate) leader_changes: Counter,
    allocation_seconds: Histogram,
    pub(crate) transaction_seconds: Histogram,
}

/// Metric handles of the election.
#[cfg(feature = "etcd")]
pub struct ElectionMetrics {
    pub(crate) errors: Counter,
    pub(crate) keep_alive_seconds: Histogram,
    /// When etcd last answered the election, which asks it every second, or renews the lease.
    pub(crate) etcd: Arc<Contact>,
    /// Time at which the lease expires if no more keep-alives are answered; `None` without a lease.
    pub(crate) lease_deadline: watch::Sender<Option<Instant>>,
}

impl Metrics {
    /// Registers all metrics, so that the first scrape shows zeros instead of nothing.
    pub fn new(recorder: &Recorder) -> Self {
        let transactions = |result: &'static str| counter!("issuer_transactions_total", "result" => result);
        let [applied, refused, unknown] = recorder.with(|| {
            describe();
            ["ok", "conflict", "unknown"].map(transactions)
        });
        Self {
            recorder: recorder.clone(),
            lease_deadline: watch::Sender::new(None),
            lease_remaining: recorder.gauge(
                "issuer_lease_remaining_seconds",
                "How long the leader's lease lasts if etcd does not answer any more; 0 without one.",
            ),
            etcd: Arc::new(Contact::polled("etcd")),
            leader: recorder.gauge(
                "issuer_leader",
                "1 while this issuer leads and serves, else 0. Only a leader has gauges of the ledger.",
            ),
            epoch: recorder.gauge("issuer_epoch", "The epoch this issuer last served."),
            allocations: recorder
                .counter("issuer_allocations_total", "Allocations answered, repeated ones included."),
            // Of this process alone and without a label: a series that began with its first block
            // would hide that from `rate`, and one that followed the ledger would repeat what other
            // leaders have issued.
            issued: recorder.counter(
                "issuer_numbers_issued_total",
                "Numbers that this process has handed out as leader. Add the rates of all issuers.",
            ),
            refusals: recorder.counter("issuer_refusals_total", "Calls refused, for any reason."),
            applied,
            refused,
            unknown,
            leader_changes: recorder
                .counter("issuer_leader_changes_total", "Leaders seen after the first one."),
            allocation_seconds: recorder.histogram(
                "issuer_allocation_duration_seconds",
                "Time from a call's arrival to the answer with its block.",
            ),
            transaction_seconds: recorder.histogram(
                "issuer_transaction_duration_seconds",
                "Time from sending a ledger transaction to its outcome.",
            ),
        }
    }

    /// Registers the election's metrics and returns their handles.
    #[cfg(feature = "etcd")]
    pub fn election(&self) -> ElectionMetrics {
        let recorder = &self.recorder;
        ElectionMetrics {
            errors: recorder
                .counter("issuer_election_errors_total", "Failed calls to etcd outside of transactions."),
            keep_alive_seconds: recorder.histogram(
                "issuer_keep_alive_duration_seconds",
                "Time from sending a lease keep-alive to its answer.",
            ),
            etcd: Arc::clone(&self.etcd),
            lease_deadline: self.lease_deadline.clone(),
        }
    }

    /// Sets whether this issuer serves, and the epoch if it does.
    #[expect(clippy::cast_precision_loss, reason = "an epoch is an etcd revision, far below 2^53")]
    pub fn serving(&self, epoch: Option<Epoch>) {
        self.leader.set(if epoch.is_some() { 1.0 } else { 0.0 });
        if let Some(epoch) = epoch {
            self.epoch.set(epoch.0 as f64);
        }
    }

    /// Counts a transaction by its outcome.
    pub fn transaction(&self, outcome: &TxnOutcome) {
        match outcome {
            TxnOutcome::Applied(_) => self.applied.increment(1),
            TxnOutcome::Refused(_) => self.refused.increment(1),
            TxnOutcome::Unknown => self.unknown.increment(1),
        }
    }

    /// Sets when a certificate ends, for each metrics page, as certificates are renewed.
    #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 stay below 2^53")]
    pub fn certificate(&self, of: &'static str, certificate: Option<Certificate>) {
        if let Some(certificate) = certificate {
            let ends = certificate.not_after as f64;
            self.recorder.with(|| {
                gauge!("issuer_certificate_expiry_timestamp_seconds", "certificate" => of).set(ends);
            });
        }
    }

    /// Sets the remaining time of the lease and the age of etcd's last answer, for each page.
    pub fn show_etcd(&self) {
        let (server, age) = (self.etcd.server, self.etcd.age().as_secs_f64());
        self.recorder.with(|| gauge!("issuer_last_success_age_seconds", "server" => server).set(age));
        let deadline = *self.lease_deadline.borrow();
        let left = deadline.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
        self.lease_remaining.set(left.as_secs_f64());
    }

    /// Counts an answer, and records the time of an allocation since its call arrived.
    pub fn answered(&self, answer: &Result<Answer, Refusal>, arrived: Instant) {
        match answer {
            Ok(Answer::Allocated { block, is_repeated, .. }) => {
                self.allocations.increment(1);
                self.issued.increment(if *is_repeated { 0 } else { block.span.len() });
                self.allocation_seconds.record(arrived.elapsed());
            }
            Ok(_) => {}
            Err(_) => self.refusals.increment(1),
        }
    }

    /// Sets the gauges of a namespace.
    #[expect(clippy::cast_precision_loss, reason = "counts of numbers stay below 2^48")]
    pub fn namespace(&self, report: &NamespaceReport, outlook: &Outlook) {
        let account = report.record.account;
        let counts = [
            account.allocated,
            account.allocated.abs_diff(account.accounted()),
            report.in_hand,
            report.record.capacity,
            account.used,
            account.open,
            account.free,
            account.leaked,
            account.burned,
        ];
        let left = [outlook.ratio, outlook.seconds, if outlook.is_low() { 1.0 } else { 0.0 }];
        let values = left.into_iter().chain(counts.map(|count| count as f64));
        let gauges = self.recorder.with(|| namespace_gauges(&report.name));
        gauges.iter().zip(values).for_each(|(gauge, value)| gauge.set(value));
    }

    /// Sets the number of holders that were heard within the holder TTL.
    #[expect(clippy::cast_precision_loss, reason = "there are few holders")]
    pub fn holders_alive(&self, count: usize) {
        self.recorder.with(|| gauge!("issuer_holders_alive").set(count as f64));
    }

    /// Sets the gauges of these namespaces and of holders to NaN, because this issuer does not know
    /// their state any more. The page leaves them out.
    pub fn withdraw<'a>(&self, namespaces: impl Iterator<Item = &'a Namespace>) {
        self.recorder.with(|| {
            let gauges = namespaces.flat_map(namespace_gauges);
            gauges.chain([gauge!("issuer_holders_alive")]).for_each(|gauge| gauge.set(f64::NAN));
        });
    }
}

/// Returns the gauges of a namespace: the share of numbers left, how long they last, whether they
/// are low; the numbers allocated, unaccounted and in hand, the capacity, and the numbers by state.
fn namespace_gauges(namespace: &Namespace) -> [Gauge; 12] {
    let name = namespace.to_string();
    let numbers =
        |state: &'static str| gauge!("issuer_numbers", "namespace" => name.clone(), "state" => state);
    [
        gauge!("issuer_namespace_remaining_ratio", "namespace" => name.clone()),
        gauge!("issuer_namespace_exhaustion_seconds", "namespace" => name.clone()),
        gauge!("issuer_namespace_low", "namespace" => name.clone()),
        gauge!("issuer_namespace_allocated", "namespace" => name.clone()),
        gauge!("issuer_numbers_unaccounted", "namespace" => name.clone()),
        gauge!("issuer_numbers_in_hand", "namespace" => name.clone()),
        gauge!("issuer_namespace_capacity", "namespace" => name.clone()),
        numbers("used"),
        numbers("open"),
        numbers("free"),
        numbers("leaked"),
        numbers("burned"),
    ]
}

fn describe() {
    describe_gauge!(
        "issuer_certificate_expiry_timestamp_seconds",
        metrics::Unit::Seconds,
        "End of the validity of an own certificate, in seconds since 1970: server, of the listener; etcd, shown to etcd."
    );
    describe_gauge!(
        "issuer_last_success_age_seconds",
        metrics::Unit::Seconds,
        "Time since etcd last answered the election, or since the start. It is asked every second, or for the lease."
    );
    describe_counter!("issuer_transactions_total", "Ledger transactions by result: ok, conflict, unknown.");
    describe_gauge!("issuer_namespace_allocated", "Numbers of a namespace ever allocated, by the ledger.");
    describe_gauge!(
        "issuer_namespace_remaining_ratio",
        "Share of a namespace's numbers that can still be allocated."
    );
    describe_gauge!(
        "issuer_namespace_exhaustion_seconds",
        "Time until a namespace runs out, at the rate of the last hours."
    );
    describe_gauge!("issuer_namespace_low", "1 when a namespace runs low: an operator should act.");
    describe_gauge!(
        "issuer_numbers_in_hand",
        "Numbers that holders had not used yet when they last reported."
    );
    describe_gauge!("issuer_namespace_capacity", "How many numbers a namespace has.");
    describe_gauge!("issuer_numbers", "Where the allocated numbers are: used, open, free, leaked, burned.");
    describe_gauge!(
        "issuer_numbers_unaccounted",
        "Numbers missing from the account, or too many in it: always 0."
    );
    describe_gauge!("issuer_holders_alive", "Holders heard of within the holder TTL.");
}
