//! A simulation run: processes whose clients create, change and look up links, faults that strike
//! them (`strikes`), and the checks.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use codes::{CodeKey, Keyspace, Mint};
use daemon::{Recorder, TaskSupervisor};
use issuer::{core::Limits, embedded::Embedded};
use links::{Authority, DomainId};
use store::{Settings, Store};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    book::Violation,
    clients::{Running, host},
    database::{Database, Rates},
    focus::{DOMAINS, DOMAINS_ADDED, Focus},
    ledger::MemoryLedger,
    network::Network,
    node::{Common, Setup},
    outcome::Outcome,
    rng::Rng,
    shared::{BY, Shared},
};

/// The domain that links move to. No visitor asks for its host.
const AWAY_HOST: &str = "away.test";
/// How long faults strike, in milliseconds.
const FAULTS_MS: (u64, u64) = (6_000, 14_000);
/// How long a process may take to create links again after the faults have ended.
const RECOVERY: Duration = Duration::from_secs(60);
/// Upper bound on the delay of late writes and change notifications.
const LANDED: Duration = Duration::from_secs(4);
/// Interval at which the replica is copied anew where replicas matter, in milliseconds.
const COPIED_EVERY_MS: (u64, u64) = (300, 6_000);
/// The reason why a run ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Failure {
    /// A promise was broken.
    #[error(transparent)]
    Broken(#[from] Violation),
    /// A process made no progress although there were no faults.
    #[error("{0}")]
    Stuck(String),
    /// The simulation could not be set up.
    #[error("no world: {0}")]
    NoWorld(String),
}

fn no_world(error: impl std::fmt::Display) -> Failure {
    Failure::NoWorld(error.to_string())
}

/// Number of keyspaces that the first processes have.
const KEYSPACES_AT_FIRST: usize = 2;

/// Runs the simulation of a seed.
pub(super) fn run(seed: u64, focus: Focus) -> Result<Outcome, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(no_world)?;
    let done = runtime.block_on(World::new(seed, focus).run());
    // Tasks of dead processes never end.
    runtime.shutdown_background();
    done
}

pub(super) struct World {
    pub(super) rng: Rng,
    pub(super) focus: Focus,
    limits: Limits,
    shared: Option<Arc<Shared>>,
    pub(super) nodes: Vec<Running>,
    /// Number of keyspaces in the newest configuration.
    pub(super) keyspaces: usize,
    issuer: Option<Embedded>,
}

impl World {
    fn new(seed: u64, focus: Focus) -> Self {
        let mut rng = Rng(seed);
        let limits = Limits {
            block_min: rng.between(3, 20),
            block_max: rng.between(20, 60),
            holder_ttl_ms: 1_500,
            reclaim_after_ms: 1_500,
            ..Limits::default()
        };
        Self {
            rng,
            focus,
            limits,
            shared: None,
            nodes: Vec::new(),
            keyspaces: KEYSPACES_AT_FIRST,
            issuer: None,
        }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        self.shared.as_ref().expect("`set_up` creates the shared state first")
    }

    async fn run(mut self) -> Result<Outcome, Failure> {
        let tiny = self.rng.permille(150);
        let hostile = self.rng.permille(850);
        self.set_up(tiny, hostile).await?;
        let fewest = if matches!(self.focus, Focus::Rollouts | Focus::Copies) { 2 } else { 1 };
        for holder in 0..self.rng.between(fewest, 3) {
            let setup = self.setup(0);
            let shared = Arc::clone(self.shared());
            let running = Running::start(&shared, &format!("h{holder}"), setup, &mut self.rng).await;
            self.nodes.push(running);
        }
        let until = Instant::now() + self.rng.millis(FAULTS_MS.0, FAULTS_MS.1);
        while Instant::now() < until {
            sleep(self.rng.millis(100, 1_500)).await;
            self.start_lost().await;
            if hostile {
                self.strike().await?;
            }
            self.check()?;
        }
        let calmed = self.calm_down(tiny).await;
        // A broken promise says more than its consequences.
        self.check()?;
        calmed?;
        let outcome = *self.shared().outcome.lock().expect("no code panics while it holds this lock");
        Ok(outcome)
    }

    /// Returns the newest configuration, with the default keyspace at this index.
    pub(super) fn setup(&self, default: usize) -> Setup {
        let all = &self.shared().common.keyspaces;
        let keyspaces = all[..self.keyspaces.min(all.len())].to_vec();
        Setup { keyspaces, default }
    }

    fn rates(&mut self, hostile: bool) -> Rates {
        let rng = &mut self.rng;
        match self.focus {
            _ if !hostile => Rates::default(),
            // Outdated answers are better than none: where reads fail often, their age has no bound
            // that could be checked.
            Focus::Changes => Rates {
                failed: rng.between(0, 5),
                lost: rng.between(0, 5),
                late: rng.between(0, 20),
                slow: 0,
                slow_back: rng.between(20, 100),
                deaf: rng.between(0, 10),
                hung: 0,
                copied: rng.between(300, 800),
            },
            // Listeners that are deaf and polls that hang make processes know different things.
            Focus::Outages => Rates {
                failed: rng.between(0, 5),
                lost: rng.between(0, 5),
                late: 0,
                slow: 0,
                slow_back: rng.between(0, 50),
                deaf: rng.between(0, 60),
                hung: rng.between(0, 100),
                copied: rng.between(500, 1_000),
            },
            Focus::Rollouts | Focus::Copies => Rates {
                failed: rng.between(0, 10),
                lost: rng.between(0, 10),
                late: rng.between(0, 20),
                slow: rng.between(0, 60),
                slow_back: 0,
                deaf: rng.between(0, 10),
                hung: rng.between(20, 200),
                copied: 0,
            },
            focus => Rates {
                failed: rng.between(0, 40),
                lost: rng.between(0, 40),
                late: rng.between(0, if focus == Focus::Doubts { 250 } else { 60 }),
                slow: rng.between(0, 60),
                slow_back: 0,
                deaf: rng.between(0, 20),
                hung: 0,
                copied: rng.between(0, 500),
            },
        }
    }

    async fn set_up(&mut self, tiny: bool, hostile: bool) -> Result<(), Failure> {
        let rates = self.rates(hostile);
        let database = Arc::new(Database::new(self.rng.fork(), rates));
        let definitions = self.focus.keyspaces(tiny).iter();
        let keyspaces: Vec<Keyspace> =
            definitions.map(|text| Keyspace::parse(text).expect("the definition is well-formed")).collect();
        let key = code_key()?;
        database.sqlite.migrate().await.map_err(no_world)?;
        database.sqlite.adopt_fingerprint(&key.fingerprint()).await.map_err(no_world)?;
        let first = &keyspaces[..KEYSPACES_AT_FIRST.min(keyspaces.len())];
        let adopted = database.sqlite.adopt_keyspaces(first).await.map_err(no_world)?;
        let hosts = self.add_domains(&database).await?;
        let doubts = if hostile { self.rng.between(0, 50) } else { 0 };
        let ledger = Arc::new(MemoryLedger::new(self.rng.fork(), doubts));
        let is_about_changes = self.focus.is_about_changes();
        let lag_ms = if is_about_changes { self.rng.between(4_000, 8_000) } else { 2_000 };
        if is_about_changes && hostile {
            tokio::spawn(keep_copies(Arc::clone(&database), self.rng.fork()));
        }
        let common = Common {
            database,
            network: Network::new(),
            mint: Mint::new(&key, adopted),
            key,
            keyspaces,
            domains_max: u32::try_from(DOMAINS_ADDED).unwrap_or(u32::MAX),
            replica_lag: Duration::from_millis(lag_ms),
        };
        self.shared = Some(Arc::new(Shared {
            common,
            ledger,
            book: Mutex::default(),
            outcome: Mutex::default(),
            urls: AtomicU64::new(0),
            shared_urls: if self.focus == Focus::Doubts { 900 } else { 250 },
            changes: if is_about_changes { 300 } else { 0 },
            reserves: self.focus.reserves(),
            picks: if self.focus == Focus::Rollouts { 300 } else { 0 },
            reservations: Mutex::default(),
            ends: Mutex::default(),
            picked: Mutex::default(),
            hosts: Mutex::new(hosts),
            domains: self.focus.domains(),
            began: Instant::now(),
            lossy: AtomicBool::new(false),
            ledger_lossy: AtomicBool::new(false),
        }));
        self.elect().await
    }

    /// Adds the domains that exist from the beginning.
    async fn add_domains(&self, database: &Database) -> Result<HashMap<DomainId, String>, Failure> {
        let count = if self.focus == Focus::Domains { DOMAINS } else { 0 };
        let mut hosts = HashMap::new();
        for domain in 0..count {
            let name = Authority::parse(&host(domain)).map_err(no_world)?;
            let added = database.sqlite.add_domain(&name, u32::MAX, BY).await.map_err(no_world)?;
            hosts.extend(added.map(|id| (id, name.to_string())));
        }
        if self.focus.is_about_changes() {
            let away = Authority::parse(AWAY_HOST).map_err(no_world)?;
            let added = database.sqlite.add_domain(&away, u32::MAX, BY).await.map_err(no_world)?;
            added.into_iter().for_each(|id| database.set_away(id));
        }
        Ok(hosts)
    }

    /// Elects a new leader and stops the last one.
    pub(super) async fn elect(&mut self) -> Result<(), Failure> {
        let shared = Arc::clone(self.shared());
        let recorder = Recorder::new();
        let supervisor = TaskSupervisor::default();
        let epoch = shared.ledger.elect();
        let ledger: Arc<dyn issuer::ledger::Ledger> = Arc::clone(&shared.ledger) as _;
        let served = Embedded::serve(ledger, epoch, self.limits, &recorder, &supervisor).await;
        let issuer = served.map_err(no_world)?;
        shared.common.network.lead(Some(issuer.dialer.clone()));
        // The last leader does not know yet that it is deposed.
        if let Some(last) = self.issuer.replace(issuer) {
            tokio::spawn(last.stop());
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        let shared = self.shared();
        let lossless = !shared.lossy.load(Ordering::Relaxed) && !shared.ledger_lossy.load(Ordering::Relaxed);
        if lossless && self.nodes.iter().any(|running| !running.node.is_dead() && running.node.overlaps()) {
            shared.book().fail(Violation::BlockRefused);
        }
        shared.book().broken().map_or(Ok(()), |violation| Err(violation.into()))
    }

    /// Ends all faults, and checks that every process creates links again and finds every
    /// acknowledged link.
    async fn calm_down(&mut self, tiny: bool) -> Result<(), Failure> {
        let shared = Arc::clone(self.shared());
        shared.common.database.calm();
        shared.ledger.calm();
        self.elect().await?;
        sleep(LANDED).await;
        self.start_lost().await;
        for running in &self.nodes {
            running.clients.iter().for_each(JoinHandle::abort);
        }
        for running in &self.nodes {
            let (ends, mut rng) = (&running.node.ends, self.rng.fork());
            let creates = async {
                while !shared.create(ends, &mut rng).await {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            // Numbers that a process has leaked at its own restart go only to another process, and
            // a tiny keyspace has no others.
            let may_starve = self.nodes.len() == 1 && tiny;
            if timeout(RECOVERY, creates).await.is_err() && !may_starve {
                let holder = &running.node.holder;
                return Err(Failure::Stuck(format!("{holder} has created nothing without a fault")));
            }
        }
        // By now every process has been notified of the last change.
        sleep(LANDED).await;
        let links = shared.book().links.clone();
        for running in &self.nodes {
            for link in &links {
                if !shared.look(&running.node.ends, link).await {
                    let name = &link.name;
                    return Err(Failure::Stuck(format!(
                        "nobody can say where {name} leads, without a fault"
                    )));
                }
            }
        }
        self.tell_reserved().await?;
        for running in &mut self.nodes {
            running.node.finish().await;
        }
        Ok(())
    }
}

impl World {
    /// Checks that every process returns the reserved codes.
    async fn tell_reserved(&self) -> Result<(), Failure> {
        let shared = self.shared();
        for running in &self.nodes {
            if !shared.tell_reserved(&running.node.ends).await {
                let holder = &running.node.holder;
                return Err(Failure::Stuck(format!(
                    "{holder} cannot tell what is reserved, without a fault"
                )));
            }
        }
        Ok(())
    }
}

/// Replaces the kept copy at random intervals, without end.
async fn keep_copies(database: Arc<Database>, mut rng: Rng) {
    loop {
        sleep(rng.millis(COPIED_EVERY_MS.0, COPIED_EVERY_MS.1)).await;
        database.keep_copy();
    }
}

/// Returns the code key, the same in every run, so that codes differ only by their numbers.
pub(super) fn code_key() -> Result<CodeKey, Failure> {
    CodeKey::parse(&"5a".repeat(32)).map_err(no_world)
}
