//! The faults: how each is caused and ended.

use std::time::Duration;

use anyhow::Context as _;
use harness::{Cluster, Flow, clients_that_go_away};
use tokio::{task::JoinHandle, time::Instant};

/// `max_connections` of Postgres: enough for the resolvers, and soon used up.
pub(super) const CONNECTIONS: &str = "100";
/// The delay of a slow Postgres, in each direction.
const SLOW: Duration = Duration::from_millis(400);
const SOON: Duration = Duration::from_secs(60);

/// The faults, as `tests/README.md` numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Fault {
    LeaderKilled,
    LeaderPaused,
    MemberLost,
    EtcdLost,
    LeaseRevoked,
    PostgresKilled,
    PostgresReadOnly,
    ConnectionsExhausted,
    IssuersCutOff,
    PostgresSilent,
    PostgresSlow,
    ResolverKilled,
    ClientsGone,
    PostgresStopped,
    NodeKilled,
}

impl Fault {
    /// Returns its number in `tests/README.md`, and what happens.
    pub(super) const fn number_and_text(self) -> (u32, &'static str) {
        match self {
            Self::LeaderKilled => (1, "leader killed"),
            Self::LeaderPaused => (2, "leader paused"),
            Self::MemberLost => (3, "one member of etcd killed"),
            Self::EtcdLost => (4, "all of etcd killed"),
            Self::LeaseRevoked => (5, "lease revoked"),
            Self::PostgresKilled => (8, "Postgres killed"),
            Self::PostgresReadOnly => (9, "Postgres read-only"),
            Self::ConnectionsExhausted => (10, "connections of Postgres used up"),
            Self::IssuersCutOff => (11, "issuers cut off"),
            Self::PostgresSilent => (12, "Postgres silent"),
            Self::PostgresSlow => (13, "Postgres slow"),
            Self::ResolverKilled => (14, "resolver killed"),
            Self::ClientsGone => (26, "clients go away"),
            Self::PostgresStopped => (27, "Postgres stopped at once"),
            Self::NodeKilled => (41, "a node of Citus killed"),
        }
    }

    /// Returns whether a platform can have it.
    pub(super) fn applies_to(self, cluster: &Cluster) -> bool {
        self != Self::NodeKilled || !cluster.postgres.nodes().is_empty()
    }
}

/// The platform, and what a fault holds until its end.
pub(super) struct Platform {
    pub(super) cluster: Cluster,
    leader: usize,
    /// Uses up connections, or sends requests.
    busy: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Platform {
    pub(super) fn new(cluster: Cluster) -> Self {
        Self { cluster, leader: 0, busy: None }
    }

    /// Causes a fault.
    ///
    /// # Errors
    /// Returns an error if a process or the database does not take it.
    pub(super) async fn strike(&mut self, fault: Fault) -> anyhow::Result<()> {
        self.leader = self.cluster.wait_leader(SOON).await?;
        let (cluster, leader) = (&mut self.cluster, self.leader);
        match fault {
            Fault::LeaderKilled => cluster.issuers[leader].process.kill_now()?,
            Fault::LeaderPaused => cluster.issuers[leader].process.pause().await?,
            Fault::MemberLost => cluster.etcd.members_mut()[0].kill_now()?,
            Fault::EtcdLost => cluster.etcd.stop_all()?,
            Fault::LeaseRevoked => {
                for lease in cluster.etcd.leases().await? {
                    cluster.etcd.revoke_lease(lease).await?;
                }
            }
            Fault::PostgresKilled => cluster.postgres.kill_now().await?,
            Fault::PostgresStopped => cluster.postgres.stop_immediately().await?,
            Fault::NodeKilled => cluster.postgres.nodes_mut()[0].kill_now().await?,
            Fault::PostgresReadOnly => cluster.postgres.set_read_only(true).await?,
            Fault::ConnectionsExhausted => {
                self.busy = Some(tokio::spawn(cluster.postgres.use_up_connections()));
            }
            Fault::IssuersCutOff => cluster.issuer_proxies.iter().for_each(|proxy| proxy.set_both(Flow::Cut)),
            Fault::PostgresSilent => self.postgres_flows(Flow::Stall)?,
            Fault::PostgresSlow => self.postgres_flows(Flow::Delay(SLOW))?,
            Fault::ResolverKilled => cluster.resolvers[1].process.kill_now()?,
            Fault::ClientsGone => self.busy = Some(tokio::spawn(clients_that_go_away(&cluster.resolvers[1]))),
        }
        Ok(())
    }

    /// Ends a fault and returns when it ended. A server that had stopped has then started; a
    /// resolver's own start counts as recovery.
    ///
    /// # Errors
    /// Returns an error if a server does not start again.
    pub(super) async fn mend(&mut self, fault: Fault) -> anyhow::Result<Instant> {
        let (cluster, leader) = (&mut self.cluster, self.leader);
        match fault {
            Fault::LeaderKilled => cluster.issuers[leader].restart().await?,
            Fault::LeaderPaused => cluster.issuers[leader].process.resume()?,
            Fault::MemberLost => cluster.etcd.members_mut()[0].restart()?,
            Fault::EtcdLost => cluster.etcd.start_all().await?,
            Fault::LeaseRevoked => {}
            Fault::PostgresKilled | Fault::PostgresStopped => cluster.postgres.restart().await?,
            Fault::NodeKilled => cluster.postgres.nodes_mut()[0].restart().await?,
            Fault::PostgresReadOnly => cluster.postgres.set_read_only(false).await?,
            Fault::IssuersCutOff => {
                cluster.issuer_proxies.iter().for_each(|proxy| proxy.set_both(Flow::Pass));
            }
            Fault::PostgresSilent | Fault::PostgresSlow => self.postgres_flows(Flow::Pass)?,
            Fault::ResolverKilled => {
                let end = Instant::now();
                cluster.resolvers[1].restart().await?;
                return Ok(end);
            }
            Fault::ConnectionsExhausted | Fault::ClientsGone => {
                let busy = self.busy.take().context("the fault was caused")?;
                anyhow::ensure!(!busy.is_finished(), "it ended early: {:?}", busy.await);
                busy.abort();
            }
        }
        Ok(Instant::now())
    }

    fn postgres_flows(&self, flow: Flow) -> anyhow::Result<()> {
        self.cluster.postgres_proxy.as_ref().context("Postgres has a proxy")?.set_both(flow);
        Ok(())
    }
}
