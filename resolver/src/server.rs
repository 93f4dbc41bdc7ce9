//! The resolver as a daemon. It starts the admin listener first, then the database, then the supply
//! of numbers, then the public listener.

mod parts;
mod supply_task;
mod visits_task;
mod webhooks_task;

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use api::{Api, grpc};
use app::{
    database_metrics::DatabaseMetrics, metrics::Metrics, visits::NoSink, webhooks::metrics::WebhookMetrics,
};
use cli::{args::Database, file_error, open_with};
use codes::{Keyspace, KeyspaceIndex, Mint};
use daemon::{
    Admin, Liveness, Recorder, Refresh, Resources, TaskSupervisor,
    traces::{Traced, Traces},
};
use issuer::{core::Limits, embedded::Embedded, observer::Observer};
use parts::{Assembled, Issuing, Parts};
use store::{
    Store, Witness,
    postgres::{ConnectOptions, ConnectionBudget},
};
use supply::{Clock, IssuerClient, Issuers, Minting, Owner, Spec, StopReason, SupplyMetrics, Target};
use tls::{ClientTls, ServerTls};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinError, JoinHandle},
    time::{interval, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use visit_store::{VisitStore, VisitStoreError};
use visits_task::{OpenSpool, VisitTasks};
use web::request_durations::RequestDurations;

use crate::{
    Error,
    bootstrap::{Bootstrapped, bootstrap},
    config::{Config, Settings},
    http::{self, Phase, PublicListeners, PublicService},
};

/// The deadline for creates under way when the process stops.
const FINISH_DEADLINE: Duration = Duration::from_secs(10);
/// Interval at which the version of the schema is read, for the metrics page.
const SCHEMA_EVERY: Duration = Duration::from_secs(15);
/// The used part of a block at which the next one is fetched, in thousandths. Each process adds a
/// random share of up to as much again, so that resolvers started together do not ask together.
const REFILL_PERMILLE: u64 = 200;

/// The sockets that the daemon serves on; a test binds port 0.
pub struct Listeners {
    /// The sockets for browsers and API clients.
    pub public: PublicListeners,
    /// The socket for probes and Prometheus.
    pub admin: TcpListener,
    /// The socket of the links API over gRPC, if it is served.
    pub grpc: Option<TcpListener>,
}

impl Listeners {
    /// Binds the addresses of the configuration.
    ///
    /// # Errors
    /// Returns [`Error::Bind`] if an address is in use or does not belong to this machine.
    pub fn bind(config: &Config, settings: &Settings) -> Result<Self, Error> {
        let wrong = |flag, address: std::net::SocketAddr| {
            move |source: io::Error| Error::Bind { flag, address: address.to_string(), source }
        };
        Ok(Self {
            public: http::bind(config.listen, settings.threads).map_err(wrong("--listen", config.listen))?,
            admin: daemon::bind(config.admin_listen).map_err(wrong("--admin-listen", config.admin_listen))?,
            grpc: config
                .grpc_listen
                .map(|address| daemon::bind(address).map_err(wrong("--grpc-listen", address)))
                .transpose()?,
        })
    }
}

/// The message of the daemon at its start.
#[derive(Debug)]
pub struct Greeting {
    /// The public URL.
    pub public_url: String,
    /// The first API key, if it was generated at this start: it cannot be shown again.
    pub new_key: Option<String>,
}

/// Runs the resolver until `shutdown` is cancelled. Then it drains, finishes requests under way and
/// returns unused numbers.
///
/// # Errors
/// Returns an error if the configuration does not match the database, the database does not answer
/// at start, serving fails, or the process may mint no more.
pub async fn run(
    config: Config,
    settings: Settings,
    listeners: Listeners,
    greet: impl FnOnce(Greeting),
    shutdown: CancellationToken,
) -> Result<(), Error> {
    let resources = Resources::claim();
    let recorder = Recorder::new();
    let (metrics, supply_metrics) = (Metrics::new(&recorder), SupplyMetrics::new(&recorder));
    // Served until this function returns, so that probes are answered while the process waits for
    // servers.
    let liveness = Liveness::default();
    let (ready, shown, _admin) = serve_admin(listeners.admin, (&recorder, &liveness), &supply_metrics);

    let public_tls = config.public_tls()?;
    shown.send_modify(|shown| shown.public_tls.clone_from(&public_tls));
    let _claimed = claim(&config.database.database)?;
    let witness = settings.witness.as_deref().map(open_witness).transpose()?;
    let database_metrics = DatabaseMetrics::new(&recorder);
    let options = connect_options(&config, &database_metrics);
    let database = &config.database.database;
    let store = open_with(database, config.read_database.as_ref(), witness, &options).await?;
    let (visits, spool) = open_visits(&config, &settings, &store, (&recorder, &options))?;
    let (links, rows, metrics_of) = (Arc::clone(&store), Arc::clone(&visits), Arc::clone(&database_metrics));
    let databases = Databases { links, visits: rows, metrics: metrics_of };
    shown.send_modify(|shown| shown.databases = Some(databases));
    let _schema = AbortOnDropHandle::new(tokio::spawn(follow_schema(Arc::clone(&store), database_metrics)));
    let bootstrapped = tokio::select! {
        bootstrapped = bootstrap(&config, &settings, &*store) => bootstrapped?,
        () = shutdown.cancelled() => return Ok(()),
    };
    if settings.role.serves_api() {
        migrate_visits(&*visits, &config.database.database).await?;
    }
    let traces = traces(&config, &settings)?;
    let (supervisor, mut failures) = TaskSupervisor::new();
    let Bootstrapped { code_key, keyspaces, new_key, shared, asked } = bootstrapped;
    let clock = Clock::start();
    let (issuing, embedded) = if settings.role.serves_api() {
        let issuer = start_issuer(&config, settings.holder.as_str(), &recorder, &supervisor).await?;
        let mintings = mintings(&settings, &keyspaces, clock)?;
        shown.send_modify(|shown| {
            shown.mintings.clone_from(&mintings);
            shown.observer = issuer.observer();
            shown.tls = issuer.tls();
        });
        let owner = Owner { holder: settings.holder.to_string(), instance: draw_instance()? };
        let client = Arc::new(IssuerClient::new(issuer.target));
        (Some(Issuing { client, owner, mintings }), issuer.embedded)
    } else {
        (None, None)
    };
    let parts = Parts {
        mint: Arc::new(Mint::new(&code_key, keyspaces)),
        issuing,
        clock,
        store: Arc::clone(&store),
        budget: options.budget,
        metrics,
        durations: RequestDurations::new(&recorder),
        traces: traces.clone(),
        tls: public_tls,
        webhook_metrics: WebhookMetrics::new(&recorder),
        supply_metrics,
        supervisor: supervisor.clone(),
        visits: Arc::clone(&visits),
        sink: spool.as_ref().map_or_else(|| Arc::new(NoSink) as _, |spool| spool.sink.clone() as _),
    };
    let Assembled { service, closing, supply, webhooks } =
        parts.assemble(&settings, (asked, shared), &resources);

    let domains = &service.redirector.domain_cache;
    if settings.visits.is_on && settings.role.serves_api() {
        visits_task::start_upkeep(&supervisor, &settings, &visits, domains);
    }
    let storing = spool.map(|spool| VisitTasks::start(&settings, spool, &visits, domains));
    let (phase, phases) = watch::channel(Phase::Serving);
    let mut public = tokio::spawn(http::serve(listeners.public, Arc::clone(&service), phases, liveness));
    let grpc = Grpc::start(listeners.grpc, service.api.as_ref(), &supervisor);
    ready.send_replace(true);
    tracing::info!(public_url = settings.public_url, admin = %config.admin_listen, "serving");
    greet(Greeting { public_url: settings.public_url, new_key });
    let lost = tokio::select! {
        ended = &mut public => return joined(ended),
        task = failures.first() => return Err(cli::Error::TaskFailed(task).into()),
        lost = closing.closed() => Some(lost),
        () = shutdown.cancelled() => None,
    };
    ready.send_replace(false);
    let delay = drain_delay(lost.as_ref(), &config);
    let webhooks = async {
        if let Some(webhooks) = webhooks {
            webhooks.stop().await;
        }
    };
    let drained = tokio::join!(drain(&service, &phase, public, delay), grpc.stop(delay), webhooks).0;
    service.redirector.visits.finish().await;
    if let Some(storing) = storing {
        storing.finish().await;
    }
    if let Some(supply) = supply {
        supply.stop().await;
    }
    if let Some(embedded) = embedded {
        embedded.stop().await;
    }
    visits.close().await;
    store.close().await;
    if let Some(traces) = traces {
        traces.stop().await;
    }
    tracing::info!("stopped");
    drained?;
    let stopped = |lost| stopped_by(&lost, &config, settings.holder.to_string());
    lost.map_or(Ok(()), |lost| Err(stopped(lost).into()))
}

/// Applies the migrations of the store of visits. Without ClickHouse the process starts all the
/// same: visits wait in the spool, and are stored by the next try.
async fn migrate_visits(visits: &dyn VisitStore, database: &Database) -> Result<(), cli::Error> {
    match visits.migrate().await {
        Err(error @ VisitStoreError::Engine(_)) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "prepare ClickHouse for visits");
            Ok(())
        }
        migrated => migrated.map_err(|error| visits_task::failed(database, &error)),
    }
}

/// Opens the store of visits, and the spool if visits are recorded here.
fn open_visits(
    config: &Config,
    settings: &Settings,
    store: &Arc<dyn Store>,
    (recorder, options): (&Recorder, &ConnectOptions),
) -> Result<(Arc<dyn VisitStore>, Option<OpenSpool>), cli::Error> {
    let (database, clickhouse) = (&config.database.database, settings.visits.store.as_ref());
    let visits = visits_task::open_store(database, clickhouse, store, options)?;
    if !(settings.visits.is_on && settings.role.serves_visitors()) {
        let spool = &settings.visits.spool;
        if settings.visits.is_on && std::fs::read_dir(spool).is_ok_and(|mut files| files.next().is_some()) {
            tracing::warn!(
                spool = %spool.display(),
                "visits that another role has recorded here are not stored: expected one start with --role all"
            );
        }
        return Ok((visits, None));
    }
    let spool = visits_task::open_spool(&settings.visits, recorder)?;
    Ok((visits, Some(spool)))
}

/// The server of the links API over gRPC.
struct Grpc {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Grpc {
    fn start(listener: Option<TcpListener>, api: Option<&Arc<Api>>, supervisor: &TaskSupervisor) -> Self {
        let stop = CancellationToken::new();
        let serve = |(listener, api): (TcpListener, &Arc<Api>)| {
            let serving = grpc::serve(listener, Arc::clone(api), stop.clone());
            // A failure of the links API ends the process, like that of every other supervised
            // task.
            supervisor.spawn("links API", async move {
                let served = serving.await;
                let served = served.inspect_err(|error| {
                    tracing::error!(error = error as &dyn std::error::Error, "serve the links API");
                });
                served.expect("a failure has to end this process");
            })
        };
        Self { task: listener.zip(api).map(serve), stop }
    }

    /// Stops the server after the same delay as the public listener.
    async fn stop(self, delay: Duration) {
        sleep(delay).await;
        self.stop.cancel();
        if let Some(task) = self.task {
            let _ = task.await;
        }
    }
}

/// Returns how long the listeners stay open after the process has asked its clients to leave.
fn drain_delay(lost: Option<&StopReason>, config: &Config) -> Duration {
    match lost {
        // Hand-picked codes need no numbers, so a process whose keyspaces are contradicted would
        // continue to accept them.
        Some(StopReason::Keyspaces(_)) => Duration::ZERO,
        Some(StopReason::Superseded(_) | StopReason::AnotherLedger { .. }) | None => config.drain_delay,
    }
}

/// Returns the error for the reason why this process may mint no more.
fn stopped_by(lost: &StopReason, config: &Config, holder: String) -> cli::Error {
    match lost {
        StopReason::Superseded(reason) => cli::Error::Config {
            flag: "--holder-id",
            value: holder,
            reason: format!(
                "another process has started under this name since, so this one stops: \
                 expected a name of its own for each process ({reason})"
            ),
        },
        StopReason::AnotherLedger { issuer, database } => cli::Error::Config {
            flag: "--issuer",
            value: if config.issuer.is_empty() { "(embedded)".to_owned() } else { config.issuer.join(",") },
            reason: format!(
                "its ledger is {issuer}, but this database's numbers come from ledger {database}: two ledgers would hand out \
                 the same numbers. Expected the issuer that this database has had before, or its own database for this one. \
                 If the former ledger is lost for good, run `resolver migrate --forget-ledger`"
            ),
        },
        StopReason::Keyspaces(contradiction) => cli::Error::Config {
            flag: "--database",
            value: config.database.database.to_string(),
            reason: format!(
                "{contradiction}: an older copy of the database has taken over, so this process stops. \
                 Expected another start: it adopts its keyspaces again, and waits until every resolver knows them"
            ),
        },
    }
}

fn connect_options(config: &Config, metrics: &Arc<DatabaseMetrics>) -> ConnectOptions {
    let budget = ConnectionBudget::of(config.database_connections);
    if matches!(config.database.database, Database::Postgres(_)) {
        metrics.set_connections_max(budget.total);
    }
    ConnectOptions { budget, observer: Arc::<DatabaseMetrics>::clone(metrics) }
}

/// Shows the version of the schema, also while this process waits for a newer one.
async fn follow_schema(store: Arc<dyn Store>, metrics: Arc<DatabaseMetrics>) {
    let mut reads = interval(SCHEMA_EVERY);
    loop {
        reads.tick().await;
        if let Ok(schema) = store.schema().await {
            metrics.set_schema(schema);
        }
    }
}

/// Starts to send traces, if there is a collector.
fn traces(config: &Config, settings: &Settings) -> Result<Option<Arc<Traces>>, cli::Error> {
    let Some(otlp) = &config.otlp else { return Ok(None) };
    let of = Traced { service: "shortmint-resolver", instance: settings.holder.as_str() };
    let started = Traces::start(otlp, config.trace_share, of);
    started.map(Some).map_err(|error| cli::Error::Config {
        flag: "--otlp",
        value: otlp.clone(),
        reason: daemon::reasons(&error),
    })
}

/// Locks a SQLite file for this process, for as long as the result lives. Each process keeps its
/// own cache of links, and is not notified of changes by another process to a file.
fn claim(database: &Database) -> Result<Option<File>, cli::Error> {
    let Database::Sqlite(path) = database else { return Ok(None) };
    let failed = |error: std::io::Error| file_error("--database", path, &error);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut beside = path.clone().into_os_string();
    beside.push(".lock");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(beside).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(failed(error)),
        Err(TryLockError::WouldBlock) => Err(cli::Error::Config {
            flag: "--database",
            value: database.to_string(),
            reason: "another resolver serves from this file: expected one process for a SQLite file, \
                     or postgres://… for several"
                .to_owned(),
        }),
    }
}

fn open_witness(path: &Path) -> Result<Witness, cli::Error> {
    Witness::open(path).map_err(|error| cli::Error::Config {
        flag: "--witness",
        value: path.display().to_string(),
        reason: format!(
            "{error}: expected the file that this process has kept, or none yet. Without it older copies of the database and \
             the issuer's ledger, put back together, are not noticed"
        ),
    })
}

fn joined(ended: Result<io::Result<()>, JoinError>) -> Result<(), Error> {
    Ok(ended.unwrap_or_else(|_| Err(io::Error::other("the listener's task failed")))?)
}

/// Drains for `delay`, closes the listeners, and lets the last creates finish.
async fn drain(
    service: &PublicService,
    phase: &watch::Sender<Phase>,
    public: JoinHandle<io::Result<()>>,
    delay: Duration,
) -> Result<(), Error> {
    service.draining.store(true, Ordering::Relaxed);
    phase.send_replace(Phase::Draining);
    let api = service.api.as_ref();
    if let Some(live) = api.and_then(|api| api.live.as_ref()) {
        live.close();
    }
    sleep(delay).await;
    phase.send_replace(Phase::Closing);
    let ended = public.await;
    if let Some(api) = api
        && timeout(FINISH_DEADLINE, api.links.creator.finish()).await.is_err()
    {
        tracing::warn!("creates were still waiting for the database at the end: their numbers are in doubt");
    }
    joined(ended)
}

/// Creates the mintings of the configured keyspaces, the default one first. Keyspaces of earlier
/// configurations only resolve.
fn mintings(
    settings: &Settings,
    known: &[(KeyspaceIndex, Keyspace)],
    clock: Clock,
) -> Result<Vec<Arc<Minting>>, cli::Error> {
    let mut jitter = [0];
    getrandom::fill(&mut jitter).map_err(cli::Error::Random)?;
    let permille = REFILL_PERMILLE + REFILL_PERMILLE * u64::from(jitter[0]) / 255;
    let mint = |keyspace: &Keyspace| {
        let (index, _) = known.iter().find(|(_, other)| other == keyspace)?;
        let spec = Spec { index: *index, namespace: keyspace.name.clone(), capacity: keyspace.capacity() };
        Some(Arc::new(Minting::new(spec, permille, clock)))
    };
    let minted = settings.keyspaces.iter().filter(|keyspace| !keyspace.hand_picked);
    let mut mintings: Vec<_> = minted.filter_map(mint).collect();
    mintings.sort_by_key(|minting| minting.namespace != settings.default_keyspace);
    Ok(mintings)
}

/// The source of numbers.
struct Issuer {
    target: Target,
    embedded: Option<Embedded>,
}

impl Issuer {
    /// Returns how issuers are reached, if with TLS.
    fn tls(&self) -> Option<ClientTls> {
        match &self.target {
            Target::Remote(issuers) => issuers.tls.clone(),
            Target::Embedded(_) => None,
        }
    }

    /// Returns the observer of the embedded issuer, if there is one.
    fn observer(&self) -> Option<Arc<Observer>> {
        self.embedded.as_ref().map(Embedded::observer)
    }
}

async fn start_issuer(
    config: &Config,
    holder: &str,
    recorder: &Recorder,
    supervisor: &TaskSupervisor,
) -> Result<Issuer, Error> {
    if !config.issuer.is_empty() {
        let issuers = Issuers {
            urls: config.issuer.clone(),
            tls: config.issuer_tls(holder)?,
            allows_plaintext: config.database.insecure,
        };
        return Ok(Issuer { target: Target::Remote(issuers), embedded: None });
    }
    let ledger = config.data_folder().join("ledger.json");
    let embedded = Embedded::start(Path::new(&ledger), Limits::default(), recorder, supervisor).await?;
    Ok(Issuer { target: Target::Embedded(embedded.dialer()), embedded: Some(embedded) })
}

/// Generates the random id of this start: 32 hexadecimal characters.
fn draw_instance() -> Result<String, cli::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(cli::Error::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Serves the admin listener until the handle is dropped. Returns the readiness and the state of the
/// metrics page, to be set.
fn serve_admin(
    listener: TcpListener,
    (recorder, liveness): (&Recorder, &Liveness),
    metrics: &Arc<SupplyMetrics>,
) -> (watch::Sender<bool>, watch::Sender<Shown>, AbortOnDropHandle<()>) {
    let (ready, readiness) = watch::channel(false);
    let (shown, on_page) = watch::channel(Shown::default());
    let admin = Admin {
        daemon: "resolver",
        recorder: recorder.clone(),
        ready: readiness,
        liveness: liveness.clone(),
        refresh: refresh(metrics, on_page),
    };
    let serving = tokio::spawn(admin.serve(listener, CancellationToken::new()));
    (ready, shown, AbortOnDropHandle::new(serving))
}

/// The databases, whose connections a metrics page shows.
struct Databases {
    links: Arc<dyn Store>,
    visits: Arc<dyn VisitStore>,
    metrics: Arc<DatabaseMetrics>,
}

/// The state that a metrics page shows in addition to counters. It is empty until the daemon has
/// started that far.
#[derive(Default)]
struct Shown {
    databases: Option<Databases>,
    mintings: Vec<Arc<Minting>>,
    observer: Option<Arc<Observer>>,
    tls: Option<ClientTls>,
    public_tls: Option<ServerTls>,
}

fn refresh(metrics: &Arc<SupplyMetrics>, shown: watch::Receiver<Shown>) -> Refresh {
    let metrics = Arc::clone(metrics);
    Arc::new(move || {
        metrics.report(shown.borrow().mintings.iter());
        if let Some(Databases { links, visits, metrics }) = &shown.borrow().databases {
            metrics.set_pools(&links.pools());
            metrics.set_pools(&visits.pools());
        }
        metrics.certificate("issuer", shown.borrow().tls.as_ref().and_then(ClientTls::certificate));
        let public = shown.borrow().public_tls.as_ref().and_then(ServerTls::certificate);
        metrics.certificate("public", public);
        let observer = shown.borrow().observer.clone();
        Box::pin(async move {
            if let Some(observer) = observer {
                observer.look().await;
            }
        })
    })
}
