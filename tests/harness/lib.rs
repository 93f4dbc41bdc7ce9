//! A test harness around the two daemons: real Postgres, real etcd, TCP faults, real binaries.
//!
//! 1. A test starts the servers it needs and owns them. Dropping such a value ends the process and
//!    removes its files.
//! 2. Processes are ended by process id only, never by name, so that two runs on one machine do not
//!    disturb each other.
//! 3. There are no fixed sleeps: [`wait::until`] polls a condition up to a deadline.
//! 4. A failed start is an `Err` with the end of the program's log, never a panic.
//!
//! Containers were rejected: they hide signals and process ids and need a daemon on the machine.
//! Stopping a process inside one with SIGSTOP is harder to get right than stopping a child.

pub mod account;
pub mod api;
pub mod binaries;
pub mod certificates;
pub mod checks;
pub mod clickhouse;
pub mod cluster;
pub mod connection;
pub mod daemon;
pub mod envoy;
pub mod etcd;
mod gone_clients;
pub mod history;
pub mod http;
pub mod installed;
pub mod issuer;
pub mod launch;
pub mod load;
pub mod metrics;
pub mod net;
pub mod nodes;
pub mod orphans;
pub mod patroni;
pub mod pgbouncer;
mod pipeline;
pub mod postgres;
mod postgres_template;
pub mod process;
pub mod procfs;
pub mod programs;
pub mod prometheus;
pub mod proxy;
pub mod raw;
pub mod resolver;
pub mod scratch;
pub mod secret;
pub mod slots;
pub mod status;
pub mod wait;

pub use api::{Api, Created};
pub use certificates::{Authority, Pair, SecretFolder};
pub use clickhouse::{Clickhouse, ClickhouseCluster};
pub use cluster::{Cluster, ClusterBuilder};
pub use connection::Connection;
pub use daemon::Daemon;
pub use envoy::Envoy;
pub use etcd::EtcdCluster;
pub use gone_clients::clients_that_go_away;
pub use history::History;
pub use http::Answer;
pub use issuer::{Issuer, IssuerBuilder};
pub use launch::{ErrorOutput, Finished, Launch};
pub use load::{Acknowledged, Load};
pub use pgbouncer::{PgBouncer, PoolMode};
pub use pipeline::Pipeline;
pub use postgres::{Postgres, PostgresBuilder};
pub use process::Process;
pub use programs::Program;
pub use prometheus::{Alert, Prometheus};
pub use proxy::{Direction, Flow, Proxy};
pub use resolver::{Resolver, ResolverBuilder, migrate, migrate_with};
pub use scratch::Scratch;
pub use status::Status;

/// The root folder of the repository.
pub const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
