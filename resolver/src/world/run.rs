//! One run: processes that create and look links up, faults that strike them, and the checks.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use issuer::{
    core::Limits,
    daemon::{Recorder, Vitals},
    embedded::Embedded,
    tokens::Mark,
};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    Rng,
    clients::{Running, Shared},
    database::{Database, Rates},
    ledger::MemoryLedger,
    network::Network,
    node::Common,
    outcome::Outcome,
};
use crate::{
    codes::{CodeKey, Keyspace, LinkId, Mint},
    store::LinkStore,
};

/// How long faults strike, in milliseconds.
const FAULTS_MS: (u64, u64) = (6_000, 14_000);
/// How long every process may take to create again when no fault strikes any more.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long late writes may take, and then some.
const LANDED: Duration = Duration::from_secs(4);

/// What happens most in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Focus {
    /// Inserts in doubt for the same few URLs, and processes that crash.
    Doubts,
    /// Older copies of the database take over.
    Histories,
    /// Older copies of the ledger.
    Ledgers,
}

impl Focus {
    /// Each in turn.
    pub(super) fn of(seed: u64) -> Self {
        match seed % 3 {
            0 => Self::Doubts,
            1 => Self::Histories,
            _ => Self::Ledgers,
        }
    }
}

/// Runs a seed.
pub(super) fn run(seed: u64, focus: Focus) -> Result<Outcome, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let done = runtime.block_on(World::new(seed, focus).run());
    // Tasks of dead processes wait for ever.
    runtime.shutdown_background();
    done
}

struct World {
    rng: Rng,
    focus: Focus,
    limits: Limits,
    shared: Option<Arc<Shared>>,
    nodes: Vec<Running>,
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
        Self { rng, focus, limits, shared: None, nodes: Vec::new(), issuer: None }
    }

    fn shared(&self) -> &Arc<Shared> {
        self.shared.as_ref().expect("it is made at the start")
    }

    async fn run(mut self) -> Result<Outcome, String> {
        let tiny = self.rng.permille(150);
        let hostile = self.rng.permille(850);
        self.set_up(tiny, hostile).await?;
        let count = self.rng.between(1, 3);
        for holder in 0..count {
            let running = Running::start(&Arc::clone(self.shared()), &format!("h{holder}"), &mut self.rng);
            self.nodes.push(running);
        }
        let until = Instant::now() + self.rng.millis(FAULTS_MS.0, FAULTS_MS.1);
        while Instant::now() < until {
            sleep(self.rng.millis(100, 1_500)).await;
            if hostile {
                self.strike().await?;
            }
            self.check()?;
        }
        self.calm_down(tiny).await?;
        let outcome = *self.shared().outcome.lock().expect("no code panics while it holds this lock");
        Ok(outcome)
    }

    async fn set_up(&mut self, tiny: bool, hostile: bool) -> Result<(), String> {
        let in_doubt = if self.focus == Focus::Doubts { 250 } else { 60 };
        let rates = if hostile {
            Rates {
                failed: self.rng.between(0, 40),
                lost: self.rng.between(0, 40),
                late: self.rng.between(0, in_doubt),
                slow: self.rng.between(0, 60),
                deaf: self.rng.between(0, 20),
                copied: self.rng.between(0, 500),
            }
        } else {
            Rates::default()
        };
        let database = Arc::new(Database::new(self.rng.fork(), rates));
        let definitions: &[&str] = if tiny { &["tiny=1:0-9"] } else { &["a=3:0-9", "b=2:a-z"] };
        let keyspaces: Vec<_> =
            definitions.iter().map(|text| Keyspace::parse(text).expect("it is well-formed")).collect();
        let key = code_key()?;
        let said = |error: crate::store::StoreError| error.to_string();
        database.sqlite.migrate().await.map_err(said)?;
        database.sqlite.adopt_fingerprint(&key.fingerprint()).await.map_err(said)?;
        let keyspaces = database.sqlite.adopt_keyspaces(&keyspaces).await.map_err(said)?;
        let doubts = if hostile { self.rng.between(0, 50) } else { 0 };
        let ledger = Arc::new(MemoryLedger::new(self.rng.fork(), doubts));
        let common = Common {
            database,
            network: Network::new(),
            mint: Arc::new(Mint::new(&key, keyspaces.clone())),
            keyspaces,
            replica_lag: Duration::from_secs(2),
        };
        self.shared = Some(Arc::new(Shared {
            common,
            ledger,
            book: Mutex::default(),
            outcome: Mutex::default(),
            urls: AtomicU64::new(0),
            shared_urls: if self.focus == Focus::Doubts { 900 } else { 250 },
            lossy: AtomicBool::new(false),
            ledger_lossy: AtomicBool::new(false),
        }));
        self.elect().await
    }

    /// A new leader, and the end of the last one.
    async fn elect(&mut self) -> Result<(), String> {
        let shared = Arc::clone(self.shared());
        let recorder = Recorder::new();
        let (vitals, _) = Vitals::new();
        let epoch = shared.ledger.elect();
        let ledger: Arc<dyn issuer::ledger::Ledger> = Arc::clone(&shared.ledger) as _;
        let served = Embedded::serve(ledger, epoch, self.limits, &recorder, &vitals).await;
        let issuer = served.map_err(|error| error.to_string())?;
        shared.common.network.lead(Some(issuer.dialer()));
        // The last one does not know yet that it is deposed.
        if let Some(last) = self.issuer.replace(issuer) {
            tokio::spawn(last.stop());
        }
        Ok(())
    }

    async fn strike(&mut self) -> Result<(), String> {
        let shared = Arc::clone(self.shared());
        let database = &shared.common.database;
        // A crash, an outage, a cut or an election; or what the run is about.
        let fault = if self.rng.permille(500) { self.rng.between(0, 5) } else { self.rng.between(6, 9) };
        let fault = match (self.focus, fault) {
            (Focus::Doubts, 6..) => self.rng.between(0, 1),
            (Focus::Ledgers, 6..) => self.rng.between(10, 11),
            _ => fault,
        };
        tracing::info!(fault, "strike");
        match fault {
            0 | 1 => self.crash().await,
            2 => shared.common.network.cut(),
            3 => {
                shared.count(|outcome| outcome.elections += 1);
                shared.common.network.lead(None);
                sleep(self.rng.millis(0, 2_500)).await;
                self.elect().await?;
            }
            4 | 5 => {
                shared.count(|outcome| outcome.outages += 1);
                let down = self.rng.millis(50, 1_500);
                if self.rng.permille(500) {
                    database.keep_copy();
                }
                database.restart(down);
            }
            6 => database.keep_copy(),
            7 if database.has_copy() => self.fall_back_beside_a_start(true).await,
            8 | 9 => {
                // A cold copy is put back only when somebody was told of a mark since: what is left otherwise is documented.
                let told = database.mark_of_copy().and_then(|mark| u64::try_from(mark).ok()).map(Mark);
                if told.is_some_and(|mark| shared.ledger.mark() > mark) {
                    self.fall_back_beside_a_start(false).await;
                }
            }
            10 => shared.ledger.keep_copy(),
            _ => {
                if !shared.lossy.load(Ordering::Relaxed) && shared.ledger.put_back() {
                    shared.ledger_lossy.store(true, Ordering::Relaxed);
                    shared.count(|outcome| outcome.ledgers_put_back += 1);
                    self.elect().await?;
                }
            }
        }
        Ok(())
    }

    fn some_node(&mut self) -> usize {
        usize::try_from(self.rng.next()).unwrap_or(0) % self.nodes.len()
    }

    /// A process dies and starts again; or its successor starts while it still mints, is given its blocks at once, and it does
    /// not know.
    async fn crash(&mut self) {
        let shared = Arc::clone(self.shared());
        let index = self.some_node();
        shared.count(|outcome| outcome.crashes += 1);
        let holder = self.nodes[index].node.holder.clone();
        if self.rng.permille(500) {
            let successor = Running::start(&shared, &holder, &mut self.rng);
            let elder = std::mem::replace(&mut self.nodes[index], successor);
            sleep(self.rng.millis(100, 2_000)).await;
            elder.kill();
        } else {
            self.nodes[index].kill();
            sleep(self.rng.millis(1, 3_000)).await;
            self.nodes[index] = Running::start(&shared, &holder, &mut self.rng);
        }
    }

    /// Starts what has ended by itself. After the ledger was put back an elder process may register again, and its successor is
    /// the one that is told to end: what watches over processes starts it again.
    fn start_lost(&mut self) {
        let shared = Arc::clone(self.shared());
        for running in self.nodes.iter_mut().filter(|running| running.node.is_lost()) {
            running.kill();
            let holder = running.node.holder.clone();
            *running = Running::start(&shared, &holder, &mut self.rng);
        }
    }

    /// An older copy takes over while a process is not there, or while it starts: then it takes over a block whose links are lost.
    async fn fall_back_beside_a_start(&mut self, as_standby: bool) {
        let shared = Arc::clone(self.shared());
        let index = self.some_node();
        let holder = self.nodes[index].node.holder.clone();
        self.nodes[index].kill();
        let is_under_way = self.rng.permille(600);
        if is_under_way {
            self.nodes[index] = Running::start(&shared, &holder, &mut self.rng);
            sleep(self.rng.millis(5, 300)).await;
        }
        self.fall_back(as_standby).await;
        if !is_under_way {
            self.nodes[index] = Running::start(&shared, &holder, &mut self.rng);
        }
    }

    /// An older copy of the database takes over.
    async fn fall_back(&mut self, as_standby: bool) {
        let shared = Arc::clone(self.shared());
        // Where the ledger went back as well nothing knows any more what was given: see `supply::history`.
        if shared.ledger_lossy.load(Ordering::Relaxed) {
            return;
        }
        shared.lossy.store(true, Ordering::Relaxed);
        let database = &shared.common.database;
        database.restart(self.rng.millis(200, 1_500));
        database.put_back(as_standby);
        let ids: Vec<LinkId> = shared.book().links.iter().map(|link| link.id).collect();
        let mut stored = BTreeSet::new();
        for id in ids {
            if shared.is_stored(id).await {
                stored.insert(id);
            }
        }
        let lost = shared.book().lose(|id| stored.contains(&id));
        shared.count(|outcome| {
            outcome.lost += lost;
            *(if as_standby { &mut outcome.fail_overs } else { &mut outcome.put_back }) += 1;
        });
    }

    fn check(&self) -> Result<(), String> {
        let shared = self.shared();
        let lossless = !shared.lossy.load(Ordering::Relaxed) && !shared.ledger_lossy.load(Ordering::Relaxed);
        if lossless && self.nodes.iter().any(|running| !running.node.is_dead() && running.node.overlaps()) {
            shared.book().fail("the register refused a block though no history was lost".to_owned());
        }
        shared.book().broken().map_or(Ok(()), Err)
    }

    /// No fault strikes any more: every process creates again, and everything that was acknowledged is found by all.
    async fn calm_down(&mut self, tiny: bool) -> Result<(), String> {
        let shared = Arc::clone(self.shared());
        shared.common.database.calm();
        shared.ledger.calm();
        self.elect().await?;
        sleep(LANDED).await;
        self.start_lost();
        for running in &self.nodes {
            running.clients.iter().for_each(JoinHandle::abort);
        }
        for running in &self.nodes {
            let (node, mut rng) = (&running.node, self.rng.fork());
            let creates = async {
                while !shared.create(&node.creator, &node.lookup, &node.mint, &mut rng).await {
                    sleep(Duration::from_millis(50)).await;
                }
            };
            // What a process has leaked in its own start only another one takes up, and a tiny keyspace has nothing else.
            let may_starve = self.nodes.len() == 1 && tiny;
            if timeout(RECOVERY, creates).await.is_err() && !may_starve {
                return Err(format!("{} has created nothing for {RECOVERY:?} without a fault", node.holder));
            }
        }
        let links = shared.book().links.clone();
        for running in &self.nodes {
            for link in &links {
                if !shared.look(&running.node.lookup, link).await {
                    return Err(format!("nobody can say where {} leads, without a fault", link.name));
                }
            }
        }
        for running in &mut self.nodes {
            running.node.finish().await;
        }
        self.check()
    }
}

/// The same key in every run: codes then differ by their numbers alone.
fn code_key() -> Result<CodeKey, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("code.key");
    std::fs::write(Path::new(&path), "5a".repeat(32)).map_err(|error| error.to_string())?;
    CodeKey::read(&path).map_err(|error| error.to_string())
}
