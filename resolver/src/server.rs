//! The resolver as a daemon: admin listener first, then the database, then numbers, then the public listener.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use issuer::{
    core::Limits,
    daemon::{Admin, Recorder, Refresh, Vitals},
    embedded::Embedded,
    observer::Observer,
};
use tokio::{
    net::TcpListener,
    runtime,
    sync::watch,
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};

use crate::{
    Error,
    api_key::{ApiKey, KeyRing},
    codes::{CodeKey, CodeKeyError, Keyspace, KeyspaceIndex, Mint},
    commands::{open, wait_for},
    config::{Config, Database, Settings},
    create::{Creator, CreatorConfig},
    http::{self, App, Phase, PublicListeners},
    lookup::Lookup,
    metrics::Metrics,
    reservation::Reserver,
    store::{LinkStore, StoreError},
    supply::{Ceilings, IssuerClient, Minting, Owner, Supplier, SupplierConfig, Target},
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
            admin: issuer::daemon::bind(config.admin_listen)
                .map_err(wrong("--admin-listen", config.admin_listen))?,
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
    let recorder = Recorder::new();
    let metrics = Metrics::new(&recorder);
    let (ready, readiness) = watch::channel(false);
    let (shown, on_page) = watch::channel(Shown::default());
    let admin = Admin { recorder: recorder.clone(), ready: readiness, refresh: refresh(&metrics, on_page) };
    // Served until this function returns: probes are answered while servers are waited for.
    let _admin = AbortOnDropHandle::new(tokio::spawn(admin.serve(listeners.admin, CancellationToken::new())));

    let store = open(&config.database.database).await?;
    let prepared = tokio::select! {
        prepared = prepare(&config, &settings, &*store) => prepared?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let mintings = mintings(&settings, &prepared.keyspaces)?;
    let (vitals, mut failures) = Vitals::new();
    let issuer = start_issuer(&config, &recorder, &vitals).await?;
    shown.send_replace(Shown { mintings: mintings.clone(), observer: issuer.observer() });
    let owner = Owner { holder: settings.holder.to_string(), instance: draw_instance()? };
    let ceilings = Arc::new(Ceilings::default());
    let client = Arc::new(IssuerClient::new(issuer.target.clone()));
    let config_of_supplier = SupplierConfig {
        owner: owner.clone(),
        client: Arc::clone(&client),
        store: Arc::clone(&store),
        mintings: mintings.clone(),
        ceilings: Arc::clone(&ceilings),
        metrics: Arc::clone(&metrics),
    };
    let supply = Supply::start(config_of_supplier, &vitals);
    let mint = Arc::new(Mint::new(&prepared.code_key, prepared.keyspaces));
    let lookup = Arc::new(Lookup::start(
        &vitals,
        Arc::clone(&mint),
        ceilings,
        Arc::clone(&store),
        Arc::clone(&metrics),
    ));
    let default = default_minting(&settings, &mintings)?;
    let others = mintings.iter().filter(|minting| minting.index != default.index);
    let reserver = Reserver {
        client,
        store: Arc::clone(&store),
        mint: Arc::clone(&mint),
        mintings: std::iter::once(&default).chain(others).cloned().collect(),
        lookup: Arc::clone(&lookup),
        metrics: Arc::clone(&metrics),
    };
    let creator = Creator::start(
        &vitals,
        CreatorConfig {
            mint,
            minting: default,
            store: Arc::clone(&store),
            owner,
            lookup: Arc::clone(&lookup),
            metrics: Arc::clone(&metrics),
        },
    );
    let app = Arc::new(app(&settings, creator, reserver));

    let (phase, phases) = watch::channel(Phase::Serving);
    let mut public = tokio::spawn(http::serve(listeners.public, Arc::clone(&app), phases));
    ready.send_replace(true);
    tracing::info!(public_url = settings.public_url, admin = %config.admin_listen, "serving");
    greet(Greeting { public_url: settings.public_url, new_key: prepared.new_key });
    tokio::select! {
        ended = &mut public => return joined(ended),
        task = failures.first() => return Err(Error::TaskFailed(task)),
        () = shutdown.cancelled() => {}
    }
    ready.send_replace(false);
    let drained = drain(&app, &phase, public, config.drain_delay).await;
    supply.stop().await;
    if let Some(embedded) = issuer.embedded {
        embedded.stop().await;
    }
    tracing::info!("stopped");
    drained
}

/// The supplier's task.
struct Supply {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Supply {
    fn start(config: SupplierConfig, vitals: &Vitals) -> Self {
        let stop = CancellationToken::new();
        Self { task: vitals.spawn("supplier", Supplier::new(config).run(stop.clone())), stop }
    }

    /// Gives the unused numbers back, within the supplier's own bound.
    async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the supplier failed: its numbers are leaked");
        }
    }
}

fn app(settings: &Settings, creator: Creator, reserver: Reserver) -> App {
    let (lookup, store) = (Arc::clone(&reserver.lookup), Arc::clone(&reserver.store));
    let metrics = Arc::clone(&reserver.metrics);
    App {
        lookup,
        creator,
        reserver,
        keys: KeyRing::new(),
        store,
        metrics,
        public_url: settings.public_url.clone(),
        own_hosts: settings.own_hosts.clone(),
        redirect_status: settings.redirect_status,
        runtime: runtime::Handle::current(),
        draining: AtomicBool::new(false),
    }
}

fn joined(ended: Result<io::Result<()>, JoinError>) -> Result<(), Error> {
    Ok(ended.unwrap_or_else(|_| Err(io::Error::other("the listener's task failed")))?)
}

/// Sends clients elsewhere, then closes the listeners, then lets the last creates end.
async fn drain(
    app: &App,
    phase: &watch::Sender<Phase>,
    public: JoinHandle<io::Result<()>>,
    delay: Duration,
) -> Result<(), Error> {
    app.draining.store(true, Ordering::Relaxed);
    phase.send_replace(Phase::Draining);
    sleep(delay).await;
    phase.send_replace(Phase::Closing);
    let ended = public.await;
    if timeout(FINISH_DEADLINE, app.creator.finish()).await.is_err() {
        tracing::warn!("creates were still waiting for the database at the end: their numbers are in doubt");
    }
    joined(ended)
}

/// What the database has to agree to before anything is served.
struct Prepared {
    code_key: CodeKey,
    keyspaces: Vec<(KeyspaceIndex, Keyspace)>,
    new_key: Option<String>,
}

async fn prepare(config: &Config, settings: &Settings, store: &dyn LinkStore) -> Result<Prepared, Error> {
    let database = &config.database;
    if matches!(database.database, Database::Sqlite(_)) {
        // One process uses the file, so nobody's older code can be disturbed.
        wait_for(database, async || store.migrate().await).await?;
    }
    wait_for(database, async || store.check().await).await?;
    let code_key = adopt_code_key(config, settings, store).await?;
    let keyspaces = match wait_for(database, async || store.adopt_keyspaces(&settings.keyspaces).await).await
    {
        Err(Error::Store(StoreError::Keyspace(reason))) => {
            return Err(Error::Config { flag: "--keyspaces", value: config.keyspaces.clone(), reason });
        }
        adopted => adopted?,
    };
    Ok(Prepared { code_key, keyspaces, new_key: first_api_key(config, store).await? })
}

/// Reads the code key, or draws one for a database that has none yet. The file is written before the database adopts its
/// mark: a database whose key is lost could not be read.
async fn adopt_code_key(
    config: &Config,
    settings: &Settings,
    store: &dyn LinkStore,
) -> Result<CodeKey, Error> {
    let path = &settings.code_key_file;
    let wrong =
        |reason: String| Error::Config { flag: "--code-key-file", value: path.display().to_string(), reason };
    let adopted = wait_for(&config.database, async || store.fingerprint().await).await?;
    let key = match CodeKey::read(path) {
        Ok(key) => key,
        Err(CodeKeyError::Missing) if config.code_key_file.is_some() => {
            return Err(wrong("no such file: expected 64 hexadecimal characters in it".to_owned()));
        }
        Err(CodeKeyError::Missing) if adopted.is_some() => {
            return Err(wrong(
                "no such file, but this database has had a code key before: bring it back".to_owned(),
            ));
        }
        Err(CodeKeyError::Missing) => CodeKey::create(path).map_err(|error| wrong(error.to_string()))?,
        Err(error) => return Err(wrong(error.to_string())),
    };
    let mine = key.fingerprint();
    let adopted = wait_for(&config.database, async || store.adopt_fingerprint(&mine).await).await?;
    if adopted == mine {
        return Ok(key);
    }
    Err(wrong(format!(
        "this database belongs to another code key: its mark is {adopted}, this file's is {mine}. \
         With another key every stored link would answer under another code"
    )))
}

/// Makes the first key if there has never been one; the key, when it was drawn now.
async fn first_api_key(config: &Config, store: &dyn LinkStore) -> Result<Option<String>, Error> {
    let (key, drawn) = match &config.initial_api_key {
        Some(text) => {
            let key = ApiKey::chosen(text).map_err(|error| Error::Config {
                flag: "--initial-api-key",
                value: "(hidden)".to_owned(),
                reason: error.to_string(),
            })?;
            (key, false)
        }
        None => (ApiKey::draw().map_err(Error::Random)?, true),
    };
    let hash = key.hash();
    let added = wait_for(&config.database, async || store.add_first_api_key("initial", &hash).await).await?;
    Ok((added && drawn).then(|| key.reveal().to_owned()))
}

/// Numbers for the keyspaces of this configuration; earlier ones only resolve.
fn mintings(settings: &Settings, known: &[(KeyspaceIndex, Keyspace)]) -> Result<Vec<Arc<Minting>>, Error> {
    let mut jitter = [0];
    getrandom::fill(&mut jitter).map_err(Error::Random)?;
    let permille = REFILL_PERMILLE + REFILL_PERMILLE * u64::from(jitter[0]) / 255;
    let mint = settings.keyspaces.iter().filter_map(|keyspace| {
        let (index, _) = known.iter().find(|(_, other)| other == keyspace)?;
        Some(Arc::new(Minting::new(*index, keyspace.name.clone(), keyspace.capacity(), permille)))
    });
    Ok(mint.collect())
}

fn default_minting(settings: &Settings, mintings: &[Arc<Minting>]) -> Result<Arc<Minting>, Error> {
    let found = mintings.iter().find(|minting| minting.namespace == settings.default_keyspace);
    found.cloned().ok_or_else(|| Error::Config {
        flag: "--default-keyspace",
        value: settings.default_keyspace.to_string(),
        reason: "expected one of --keyspaces".to_owned(),
    })
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

fn refresh(metrics: &Arc<Metrics>, shown: watch::Receiver<Shown>) -> Refresh {
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
