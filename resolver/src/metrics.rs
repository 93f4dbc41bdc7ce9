//! What an operator sees of the resolver. Handles are made once; no code, URL or client is ever in a label.

use std::sync::Arc;

use daemon::Recorder;
use metrics::{
    Counter, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

use crate::supply::Minting;

/// Every handle.
pub struct Metrics {
    recorder: Recorder,
    /// Redirects answered.
    pub redirects: Counter,
    /// Visits counted.
    pub visits: Counter,
    /// Visits that found their queue full.
    pub visits_dropped: Counter,
    /// Links that were removed because nobody had visited them for long.
    pub links_removed: Counter,
    /// Codes asked for that have no link.
    pub not_found: Counter,
    /// Requests refused because their client had asked for too many codes that have no link.
    pub unknown_refused: Counter,
    /// Lookups answered from the cache.
    pub cache_hits: Counter,
    /// Codes that the ceiling ruled out: no query was needed.
    pub ruled_out: Counter,
    /// Batched reads of links.
    pub link_reads: Counter,
    /// Links that they asked for.
    pub links_asked: Counter,
    /// Links created.
    pub creates: Counter,
    /// Batched inserts.
    pub insert_batches: Counter,
    /// Numbers skipped because a link was stored under them already.
    pub conflicts: Counter,
    /// Inserts whose outcome nobody knew at first.
    pub inserts_unknown: Counter,
    /// Numbers given up because nobody knows whether a link is stored under them.
    pub burned: Counter,
    /// Blocks that overlapped the register.
    pub blocks_overlapping: Counter,
    /// Unused numbers found in leaked blocks.
    pub reclaimed: Counter,
    /// Numbers set aside by reservations.
    pub reserved: Counter,
    /// Refills that were refused.
    pub refills_failed: Counter,
    /// Time from wanting a block to having it.
    pub refill_seconds: Histogram,
    /// Time of a create, from its body to its answer.
    pub create_seconds: Histogram,
    /// Requests answered 503.
    pub unavailable: Counter,
    /// Connections refused: all that there may be, of all clients or of one, were being answered.
    pub connections_refused: Counter,
}

impl Metrics {
    /// Registers everything, so that a first scrape shows zeros rather than nothing.
    #[must_use]
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        recorder.with(|| {
            describe();
            Arc::new(Self {
                recorder: recorder.clone(),
                redirects: counter!("resolver_redirects_total"),
                visits: counter!("resolver_visits_total"),
                visits_dropped: counter!("resolver_visits_dropped_total"),
                links_removed: counter!("resolver_links_removed_total"),
                not_found: counter!("resolver_not_found_total"),
                unknown_refused: counter!("resolver_unknown_codes_refused_total"),
                cache_hits: counter!("resolver_cache_hits_total"),
                ruled_out: counter!("resolver_codes_ruled_out_total"),
                link_reads: counter!("resolver_link_reads_total"),
                links_asked: counter!("resolver_links_asked_total"),
                creates: counter!("resolver_creates_total"),
                insert_batches: counter!("resolver_insert_batches_total"),
                conflicts: counter!("resolver_conflicts_total"),
                inserts_unknown: counter!("resolver_inserts_unknown_total"),
                burned: counter!("resolver_numbers_burned_total"),
                blocks_overlapping: counter!("resolver_blocks_overlapping_total"),
                reclaimed: counter!("resolver_numbers_reclaimed_total"),
                reserved: counter!("resolver_numbers_reserved_total"),
                refills_failed: counter!("resolver_refills_failed_total"),
                refill_seconds: histogram!("resolver_refill_duration_seconds"),
                create_seconds: histogram!("resolver_create_duration_seconds"),
                unavailable: counter!("resolver_unavailable_total"),
                connections_refused: counter!("resolver_connections_refused_total"),
            })
        })
    }

    /// Shows the numbers in hand.
    #[expect(clippy::cast_precision_loss, reason = "numbers in hand stay below 2^48")]
    pub fn report<'a>(&self, mintings: impl IntoIterator<Item = &'a Arc<Minting>>) {
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
    describe_counter!("resolver_redirects_total", "Redirects answered.");
    describe_counter!("resolver_visits_total", "Visits counted: redirects of GET requests.");
    describe_counter!(
        "resolver_visits_dropped_total",
        "Visits that were not counted because too many waited for it."
    );
    describe_counter!(
        "resolver_links_removed_total",
        "Links removed because nobody had visited them for long."
    );
    describe_counter!("resolver_not_found_total", "Codes asked for that have no link.");
    describe_counter!(
        "resolver_unknown_codes_refused_total",
        "Requests refused because their client had asked for too many codes that have no link."
    );
    describe_counter!("resolver_cache_hits_total", "Lookups answered from the cache.");
    describe_counter!(
        "resolver_codes_ruled_out_total",
        "Codes asked for whose number was never allocated: the ceiling said so, and no query was needed."
    );
    describe_counter!("resolver_link_reads_total", "Batched reads of links from the database.");
    describe_counter!("resolver_links_asked_total", "Links that the batched reads asked for.");
    describe_counter!("resolver_creates_total", "Links created.");
    describe_counter!("resolver_insert_batches_total", "Batched inserts of links into the database.");
    describe_counter!(
        "resolver_conflicts_total",
        "Numbers skipped because a link was stored under them already."
    );
    describe_counter!("resolver_inserts_unknown_total", "Inserts whose outcome nobody knew at first.");
    describe_counter!(
        "resolver_numbers_burned_total",
        "Numbers given up because nobody knows whether a link is stored under them."
    );
    describe_counter!(
        "resolver_blocks_overlapping_total",
        "Blocks refused because they overlapped the register."
    );
    describe_counter!("resolver_numbers_reclaimed_total", "Unused numbers found in leaked blocks.");
    describe_counter!("resolver_numbers_reserved_total", "Numbers set aside by reservations.");
    describe_counter!("resolver_refills_failed_total", "Calls to the issuer that were refused.");
    describe_histogram!(
        "resolver_refill_duration_seconds",
        Unit::Seconds,
        "Time from wanting a block to having it."
    );
    describe_histogram!("resolver_create_duration_seconds", Unit::Seconds, "Time of a create.");
    describe_counter!("resolver_unavailable_total", "Requests answered 503.");
    describe_counter!(
        "resolver_connections_refused_total",
        "Connections refused: all that there may be, of all clients or of one, were being answered."
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
