//! The resolver as a daemon: admin listener first, then the database, then numbers, then the public listener.

mod parts;

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use app::metrics::Metrics;
use codes::{Keyspace, KeyspaceIndex, Mint};
use daemon::{Admin, Recorder, Refresh, Resources, Vitals};
use issuer::{core::Limits, embedded::Embedded, observer::Observer};
use parts::Parts;
use store::Witness;
use supply::{
    Clock, Closing, IssuerClient, Lost, Minting, Owner, Spec, Supplier, SupplierConfig, SupplyMetrics, Target,
};
use tokio::{
    net::TcpListener,
    sync::watch,
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Error,
    bootstrap::{Bootstrapped, bootstrap},
    commands::{file_error, open_witnessed},
    config::{Config, Database, Settings},
    http::{self, Api, Phase, PublicListeners, PublicService},
};

/// How long creates under way may take to finish at the end.
const FINISH_DEADLINE: Duration = Duration::from_secs(10);
/// How much of a block is used, in thousandths, when the next one is fetched; each process adds a share of its own up to
/// as much again, so that resolvers started together do not ask together.
const REFILL_PERMILLE: u64 = 200;

/// The sockets the daemon serves on; a test binds port 0.
pub struct Listeners {
    /// For browsers and API clients.
    pub public: PublicListeners,
    /// For probes and Prometheus.
    pub admin: TcpListener,
    /// For other services, if they are served.
    pub grpc: Option<TcpListener>,
}

impl Listeners {
    /// Binds what the configuration names.
    ///
    /// # Errors
    /// When an address is taken or not this machine's.
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

/// What the daemon tells the person who started it.
#[derive(Debug)]
pub struct Greeting {
    /// Where it serves.
    pub public_url: String,
    /// The first API key, only when it was drawn now: it cannot be shown again.
    pub new_key: Option<String>,
}

/// Runs until shut down: then clients are sent elsewhere, requests under way are finished and unused numbers given back.
///
/// # Errors
/// When the configuration does not fit the database, the database does not answer at start, or serving fails.
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
    let (ready, readiness) = watch::channel(false);
    let (shown, on_page) = watch::channel(Shown::default());
    let admin =
        Admin { recorder: recorder.clone(), ready: readiness, refresh: refresh(&supply_metrics, on_page) };
    // Served until this function returns: probes are answered while servers are waited for.
    let _admin = AbortOnDropHandle::new(tokio::spawn(admin.serve(listeners.admin, CancellationToken::new())));

    let _claimed = claim(&config.database.database)?;
    let witness = settings.witness.as_deref().map(open_witness).transpose()?;
    let store = open_witnessed(&config.database.database, config.read_database.as_ref(), witness).await?;
    let bootstrapped = tokio::select! {
        bootstrapped = bootstrap(&config, &settings, &*store) => bootstrapped?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let (vitals, mut failures) = Vitals::new();
    let issuer = start_issuer(&config, &recorder, &vitals).await?;
    let Bootstrapped { code_key, keyspaces, new_key, shared, asked } = bootstrapped;
    let clock = Clock::start();
    let mintings = mintings(&settings, &keyspaces, clock)?;
    shown.send_replace(Shown { mintings: mintings.clone(), observer: issuer.observer() });
    let parts = Parts {
        mint: Arc::new(Mint::new(&code_key, keyspaces)),
        client: Arc::new(IssuerClient::new(issuer.target.clone())),
        owner: Owner { holder: settings.holder.to_string(), instance: draw_instance()? },
        mintings,
        clock,
        store,
        metrics,
        supply_metrics,
        vitals: vitals.clone(),
    };
    let (supply, service) = parts.assemble(&settings, (asked, shared), &resources);

    let (phase, phases) = watch::channel(Phase::Serving);
    let mut public = tokio::spawn(http::serve(listeners.public, Arc::clone(&service), phases));
    let grpc = Grpc::start(listeners.grpc, &service.api, &vitals);
    ready.send_replace(true);
    tracing::info!(public_url = settings.public_url, admin = %config.admin_listen, "serving");
    greet(Greeting { public_url: settings.public_url, new_key });
    let lost = tokio::select! {
        ended = &mut public => return joined(ended),
        task = failures.first() => return Err(Error::TaskFailed(task)),
        lost = supply.lost() => Some(lost),
        () = shutdown.cancelled() => None,
    };
    ready.send_replace(false);
    // Codes that people pick need no numbers: a process whose keyspaces are contradicted must not
    // go on taking them.
    let is_contradicted = matches!(lost, Some(Lost::Keyspaces(_)));
    let delay = if is_contradicted { Duration::ZERO } else { config.drain_delay };
    let drained = tokio::join!(drain(&service, &phase, public, delay), grpc.stop(delay)).0;
    supply.stop().await;
    if let Some(embedded) = issuer.embedded {
        embedded.stop().await;
    }
    service.api.store.close().await;
    tracing::info!("stopped");
    drained?;
    lost.map_or(Ok(()), |lost| Err(stopped_by(&lost, &config, settings.holder.to_string())))
}

/// The links API for other services.
struct Grpc {
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl Grpc {
    fn start(listener: Option<TcpListener>, api: &Arc<Api>, vitals: &Vitals) -> Self {
        let stop = CancellationToken::new();
        let serve = |listener| {
            let serving = http::grpc::serve(listener, Arc::clone(api), stop.clone());
            // What cannot be served any more ends the process, as every task does that it cannot do without.
            vitals
                .spawn("links API", async move { serving.await.expect("the links API is served to its end") })
        };
        Self { task: listener.map(serve), stop }
    }

    /// Ends calls after as long a delay as the public listener has.
    async fn stop(self, delay: Duration) {
        sleep(delay).await;
        self.stop.cancel();
        if let Some(task) = self.task {
            let _ = task.await;
        }
    }
}

/// Why this process does not go on.
fn stopped_by(lost: &Lost, config: &Config, holder: String) -> Error {
    match lost {
        Lost::Superseded(reason) => Error::Config {
            flag: "--holder-id",
            value: holder,
            reason: format!(
                "another process has started under this name since, so this one stops: \
                 expected a name of its own for each process ({reason})"
            ),
        },
        Lost::AnotherLedger { issuer, database } => Error::Config {
            flag: "--issuer",
            value: if config.issuer.is_empty() { "(embedded)".to_owned() } else { config.issuer.join(",") },
            reason: format!(
                "its ledger is {issuer}, but this database's numbers come from ledger {database}: two ledgers would hand out \
                 the same numbers. Expected the issuer that this database has had before, or its own database for this one. \
                 If the former ledger is lost for good, run `resolver migrate --forget-ledger`"
            ),
        },
        Lost::Keyspaces(contradiction) => Error::Config {
            flag: "--database",
            value: config.database.database.to_string(),
            reason: format!(
                "{contradiction}: an older copy of the database has taken over, so this process stops. \
                 Expected another start: it adopts its keyspaces again, and waits until every resolver knows them"
            ),
        },
    }
}

/// Takes a SQLite file for this process, for as long as the result lives: each process keeps what it knows of links to itself, and
/// hears of no other's changes in a file.
fn claim(database: &Database) -> Result<Option<File>, Error> {
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
        Err(TryLockError::WouldBlock) => Err(Error::Config {
            flag: "--database",
            value: database.to_string(),
            reason: "another resolver serves from this file: expected one process for a SQLite file, \
                     or postgres://… for several"
                .to_owned(),
        }),
    }
}

fn open_witness(path: &Path) -> Result<Witness, Error> {
    Witness::open(path).map_err(|error| Error::Config {
        flag: "--witness",
        value: path.display().to_string(),
        reason: format!(
            "{error}: expected the file that this process has kept, or none yet. Without it older copies of the database and \
             the issuer's ledger, put back together, are not noticed"
        ),
    })
}

/// The supplier's task.
struct Supply {
    stop: CancellationToken,
    lost: watch::Receiver<Option<Lost>>,
    closing: Closing,
    task: JoinHandle<()>,
}

impl Supply {
    fn start(config: SupplierConfig, vitals: &Vitals) -> Self {
        let stop = CancellationToken::new();
        let supplier = Supplier::new(config);
        let (lost, closing) = (supplier.lost(), supplier.closing());
        Self { task: vitals.spawn("supplier", supplier.run(stop.clone())), stop, lost, closing }
    }

    /// Why this process mints no more; waits until it is so.
    async fn lost(&self) -> Lost {
        let mut lost = self.lost.clone();
        match lost.wait_for(Option::is_some).await.map(|lost| lost.clone()) {
            Ok(Some(lost)) => lost,
            // The supplier's task has ended, which ends the process by another way.
            _ => std::future::pending().await,
        }
    }

    /// Gives the unused numbers back, within the supplier's own bound.
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the supplier failed: its numbers are leaked");
        }
    }
}

fn joined(ended: Result<io::Result<()>, JoinError>) -> Result<(), Error> {
    Ok(ended.unwrap_or_else(|_| Err(io::Error::other("the listener's task failed")))?)
}

/// Sends clients elsewhere, then closes the listeners, then lets the last creates end.
async fn drain(
    service: &PublicService,
    phase: &watch::Sender<Phase>,
    public: JoinHandle<io::Result<()>>,
    delay: Duration,
) -> Result<(), Error> {
    service.draining.store(true, Ordering::Relaxed);
    phase.send_replace(Phase::Draining);
    sleep(delay).await;
    phase.send_replace(Phase::Closing);
    let ended = public.await;
    if timeout(FINISH_DEADLINE, service.api.links.creator.finish()).await.is_err() {
        tracing::warn!("creates were still waiting for the database at the end: their numbers are in doubt");
    }
    joined(ended)
}

/// Numbers for the keyspaces of this configuration, the default one first; earlier keyspaces only resolve.
fn mintings(
    settings: &Settings,
    known: &[(KeyspaceIndex, Keyspace)],
    clock: Clock,
) -> Result<Vec<Arc<Minting>>, Error> {
    let mut jitter = [0];
    getrandom::fill(&mut jitter).map_err(Error::Random)?;
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

/// Where numbers come from.
struct Issuer {
    target: Target,
    embedded: Option<Embedded>,
}

impl Issuer {
    /// What shows the state of the issuer inside this process, if there is one.
    fn observer(&self) -> Option<Arc<Observer>> {
        self.embedded.as_ref().map(Embedded::observer)
    }
}

async fn start_issuer(config: &Config, recorder: &Recorder, vitals: &Vitals) -> Result<Issuer, Error> {
    if !config.issuer.is_empty() {
        return Ok(Issuer { target: Target::Remote(config.issuer.clone()), embedded: None });
    }
    let ledger = config.data_folder().join("ledger.json");
    let embedded = Embedded::start(Path::new(&ledger), Limits::default(), recorder, vitals).await?;
    Ok(Issuer { target: Target::Embedded(embedded.dialer()), embedded: Some(embedded) })
}

/// A name for this start that no other start has.
fn draw_instance() -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What a metrics page shows beside the counters; nothing before the daemon has come that far.
#[derive(Default)]
struct Shown {
    mintings: Vec<Arc<Minting>>,
    observer: Option<Arc<Observer>>,
}

fn refresh(metrics: &Arc<SupplyMetrics>, shown: watch::Receiver<Shown>) -> Refresh {
    let metrics = Arc::clone(metrics);
    Arc::new(move || {
        metrics.report(shown.borrow().mintings.iter());
        let observer = shown.borrow().observer.clone();
        Box::pin(async move {
            if let Some(observer) = observer {
                observer.look().await;
            }
        })
    })
}
