//! A private etcd cluster of one or three real members.
//!
//! 1. Members are killed, paused and restarted one by one; their data folders and ports stay.
//! 2. A cluster is ready when every member is healthy and a write went through.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use crate::gateway::Gateway;
use crate::launch::Launch;
use crate::programs::Program;
use crate::scratch::Scratch;
use crate::{http, wait};

mod member;

pub use member::EtcdMember;
use member::Seat;

/// An election may fail a few times on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
const HEALTH_WITHIN: Duration = Duration::from_secs(2);
const ETCDCTL_WITHIN: Duration = Duration::from_secs(30);

/// Keys of the tests are written below this one, away from those of the issuer.
const READY_KEY: &str = "/harness/ready";

/// What to start.
#[derive(Clone, Debug)]
pub struct EtcdBuilder {
    members: usize,
    scratch: Option<Scratch>,
    args: Vec<String>,
}

impl EtcdBuilder {
    /// Puts data and logs into this folder instead of a new one.
    #[must_use]
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// Adds an argument for every member: `--quota-backend-bytes=16777216`, say.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Starts all members and waits until the cluster is ready.
    ///
    /// # Errors
    /// etcd is not installed or does not start; the message holds the end of a log.
    pub async fn start(self) -> anyhow::Result<EtcdCluster> {
        let scratch = self.scratch.clone().map_or_else(Scratch::new, Ok)?;
        let seats: Vec<Seat> =
            (0..self.members).map(|index| Seat::take(&scratch, index)).collect::<anyhow::Result<_>>()?;
        let peers: Vec<String> =
            seats.iter().map(|seat| format!("{}={}", seat.name, seat.peer_url())).collect();
        let peers = peers.join(",");
        let mut members = Vec::new();
        for seat in seats {
            let launch = seat.launch(&scratch, &peers)?.args(&self.args);
            members.push(EtcdMember { process: launch.spawn()?, seat });
        }
        let gateway = Gateway::new(members.iter().map(EtcdMember::url).collect())?;
        let mut cluster = EtcdCluster { members, gateway, peers, scratch };
        cluster.wait_ready().await?;
        Ok(cluster)
    }
}

/// A running cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    gateway: Gateway,
    peers: String,
    scratch: Scratch,
}

impl EtcdCluster {
    /// Starts that many members with default settings.
    ///
    /// # Errors
    /// See [`EtcdBuilder::start`].
    pub async fn start(members: usize) -> anyhow::Result<Self> {
        Self::builder(members).start().await
    }

    /// Members with settings of their own.
    pub fn builder(members: usize) -> EtcdBuilder {
        EtcdBuilder { members, scratch: None, args: Vec::new() }
    }

    /// The members' URLs with commas between them, as `--etcd` takes them.
    pub fn endpoints(&self) -> String {
        self.gateway.endpoints().join(",")
    }

    /// The members.
    pub fn members(&self) -> &[EtcdMember] {
        &self.members
    }

    /// The members, to kill, pause or restart.
    pub fn members_mut(&mut self) -> &mut [EtcdMember] {
        &mut self.members
    }

    /// A client of all members, for calls that this type does not have.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Waits until every member is healthy and a write goes through.
    ///
    /// # Errors
    /// That does not happen in time; the message holds the end of a log.
    pub async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let client = http::client()?;
        for member in &mut self.members {
            let request = client.get(format!("{}/health", member.url())).timeout(HEALTH_WITHIN);
            let healthy = async || {
                let request = request.try_clone().expect("a request without a body can be cloned");
                let answer = http::Answer::to(request).await;
                answer.is_ok_and(|answer| answer.status == 200)
            };
            member.process.wait_ready(READY_WITHIN, healthy).await?;
        }
        self.put(READY_KEY, "").await
    }

    /// The place of etcd's own leader in [`Self::members`]; not to be confused with the issuers' leader.
    ///
    /// # Errors
    /// No member says that it leads within the time of an election.
    pub async fn leader_index(&self) -> anyhow::Result<usize> {
        wait::until_some(READY_WITHIN, "etcd has a leader", async || {
            for index in 0..self.members.len() {
                if self.gateway.status(index).await.is_ok_and(|status| says_it_leads(&status)) {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    /// Kills every member.
    ///
    /// # Errors
    /// A signal cannot be sent.
    pub fn stop_all(&mut self) -> anyhow::Result<()> {
        self.members.iter_mut().try_for_each(EtcdMember::kill_now)
    }

    /// Starts every member again on its data, and waits until the cluster is ready.
    ///
    /// # Errors
    /// It does not get ready; the message holds the end of a log.
    pub async fn start_all(&mut self) -> anyhow::Result<()> {
        self.members.iter_mut().try_for_each(EtcdMember::restart)?;
        self.wait_ready().await
    }

    /// All keys with a prefix and their values, in order.
    ///
    /// # Errors
    /// No member answers, or a value is not UTF-8: see [`Gateway::get_prefix_bytes`].
    pub async fn get_prefix(&self, prefix: &str) -> anyhow::Result<Vec<(String, String)>> {
        let pairs = self.gateway.get_prefix_bytes(prefix).await?.into_iter();
        pairs
            .map(|(key, value)| {
                let value = String::from_utf8(value).with_context(|| format!("the value of {key}"))?;
                Ok((key, value))
            })
            .collect()
    }

    /// Writes a key.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn put(&self, key: &str, value: &str) -> anyhow::Result<()> {
        self.gateway.put(key, value).await
    }

    /// Deletes a key.
    ///
    /// # Errors
    /// No member answers, or etcd refuses.
    pub async fn delete(&self, key: &str) -> anyhow::Result<()> {
        self.gateway.delete(key).await
    }

    /// The ids of all leases.
    ///
    /// # Errors
    /// No member answers.
    pub async fn leases(&self) -> anyhow::Result<Vec<i64>> {
        self.gateway.leases().await
    }

    /// Revokes a lease though its owner lives.
    ///
    /// # Errors
    /// No member answers, or there is no such lease.
    pub async fn revoke_lease(&self, id: i64) -> anyhow::Result<()> {
        self.gateway.revoke_lease(id).await
    }

    /// Takes a backup from the first member.
    ///
    /// # Errors
    /// `etcdctl` is not installed, or fails.
    pub async fn save_snapshot(&self) -> anyhow::Result<PathBuf> {
        let file = self.scratch.path().join(self.scratch.stem("etcd-snapshot"));
        let first = self.members.first().context("etcd has no members")?.url();
        let launch = etcdctl(&self.scratch)?.args(["--endpoints", &first, "snapshot", "save"]).arg(&file);
        launch.run(ETCDCTL_WITHIN).await?.success().context("save a snapshot of etcd")?;
        Ok(file)
    }

    /// Replaces the data of all members by a backup and starts them: whatever was written since is forgotten.
    ///
    /// # Errors
    /// `etcdctl` fails, or the cluster does not get ready.
    pub async fn restore_snapshot(&mut self, file: &Path) -> anyhow::Result<()> {
        self.stop_all()?;
        for EtcdMember { seat, .. } in &self.members {
            std::fs::remove_dir_all(&seat.data).with_context(|| format!("remove {}", seat.data.display()))?;
            let launch = etcdctl(&self.scratch)?.args(["snapshot", "restore"]).arg(file);
            let launch = launch.args(["--name", &seat.name, "--initial-cluster", &self.peers]);
            let launch = launch.args(["--initial-advertise-peer-urls", &seat.peer_url(), "--data-dir"]);
            launch.arg(&seat.data).run(ETCDCTL_WITHIN).await?.success().context("restore etcd")?;
        }
        self.start_all().await
    }
}

fn etcdctl(scratch: &Scratch) -> anyhow::Result<Launch> {
    Ok(Launch::new(scratch, "etcdctl", Program::Etcdctl.path()?).env("ETCDCTL_API", "3"))
}

/// A member's own id and that of the leader it knows are the same.
fn says_it_leads(status: &Value) -> bool {
    let own = status.pointer("/header/member_id");
    own.is_some() && own == status.get("leader")
}
