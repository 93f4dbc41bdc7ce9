//! The databases of this process: of the links and of the visits.

use std::{
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use app::database_metrics::DatabaseMetrics;
use cli::{args::Database, open_with, wrong_value};
use daemon::Recorder;
use store::{
    Store, Witness,
    postgres::{ConnectOptions, ConnectionBudget, Server},
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::task::AbortOnDropHandle;
use visit_store::{VisitStore, VisitStoreError};

use super::visits_task::{self, OpenSpool};
use crate::config::Settings;

/// Interval at which each server is asked for its state, for the metrics page.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// The databases, as far as parts of the daemon share them.
#[derive(Clone)]
pub(super) struct OpenDatabases {
    pub(super) links: Arc<dyn Store>,
    pub(super) visits: Arc<dyn VisitStore>,
    /// The connections of both.
    pub(super) budget: ConnectionBudget,
    pub(super) metrics: Arc<DatabaseMetrics>,
}

pub(super) struct Databases {
    pub(super) open: OpenDatabases,
    _asking: AbortOnDropHandle<()>,
    /// The lock of the SQLite file.
    _lock: Option<File>,
}

impl Databases {
    /// Opens them, and the spool if visits are recorded here.
    pub(super) async fn open(
        settings: &Settings,
        recorder: &Recorder,
    ) -> Result<(Self, Option<OpenSpool>), cli::Error> {
        let (flags, database) = (&settings.flags, &settings.flags.database.database);
        let lock = lock_sqlite(database)?;
        let witness = settings.witness.as_deref().map(open_witness).transpose()?;
        let metrics = DatabaseMetrics::new(recorder, &servers(settings));
        let options = ConnectOptions {
            budget: ConnectionBudget::of(settings.database_connections),
            observer: Arc::<DatabaseMetrics>::clone(&metrics),
        };
        let store = open_with(database, flags.read_database.as_ref(), witness, &options).await?;
        let (visits, spool) = open_visits(settings, &store, (recorder, &options))?;
        let open = OpenDatabases { links: store, visits, budget: options.budget, metrics };
        let asking = AbortOnDropHandle::new(tokio::spawn(ask(open.clone())));
        Ok((Self { open, _asking: asking, _lock: lock }, spool))
    }

    /// Applies the migrations of the store of visits. Without ClickHouse the process starts all the
    /// same: visits wait in the spool, and are stored by the next try.
    pub(super) async fn migrate_visits(&self, database: &Database) -> Result<(), cli::Error> {
        match self.open.visits.migrate().await {
            Err(error @ VisitStoreError::Engine(_)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "prepare ClickHouse for visits");
                Ok(())
            }
            migrated => migrated.map_err(|error| visits_task::failed(database, &error)),
        }
    }
}

/// Locks a SQLite file for this process; `None` for any other database. Each process keeps its own
/// cache of links, and is not notified of changes by another process to a file.
fn lock_sqlite(database: &Database) -> Result<Option<File>, cli::Error> {
    let Database::Sqlite(path) = database else { return Ok(None) };
    let failed = |error: io::Error| wrong_value("--database", path.display(), error);
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path.with_added_extension("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(failed(error)),
        Err(TryLockError::WouldBlock) => Err(wrong_value(
            "--database",
            database,
            "another resolver serves from this file: expected one process for a SQLite file, \
             or postgres://… for several",
        )),
    }
}

/// Opens the store of visits, and the spool if visits are recorded here.
fn open_visits(
    settings: &Settings,
    store: &Arc<dyn Store>,
    (recorder, options): (&Recorder, &ConnectOptions),
) -> Result<(Arc<dyn VisitStore>, Option<OpenSpool>), cli::Error> {
    let (database, clickhouse) = (&settings.flags.database.database, settings.visits.store.as_ref());
    let visits = cli::open_visits(database, clickhouse, store, options)?;
    if !(settings.visits.is_on && settings.flags.role.serves_visitors()) {
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

/// Returns the servers whose answers are followed. SQLite has none.
fn servers(settings: &Settings) -> Vec<Server> {
    if matches!(settings.flags.database.database, Database::Sqlite(_)) {
        return Vec::new();
    }
    let replica = settings.flags.read_database.as_ref().map(|_| Server::Replica);
    let clickhouse = settings.visits.store.as_ref().map(|_| Server::Clickhouse);
    [Some(Server::Database), replica, clickhouse].into_iter().flatten().collect()
}

/// Asks each server for its state, also while this process waits for a newer schema. One that does
/// not answer holds up no other.
async fn ask(OpenDatabases { links, visits, metrics, .. }: OpenDatabases) {
    let schema = again_and_again(|| async {
        if let Ok(schema) = links.schema().await {
            metrics.set_schema(schema);
        }
    });
    let slots = again_and_again(|| async {
        metrics.set_slots(visits.slots().await.ok().flatten());
        metrics.set_oldest_open(visits.oldest_open().await.ok());
    });
    // The observer of the connections is told of the other two outcomes.
    let replica = again_and_again(|| links.ping_replica());
    let rows = again_and_again(|| async { drop(visits.ping_rows().await) });
    tokio::join!(schema, slots, replica, rows);
}

async fn again_and_again<F: Future<Output = ()>>(ask: impl Fn() -> F) {
    let mut due = interval(ASK_EVERY);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        ask().await;
    }
}

fn open_witness(path: &Path) -> Result<Witness, cli::Error> {
    Witness::open(path).map_err(|error| {
        let reason = format!(
            "{error}: expected the file that this process has kept, or none yet. Without it older copies of the database and \
             the issuer's ledger, put back together, are not noticed"
        );
        wrong_value("--witness", path.display(), reason)
    })
}
