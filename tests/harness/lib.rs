//! Everything an end-to-end test needs around the two daemons: real Postgres, real etcd, TCP faults, real binaries.
//!
//! 1. A test starts what it needs and owns it; dropping the value ends the process and removes its files.
//! 2. Processes are ended by process id only, never by name, so that two runs on one machine leave each other alone.
//! 3. Nothing waits for a fixed time: [`wait::until`] polls a condition up to a deadline.
//! 4. Starting something that cannot start is an `Err` with the end of its log, never a panic.
//!
//! Containers were rejected: they hide signals and process ids, need a daemon on the machine, and a SIGSTOP
//! of a process inside one is harder to get right than that of a child.

pub mod account;
pub mod api;
pub mod base64;
pub mod binaries;
pub mod checks;
pub mod cluster;
pub mod connection;
pub mod daemon;
pub mod etcd;
pub mod gateway;
pub mod history;
pub mod http;
pub mod issuer;
pub mod launch;
pub mod load;
pub mod metrics;
pub mod net;
pub mod orphans;
pub mod postgres;
pub mod process;
pub mod procfs;
pub mod programs;
pub mod proxy;
pub mod raw;
pub mod resolver;
pub mod scratch;
pub mod secret;
pub mod slots;
pub mod status;
pub mod wait;

pub use api::{Api, Created};
pub use cluster::{Cluster, ClusterBuilder};
pub use connection::Connection;
pub use daemon::Daemon;
pub use etcd::EtcdCluster;
pub use history::History;
pub use http::Answer;
pub use issuer::{Issuer, IssuerBuilder};
pub use launch::{Finished, Launch};
pub use load::{Acknowledged, Load};
pub use postgres::Postgres;
pub use process::Process;
pub use programs::Program;
pub use proxy::{Direction, Flow, Proxy};
pub use resolver::{Resolver, ResolverBuilder, migrate, migrate_with};
pub use scratch::Scratch;
pub use status::Status;
