//! A private etcd cluster of one or three real members.
//!
//! 1. Members are killed, paused and restarted one by one; their data folders and ports stay.
//! 2. A cluster is ready when every member is healthy and a write went through.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use reqwest::Client;
use serde_json::Value;

use crate::certificates::SecretFolder;
use crate::launch::Launch;
use crate::programs::Program;
use crate::scratch::Scratch;
use crate::{http, wait};

mod gateway;
mod member;
mod space;

pub use member::EtcdMember;
use member::Seat;

/// The time limit for readiness. An election may fail a few times on a busy machine.
const READY_WITHIN: Duration = Duration::from_secs(60);
const HEALTH_WITHIN: Duration = Duration::from_secs(2);
const ETCDCTL_WITHIN: Duration = Duration::from_secs(30);

/// The key that the readiness check writes, outside the issuers' key prefix.
const READY_KEY: &str = "/harness/ready";

/// A builder for an [`EtcdCluster`].
#[derive(Clone, Debug)]
pub struct EtcdBuilder {
    members: usize,
    scratch: Option<Scratch>,
    args: Vec<String>,
    tls: Option<SecretFolder>,
}

impl EtcdBuilder {
    /// Puts data and logs into this folder instead of a new one.
    #[must_use]
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// Adds an argument to every member, for example `--quota-backend-bytes=16777216`.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds an address to every member for clients with a certificate of the folder's authority.
    #[must_use]
    pub fn tls(mut self, files: &SecretFolder) -> Self {
        self.tls = Some(files.clone());
        self
    }

    /// Starts all members and waits until the cluster is ready.
    ///
    /// # Errors
    /// Returns an error if etcd is not installed or does not start; the message contains the end of
    /// a log.
    pub async fn start(self) -> anyhow::Result<EtcdCluster> {
        let scratch = self.scratch.clone().map_or_else(Scratch::new, Ok)?;
        let seats: Vec<Seat> =
            (0..self.members).map(|index| Seat::take(&scratch, index)).collect::<anyhow::Result<_>>()?;
        let peers: Vec<String> =
            seats.iter().map(|seat| format!("{}={}", seat.name, seat.peer_url())).collect();
        let peers = peers.join(",");
        let mut members = Vec::new();
        for seat in seats {
            let launch = seat.launch(&scratch, &peers, self.tls.as_ref())?.args(&self.args);
            members.push(EtcdMember { process: launch.spawn()?, seat });
        }
        let mut cluster = EtcdCluster { members, http: http::client()?, peers, scratch };
        cluster.wait_ready().await?;
        Ok(cluster)
    }
}

/// A running etcd cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    members: Vec<EtcdMember>,
    http: Client,
    peers: String,
    scratch: Scratch,
}

impl EtcdCluster {
    /// Starts a cluster with that many members and default settings.
    ///
    /// # Errors
    /// See [`EtcdBuilder::start`].
    pub async fn start(members: usize) -> anyhow::Result<Self> {
        Self::builder(members).start().await
    }

    /// Returns a builder for a cluster with that many members.
    pub fn builder(members: usize) -> EtcdBuilder {
        EtcdBuilder { members, scratch: None, args: Vec::new(), tls: None }
    }

    /// Returns the members' URLs, comma-separated as `--etcd` expects them.
    pub fn endpoints(&self) -> String {
        let urls: Vec<String> = self.members.iter().map(EtcdMember::url).collect();
        urls.join(",")
    }

    /// Returns the members' URLs for clients with certificates, comma-separated.
    pub fn secure_endpoints(&self) -> String {
        let urls: Vec<String> = self.members.iter().map(EtcdMember::secure_url).collect();
        urls.join(",")
    }

    /// Returns the members.
    pub fn members(&self) -> &[EtcdMember] {
        &self.members
    }

    /// Returns the members, to kill, pause or restart them.
    pub fn members_mut(&mut self) -> &mut [EtcdMember] {
        &mut self.members
    }

    /// Waits until every member is healthy and a write succeeds.
    ///
    /// # Errors
    /// Returns an error if that does not happen in time; the message contains the end of a log.
    pub async fn wait_ready(&mut self) -> anyhow::Result<()> {
        for member in &mut self.members {
            let request = self.http.get(format!("{}/health", member.url())).timeout(HEALTH_WITHIN);
            let healthy = async || {
                let request = request.try_clone().expect("a request without a body can be cloned");
                let answer = http::Answer::to(request).await;
                answer.is_ok_and(|answer| answer.status == 200)
            };
            member.process.wait_ready(READY_WITHIN, healthy).await?;
        }
        self.put(READY_KEY, "").await
    }

    /// Returns the index of etcd's own leader in [`Self::members`]. This is not the leader of the
    /// issuers.
    ///
    /// # Errors
    /// Returns an error if no member reports in time that it leads.
    pub async fn leader_index(&self) -> anyhow::Result<usize> {
        wait::until_some(READY_WITHIN, "etcd has a leader", async || {
            for index in 0..self.members.len() {
                if self.member_status(index).await.is_ok_and(|status| says_it_leads(&status)) {
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
    /// Returns an error if a signal cannot be sent.
    pub fn stop_all(&mut self) -> anyhow::Result<()> {
        self.members.iter_mut().try_for_each(EtcdMember::kill_now)
    }

    /// Restarts every member on its existing data and waits until the cluster is ready.
    ///
    /// # Errors
    /// Returns an error if the cluster does not become ready; the message contains the end of a
    /// log.
    pub async fn start_all(&mut self) -> anyhow::Result<()> {
        self.members.iter_mut().try_for_each(EtcdMember::restart)?;
        self.wait_ready().await
    }

    /// Saves a snapshot of the first member and returns its path.
    ///
    /// # Errors
    /// Returns an error if `etcdctl` is not installed or fails.
    pub async fn save_snapshot(&self) -> anyhow::Result<PathBuf> {
        let file = self.scratch.path().join(self.scratch.stem("etcd-snapshot"));
        let first = self.members.first().context("etcd has no members")?.url();
        let launch = etcdctl(&self.scratch)?.args(["--endpoints", &first, "snapshot", "save"]).arg(&file);
        launch.run(ETCDCTL_WITHIN).await?.success().context("save a snapshot of etcd")?;
        Ok(file)
    }

    /// Replaces the data of all members with a snapshot and starts them. All later writes are lost.
    ///
    /// # Errors
    /// Returns an error if `etcdctl` fails or the cluster does not become ready.
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

/// Returns whether a member reports itself as the leader: its own id equals the leader id.
fn says_it_leads(status: &Value) -> bool {
    let own = status.pointer("/header/member_id");
    own.is_some() && own == status.get("leader")
}
