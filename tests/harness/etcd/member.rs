//! One etcd member, which keeps its name, addresses and data over restarts.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::launch::Launch;
use crate::net;
use crate::process::Process;
use crate::programs::Program;
use crate::scratch::Scratch;

/// A member's name, addresses and folder, which it keeps over restarts.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    client: SocketAddr,
    peer: SocketAddr,
    pub(super) data: PathBuf,
}

impl Seat {
    pub(super) fn take(scratch: &Scratch, index: usize) -> anyhow::Result<Self> {
        let name = format!("etcd-{index}");
        // etcd makes the folder itself, closed to others as it wants it.
        let data = scratch.path().join(scratch.stem(&format!("{name}-data")));
        Ok(Self { name, client: net::free_addr()?, peer: net::free_addr()?, data })
    }

    pub(super) fn peer_url(&self) -> String {
        format!("http://{}", self.peer)
    }

    pub(super) fn launch(&self, scratch: &Scratch, peers: &str) -> anyhow::Result<Launch> {
        let client_url = format!("http://{}", self.client);
        let launch = Launch::new(scratch, &self.name, Program::Etcd.path()?);
        let launch = launch.args(["--name", &self.name, "--data-dir"]).arg(&self.data);
        let launch =
            launch.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
        let launch = launch.args(["--listen-peer-urls", &self.peer_url()]);
        let launch = launch.args(["--initial-advertise-peer-urls", &self.peer_url()]);
        let launch = launch.args(["--initial-cluster", peers, "--initial-cluster-state", "new"]);
        let launch = launch.args(["--heartbeat-interval", "100", "--election-timeout", "1000"]);
        Ok(launch.args(["--logger", "zap", "--log-level", "warn"]))
    }
}

/// One member.
#[derive(Debug)]
pub struct EtcdMember {
    pub(super) process: Process,
    pub(super) seat: Seat,
}

impl EtcdMember {
    /// Where clients reach it.
    pub fn url(&self) -> String {
        format!("http://{}", self.seat.client)
    }

    /// The address behind [`Self::url`], for a proxy in front of it.
    pub fn addr(&self) -> SocketAddr {
        self.seat.client
    }

    /// Its process.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// SIGKILL; returns when it is gone.
    ///
    /// # Errors
    /// The signal cannot be sent.
    pub fn kill_now(&mut self) -> anyhow::Result<()> {
        self.process.kill_now()
    }

    /// SIGSTOP; returns when it stands still.
    ///
    /// # Errors
    /// It has ended.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.process.pause().await
    }

    /// Goes on after a pause.
    ///
    /// # Errors
    /// It has ended.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.process.resume()
    }

    /// Starts it again on its data, killing it first if it runs. It may lack a quorum, so nothing is waited for:
    /// see [`EtcdCluster::wait_ready`].
    ///
    /// # Errors
    /// It cannot be started.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()
    }
}
