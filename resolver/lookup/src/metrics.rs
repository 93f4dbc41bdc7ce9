//! Metrics of the resolver. Handles are created once, and no label contains a code, URL or client.

use std::{sync::Arc, time::Duration};

use daemon::Recorder;
use metrics::{Counter, Histogram, Unit, counter, describe_counter, describe_histogram, histogram};

/// The handles of all counters and histograms.
pub struct Metrics {
    recorder: Recorder,
    /// Redirects answered.
    pub redirects: Counter,
    /// Visits recorded that a link redirected.
    pub visits: Counter,
    /// Visits recorded that no link redirected.
    pub orphan_visits: Counter,
    /// Visits dropped because no arena was spare: the spool's thread did not keep up.
    pub visits_dropped: Counter,
    /// Links removed because they had not been visited for long.
    pub links_removed: Counter,
    /// Requests for paths that lead to no live link.
    pub not_found: Counter,
    /// Requests rejected because their client had requested too many unknown codes.
    pub unknown_refused: Counter,
    /// Lookups answered from the cache.
    pub cache_hits: Counter,
    /// Batched reads of links.
    pub link_reads: Counter,
    /// Ids requested by the batched reads.
    pub links_asked: Counter,
    /// Links created.
    pub creates: Counter,
    /// Batched inserts.
    pub insert_batches: Counter,
    /// Numbers and generated codes skipped because another link has them.
    pub conflicts: Counter,
    /// Inserts whose outcome was unknown at first.
    pub inserts_unknown: Counter,
    /// Numbers burned: a link may be stored under them, or they must not be used.
    pub burned: Counter,
    /// Numbers set aside by reservations.
    pub reserved: Counter,
    /// Duration of a create in the creator, from start to outcome, without bulk creates.
    pub create_seconds: Histogram,
    /// Requests answered 503.
    pub unavailable: Counter,
    /// Connections rejected because a limit, of all clients or of one, was reached by connections
    /// in use.
    pub connections_refused: Counter,
    /// Requests of trusted proxies whose client could not be read or believed.
    pub clients_unread: Counter,
}

impl Metrics {
    /// Registers all metrics, so that the first scrape shows zeros rather than nothing.
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        recorder.with(|| {
            describe();
            Arc::new(Self {
                recorder: recorder.clone(),
                redirects: counter!("resolver_redirects_total"),
                visits: counter!("resolver_visits_total"),
                orphan_visits: counter!("resolver_orphan_visits_total"),
                visits_dropped: counter!("resolver_visits_dropped_total", "reason" => "queue-full"),
                links_removed: counter!("resolver_links_removed_total"),
                not_found: counter!("resolver_not_found_total"),
                unknown_refused: counter!("resolver_unknown_codes_refused_total"),
                cache_hits: counter!("resolver_cache_hits_total"),
                link_reads: counter!("resolver_link_reads_total"),
                links_asked: counter!("resolver_links_asked_total"),
                creates: counter!("resolver_creates_total"),
                insert_batches: counter!("resolver_insert_batches_total"),
                conflicts: counter!("resolver_conflicts_total"),
                inserts_unknown: counter!("resolver_inserts_unknown_total"),
                burned: counter!("resolver_numbers_burned_total"),
                reserved: counter!("resolver_numbers_reserved_total"),
                create_seconds: histogram!("resolver_create_duration_seconds"),
                unavailable: counter!("resolver_unavailable_total"),
                connections_refused: counter!("resolver_connections_refused_total"),
                clients_unread: counter!("resolver_clients_unread_total"),
            })
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

fn describe() {
    describe_histogram!(
        "resolver_grpc_request_duration_seconds",
        Unit::Seconds,
        "Time of a call of the links API over gRPC to the head of its answer."
    );
    describe_counter!("resolver_redirects_total", "Redirects answered.");
    describe_counter!("resolver_visits_total", "Visits recorded that a link redirected.");
    describe_counter!("resolver_orphan_visits_total", "Visits recorded that no link redirected.");
    describe_counter!("resolver_visits_dropped_total", "Visits that were dropped, by reason.");
    describe_counter!(
        "resolver_links_removed_total",
        "Links removed because they had no visit for --remove-unvisited-after."
    );
    describe_counter!("resolver_not_found_total", "Codes asked for that have no link.");
    describe_counter!(
        "resolver_unknown_codes_refused_total",
        "Requests refused because their client had asked for too many codes that have no link."
    );
    describe_counter!("resolver_cache_hits_total", "Lookups answered from the cache.");
    describe_counter!("resolver_link_reads_total", "Batched reads of links from the database.");
    describe_counter!("resolver_links_asked_total", "Links that the batched reads asked for.");
    describe_counter!("resolver_creates_total", "Links created.");
    describe_counter!("resolver_insert_batches_total", "Batched inserts of links into the database.");
    describe_counter!(
        "resolver_conflicts_total",
        "Numbers skipped because a link was stored under them already."
    );
    describe_counter!("resolver_inserts_unknown_total", "Inserts whose outcome was unknown at first.");
    describe_counter!(
        "resolver_numbers_burned_total",
        "Numbers given up because it is unknown whether a link is stored under them."
    );
    describe_counter!("resolver_numbers_reserved_total", "Numbers set aside by reservations.");
    describe_histogram!("resolver_create_duration_seconds", Unit::Seconds, "Time of a create.");
    describe_counter!("resolver_unavailable_total", "Requests answered 503.");
    describe_counter!(
        "resolver_connections_refused_total",
        "Connections refused: all that there may be, of all clients or of one, were being answered."
    );
    describe_counter!(
        "resolver_clients_unread_total",
        "Requests of trusted proxies whose client could not be read or believed; to all limits, \
         the proxy is the client."
    );
}
