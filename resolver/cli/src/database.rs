//! Opens the database of a command, and waits until it answers; and the mapping between numbers and
//! codes, for commands that run beside a deployment's resolvers.

use std::{path::Path, sync::Arc, time::Duration};

use codes::Mint;
use daemon::Exit;
use store::{
    Settings, Store, StoreError, Witness,
    postgres::{ConnectOptions, PostgresStore},
    sqlite::SqliteStore,
};
use tokio::time::{Instant, sleep};
use visit_store::{
    ClickhouseAddress, ClickhouseVisits, PostgresVisits, SqliteVisits, VisitStore, VisitStoreError,
};

use crate::{
    Error,
    args::{Database, DatabaseArgs},
    code_key_file, wrong_value,
};

/// How often notifications may not arrive before the address is taken for that of a pooler.
const DEAF_MAX: u32 = 2;

/// Opens the database without a query.
pub(crate) async fn open(database: &Database) -> Result<Arc<dyn Store>, Error> {
    open_with(database, None, None, &ConnectOptions::default()).await
}

/// Opens the database with so many connections, and with the witness file that survives a restore
/// of the database if there is one.
pub async fn open_with(
    database: &Database,
    replica: Option<&Database>,
    witness: Option<Witness>,
    options: &ConnectOptions,
) -> Result<Arc<dyn Store>, Error> {
    let witness = witness.map(Arc::new);
    let malformed = |error: StoreError| wrong_value("--database", database, daemon::reasons(&error));
    match database {
        Database::Postgres(url) => {
            let replica = match replica {
                Some(Database::Postgres(url)) => Some(url.as_str()),
                Some(Database::Sqlite(_)) | None => None,
            };
            let mut store = PostgresStore::with(url, replica, options).await.map_err(malformed)?;
            store.witness = witness;
            Ok(Arc::new(store))
        }
        Database::Sqlite(path) => {
            let path = path.to_owned();
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(&path)).await;
            let mut store = opened.unwrap_or(Err(StoreError::Stopped)).map_err(malformed)?;
            store.witness = witness;
            Ok(Arc::new(store))
        }
    }
}

/// Opens the store of visits: in the database of the links on Postgres, with the rows in ClickHouse
/// if it has an address, and in a file of its own beside the links on SQLite.
pub fn open_visits(
    database: &Database,
    clickhouse: Option<&ClickhouseAddress>,
    links: &Arc<dyn Store>,
    options: &ConnectOptions,
) -> Result<Arc<dyn VisitStore>, Error> {
    let failed = |error: VisitStoreError| {
        wrong_value("--database", database, format!("open the store of visits: {error}"))
    };
    Ok(match database {
        Database::Postgres(url) => {
            let visits = PostgresVisits::with_options(url, options).map_err(failed)?;
            match clickhouse {
                Some(address) => Arc::new(ClickhouseVisits::new(address.clone(), visits)),
                None => Arc::new(visits),
            }
        }
        Database::Sqlite(path) => {
            let visits = path.with_file_name("visits.db");
            Arc::new(SqliteVisits::open(&visits, path, Arc::clone(links)).map_err(failed)?)
        }
    })
}

/// Opens an existing database. A command that only reads or fills a database must not create one: a
/// mistyped path would leave an empty database behind.
pub(crate) async fn open_existing(database: &Database) -> Result<Arc<dyn Store>, Error> {
    if let Database::Sqlite(path) = database
        && !path.exists()
    {
        let reason = "there is no such file: start `resolver` on it first, or name another with --database";
        return Err(wrong_value("--database", database, reason));
    }
    open(database).await
}

/// Waits until the database answers. Returns an error at once if it lacks this version's schema,
/// because waiting would not add it.
pub(crate) async fn ready(args: &DatabaseArgs) -> Result<Arc<dyn Store>, Error> {
    let store = open_existing(&args.database).await?;
    let checked = wait_for(args, async || match store.check().await {
        Err(behind @ StoreError::SchemaBehind { .. }) => Ok(Err(behind)),
        other => other.map(Ok),
    });
    checked.await?.map_err(|behind| wrong_value("--database", &args.database, behind))?;
    Ok(store)
}

/// Calls `ask` until the database answers, at most until the deadline for the start. Returns an
/// error that waiting does not mend at once.
pub async fn wait_for<T>(
    args: &DatabaseArgs,
    ask: impl AsyncFn() -> Result<T, StoreError>,
) -> Result<T, Error> {
    args.check_plaintext(None)?;
    let (until, mut deaf) = (Instant::now() + args.start_deadline, 0);
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            // Waiting does not fix these errors.
            Err(
                error @ (StoreError::Keyspace(_)
                | StoreError::Corrupt(_)
                | StoreError::Migration(_)
                | StoreError::Address(_)
                | StoreError::Sqlite(_)
                | StoreError::Stopped),
            ) => return Err(error.into()),
            // A server that is slow once is none that shares its sessions.
            Err(StoreError::Deaf) if deaf < DEAF_MAX => deaf += 1,
            Err(error @ StoreError::Deaf) => return Err(wrong_value("--database", &args.database, error)),
            Err(error) if Instant::now() >= until => {
                let (database, seconds) = (&args.database, args.start_deadline.as_secs());
                let what = format!("--database {database}: no answer within {seconds} s");
                return Err(Error::Failed(what, Exit::Unavailable, error.into()));
            }
            Err(error) => {
                tracing::debug!(error = &error as &dyn std::error::Error, "wait for the database");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }
}

/// Opens the mapping that the resolvers of this database use.
pub(crate) async fn open_mint(
    settings: &dyn Settings,
    database: &DatabaseArgs,
    file: Option<&Path>,
) -> Result<Arc<Mint>, Error> {
    let path = database.code_key(file);
    let wrong = |reason: String| wrong_value("--code-key-file", path.display(), reason);
    let Some(adopted) = settings.fingerprint().await? else {
        let reason =
            "expected a database that a resolver has been started on: it decides which codes there are";
        return Err(wrong_value("--database", &database.database, reason));
    };
    let key = code_key_file::read(&path).map_err(|error| wrong(error.to_string()))?;
    if key.fingerprint() != adopted {
        return Err(wrong(format!("this database belongs to another code key: its mark is {adopted}")));
    }
    let keyspaces = settings.adopt_keyspaces(&[]).await?;
    Ok(Arc::new(Mint::new(&key, keyspaces)))
}
