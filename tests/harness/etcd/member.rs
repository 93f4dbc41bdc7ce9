//! A single etcd member, which keeps its name, addresses and data across restarts.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::certificates::SecretFolder;
use crate::launch::Launch;
use crate::net;
use crate::process::Process;
use crate::programs::Program;
use crate::scratch::Scratch;

/// The name, addresses and data folder of a member, which stay the same across restarts.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) name: String,
    client: SocketAddr,
    /// Address for clients with certificates, if the cluster has any.
    secure: SocketAddr,
    peer: SocketAddr,
    pub(super) data: PathBuf,
}

impl Seat {
    pub(super) fn take(scratch: &Scratch, index: usize) -> anyhow::Result<Self> {
        let name = format!("etcd-{index}");
        // etcd creates the folder itself, with the permissions that it requires.
        let data = scratch.path().join(scratch.stem(&format!("{name}-data")));
        Ok(Self { name, client: net::free_addr()?, secure: net::free_addr()?, peer: net::free_addr()?, data })
    }

    pub(super) fn peer_url(&self) -> String {
        format!("http://{}", self.peer)
    }

    pub(super) fn launch(
        &self,
        scratch: &Scratch,
        peers: &str,
        tls: Option<&SecretFolder>,
    ) -> anyhow::Result<Launch> {
        let mut client_url = format!("http://{}", self.client);
        if tls.is_some() {
            client_url = format!("{client_url},https://{}", self.secure);
        }
        let launch = Launch::new(scratch, &self.name, Program::Etcd.path()?);
        let launch = launch.args(["--name", &self.name, "--data-dir"]).arg(&self.data);
        let launch =
            launch.args(["--listen-client-urls", &client_url, "--advertise-client-urls", &client_url]);
        let launch = launch.args(["--listen-peer-urls", &self.peer_url()]);
        let launch = launch.args(["--initial-advertise-peer-urls", &self.peer_url()]);
        let launch = launch.args(["--initial-cluster", peers, "--initial-cluster-state", "new"]);
        let launch = launch.args(["--heartbeat-interval", "100", "--election-timeout", "1000"]);
        let launch = launch.args(["--logger", "zap", "--log-level", "warn"]);
        let Some(tls) = tls else { return Ok(launch) };
        let launch = launch.args(["--client-cert-auth", "--trusted-ca-file", &tls.file("ca.crt")]);
        Ok(launch.args(["--cert-file", &tls.file("tls.crt"), "--key-file", &tls.file("tls.key")]))
    }
}

/// A running or stopped etcd member.
#[derive(Debug)]
pub struct EtcdMember {
    pub(super) process: Process,
    pub(super) seat: Seat,
}

impl EtcdMember {
    /// Returns the URL for clients.
    pub fn url(&self) -> String {
        format!("http://{}", self.seat.client)
    }

    /// Returns the URL for clients with certificates, of a cluster that has them.
    pub fn secure_url(&self) -> String {
        format!("https://{}", self.seat.secure)
    }

    /// Returns the address of [`Self::url`], for a proxy in front of the member.
    pub fn addr(&self) -> SocketAddr {
        self.seat.client
    }

    /// Returns the member's process.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Sends SIGKILL and returns when the process has ended.
    ///
    /// # Errors
    /// Returns an error if the signal cannot be sent.
    pub fn kill_now(&mut self) -> anyhow::Result<()> {
        self.process.kill_now()
    }

    /// Sends SIGSTOP and returns when the process is stopped.
    ///
    /// # Errors
    /// Returns an error if the process has ended or does not stop.
    pub async fn pause(&mut self) -> anyhow::Result<()> {
        self.process.pause().await
    }

    /// Continues the process after a pause.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.process.resume()
    }

    /// Restarts the member on its existing data, killing it first if it runs. Does not wait,
    /// because the member may lack a quorum: see [`super::EtcdCluster::wait_ready`].
    ///
    /// # Errors
    /// Returns an error if the member cannot be started.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()
    }
}
