//! The settings of a [`Cluster`], and its start.

use anyhow::Context;

use super::Cluster;
use crate::etcd::EtcdCluster;
use crate::postgres::Postgres;
use crate::scratch::Scratch;
use crate::secret;
use crate::slots::{self, Share};

/// A builder for a [`Cluster`]: the number of each server, and their settings.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    etcd_members: usize,
    pub(super) issuers: usize,
    pub(super) resolvers: usize,
    pub(super) proxies: Proxies,
    share: Share,
    on_one_postgres: bool,
    pub(super) lease_ttl: Option<String>,
    pub(super) holder_ttl: Option<String>,
    postgres_settings: Vec<(String, String)>,
    etcd_args: Vec<String>,
    pub(super) issuer_args: Vec<String>,
    pub(super) resolver_args: Vec<String>,
}

/// The proxies between the resolvers and the servers they use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proxies {
    None,
    All,
}

impl Default for ClusterBuilder {
    fn default() -> Self {
        Self {
            etcd_members: 1,
            issuers: 1,
            resolvers: 1,
            proxies: Proxies::None,
            share: Share::One,
            on_one_postgres: false,
            lease_ttl: None,
            holder_ttl: None,
            postgres_settings: Vec::new(),
            etcd_args: Vec::new(),
            issuer_args: Vec::new(),
            resolver_args: Vec::new(),
        }
    }
}

impl ClusterBuilder {
    /// Sets the number of etcd members: one or three.
    #[must_use]
    pub fn etcd(mut self, members: usize) -> Self {
        self.etcd_members = members;
        self
    }

    /// Sets the number of issuers.
    #[must_use]
    pub fn issuers(mut self, count: usize) -> Self {
        self.issuers = count;
        self
    }

    /// Sets the number of resolvers. Their holder ids are `resolver-0` and so on.
    #[must_use]
    pub fn resolvers(mut self, count: usize) -> Self {
        self.resolvers = count;
        self
    }

    /// Puts a proxy in front of Postgres and of each issuer; the resolvers connect through them.
    #[must_use]
    pub fn behind_proxies(mut self) -> Self {
        self.proxies = Proxies::All;
        self
    }

    /// Keeps the links on one Postgres, also in a run with nodes: for tests of its replication.
    #[must_use]
    pub fn on_one_postgres(mut self) -> Self {
        self.on_one_postgres = true;
        self
    }

    /// Runs the cluster while no other cluster runs, for tests that measure time.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.share = Share::All;
        self
    }

    /// Sets the keyspaces of all resolvers, in the format of `--keyspaces`.
    #[must_use]
    pub fn keyspaces(self, keyspaces: &str) -> Self {
        self.resolver_args(["--keyspaces", keyspaces])
    }

    /// Sets the TTL of the issuers' leader lease, for example `2s`.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: &str) -> Self {
        self.lease_ttl = Some(ttl.to_owned());
        self
    }

    /// Sets the time after which a silent holder loses its blocks, for example `30s`.
    #[must_use]
    pub fn holder_ttl(mut self, ttl: &str) -> Self {
        self.holder_ttl = Some(ttl.to_owned());
        self
    }

    /// Sets how long resolvers continue to serve after SIGTERM, for example `200ms`.
    #[must_use]
    pub fn drain_delay(self, delay: &str) -> Self {
        self.resolver_args(["--drain-delay", delay])
    }

    /// Sets a configuration parameter of Postgres.
    #[must_use]
    pub fn postgres_setting(mut self, name: &str, value: &str) -> Self {
        self.postgres_settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds an argument to every etcd member.
    #[must_use]
    pub fn etcd_arg(mut self, arg: &str) -> Self {
        self.etcd_args.push(arg.to_owned());
        self
    }

    /// Adds arguments to every issuer.
    #[must_use]
    pub fn issuer_args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.issuer_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds arguments to every resolver.
    #[must_use]
    pub fn resolver_args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.resolver_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Starts all servers and waits until they are ready.
    ///
    /// # Errors
    /// Returns an error if a program is not installed, cannot be built or does not become ready;
    /// the message contains the end of its log.
    pub async fn start(self) -> anyhow::Result<Cluster> {
        let slot = slots::take(self.share).await;
        let scratch = Scratch::new()?;
        let postgres = self.postgres_settings.iter().fold(Postgres::builder(), |b, (k, v)| b.setting(k, v));
        let etcd = self.etcd_args.iter().fold(EtcdCluster::builder(self.etcd_members), |b, arg| b.arg(arg));
        let postgres = postgres.scratch(&scratch);
        let postgres =
            async { if self.on_one_postgres { postgres.start_one().await } else { postgres.start().await } };
        let (postgres, etcd) = tokio::try_join!(postgres, etcd.scratch(&scratch).start())?;
        let postgres_proxy = match self.proxies {
            Proxies::All => Some(postgres.proxy().await?),
            Proxies::None => None,
        };
        let mut cluster = Cluster {
            resolvers: Vec::new(),
            issuers: Vec::new(),
            issuer_proxies: Vec::new(),
            postgres_proxy,
            postgres,
            etcd,
            api_key: secret::random_hex()?,
            code_key_file: scratch.secret("code.key", &secret::random_hex()?)?,
            settings: self,
            scratch,
            _slot: slot,
        };
        cluster.migrate().await?.success().context("migrate the database")?;
        for index in 0..cluster.settings.issuers {
            cluster.start_issuer(&format!("issuer-{index}")).await?;
        }
        for index in 0..cluster.settings.resolvers {
            cluster.start_resolver(&format!("resolver-{index}")).await?;
        }
        Ok(cluster)
    }
}
