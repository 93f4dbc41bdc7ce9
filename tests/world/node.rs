//! One simulated process of the resolver: its supplier, creator and lookup, started as the daemon
//! starts them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use app::{
    creator::{Creator, CreatorConfig},
    key_permits::KeyPermits,
};
use codes::{CodeKey, Keyspace, KeyspaceIndex, Mint};
use daemon::{Recorder, TaskSupervisor};
use issuer::embedded::Dialer;
use links::Protocol;
use lookup::{
    Lookup, LookupConfig,
    domain_cache::{DomainCache, DomainCacheConfig, Policy, PublicUrl},
    keyspaces::{Adopted, adopt_keyspaces},
    metrics::Metrics,
};
use store::{SettingsPoll, Store, StoreError};
use tokio::{
    sync::watch,
    task::JoinHandle,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    database::Database,
    network::Network,
    rng::Rng,
    rules,
    ways::{FaultyStore, Trouble},
};
use supply::{
    Clock, Closing, IssuerClient, Minting, Owner, Spec, StopReason, Supplier, SupplierConfig, SupplyMetrics,
    Target,
};

/// The default domain's name.
pub(super) const DEFAULT_HOST: &str = "world.test";
/// Concurrent creates of a key: so many that the limit has no effect.
const TURNS: usize = 1_000;
/// How long links may be served that cannot be confirmed: longer than any run takes.
const HOUR: Duration = Duration::from_secs(3_600);
/// How long a starting process waits before it asks the database again.
const PAUSE: Duration = Duration::from_millis(50);

/// The state that all processes of a run share.
pub(super) struct Common {
    pub(super) database: Arc<Database>,
    pub(super) network: Network,
    pub(super) key: CodeKey,
    /// Every keyspace of a run, in the order in which they are added; the first has index 1. Each
    /// process has its own mint.
    pub(super) keyspaces: Vec<Keyspace>,
    pub(super) mint: Mint,
    /// Maximum number of domains beside the default one.
    pub(super) domains_max: u32,
    pub(super) replica_lag: Duration,
}

/// The configuration of a process.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) keyspaces: Vec<Keyspace>,
    /// The index of the default keyspace.
    pub(super) default: usize,
}

/// The interfaces of a process that clients use.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) creator: Arc<Creator>,
    pub(super) lookup: Arc<Lookup>,
    pub(super) domain_cache: Arc<DomainCache>,
    pub(super) mint: Arc<Mint>,
    pub(super) store: Arc<dyn Store>,
    pub(super) trouble: Arc<Trouble>,
}

/// Returns a dialer to the issuer that works while the process lives and is not cut off.
fn dialer(common: &Common, is_dead: &Arc<AtomicBool>, cut_off: &Arc<Mutex<Instant>>) -> Dialer {
    let (is_dead, until) = (Arc::clone(is_dead), Arc::clone(cut_off));
    common.network.dialer(move || {
        let until = *until.lock().expect("no code panics while it holds this lock");
        is_dead.load(Ordering::Relaxed) || Instant::now() < until
    })
}

/// Returns supplies of numbers for the configured keyspaces, that of the default one first.
fn mintings(
    setup: &Setup,
    known: &[(KeyspaceIndex, Keyspace)],
    refill_permille: u64,
    clock: Clock,
) -> Vec<Arc<Minting>> {
    let first = &setup.keyspaces[setup.default];
    let others = setup.keyspaces.iter().filter(|keyspace| *keyspace != first);
    let minting = |keyspace: &Keyspace| {
        let (index, _) = known.iter().find(|(_, other)| other == keyspace)?;
        let spec = Spec { index: *index, namespace: keyspace.name.clone(), capacity: keyspace.capacity() };
        Some(Arc::new(Minting::new(spec, refill_permille, clock)))
    };
    std::iter::once(first).chain(others).filter_map(minting).collect()
}

/// Repeats a call to the database until it succeeds.
async fn until_it_answers<T>(ask: impl AsyncFn() -> Result<T, StoreError>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(StoreError::Keyspace(reason)) => {
                unreachable!("keyspaces of a world do not overlap: {reason}")
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The parts from which a process's interfaces are assembled.
struct Parts<'a> {
    common: &'a Common,
    store: Arc<dyn Store>,
    trouble: Arc<Trouble>,
    mint: Arc<Mint>,
    owner: Owner,
    mintings: Vec<Arc<Minting>>,
    client: Arc<IssuerClient>,
    metrics: Arc<Metrics>,
    supply_metrics: Arc<SupplyMetrics>,
    closing: Closing,
}

impl Parts<'_> {
    fn assemble(self, shared: (Instant, SettingsPoll)) -> Ends {
        let Self { common, store, trouble, mint, owner, mintings, client, metrics, supply_metrics, closing } =
            self;
        // The checks detect a failed task: after a panic it mints and answers no more.
        let supervisor = TaskSupervisor::default();
        let lookup_config = LookupConfig {
            cache_bytes: 1 << 20,
            warm_links: 0,
            replica_lag: common.replica_lag,
            serve_stale_for: HOUR,
            rules: rules::of_resolvers(),
        };
        let lookup =
            Lookup::start(&supervisor, lookup_config, Arc::clone(&mint), store.clone(), Arc::clone(&metrics));
        let lookup = Arc::new(lookup);
        let (authority, path) = (DEFAULT_HOST.to_owned(), String::new());
        let public_url = PublicUrl { protocol: Protocol::Http, authority, path };
        let policy = Policy { domains_max: common.domains_max, checks_redirects: false };
        let config = DomainCacheConfig {
            settings: store.clone(),
            public_url,
            policy,
            lookup: Arc::clone(&lookup),
            closing,
        };
        let domain_cache = DomainCache::start(&supervisor, config, shared);
        let config = CreatorConfig {
            mintings,
            store: store.clone(),
            owner,
            lookup: Arc::clone(&lookup),
            domain_cache: Arc::clone(&domain_cache),
            client,
            turns: Arc::new(KeyPermits::new(TURNS)),
            metrics,
            supply_metrics,
        };
        let creator = Creator::start(&supervisor, config);
        Ends { creator, lookup, domain_cache, mint, store, trouble }
    }
}

/// A simulated process.
pub(super) struct Node {
    pub(super) holder: String,
    pub(super) ends: Ends,
    is_dead: Arc<AtomicBool>,
    /// The time until which the process cannot reach the issuer.
    cut_off: Arc<Mutex<Instant>>,
    /// The time until which its polls of the settings hang.
    hung_until: Arc<Mutex<Instant>>,
    stop: CancellationToken,
    lost: watch::Receiver<Option<StopReason>>,
    supply: JoinHandle<()>,
    recorder: Recorder,
}

impl Node {
    /// Starts a process as the daemon does, once the database has answered.
    pub(super) async fn start(common: &Common, holder: &str, setup: &Setup, rng: &mut Rng) -> Self {
        let is_dead = Arc::<AtomicBool>::default();
        let trouble = Arc::<Trouble>::default();
        let hung_until = Arc::new(Mutex::new(Instant::now()));
        let store: Arc<dyn Store> = Arc::new(FaultyStore {
            database: Arc::clone(&common.database),
            is_dead: Arc::clone(&is_dead),
            trouble: Arc::clone(&trouble),
            hung_until: Arc::clone(&hung_until),
            polled: Mutex::default(),
        });
        let Adopted { keyspaces: known, shown_at } = until_it_answers(async || {
            adopt_keyspaces(&*store, &setup.keyspaces, rules::of_resolvers()).await
        })
        .await;
        common.mint.adopt(known.iter().cloned());
        let poll = async || {
            let asked = Instant::now();
            Ok((asked, store.poll_settings(None).await?))
        };
        let shared = until_it_answers(poll).await;
        let recorder = Recorder::new();
        let (metrics, supply_metrics) = (Metrics::new(&recorder), SupplyMetrics::new(&recorder));
        let cut_off = Arc::new(Mutex::new(Instant::now()));
        let client = Arc::new(IssuerClient::new(Target::Embedded(dialer(common, &is_dead, &cut_off))));
        let owner = Owner { holder: holder.to_owned(), instance: format!("start-{:016x}", rng.next()) };
        let clock = Clock::start();
        let mintings = mintings(setup, &known, rng.between(300, 900), clock);
        let supplier = Supplier::new(SupplierConfig {
            owner: owner.clone(),
            client: Arc::clone(&client),
            register: store.clone(),
            mintings: mintings.clone(),
            clock,
            metrics: Arc::clone(&supply_metrics),
            begins_at: shown_at,
            rules: rules::of_resolvers(),
        });
        let (stop, closing) = (CancellationToken::new(), supplier.closing.clone());
        let lost = closing.lost.subscribe();
        let supply = tokio::spawn(supplier.run(stop.clone()));
        let mint = Arc::new(Mint::new(&common.key, known));
        let parts =
            Parts { common, store, trouble, mint, owner, mintings, client, metrics, supply_metrics, closing };
        Self {
            holder: holder.to_owned(),
            ends: parts.assemble(shared),
            is_dead,
            cut_off,
            hung_until,
            stop,
            lost,
            supply,
            recorder,
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed)
    }

    /// Returns whether the process has to end by itself.
    pub(super) fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    /// Returns the reason why the process has to end by itself.
    pub(super) fn lost(&self) -> Option<StopReason> {
        self.lost.borrow().clone()
    }

    /// Kills the process: its calls in flight are not answered, and it sends no more.
    pub(super) fn kill(&self) {
        self.is_dead.store(true, Ordering::Relaxed);
        self.supply.abort();
    }

    /// Blocks new connections to the issuer for this long. Existing ones have to be cut separately.
    pub(super) fn cut_off(&self, time: Duration) {
        *self.cut_off.lock().expect("no code panics while it holds this lock") = Instant::now() + time;
    }

    /// Lets its polls of the settings hang for this long.
    pub(super) fn hang(&self, time: Duration) {
        *self.hung_until.lock().expect("no code panics while it holds this lock") = Instant::now() + time;
    }

    /// Returns the process's unused numbers and ends it.
    pub(super) async fn finish(&mut self) {
        self.ends.creator.finish().await;
        self.stop.cancel();
        let _ = (&mut self.supply).await;
    }

    /// Returns whether the register has refused a block of this process.
    pub(super) fn overlaps(&self) -> bool {
        let page = self.recorder.render();
        let line = page.lines().find(|line| line.starts_with("resolver_blocks_overlapping_total"));
        line.is_some_and(|line| !line.ends_with(" 0"))
    }
}
