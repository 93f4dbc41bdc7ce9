//! A simulated database server that stops, starts, fails over and is restored from older copies.
//! Behind it is a SQLite database in memory.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock},
    time::Duration,
};

use codes::LinkId;
use jiff::Timestamp;
use links::{DomainId, Link};
use numbers::StoreEpoch;
use rusqlite::{Connection, backup::Backup};
use store::{BlockEntry, Change, Links, Register, Source, StoreError, sqlite::SqliteStore};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::{
    rng::Rng,
    rules::{self, StoreRule},
    timeline::Timeline,
};

/// Capacity of a listener's channel of changes. A listener that is further behind has lost its
/// connection.
const UNHEARD_MAX: usize = 4_096;

/// Probabilities of the faults of a call, per thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// A call fails before it has any effect.
    pub(super) failed: u64,
    /// A call takes effect, but its answer is lost.
    pub(super) lost: u64,
    /// An insert takes effect after it was reported with an unknown outcome.
    pub(super) late: u64,
    /// A call takes long to reach the server.
    pub(super) slow: u64,
    /// An answer takes long to come back.
    pub(super) slow_back: u64,
    /// A listener's connection breaks.
    pub(super) deaf: u64,
    /// A poll of the settings hangs.
    pub(super) hung: u64,
    /// A read is served by the replica, if there is one.
    pub(super) copied: u64,
}

struct State {
    rng: Rng,
    rates: Rates,
    timeline: u64,
    starts: u64,
    /// The latest start of the server after which the mark was compared with the ledger's.
    compared: u64,
    down_until: Instant,
    copy: Option<Copy>,
}

/// An older copy, which also serves as a lagging replica.
pub(super) struct Copy {
    pub(super) connection: Arc<Mutex<Connection>>,
    pub(super) at: Instant,
}

/// A simulated database server.
pub(super) struct Database {
    pub(super) sqlite: SqliteStore,
    pub(super) connection: Arc<Mutex<Connection>>,
    state: Mutex<State>,
    pub(super) start: watch::Sender<Option<Timestamp>>,
    listeners: Mutex<Vec<mpsc::Sender<(Instant, Change)>>>,
    timeline: Mutex<Timeline>,
    /// A domain without a host, which links move to and come back from.
    away: OnceLock<DomainId>,
    /// When the simulation began, by its own clock and by the machine's.
    began: (Instant, Timestamp),
}

/// The identity of a row: its id, its slug and its domain.
type Row = (i64, Option<String>, i64);

fn rows(connection: &Connection) -> HashSet<Row> {
    let all = "SELECT id, details->>'slug', coalesce(CAST(details->>'domain' AS INTEGER), 0) FROM link";
    let mut statement = connection.prepare(all).expect("the schema has links");
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let rows = rows.and_then(Iterator::collect);
    rows.expect("SQLite reads in memory")
}

fn copied(from: &Connection) -> Connection {
    let mut to = Connection::open_in_memory().expect("SQLite opens in memory");
    Backup::new(from, &mut to).and_then(|backup| backup.step(-1)).expect("SQLite copies in memory");
    to
}

impl Database {
    pub(super) fn new(rng: Rng, rates: Rates) -> Self {
        let connection = Arc::new(Mutex::new(Connection::open_in_memory().expect("SQLite opens in memory")));
        let state =
            State { rng, rates, timeline: 1, starts: 1, compared: 0, down_until: Instant::now(), copy: None };
        let database = Self {
            sqlite: SqliteStore::here(&connection),
            connection,
            state: Mutex::new(state),
            start: watch::Sender::new(None),
            listeners: Mutex::default(),
            timeline: Mutex::default(),
            away: OnceLock::new(),
            began: (Instant::now(), Timestamp::now()),
        };
        database.tell_start();
        database
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }

    fn tell_start(&self) {
        let started = i64::try_from(self.state().starts).expect("a run has few starts of the server");
        self.start.send_replace(Timestamp::from_second(started).ok());
    }

    pub(super) fn draw<T>(&self, draw: impl FnOnce(&mut Rng, &Rates) -> T) -> T {
        let mut state = self.state();
        let rates = state.rates;
        draw(&mut state.rng, &rates)
    }

    pub(super) fn calm(&self) {
        self.state().rates = Rates::default();
    }

    pub(super) fn is_down(&self) -> bool {
        Instant::now() < self.state().down_until
    }

    /// Returns the number of the server's present start. A call that spans two starts has lost its
    /// connection.
    pub(super) fn starts(&self) -> u64 {
        self.state().starts
    }

    pub(super) fn note_compared(&self) {
        let mut state = self.state();
        state.compared = state.starts;
    }

    /// Returns whether the mark has been compared since the server started. If not, the database
    /// may be an older copy.
    pub(super) fn is_compared(&self) -> bool {
        let state = self.state();
        state.compared == state.starts || !rules::keep(StoreRule::Compared)
    }

    /// Stops the server, and starts it again after this time.
    pub(super) fn restart(&self, down_for: Duration) {
        {
            let mut state = self.state();
            state.starts += 1;
            state.down_until = Instant::now() + down_for;
        }
        self.tell_start();
        self.tell(&Change::Away);
    }

    /// Keeps a copy of the present state.
    pub(super) fn keep_copy(&self) {
        let connection = copied(&self.connection.lock().expect("no code panics while it holds this lock"));
        let copy = Copy { connection: Arc::new(Mutex::new(connection)), at: Instant::now() };
        self.state().copy = Some(copy);
    }

    pub(super) fn has_copy(&self) -> bool {
        self.state().copy.is_some()
    }

    /// Returns the mark that the copy has.
    pub(super) fn mark_of_copy(&self) -> Option<i64> {
        let state = self.state();
        let connection = state.copy.as_ref()?.connection.lock().ok()?;
        connection.query_row("SELECT mark FROM deployment", [], |row| row.get(0)).ok()
    }

    /// Returns the copy as a replica, and the time from which it lags.
    pub(super) fn replica(&self) -> Option<(SqliteStore, Instant)> {
        self.state().copy.as_ref().map(|copy| (SqliteStore::here(&copy.connection), copy.at))
    }

    /// Replaces the database by the copy, on another timeline if the copy was a standby. Returns
    /// the rows that are lost.
    pub(super) fn put_back(&self, as_standby: bool) -> HashSet<Row> {
        let Some(copy) = self.state().copy.take() else { return HashSet::new() };
        let lost = {
            let from = copy.connection.lock().expect("no code panics while it holds this lock");
            let mut to = self.connection.lock().expect("no code panics while it holds this lock");
            let before = rows(&to);
            Backup::new(&from, &mut to).and_then(|backup| backup.step(-1)).expect("SQLite copies in memory");
            let after = rows(&to);
            before.difference(&after).cloned().collect()
        };
        self.state().timeline += u64::from(as_standby);
        lost
    }

    /// Returns the server's time, which advances with the simulation's clock and not with the
    /// machine's.
    pub(super) fn now(&self) -> Timestamp {
        let (instant, time) = self.began;
        let passed = i64::try_from(instant.elapsed().as_millis()).expect("a run takes minutes");
        Timestamp::from_millisecond(time.as_millisecond() + passed).expect("a run takes minutes")
    }

    /// Sets the creation time of a new link to the server's time. SQLite has used the machine's.
    pub(super) fn stamp(&self, id: LinkId) -> Timestamp {
        let now = self.now();
        let connection = self.connection.lock().expect("no code panics while it holds this lock");
        let stamp = "UPDATE link SET created_at = ?1 WHERE id = ?2";
        connection.execute(stamp, [now.as_millisecond(), id.get()]).expect("SQLite writes in memory");
        now
    }

    /// Removes the holders' names from register rows that a block would take over, so that the
    /// safeguard does not protect them.
    pub(super) fn forget_holders(&self, block: &BlockEntry, leaked: u64) {
        let (first, end) = LinkId::range(block.keyspace, block.span);
        let leaked = i64::try_from(leaked).expect("a run has few generations");
        let forget = "UPDATE block SET holder = 'forgotten'
                      WHERE generation <= ?1 AND first_id >= ?2 AND end_id <= ?3";
        let connection = self.connection.lock().expect("no code panics while it holds this lock");
        connection.execute(forget, [leaked, first, end]).expect("SQLite writes in memory");
    }

    fn timeline(&self) -> MutexGuard<'_, Timeline> {
        self.timeline.lock().expect("no code panics while it holds this lock")
    }

    /// Records where a link leads at this moment.
    pub(super) async fn note(&self, id: LinkId) {
        let Ok(reading) = self.sqlite.read(&[id], Source::Primary).await else { return };
        let is_home = |link: &&Link| self.away().is_none_or(|away| link.domain() != away);
        let is_live = |link: &&Link| !link.is_deleted() && !link.is_renamed();
        let link = reading.links.first().filter(is_live).filter(is_home);
        let leads_to = link.map(|link| link.long_url.as_str().to_owned());
        self.timeline().note(id, leads_to);
    }

    /// Returns the version of a link that leads under another name than its code at this moment. A
    /// deletion or a move that began before the link got the name may have ended after that.
    pub(super) async fn renamed(&self, id: LinkId) -> Option<u64> {
        let reading = self.sqlite.read(&[id], Source::Primary).await.ok()?;
        let leads = |link: &&Link| link.is_renamed() && !link.is_deleted() && link.domain().is_default();
        reading.links.first().filter(leads).map(Link::version)
    }

    /// Returns the domain that links move to.
    pub(super) fn away(&self) -> Option<DomainId> {
        self.away.get().copied()
    }

    /// Sets the domain that links move to.
    pub(super) fn set_away(&self, domain: DomainId) {
        self.away.set(domain).expect("a world is built once");
    }

    /// Returns the time since which a link has led to this URL; `None` if it never led there.
    pub(super) fn led_there_since(&self, id: LinkId, url: &str) -> Option<Instant> {
        self.timeline().since(id, url)
    }

    /// Returns when a link first led to this URL at or after `from`; `None` if it was never
    /// changed.
    pub(super) fn first_held(&self, id: LinkId, leads_to: Option<&str>, from: Instant) -> Option<Instant> {
        self.timeline().first_since(id, leads_to, from)
    }

    /// Returns whether a link was changed, and is deleted or has another address now.
    pub(super) fn is_gone(&self, id: LinkId) -> bool {
        self.timeline().is_gone(id)
    }

    /// Returns whether a link led to this URL at any time since `from`; `None` if it was never
    /// changed.
    pub(super) fn held(&self, id: LinkId, leads_to: Option<&str>, from: Instant) -> Option<bool> {
        self.timeline().held(id, leads_to, from)
    }

    /// Returns the epoch as the primary reports it: timeline and history.
    pub(super) async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        let history = self.sqlite.epoch().await?;
        let timeline = self.state().timeline;
        StoreEpoch::new(format!("{timeline}:{history}"))
            .map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    pub(super) fn listen(&self) -> mpsc::Receiver<(Instant, Change)> {
        let (listener, changes) = mpsc::channel(UNHEARD_MAX);
        self.listeners.lock().expect("no code panics while it holds this lock").push(listener);
        changes
    }

    pub(super) fn tell(&self, change: &Change) {
        let mut listeners = self.listeners.lock().expect("no code panics while it holds this lock");
        listeners.retain(|listener| listener.try_send((Instant::now(), change.clone())).is_ok());
    }
}
