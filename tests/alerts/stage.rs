//! The platform of the cases, with Prometheus, the shipped rules, and traffic.
//!
//! Each connection between two daemons goes through a proxy of its own kind, so that a case can
//! delay, stall or refuse it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use harness::{
    Clickhouse, Cluster, Daemon, Issuer, Postgres, Prometheus, Proxy, Resolver, ResolverBuilder, clickhouse,
    wait,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    rules::{self, Name},
    server::Server,
    traffic::Traffic,
    watcher::{Span, Watcher},
};

const LOOK: Duration = Duration::from_millis(500);
const SOON: Duration = Duration::from_secs(60);
/// How long all targets may take to be scraped; Prometheus looks at new ones every 5 s.
const SCRAPED_WITHIN: Duration = Duration::from_secs(30);
/// The Kubernetes namespace that all targets are said to be in.
const NAMESPACE: &str = "shortmint";
/// The database of ClickHouse.
const VISITS: &str = "visits";

/// Settings of a part that are not the usual ones.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) etcd_members: usize,
    pub(crate) etcd_args: &'static [&'static str],
    pub(crate) issuer_args: &'static [&'static str],
    pub(crate) resolver_args: &'static [&'static str],
    pub(crate) keyspaces: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            etcd_members: 3,
            etcd_args: &[],
            issuer_args: &[],
            resolver_args: &[],
            keyspaces: "default=6:0-9A-Za-z",
        }
    }
}

/// A running platform. Fields are dropped in declaration order, so that clients end before servers.
pub(crate) struct Stage {
    pub(crate) watcher: Watcher,
    pub(crate) traffic: Traffic,
    pub(crate) prometheus: Arc<Prometheus>,
    pub(crate) cluster: Cluster,
    /// Daemons that Prometheus scrapes besides those of the cluster, each with its job.
    pub(crate) others: Vec<(&'static str, String)>,
    pub(crate) standby: Postgres,
    pub(crate) standby_proxy: Proxy,
    pub(crate) clickhouse: Clickhouse,
    pub(crate) clickhouse_proxy: Proxy,
    /// In front of the members of etcd, in their order.
    pub(crate) etcd_proxies: Vec<Proxy>,
    /// The folders with the spools of the first resolvers, in their order.
    pub(crate) spools: Vec<PathBuf>,
    /// The receiver of webhooks.
    pub(crate) receiver: Server,
    /// In place of kube-state-metrics.
    pub(crate) kubernetes: Server,
    /// Divisor of all times of the rules.
    pub(crate) factor: u32,
    targets: PathBuf,
    setup: Setup,
    /// The alert whose case runs, and when its fault began.
    case: (Name, Instant),
    /// When its fault ended, if the case waited for more after that.
    mended: Option<Instant>,
    within: Duration,
}

impl Stage {
    /// Starts everything, and waits until it has been scraped.
    ///
    /// # Errors
    /// Returns an error if a server does not start; the message contains the end of its log.
    pub(crate) async fn start(setup: Setup, factor: u32) -> anyhow::Result<Self> {
        let builder = Cluster::builder().etcd(setup.etcd_members).issuers(0).resolvers(0).behind_proxies();
        // It has a standby.
        let builder = builder.on_one_postgres();
        let builder = setup.etcd_args.iter().fold(builder, |builder, arg| builder.etcd_arg(arg));
        let builder = builder.keyspaces(setup.keyspaces).drain_delay("200ms");
        let mut cluster = builder.resolver_args(setup.resolver_args.iter().copied()).start().await?;
        let mut etcd_proxies = Vec::new();
        for member in cluster.etcd.members() {
            etcd_proxies.push(Proxy::start(member.addr()).await?);
        }
        for number in 0..3 {
            add_issuer(&mut cluster, &etcd_proxies, &setup, &format!("issuer-{number}")).await?;
        }
        cluster.wait_leader(SOON).await?;
        let standby = cluster.postgres.standby(&cluster.scratch).await?;
        let clickhouse = Clickhouse::start(&cluster.scratch).await?;
        let (standby_proxy, clickhouse_proxy) =
            (Proxy::start(standby.addr()).await?, Proxy::start(clickhouse.addr()).await?);
        let database = cluster.postgres.url_via(&standby_proxy);
        let mut spools = Vec::new();
        for number in 0..2 {
            let spool = cluster.scratch.folder(&format!("spool-{number}"))?;
            let builder = cluster.resolver(&format!("resolver-{number}"))?;
            let builder = with_stores(builder, &database, &clickhouse_proxy, &spool);
            spools.push(spool);
            cluster.resolvers.push(builder.start().await?);
        }
        let traffic = Traffic::start(&cluster.resolvers[0]).await?;
        let (receiver, kubernetes) = (Server::start(204).await?, Server::start(200).await?);
        let targets = cluster.scratch.path().join("targets.json");
        let rules = rules::shortened(&cluster.scratch, factor)?;
        std::fs::write(&targets, "[]").context("write the targets")?;
        let scrape = json!([
            { "job_name": "daemons", "file_sd_configs": [{ "files": [targets], "refresh_interval": "1s" }] },
            { "job_name": "kube-state-metrics", "honor_labels": true,
              "static_configs": [{ "targets": [kubernetes.addr.to_string()] }] },
        ]);
        let prometheus = Arc::new(Prometheus::with(&cluster.scratch, &scrape, &[&rules]).await?);
        let watcher = Watcher::start(Arc::clone(&prometheus), factor);
        let stage = Self {
            watcher,
            traffic,
            prometheus,
            cluster,
            others: Vec::new(),
            standby,
            standby_proxy,
            clickhouse,
            clickhouse_proxy,
            etcd_proxies,
            spools,
            receiver,
            kubernetes,
            factor,
            targets,
            setup,
            case: (Name { alert: String::new(), severity: String::new() }, Instant::now()),
            mended: None,
            within: Duration::ZERO,
        };
        stage.scrape()?;
        stage.are_scraped().await?;
        Ok(stage)
    }

    /// Begins a case.
    pub(crate) fn begin(&mut self, name: Name, within: Duration) {
        (self.case, self.mended, self.within) = ((name, Instant::now()), None, within);
    }

    /// Counts the time from now on: everything before was preparation.
    pub(crate) fn strikes(&mut self) {
        self.case.1 = Instant::now();
    }

    /// Returns when the fault began.
    pub(crate) fn struck(&self) -> Instant {
        self.case.1
    }

    /// Returns when the fault ended: now, unless the case knows better.
    pub(crate) fn mended(&self) -> Instant {
        self.mended.unwrap_or_else(Instant::now)
    }

    /// Waits until the alert of the case fires. If it does not in time, the case goes on, so that
    /// it ends its fault; [`crate::run`] reports it.
    pub(crate) async fn fires(&self) {
        while self.is_awaited() {
            sleep(LOOK).await;
        }
    }

    /// Returns whether the alert of the case has not fired yet, and there is time left for it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.fired().is_none() && self.case.1.elapsed() < self.within
    }

    /// Waits until the alert of the case, which has fired, does not fire any more.
    pub(crate) async fn clears(&mut self) {
        let mended = Instant::now();
        self.mended = Some(mended);
        while self.fired().is_some_and(|span| span.until.is_none()) && mended.elapsed() < self.within {
            sleep(LOOK).await;
        }
    }

    /// Returns when the alert of the case fired.
    pub(crate) fn fired(&self) -> Option<Span> {
        self.watcher.span(&self.case.0, self.case.1)
    }

    /// Tells Prometheus and the traffic of the daemons that there are now.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn scrape(&self) -> anyhow::Result<()> {
        let target = |job: &str, pod: &str, url: &str| {
            let labels = json!({ "job": job, "namespace": NAMESPACE, "pod": pod });
            json!({ "targets": [url.trim_start_matches("http://")], "labels": labels })
        };
        let of = |job: &str, daemon: &Daemon| {
            let url = daemon.admin_url();
            target(job, &url.replace("http://", &format!("{job}-")), &url)
        };
        let mut targets: Vec<Value> = Vec::new();
        targets.extend(self.cluster.issuers.iter().map(|issuer| of("issuer", issuer)));
        targets.extend(self.cluster.resolvers.iter().map(|resolver| of("resolver", resolver)));
        targets
            .extend(self.cluster.etcd.members().iter().map(|member| target("etcd", "etcd", &member.url())));
        targets.extend(self.others.iter().map(|(job, url)| target(job, url, url)));
        let new = self.targets.with_extension("new");
        std::fs::write(&new, Value::from(targets).to_string()).context("write the targets")?;
        std::fs::rename(&new, &self.targets).context("replace the targets")?;
        self.traffic.to(&self.cluster.resolvers);
        Ok(())
    }

    /// Waits until all daemons of the cluster are scraped.
    ///
    /// # Errors
    /// Returns an error if that does not happen in time.
    pub(crate) async fn are_scraped(&self) -> anyhow::Result<()> {
        let count = self.cluster.issuers.len() + self.cluster.resolvers.len();
        let up = "count(issuer_build_info or resolver_build_info)";
        wait::until(SCRAPED_WITHIN, "all daemons are scraped", async || {
            self.prometheus.query(up).await.is_ok_and(|up| up == [count as f64])
        })
        .await
    }

    /// Starts another issuer, at an address of its own.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    pub(crate) async fn add_issuer(&mut self, name: &str) -> anyhow::Result<&mut Issuer> {
        add_issuer(&mut self.cluster, &self.etcd_proxies, &self.setup, name).await?;
        self.scrape()?;
        self.cluster.issuers.last_mut().context("the issuer just added")
    }

    /// Returns the builder of another resolver with all stores.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub(crate) fn resolver(&self, holder: &str) -> anyhow::Result<ResolverBuilder> {
        let spool = self.cluster.scratch.folder(&self.cluster.scratch.stem("spool"))?;
        self.resolver_with(holder, &spool)
    }

    /// Returns the builder of another resolver whose spool is in this folder.
    ///
    /// # Errors
    /// Returns an error if there is no free port.
    pub(crate) fn resolver_with(&self, holder: &str, spool: &Path) -> anyhow::Result<ResolverBuilder> {
        let standby = self.cluster.postgres.url_via(&self.standby_proxy);
        Ok(with_stores(self.cluster.resolver(holder)?, &standby, &self.clickhouse_proxy, spool))
    }

    /// Starts another resolver with other arguments.
    ///
    /// # Errors
    /// Returns an error if it does not start.
    pub(crate) async fn add_resolver(&mut self, builder: ResolverBuilder) -> anyhow::Result<&mut Resolver> {
        self.cluster.resolvers.push(builder.start().await?);
        self.scrape()?;
        self.cluster.resolvers.last_mut().context("the resolver just added")
    }

    /// Ends the resolver that was added last, as a scale-down does.
    ///
    /// # Errors
    /// Returns an error if it does not end.
    pub(crate) async fn remove_resolver(&mut self) -> anyhow::Result<()> {
        let mut last = self.cluster.resolvers.pop().context("there is a resolver")?;
        self.scrape()?;
        last.process.kill_now()
    }

    /// Returns the proxy between the resolvers and Postgres.
    pub(crate) fn postgres_proxy(&self) -> &Proxy {
        self.cluster.postgres_proxy.as_ref().expect("the cluster is built behind proxies")
    }

    /// Runs statements on the primary.
    ///
    /// # Errors
    /// Returns an error if Postgres refuses one.
    pub(crate) async fn sql(&self, statements: &str) -> anyhow::Result<()> {
        self.cluster.postgres.client().await?.batch_execute(statements).await.context("run a statement")
    }
}

async fn add_issuer(cluster: &mut Cluster, etcd: &[Proxy], setup: &Setup, name: &str) -> anyhow::Result<()> {
    let endpoints: Vec<String> = etcd.iter().map(Proxy::url).collect();
    let builder = Issuer::builder(&cluster.scratch, name, &endpoints.join(","))?;
    let proxy = Proxy::start(builder.listen()).await?;
    let builder = builder.advertise(&proxy.url()).args(setup.issuer_args.iter().copied());
    cluster.issuers.push(builder.start().await?);
    cluster.issuer_proxies.push(proxy);
    Ok(())
}

fn with_stores(builder: ResolverBuilder, standby: &str, clickhouse: &Proxy, spool: &Path) -> ResolverBuilder {
    let password = clickhouse::PASSWORD.replace('@', "%40").replace('/', "%2F");
    let visits = format!("clickhouse+http://{}:{password}@{}/{VISITS}", clickhouse::USER, clickhouse.addr());
    let spool = spool.display().to_string();
    let stores = ["--read-database", standby, "--tune", "replica-lag=2s", "--visits-store", &visits];
    let webhooks = ["--visits-spool", &spool, "--webhooks", "network=127.0.0.0/8,http"];
    // Several more resolvers fit within Postgres' own maximum, which a standby needs as well.
    builder.args(stores).args(webhooks).args(["--limit", "database-connections=20"])
}
