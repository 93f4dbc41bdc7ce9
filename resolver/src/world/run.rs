//! One run: processes that create and look links up, faults that strike them, and the checks.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard,
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
    book::{Acknowledged, Book},
    database::{Database, Rates},
    ledger::MemoryLedger,
    network::Network,
    node::{Common, Node},
};
use crate::{
    api_key::ApiKeyId,
    codes::{CodeKey, Keyspace, LinkId, Mint},
    create::{CodeWish, CreateError, Creator, Wishes},
    links::{Details, DomainId, Draft, Link, LongUrl, Slug, Tag},
    lookup::Lookup,
    store::{LinkStore, Source},
};

/// How long faults strike, in milliseconds.
const FAULTS_MS: (u64, u64) = (6_000, 14_000);
/// How long every process may take to create again when no fault strikes any more.
const RECOVERY: Duration = Duration::from_secs(60);
/// How long late writes may take, and then some.
const LANDED: Duration = Duration::from_secs(4);
/// URLs that many links share: a row for the same URL is not therefore one's own.
const SHARED_URLS: u64 = 3;

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

/// What happened in one run or in many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) acknowledged: u64,
    pub(super) slugs: u64,
    pub(super) looked_up: u64,
    pub(super) exhausted: u64,
    pub(super) unknown: u64,
    pub(super) crashes: u64,
    pub(super) elections: u64,
    pub(super) outages: u64,
    pub(super) fail_overs: u64,
    pub(super) put_back: u64,
    pub(super) ledgers_put_back: u64,
    pub(super) lost: u64,
}

impl Outcome {
    pub(super) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.acknowledged, other.acknowledged),
            (&mut self.slugs, other.slugs),
            (&mut self.looked_up, other.looked_up),
            (&mut self.exhausted, other.exhausted),
            (&mut self.unknown, other.unknown),
            (&mut self.crashes, other.crashes),
            (&mut self.elections, other.elections),
            (&mut self.outages, other.outages),
            (&mut self.fail_overs, other.fail_overs),
            (&mut self.put_back, other.put_back),
            (&mut self.ledgers_put_back, other.ledgers_put_back),
            (&mut self.lost, other.lost),
        ];
        pairs.into_iter().for_each(|(sum, one)| *sum += one);
    }

    /// What never happens proves nothing.
    pub(super) fn expect_enough(&self) {
        let Self { acknowledged, slugs, looked_up, exhausted, unknown, crashes, .. } = *self;
        let Self { elections, outages, fail_overs, put_back, ledgers_put_back, lost, .. } = *self;
        let counts = [acknowledged, slugs, looked_up, exhausted, unknown, crashes, elections, outages];
        let rare = [fail_overs, put_back, ledgers_put_back, lost];
        assert!(
            counts.into_iter().chain(rare).all(|count| count >= 20),
            "too rare to prove anything: {self:?}"
        );
    }
}

/// What the tasks of a run share.
struct Shared {
    common: Common,
    ledger: Arc<MemoryLedger>,
    book: Mutex<Book>,
    outcome: Mutex<Outcome>,
    urls: AtomicU64,
    /// Of a thousand links so many are for one of a few URLs.
    shared_urls: u64,
    /// Whether the database or the ledger was ever put back.
    lossy: AtomicBool,
    ledger_lossy: AtomicBool,
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no code panics while it holds this lock")
    }

    fn count(&self, count: impl FnOnce(&mut Outcome)) {
        count(&mut self.outcome.lock().expect("no code panics while it holds this lock"));
    }

    fn draft(&self, rng: &mut Rng) -> Draft {
        let url = if rng.permille(self.shared_urls) {
            format!("https://example.org/shared/{}", rng.between(1, SHARED_URLS))
        } else {
            format!("https://example.org/{}", self.urls.fetch_add(1, Ordering::Relaxed))
        };
        Draft {
            long_url: LongUrl::from_stored(url),
            title: None,
            crawlable: false,
            forward_query: true,
            created_by: ApiKeyId(1),
            details: None,
        }
    }

    async fn is_stored(&self, id: LinkId) -> bool {
        let reading = self.common.database.sqlite.read(&[id], Source::Primary).await;
        reading.is_ok_and(|reading| !reading.links.is_empty())
    }

    async fn acknowledge(&self, name: String, link: &Link) {
        self.acknowledge_as(name, link, false).await;
    }

    async fn acknowledge_as(&self, name: String, link: &Link, is_picked: bool) {
        tracing::info!(name, id = ?link.id.unpack(), is_picked, "acknowledged");
        let (stored, lossy) = (self.is_stored(link.id).await, self.lossy.load(Ordering::Relaxed));
        let url = link.long_url.as_str().to_owned();
        self.count(|outcome| outcome.acknowledged += 1);
        self.book().acknowledge(Acknowledged { name, id: link.id, url, is_picked }, stored, lossy);
    }

    fn refused(&self, error: &CreateError) {
        match error {
            CreateError::Exhausted => self.count(|outcome| outcome.exhausted += 1),
            CreateError::NoStore => self.count(|outcome| outcome.unknown += 1),
            CreateError::NoNumber | CreateError::OtherWish | CreateError::Taken | CreateError::Overloaded => {
            }
        }
    }

    /// One create of some kind; whether a link was acknowledged, or the keyspace is said to be exhausted.
    async fn create(&self, creator: &Creator, lookup: &Lookup, mint: &Mint, rng: &mut Rng) -> bool {
        let draft = self.draft(rng);
        match rng.between(0, 9) {
            0 => {
                let drafts = (0..rng.between(1, 12)).map(|_| self.draft(rng)).collect();
                let mut any = false;
                for created in creator.create_many(drafts).await {
                    match created {
                        Ok(created) => {
                            self.acknowledge(created.code.to_string(), &created.link).await;
                            any = true;
                        }
                        Err(error) => {
                            self.refused(&error);
                            any |= matches!(error, CreateError::Exhausted);
                        }
                    }
                }
                any
            }
            1 => {
                self.pick(creator, mint, draft, rng).await;
                false
            }
            2 => {
                let tags = Tag::parse("t").into_iter().collect();
                let wishes = Wishes { tags, ..Wishes::default() };
                self.told(lookup, creator.create_full(draft, wishes).await.map(|record| record.link)).await
            }
            _ => match creator.create(draft).await {
                Ok(created) => {
                    self.acknowledge(created.code.to_string(), &created.link).await;
                    true
                }
                Err(error) => {
                    self.refused(&error);
                    matches!(error, CreateError::Exhausted)
                }
            },
        }
    }

    async fn told(&self, lookup: &Lookup, created: Result<Link, CreateError>) -> bool {
        match created {
            Ok(link) => {
                let name = lookup.name_of(&link).unwrap_or_default();
                self.acknowledge(name, &link).await;
                true
            }
            Err(error) => {
                self.refused(&error);
                matches!(error, CreateError::Exhausted)
            }
        }
    }

    /// Picks a code: one that the minter could come to, or a word.
    async fn pick(&self, creator: &Creator, mint: &Mint, mut draft: Draft, rng: &mut Rng) {
        let (index, keyspace) = &self.common.keyspaces[0];
        let number = rng.next() % keyspace.capacity();
        let minted = mint.code_of(LinkId::new(*index, number)).filter(|_| rng.permille(700));
        let word = || format!("word-{}", self.urls.fetch_add(1, Ordering::Relaxed));
        let text = minted.map_or_else(word, |code| code.to_string());
        let Ok(slug) = Slug::parse(&text) else { return };
        draft.details = Some(Box::<Details>::default());
        let wishes = Wishes { code: CodeWish::Picked(slug), ..Wishes::default() };
        match creator.create_full(draft, wishes).await {
            Ok(record) => {
                self.count(|outcome| outcome.slugs += 1);
                self.acknowledge_as(text, &record.link, true).await;
            }
            Err(error) => self.refused(&error),
        }
    }

    /// Looks a link up that was acknowledged before; whether somebody could say.
    async fn look(&self, lookup: &Lookup, link: &Acknowledged) -> bool {
        let Ok(found) = lookup.find_named(DomainId::DEFAULT, &link.name).await else { return false };
        let found = found.filter(|found| !found.is_deleted());
        self.count(|outcome| outcome.looked_up += 1);
        self.book().found(link, found.as_ref().map(|found| found.long_url.as_str()));
        true
    }

    fn some_link(&self, rng: &mut Rng) -> Option<Acknowledged> {
        let book = self.book();
        let last = book.links.len().checked_sub(1)? as u64;
        // The youngest links are those that somebody may not know yet.
        let place =
            if rng.permille(600) { last.saturating_sub(rng.between(0, 3)) } else { rng.between(0, last) };
        book.links.get(usize::try_from(place).ok()?).cloned()
    }
}

/// A process with the tasks of its clients.
struct Running {
    node: Node,
    clients: Vec<JoinHandle<()>>,
}

impl Running {
    fn start(shared: &Arc<Shared>, holder: &str, rng: &mut Rng) -> Self {
        let node = Node::start(&shared.common, holder, rng);
        let mut clients = Vec::new();
        for _ in 0..2 {
            let (shared, creator, lookup) =
                (Arc::clone(shared), Arc::clone(&node.creator), Arc::clone(&node.lookup));
            let (mint, mut rng) = (Arc::clone(&node.mint), rng.fork());
            clients.push(tokio::spawn(async move {
                loop {
                    sleep(rng.millis(5, 250)).await;
                    shared.create(&creator, &lookup, &mint, &mut rng).await;
                }
            }));
        }
        let (shared, lookup, mut rng) = (Arc::clone(shared), Arc::clone(&node.lookup), rng.fork());
        clients.push(tokio::spawn(async move {
            loop {
                sleep(rng.millis(1, 60)).await;
                if let Some(link) = shared.some_link(&mut rng) {
                    shared.look(&lookup, &link).await;
                }
            }
        }));
        Self { node, clients }
    }

    fn kill(&self) {
        self.node.kill();
        self.clients.iter().for_each(JoinHandle::abort);
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
