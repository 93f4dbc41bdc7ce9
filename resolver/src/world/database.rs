//! The database as a server that stops, starts, fails over and is put back: a SQLite database in memory behind it.

use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use issuer::names::StoreEpoch;
use jiff::Timestamp;
use rusqlite::{Connection, backup::Backup};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

use super::Rng;
use crate::store::{Change, LinkStore, StoreError, sqlite::SqliteStore};

/// Changes that a listener may not have heard yet; one that is further behind has lost its connection.
const UNHEARD_MAX: usize = 4_096;

/// Chances in a thousand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    /// A call fails before anything was done.
    pub(super) failed: u64,
    /// A call is done, and nobody hears of it.
    pub(super) lost: u64,
    /// An insert lands after its creator was told that nobody knows.
    pub(super) late: u64,
    /// A call takes long.
    pub(super) slow: u64,
    /// A notification's connection breaks.
    pub(super) deaf: u64,
    /// A read is served by the copy.
    pub(super) copied: u64,
}

struct State {
    rng: Rng,
    rates: Rates,
    timeline: u64,
    starts: u64,
    down_until: Instant,
    copy: Option<Copy>,
}

/// An older copy, which also serves as a replica that lags.
pub(super) struct Copy {
    pub(super) connection: Arc<Mutex<Connection>>,
    pub(super) at: Instant,
}

/// One server.
pub(super) struct Database {
    pub(super) sqlite: SqliteStore,
    connection: Arc<Mutex<Connection>>,
    state: Mutex<State>,
    pub(super) start: watch::Sender<Option<Timestamp>>,
    listeners: Mutex<Vec<mpsc::Sender<Change>>>,
}

fn copied(from: &Connection) -> Connection {
    let mut to = Connection::open_in_memory().expect("SQLite opens in memory");
    Backup::new(from, &mut to).and_then(|backup| backup.step(-1)).expect("SQLite copies in memory");
    to
}

impl Database {
    pub(super) fn new(rng: Rng, rates: Rates) -> Self {
        let connection = Arc::new(Mutex::new(Connection::open_in_memory().expect("SQLite opens in memory")));
        let state = State { rng, rates, timeline: 1, starts: 1, down_until: Instant::now(), copy: None };
        let database = Self {
            sqlite: SqliteStore::here(&connection),
            connection,
            state: Mutex::new(state),
            start: watch::Sender::new(None),
            listeners: Mutex::default(),
        };
        database.tell_start();
        database
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }

    fn tell_start(&self) {
        let started = i64::try_from(self.state().starts).expect("there are few starts");
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

    /// Which start of the server this is: a call that spans two of them has lost its connection.
    pub(super) fn starts(&self) -> u64 {
        self.state().starts
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

    /// Copies it as it is.
    pub(super) fn keep_copy(&self) {
        let connection = copied(&self.connection.lock().expect("no code panics while it holds this lock"));
        let copy = Copy { connection: Arc::new(Mutex::new(connection)), at: Instant::now() };
        self.state().copy = Some(copy);
    }

    pub(super) fn has_copy(&self) -> bool {
        self.state().copy.is_some()
    }

    /// The mark that the copy has.
    pub(super) fn mark_of_copy(&self) -> Option<i64> {
        let state = self.state();
        let connection = state.copy.as_ref()?.connection.lock().ok()?;
        connection.query_row("SELECT mark FROM deployment", [], |row| row.get(0)).ok()
    }

    /// The copy as a replica, and since when it lags.
    pub(super) fn replica(&self) -> Option<(SqliteStore, Instant)> {
        self.state().copy.as_ref().map(|copy| (SqliteStore::here(&copy.connection), copy.at))
    }

    /// The copy takes the place of what there is; as another timeline when it was a standby.
    pub(super) fn put_back(&self, as_standby: bool) {
        let Some(copy) = self.state().copy.take() else { return };
        {
            let from = copy.connection.lock().expect("no code panics while it holds this lock");
            let mut to = self.connection.lock().expect("no code panics while it holds this lock");
            Backup::new(&from, &mut to).and_then(|backup| backup.step(-1)).expect("SQLite copies in memory");
        }
        self.state().timeline += u64::from(as_standby);
    }

    /// As the primary tells it: timeline, and history.
    pub(super) async fn epoch(&self) -> Result<StoreEpoch, StoreError> {
        let history = self.sqlite.epoch().await?;
        let timeline = self.state().timeline;
        StoreEpoch::new(format!("{timeline}:{history}"))
            .map_err(|error| StoreError::Corrupt(error.to_string()))
    }

    pub(super) fn listen(&self) -> mpsc::Receiver<Change> {
        let (listener, changes) = mpsc::channel(UNHEARD_MAX);
        self.listeners.lock().expect("no code panics while it holds this lock").push(listener);
        changes
    }

    pub(super) fn tell(&self, change: &Change) {
        let mut listeners = self.listeners.lock().expect("no code panics while it holds this lock");
        listeners.retain(|listener| listener.try_send(change.clone()).is_ok());
    }
}
