//! Metrics of the connections to the databases.

use std::{sync::Arc, time::Duration};

use daemon::{Contact, Recorder};
use metrics::{
    Counter, Gauge, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use store::{
    Schema,
    postgres::{DatabaseObserver, PoolCount, ReplicaRead, Server},
};

/// The handles. Those with labels are looked up when something happens: waits and errors are
/// seldom next to the calls that they belong to.
pub struct DatabaseMetrics {
    recorder: Recorder,
    /// When each server last answered.
    pub contacts: Vec<Contact>,
    replica_reads: [Counter; 3],
    nodes_away: Gauge,
    schema: Gauge,
    schema_expected: Gauge,
    slots: Gauge,
    slots_max: Gauge,
    oldest_open: Gauge,
}

impl DatabaseMetrics {
    /// Registers the metrics of these servers, which are asked every few seconds.
    pub fn new(recorder: &Recorder, servers: &[Server]) -> Arc<Self> {
        recorder.with(|| {
            describe();
            // A series that began with its first error would hide that error from `increase`.
            for server in servers {
                for reason in ["lost", "timeout"] {
                    _ = counter!(
                        "resolver_database_errors_total", "server" => server.name(), "sqlstate" => reason
                    );
                }
            }
            let reads = |result| counter!("resolver_replica_reads_total", "result" => result);
            Arc::new(Self {
                recorder: recorder.clone(),
                contacts: servers.iter().map(|server| Contact::polled(server.name())).collect(),
                replica_reads: [reads("answered"), reads("behind"), reads("failed")],
                nodes_away: unknown(recorder.gauge(
                    "resolver_database_nodes_away",
                    "Nodes of Citus that did not answer this process when it last asked them.",
                )),
                schema: recorder.gauge("resolver_schema_version", "Newest migration that the database has."),
                schema_expected: recorder
                    .gauge("resolver_schema_version_expected", "Newest migration that this process knows."),
                slots: unknown(recorder.gauge(
                    "resolver_visit_slots_used",
                    "Slots of processes that have stored visits within five minutes, by the database: the \
                     same on every page.",
                )),
                slots_max: unknown(recorder.gauge("resolver_visit_slots_max", "Slots that there are.")),
                oldest_open: unknown(recorder.gauge(
                    "resolver_visit_oldest_open_seconds",
                    "Time since the beginning of the oldest day whose counters are not closed, by the database: \
                     the same on every page.",
                )),
            })
        })
    }

    /// Sets the version of the schema.
    pub fn set_schema(&self, schema: Schema) {
        // Versions are small numbers.
        self.schema.set(schema.found as f64);
        self.schema_expected.set(schema.needed as f64);
    }

    /// Sets how many slots of processes that store visits are used, and how many there are. `None`:
    /// it is not known now.
    pub fn set_slots(&self, slots: Option<(u32, u32)>) {
        let (used, max) = slots.map_or((f64::NAN, f64::NAN), |(used, max)| (used.into(), max.into()));
        self.slots.set(used);
        self.slots_max.set(max);
    }

    /// Sets the time since the beginning of the oldest day whose counters of visits are not closed.
    /// `None`: it is not known now.
    pub fn set_oldest_open(&self, age: Option<Duration>) {
        self.oldest_open.set(age.map_or(f64::NAN, |age| age.as_secs_f64()));
    }

    /// Sets the connections of each pool.
    pub fn set_pools(&self, pools: &[PoolCount]) {
        self.recorder.with(|| {
            for PoolCount { pool, busy, idle, max } in pools {
                gauge!("resolver_database_connections", "pool" => *pool, "state" => "busy").set(*busy);
                gauge!("resolver_database_connections", "pool" => *pool, "state" => "idle").set(*idle);
                gauge!("resolver_database_connections_max", "pool" => *pool).set(*max);
            }
        });
    }
}

impl DatabaseObserver for DatabaseMetrics {
    fn waited(&self, pool: &'static str, time: Duration) {
        self.recorder.with(|| histogram!("resolver_database_wait_seconds", "pool" => pool).record(time));
    }

    fn answered(&self, server: Server) {
        self.contacts.iter().filter(|contact| contact.server == server.name()).for_each(Contact::succeeded);
    }

    fn failed(&self, server: Server, reason: &str) {
        let (server, reason) = (server.name(), reason.to_owned());
        self.recorder.with(|| {
            counter!("resolver_database_errors_total", "server" => server, "sqlstate" => reason).increment(1);
        });
    }

    fn nodes_away(&self, nodes: usize) {
        // There are some dozens at most.
        self.nodes_away.set(nodes as f64);
    }

    fn replica_read(&self, outcome: ReplicaRead) {
        let [answered, behind, failed] = &self.replica_reads;
        let counter = match outcome {
            ReplicaRead::Answered => answered,
            ReplicaRead::Behind => behind,
            ReplicaRead::Failed => failed,
        };
        counter.increment(1);
    }
}

/// Returns a gauge whose value is not known yet, so that it is not on the page.
fn unknown(gauge: Gauge) -> Gauge {
    gauge.set(f64::NAN);
    gauge
}

/// Publishes the age of the last success of each server, which shows an outage while nothing is
/// asked. Called when a metrics page is requested.
pub fn show_contacts<'a>(recorder: &Recorder, contacts: impl IntoIterator<Item = &'a Contact>) {
    recorder.with(|| {
        describe_gauge!(
            "resolver_last_success_age_seconds",
            Unit::Seconds,
            "Time since a server last did what it was asked for, or an issuer refused it, or since the start: issuer, \
             database, replica, clickhouse, each asked at least every ten seconds. Receivers of webhooks: since their \
             first failure after the last success, 0 without one."
        );
        for contact in contacts {
            let server = contact.server;
            gauge!("resolver_last_success_age_seconds", "server" => server).set(contact.age().as_secs_f64());
        }
    });
}

fn describe() {
    describe_counter!(
        "resolver_replica_reads_total",
        "Reads of links that the replica could answer, by result: answered; behind: it may have been too far behind; \
         failed: it did not answer. The primary got the last two."
    );
    describe_counter!(
        "resolver_database_errors_total",
        "Failed calls, by server (database, replica, clickhouse) and SQLSTATE; lost: no connection; timeout: no answer \
         in time; refused: an error of ClickHouse."
    );
    describe_gauge!(
        "resolver_database_connections",
        "Open connections to the primary by pool (general, lists, keys, visits; writers of links) and state: busy, idle."
    );
    describe_gauge!(
        "resolver_database_connections_max",
        "Connections that a pool may open. Nine more are in no pool."
    );
    describe_histogram!(
        "resolver_database_wait_seconds",
        Unit::Seconds,
        "Time that a call waited for a connection of a pool."
    );
}
