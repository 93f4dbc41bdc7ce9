//! A running issuer process, and its builder.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::launch::{ErrorOutput, Launch};
use crate::scratch::Scratch;
use crate::{binaries, net};

/// The time limit for asking an issuer whether it leads. It is short because a wait for a new
/// leader also asks the old one each time.
const LEADS_WITHIN: Duration = Duration::from_millis(250);

/// A builder for an [`Issuer`]. Its addresses are fixed before the start, so that a proxy can be
/// put in front.
#[derive(Clone, Debug)]
pub struct IssuerBuilder {
    scratch: Scratch,
    name: String,
    etcd: String,
    cluster: String,
    listen: SocketAddr,
    admin: SocketAddr,
    advertise: String,
    lease_ttl: String,
    holder_ttl: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    binary: Option<PathBuf>,
    error_output: ErrorOutput,
}

impl IssuerBuilder {
    /// Returns the address that the issuer will listen on.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Sets the cluster's name; the default is `default`.
    #[must_use]
    pub fn cluster(mut self, name: &str) -> Self {
        name.clone_into(&mut self.cluster);
        self
    }

    /// Sets the URL that the issuer advertises, for example that of a proxy. Others are sent there
    /// while it leads.
    #[must_use]
    pub fn advertise(mut self, url: &str) -> Self {
        url.clone_into(&mut self.advertise);
        self
    }

    /// Sets the TTL of the leader lease, for example `2s`.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: &str) -> Self {
        ttl.clone_into(&mut self.lease_ttl);
        self
    }

    /// Sets the time after which a silent holder loses its blocks, for example `30s`.
    #[must_use]
    pub fn holder_ttl(mut self, ttl: &str) -> Self {
        ttl.clone_into(&mut self.holder_ttl);
        self
    }

    /// Adds command-line arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.envs.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Sets where the standard error goes, which is a log file otherwise.
    #[must_use]
    pub fn error_output(mut self, to: ErrorOutput) -> Self {
        self.error_output = to;
        self
    }

    /// Runs this binary instead of the one built for the tests.
    #[must_use]
    pub fn binary(mut self, path: &Path) -> Self {
        self.binary = Some(path.to_owned());
        self
    }

    /// Starts the issuer and waits until it is ready, which does not mean that it leads.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be built or the process is not ready in time; the
    /// message contains the end of its log.
    pub async fn start(self) -> anyhow::Result<Issuer> {
        let (listen, admin) = (self.listen.to_string(), self.admin.to_string());
        let binary = match &self.binary {
            Some(binary) => binary.clone(),
            None => binaries::issuer().await?,
        };
        let launch = Launch::new(&self.scratch, &self.name, binary).error_output(self.error_output);
        let launch = launch.args(["--listen", &listen, "--admin-listen", &admin]);
        let launch = launch.args(["--etcd", &self.etcd, "--cluster", &self.cluster]);
        let launch = launch.args(["--advertise", &self.advertise, "--lease-ttl", &self.lease_ttl]);
        let launch = launch.args(["--holder-ttl", &self.holder_ttl]).args(&self.args);
        let launch = self.envs.iter().fold(launch, |launch, (key, value)| launch.env(key, value));
        let daemon = Daemon::start(launch, self.admin).await?;
        Ok(Issuer { daemon, listen: self.listen, advertise: self.advertise })
    }
}

/// A running issuer. It dereferences to [`Daemon`], which holds the part common to issuers and
/// resolvers.
#[derive(Debug)]
pub struct Issuer {
    daemon: Daemon,
    listen: SocketAddr,
    advertise: String,
}

impl Issuer {
    /// Returns a builder for an issuer on the given etcd endpoints. `name` only names the log
    /// files.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub fn builder(scratch: &Scratch, name: &str, etcd: &str) -> anyhow::Result<IssuerBuilder> {
        let (listen, admin) = (net::free_addr()?, net::free_addr()?);
        Ok(IssuerBuilder {
            scratch: scratch.clone(),
            name: name.to_owned(),
            etcd: etcd.to_owned(),
            cluster: "default".to_owned(),
            listen,
            admin,
            advertise: format!("http://{listen}"),
            lease_ttl: "2s".to_owned(),
            holder_ttl: "30s".to_owned(),
            args: Vec::new(),
            envs: Vec::new(),
            binary: None,
            error_output: ErrorOutput::Log,
        })
    }

    /// Returns the address of its gRPC listener.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// Returns the URL of its own gRPC listener.
    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Returns the URL that it advertises: [`Self::url`] unless there is a proxy in front.
    pub fn advertised(&self) -> &str {
        &self.advertise
    }

    /// Returns whether the issuer reports that it leads; false if it does not respond within 250
    /// ms, for example because it is paused.
    pub async fn says_it_leads(&self) -> bool {
        timeout(LEADS_WITHIN, self.metric("issuer_leader")).await == Ok(Some(1.0))
    }
}

impl Deref for Issuer {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.daemon
    }
}

impl DerefMut for Issuer {
    fn deref_mut(&mut self) -> &mut Daemon {
        &mut self.daemon
    }
}
