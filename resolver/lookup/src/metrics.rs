//! Metrics of the resolver. Handles are created once, and no label contains a code, URL or client.

use std::{sync::Arc, time::Duration};

use daemon::Recorder;
use metrics::{Counter, Histogram, counter, describe_counter, describe_histogram, histogram};

/// The handles of all counters and histograms, which [`Metrics::new`] describes.
#[expect(missing_docs, reason = "each is described where it is created, as the metrics page shows it")]
pub struct Metrics {
    recorder: Recorder,
    pub redirects: Counter,
    pub visits: Counter,
    pub orphan_visits: Counter,
    pub visits_dropped: Counter,
    pub links_removed: Counter,
    pub not_found: Counter,
    pub unknown_refused: Counter,
    pub cache_hits: Counter,
    pub link_reads: Counter,
    pub links_asked: Counter,
    pub creates: Counter,
    pub insert_batches: Counter,
    pub conflicts: Counter,
    pub inserts_unknown: Counter,
    pub burned: Counter,
    pub reserved: Counter,
    /// Without bulk creates.
    pub create_seconds: Histogram,
    pub unavailable: Counter,
    pub connections_refused: Counter,
    pub clients_unread: Counter,
}

impl Metrics {
    /// Registers all metrics, so that the first scrape shows zeros rather than nothing.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        let visits_dropped = recorder.with(|| {
            describe_histogram!(
                "resolver_grpc_request_duration_seconds",
                "Time of a call of the links API over gRPC to the head of its answer."
            );
            describe_counter!("resolver_visits_dropped_total", "Visits that were dropped, by reason.");
            counter!("resolver_visits_dropped_total", "reason" => "queue-full")
        });
        Arc::new(Self {
            recorder: recorder.clone(),
            redirects: recorder.counter("resolver_redirects_total", "Redirects answered."),
            visits: recorder.counter("resolver_visits_total", "Visits recorded that a link redirected."),
            orphan_visits: recorder
                .counter("resolver_orphan_visits_total", "Visits recorded that no link redirected."),
            visits_dropped,
            links_removed: recorder.counter(
                "resolver_links_removed_total",
                "Links removed because they had no visit for --remove-unvisited-after.",
            ),
            not_found: recorder.counter("resolver_not_found_total", "Codes asked for that have no link."),
            unknown_refused: recorder.counter(
                "resolver_unknown_codes_refused_total",
                "Requests refused because their client had asked for too many codes that have no link.",
            ),
            cache_hits: recorder.counter("resolver_cache_hits_total", "Lookups answered from the cache."),
            link_reads: recorder
                .counter("resolver_link_reads_total", "Batched reads of links from the database."),
            links_asked: recorder
                .counter("resolver_links_asked_total", "Links that the batched reads asked for."),
            creates: recorder.counter("resolver_creates_total", "Links created."),
            insert_batches: recorder
                .counter("resolver_insert_batches_total", "Batched inserts of links into the database."),
            conflicts: recorder.counter(
                "resolver_conflicts_total",
                "Numbers skipped because a link was stored under them already.",
            ),
            inserts_unknown: recorder
                .counter("resolver_inserts_unknown_total", "Inserts whose outcome was unknown at first."),
            burned: recorder.counter(
                "resolver_numbers_burned_total",
                "Numbers given up because it is unknown whether a link is stored under them.",
            ),
            reserved: recorder
                .counter("resolver_numbers_reserved_total", "Numbers set aside by reservations."),
            create_seconds: recorder.histogram("resolver_create_duration_seconds", "Time of a create."),
            unavailable: recorder.counter("resolver_unavailable_total", "Requests answered 503."),
            connections_refused: recorder.counter(
                "resolver_connections_refused_total",
                "Connections refused: all that there may be, of all clients or of one, were being answered.",
            ),
            clients_unread: recorder.counter(
                "resolver_clients_unread_total",
                "Requests of trusted proxies whose client could not be read or believed; to all limits, the \
                 proxy is the client.",
            ),
        })
    }

    /// Counts a call of the links API over gRPC.
    pub fn record_grpc(&self, method: &'static str, code: impl std::fmt::Debug, duration: Duration) {
        let code = format!("{code:?}");
        self.recorder.with(|| {
            histogram!("resolver_grpc_request_duration_seconds", "method" => method, "code" => code)
                .record(duration);
        });
    }
}
