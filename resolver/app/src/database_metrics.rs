//! Metrics of the connections to the database.

use std::{sync::Arc, time::Duration};

use daemon::Recorder;
use metrics::{
    Counter, Gauge, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use store::{
    Schema,
    postgres::{DatabaseObserver, PoolCount},
};

/// The handles. Those with labels are looked up when something happens: waits and errors are
/// seldom next to the calls that they belong to.
pub struct DatabaseMetrics {
    recorder: Recorder,
    replica_behind: Counter,
    connections_max: Gauge,
    schema: Gauge,
    schema_expected: Gauge,
}

impl DatabaseMetrics {
    /// Registers the metrics of a database. Gauges of connections are for Postgres.
    #[must_use]
    pub fn new(recorder: &Recorder) -> Arc<Self> {
        recorder.with(|| {
            describe();
            Arc::new(Self {
                recorder: recorder.clone(),
                replica_behind: counter!("resolver_replica_behind_total"),
                connections_max: gauge!("resolver_database_connections_max"),
                schema: gauge!("resolver_schema_version"),
                schema_expected: gauge!("resolver_schema_version_expected"),
            })
        })
    }

    /// Sets the maximum number of connections.
    pub fn set_connections_max(&self, most: u32) {
        self.connections_max.set(most);
    }

    /// Sets the version of the schema.
    pub fn set_schema(&self, schema: Schema) {
        // Versions are small numbers.
        self.schema.set(schema.found as f64);
        self.schema_expected.set(schema.needed as f64);
    }

    /// Sets the connections of each pool.
    pub fn set_pools(&self, pools: &[PoolCount]) {
        self.recorder.with(|| {
            for PoolCount { pool, busy, idle } in pools {
                gauge!("resolver_database_connections", "pool" => *pool, "state" => "busy").set(*busy);
                gauge!("resolver_database_connections", "pool" => *pool, "state" => "idle").set(*idle);
            }
        });
    }
}

impl DatabaseObserver for DatabaseMetrics {
    fn waited(&self, pool: &'static str, time: Duration) {
        self.recorder.with(|| histogram!("resolver_database_wait_seconds", "pool" => pool).record(time));
    }

    fn failed(&self, reason: &str) {
        let reason = reason.to_owned();
        self.recorder.with(|| counter!("resolver_database_errors_total", "sqlstate" => reason).increment(1));
    }

    fn replica_was_behind(&self) {
        self.replica_behind.increment(1);
    }
}

fn describe() {
    describe_counter!(
        "resolver_replica_behind_total",
        "Reads that the replica could not answer, because it may have been too far behind."
    );
    describe_counter!(
        "resolver_database_errors_total",
        "Failed calls, by the server's SQLSTATE; lost: no connection; timeout: no answer in time."
    );
    describe_gauge!("resolver_database_connections", "Open connections of each pool, by state.");
    describe_gauge!(
        "resolver_database_connections_max",
        "Connections that this process may open to the primary."
    );
    describe_histogram!(
        "resolver_database_wait_seconds",
        Unit::Seconds,
        "Time that a call waited for a connection of a pool."
    );
    describe_gauge!("resolver_schema_version", "Newest migration that the database has.");
    describe_gauge!("resolver_schema_version_expected", "Newest migration that this process knows.");
}
