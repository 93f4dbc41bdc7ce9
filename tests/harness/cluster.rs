//! The whole platform: Postgres, etcd, issuers and resolvers, each in its own process.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;

use crate::etcd::EtcdCluster;
use crate::issuer::{Issuer, IssuerBuilder};
use crate::launch::{Finished, Launch};
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use crate::resolver::{Resolver, ResolverBuilder};
use crate::scratch::Scratch;
use crate::slots::Slot;
use crate::status::Status;
use crate::{binaries, wait};

mod builder;

pub use builder::ClusterBuilder;
use builder::Proxies;

/// The time limit for `issuer status`, which may have to wait for an election.
const STATUS_WITHIN: Duration = Duration::from_secs(20);

const RUN_WITHIN: Duration = Duration::from_secs(20);

/// A running platform. Fields are dropped in declaration order, so a server's clients end before
/// the server.
#[derive(Debug)]
pub struct Cluster {
    /// The resolvers, in start order.
    pub resolvers: Vec<Resolver>,
    /// The issuers, in start order.
    pub issuers: Vec<Issuer>,
    /// The proxies in front of the issuers, in the same order; empty unless built with
    /// [`ClusterBuilder::behind_proxies`].
    pub issuer_proxies: Vec<Proxy>,
    /// The proxy in front of Postgres, if built with [`ClusterBuilder::behind_proxies`].
    pub postgres_proxy: Option<Proxy>,
    /// The Postgres server.
    pub postgres: Postgres,
    /// The etcd cluster.
    pub etcd: EtcdCluster,
    /// The administrator's API key.
    pub api_key: String,
    /// The file with the code key, which all resolvers share.
    pub code_key_file: PathBuf,
    settings: ClusterBuilder,
    /// The folder with all data and logs.
    pub scratch: Scratch,
    /// Dropped last, so that the next cluster starts only after every process of this one has
    /// ended.
    _slot: Slot,
}

impl Cluster {
    /// Returns a builder with one etcd member, one issuer and one resolver.
    pub fn builder() -> ClusterBuilder {
        ClusterBuilder::default()
    }

    /// Returns the database's URL as the resolvers use it: through the proxy if there is one.
    pub fn database_url(&self) -> String {
        self.postgres_proxy.as_ref().map_or_else(|| self.postgres.url(), |proxy| self.postgres.url_via(proxy))
    }

    /// Returns the issuers' URLs as the resolvers use them.
    pub fn issuer_urls(&self) -> Vec<String> {
        self.issuers.iter().map(|issuer| issuer.advertised().to_owned()).collect()
    }

    /// Returns the index of the leading issuer; `None` unless exactly one reports that it leads. A
    /// leader that was paused may report so for a little longer.
    pub async fn leader(&self) -> Option<usize> {
        let mut leader = None;
        for (index, issuer) in self.issuers.iter().enumerate() {
            if issuer.says_it_leads().await && leader.replace(index).is_some() {
                return None;
            }
        }
        leader
    }

    /// Waits until exactly one issuer leads and returns its index.
    ///
    /// # Errors
    /// Returns an error if none or several lead at the end of the given time.
    pub async fn wait_leader(&self, within: Duration) -> anyhow::Result<usize> {
        wait::until_some(within, "exactly one issuer leads", async || self.leader().await).await
    }

    /// Returns the leading issuer's state, as `issuer status` prints it.
    ///
    /// # Errors
    /// Returns an error if no issuer leads in time or the output cannot be parsed.
    pub async fn status(&self) -> anyhow::Result<Status> {
        self.status_from(&self.issuer_urls().join(",")).await
    }

    /// Returns the leader's state like [`Self::status`], but asks only the given issuers, a
    /// comma-separated list of URLs. A follower redirects to the leader.
    ///
    /// # Errors
    /// See [`Self::status`].
    pub async fn status_from(&self, urls: &str) -> anyhow::Result<Status> {
        let mut last = String::new();
        let asked = wait::until_some(STATUS_WITHIN, "`issuer status` is answered", async || {
            let asked = self.run_issuer(&["status", "--issuer", urls, "--json"], RUN_WITHIN).await;
            match asked.and_then(Finished::success) {
                Ok(finished) => Some(finished.stdout),
                Err(failed) => {
                    last = format!("{failed:#}");
                    None
                }
            }
        });
        let asked = asked.await;
        Status::parse(&asked.context(last)?)
    }

    /// Returns a builder for an issuer of this cluster, which the test can change and start.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub fn issuer(&self, name: &str) -> anyhow::Result<IssuerBuilder> {
        let builder = Issuer::builder(&self.scratch, name, &self.etcd.endpoints())?;
        let builder = self.settings.lease_ttl.iter().fold(builder, |b, ttl| b.lease_ttl(ttl));
        let builder = self.settings.holder_ttl.iter().fold(builder, |b, ttl| b.holder_ttl(ttl));
        Ok(builder.args(&self.settings.issuer_args))
    }

    /// Starts another issuer, behind a proxy if the others are. Running resolvers do not have its
    /// URL.
    ///
    /// # Errors
    /// Returns an error if the issuer does not become ready; the message contains the end of its
    /// log.
    pub async fn start_issuer(&mut self, name: &str) -> anyhow::Result<&mut Issuer> {
        let mut builder = self.issuer(name)?;
        if self.settings.proxies == Proxies::All {
            let proxy = Proxy::start(builder.listen()).await?;
            builder = builder.advertise(&proxy.url());
            self.issuer_proxies.push(proxy);
        }
        self.issuers.push(builder.start().await?);
        self.issuers.last_mut().context("the issuer just added")
    }

    /// Returns a builder for a resolver of this cluster, which the test can change and start.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub fn resolver(&self, holder_id: &str) -> anyhow::Result<ResolverBuilder> {
        let builder = Resolver::builder(&self.scratch, holder_id, &self.api_key)?;
        let builder = builder.issuers(self.issuer_urls()).database(&self.database_url());
        let builder = builder.code_key_file(&self.code_key_file);
        Ok(builder.args(&self.settings.resolver_args))
    }

    /// Starts another resolver.
    ///
    /// # Errors
    /// Returns an error if the resolver does not become ready; the message contains the end of its
    /// log.
    pub async fn start_resolver(&mut self, holder_id: &str) -> anyhow::Result<&mut Resolver> {
        let resolver = self.resolver(holder_id)?.start().await?;
        self.resolvers.push(resolver);
        self.resolvers.last_mut().context("the resolver just added")
    }

    /// Runs `resolver migrate` on the database.
    ///
    /// # Errors
    /// Returns an error if the command cannot be started or does not end in time.
    pub async fn migrate(&self) -> anyhow::Result<Finished> {
        crate::resolver::migrate(&self.scratch, &self.postgres.url()).await
    }

    /// Runs the resolver's binary with any arguments to completion.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be started or does not end in time.
    pub async fn run_resolver(&self, args: &[&str], within: Duration) -> anyhow::Result<Finished> {
        Launch::new(&self.scratch, "run-resolver", binaries::resolver().await?).args(args).run(within).await
    }

    /// Runs the issuer's binary with any arguments to completion, for example
    /// `status --issuer URL --json`.
    ///
    /// # Errors
    /// Returns an error if the binary cannot be started or does not end in time.
    pub async fn run_issuer(&self, args: &[&str], within: Duration) -> anyhow::Result<Finished> {
        Launch::new(&self.scratch, "run-issuer", binaries::issuer().await?).args(args).run(within).await
    }
}
