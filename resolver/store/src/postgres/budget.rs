//! How many connections a process opens, and who is told of waits and errors.

use std::{sync::Arc, time::Duration};

/// Connections that no budget makes fewer: six for single statements, two for notifications (the
/// second proves the first at its beginning), one for batches of visits.
const FIXED: u32 = 9;
/// Shares of the rest: writers, general, lists, keys, visits.
const SHARES: [u32; 5] = [4, 8, 5, 4, 4];

/// The connections of one process to its database, apart from a replica.
///
/// Postgres has `max_connections` for all processes together, and each costs it memory. A replica
/// adds three to what a process opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionBudget {
    /// Batches that are inserted concurrently.
    pub writers: usize,
    /// For all calls but batch inserts, redirects, lists and API keys.
    pub general: u32,
    /// For lists.
    pub lists: u32,
    /// For API key lookups. Every call of the API needs its key, whatever the load of other calls.
    pub keys: u32,
    /// For reads and chores of visits.
    pub visits: u32,
}

impl ConnectionBudget {
    /// The fewest that a process works with: so many that one call which takes long holds up
    /// neither the registration of blocks nor all lists.
    pub const MIN: u32 = FIXED + 9;
    /// The default, with which lists have twice as many as one API key may use at a time, and one
    /// more for the links of visits.
    pub const DEFAULT: u32 = FIXED + 25;
    /// More than Postgres should ever have.
    pub const MAX: u32 = 1_000;

    /// Divides a number of connections, between [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    pub fn of(total: u32) -> Self {
        let total = total.clamp(Self::MIN, Self::MAX);
        let spare = total - FIXED;
        let [writers, _, lists, keys, visits] =
            SHARES.map(|share| (spare * share / SHARES.iter().sum::<u32>()).max(1));
        let (writers, lists, visits) = (writers.min(16), lists.max(2), visits.max(2));
        let general = spare - writers - lists - keys - visits;
        Self { writers: usize::try_from(writers).unwrap_or(1), general, lists, keys, visits }
    }
}

/// A server of a database, as metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// The servers of `--database`: the primary, and another one while there is none.
    Database,
    /// The replica that takes reads off the primary.
    Replica,
    /// The ClickHouse that has the visits.
    Clickhouse,
}

impl Server {
    /// The name on the metrics page.
    pub fn name(self) -> &'static str {
        match self {
            Self::Database => "database",
            Self::Replica => "replica",
            Self::Clickhouse => "clickhouse",
        }
    }
}

/// The outcome of a read that the replica could have answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaRead {
    /// The replica answered it.
    Answered,
    /// It could not prove that it is recent enough, now or within the back-off before.
    Behind,
    /// It did not answer, now or within the back-off before.
    Failed,
}

/// Told of what happens on connections, for metrics.
pub trait DatabaseObserver: Send + Sync + 'static {
    /// A call waited so long for a connection of a pool.
    fn waited(&self, _pool: &'static str, _time: Duration) {}
    /// A server answered one of the calls that ask it every few seconds.
    fn answered(&self, _server: Server) {}
    /// A call failed: a SQLSTATE, `lost` for a connection that broke or was refused, or `timeout`.
    fn failed(&self, _server: Server, _reason: &str) {}
    /// So many nodes of a distributed database did not answer when they were last asked.
    fn nodes_away(&self, _nodes: usize) {}
    /// A read was one for the replica.
    fn replica_read(&self, _outcome: ReplicaRead) {}
}

/// No-op observer.
impl DatabaseObserver for () {}

/// How a process connects.
#[derive(Clone)]
pub struct ConnectOptions {
    /// Its connections.
    pub budget: ConnectionBudget,
    /// Who is told of waits and errors.
    pub observer: Arc<dyn DatabaseObserver>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self { budget: ConnectionBudget::of(ConnectionBudget::DEFAULT), observer: Arc::new(()) }
    }
}

/// The connections of a pool at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolCount {
    /// The pool's name.
    pub pool: &'static str,
    /// Connections that a call uses.
    pub busy: u32,
    /// Connections that none uses.
    pub idle: u32,
    /// Connections that the pool may open.
    pub max: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_divided_whole_and_each_kind_has_at_least_one() {
        for total in ConnectionBudget::MIN..=ConnectionBudget::MAX {
            let budget = ConnectionBudget::of(total);
            let ConnectionBudget { writers, general, lists, keys, visits } = budget;
            let writers = u32::try_from(writers).unwrap();
            assert_eq!(FIXED + writers + general + lists + keys + visits, total);
            assert!([writers, keys].iter().all(|count| *count > 0) && general > 2, "{budget:?}");
            assert!([lists, visits].iter().all(|count| *count > 1), "{budget:?}");
        }
        let usual = ConnectionBudget::of(ConnectionBudget::DEFAULT);
        assert_eq!((usual.writers, usual.general, usual.lists, usual.keys, usual.visits), (4, 8, 5, 4, 4));
    }
}
