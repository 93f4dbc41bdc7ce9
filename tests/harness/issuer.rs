//! One issuer process.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use tokio::time::timeout;

use crate::daemon::Daemon;
use crate::launch::Launch;
use crate::scratch::Scratch;
use crate::{binaries, net};

/// Short, because who waits for a new leader also asks the old one each time.
const LEADS_WITHIN: Duration = Duration::from_millis(250);

/// What to start. Its addresses are known before it is, so that a proxy can be put in front.
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
}

impl IssuerBuilder {
    /// Where it will listen.
    pub fn listen(&self) -> SocketAddr {
        self.listen
    }

    /// The cluster's name, `default` unless set.
    #[must_use]
    pub fn cluster(mut self, name: &str) -> Self {
        name.clone_into(&mut self.cluster);
        self
    }

    /// The URL that others are sent to while it leads: a proxy's, say.
    #[must_use]
    pub fn advertise(mut self, url: &str) -> Self {
        url.clone_into(&mut self.advertise);
        self
    }

    /// How long the leader's lease lives, as in `2s`.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: &str) -> Self {
        ttl.clone_into(&mut self.lease_ttl);
        self
    }

    /// How long a silent holder keeps its blocks, as in `30s`.
    #[must_use]
    pub fn holder_ttl(mut self, ttl: &str) -> Self {
        ttl.clone_into(&mut self.holder_ttl);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Starts it and waits until it is ready, which does not mean that it leads.
    ///
    /// # Errors
    /// The binary cannot be built, or the process is not ready in time; the message holds the end of its log.
    pub async fn start(self) -> anyhow::Result<Issuer> {
        let (listen, admin) = (self.listen.to_string(), self.admin.to_string());
        let launch = Launch::new(&self.scratch, &self.name, binaries::issuer().await?);
        let launch = launch.args(["--listen", &listen, "--admin-listen", &admin]);
        let launch = launch.args(["--etcd", &self.etcd, "--cluster", &self.cluster]);
        let launch = launch.args(["--advertise", &self.advertise, "--lease-ttl", &self.lease_ttl]);
        let launch = launch.args(["--holder-ttl", &self.holder_ttl]).args(&self.args);
        let daemon = Daemon::start(launch, self.admin).await?;
        Ok(Issuer { daemon, listen: self.listen, advertise: self.advertise })
    }
}

/// A running issuer. What it shares with the resolver is in [`Daemon`], which it stands for.
#[derive(Debug)]
pub struct Issuer {
    daemon: Daemon,
    listen: SocketAddr,
    advertise: String,
}

impl Issuer {
    /// An issuer on that etcd; `name` is for its log files only.
    ///
    /// # Errors
    /// There is no free port.
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
        })
    }

    /// Its own gRPC address as a URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// The URL it tells others to use, which is [`Self::url`] unless there is a proxy in front.
    pub fn advertised(&self) -> &str {
        &self.advertise
    }

    /// Whether it says that it leads. One that does not answer at once, since it is paused, say, does not.
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
