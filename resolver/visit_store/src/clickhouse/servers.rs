//! The servers of a database. A call goes to one of them, and to the next one if that fails.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use clickhouse::{Client, Compression, error::Error};
use store::postgres::{DatabaseObserver, Server as Observed};
use tokio::{sync::OnceCell, time::timeout};

use super::address::ClickhouseAddress;
use crate::{Result, VisitStoreError};

/// How long a server may take for a call. A server that stands still accepts connections.
const ATTEMPT: Duration = Duration::from_secs(10);
/// How long a replica may take to fetch what it lacks.
const SYNC: Duration = Duration::from_secs(50);
/// Maximum size in bytes of a statement, which may list the links of a tag.
const STATEMENT_MAX: usize = 64 << 20;

/// Settings of every statement to recent releases, whatever the server's defaults and the user's
/// profile say. With its answer, inserted rows are stored (26.9 collects them first), and deletions
/// have begun (26.9 ends them, which takes longer than a call may). Release 18 knows neither
/// setting, and does both.
const SETTINGS: [(&str, &str); 2] = [("async_insert", "0"), ("mutations_sync", "0")];

struct Server {
    address: Client,
    /// Its release and the client for it, once it was asked.
    known: OnceCell<Known>,
}

/// A server that was asked for its release.
struct Known {
    client: Client,
    /// Whether it has release 18.
    is_old: bool,
}

impl Server {
    async fn known(&self) -> Result<&Known, Error> {
        let ask = async || {
            let version: String = self.address.query_raw("SELECT version()").fetch_one().await?;
            let (is_old, mut client) = (version.starts_with("18."), self.address.clone());
            if !is_old {
                client =
                    SETTINGS.iter().fold(client, |client, (name, value)| client.with_setting(*name, *value));
            }
            Ok(Known { client, is_old })
        };
        self.known.get_or_try_init(ask).await
    }
}

impl Known {
    /// Waits until a replica has everything of a table that any other has. Recent releases need not
    /// wait for merges as well.
    async fn sync(&self, table: &str) -> Result<(), Error> {
        let lightly = if self.is_old { "" } else { " LIGHTWEIGHT" };
        self.client.query_raw(&format!("SYSTEM SYNC REPLICA {table}{lightly}")).execute().await
    }
}

/// Returns the reason of an error as the observer is told it.
fn reason(error: &Error) -> &'static str {
    match error {
        Error::Network(_) => "lost",
        Error::TimedOut => "timeout",
        _ => "refused",
    }
}

pub(super) struct Servers {
    servers: Vec<Server>,
    are_replicas: bool,
    /// The one that answered last.
    current: AtomicUsize,
    observer: Arc<dyn DatabaseObserver>,
}

impl Servers {
    pub(super) fn new(address: &ClickhouseAddress, observer: Arc<dyn DatabaseObserver>) -> Self {
        let client = |server: &String| {
            // Release 18.16 knows neither the names of types in answers nor some compressions.
            let mut client = Client::default()
                .with_url(format!("http://{server}"))
                .with_compression(Compression::None)
                .with_validation(false)
                .with_setting("max_query_size", STATEMENT_MAX.to_string());
            if let Some(user) = &address.user {
                client = client.with_user(user);
            }
            if let Some(password) = &address.password {
                client = client.with_password(password);
            }
            Server { address: client, known: OnceCell::new() }
        };
        let servers = address.servers.iter().map(client).collect();
        Self { servers, are_replicas: address.cluster.is_some(), current: AtomicUsize::new(0), observer }
    }

    /// Makes a call to the server that answered last. If it fails, the others get the call as well,
    /// so it must be idempotent.
    pub(super) async fn call<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        self.call_one(ATTEMPT, |server| call(server.client.clone())).await
    }

    async fn call_one<'a, T, F>(&'a self, within: Duration, call: impl Fn(&'a Known) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let first = self.current.load(Relaxed);
        let mut failed = Error::TimedOut;
        for number in 0..self.servers.len() {
            let number = (first + number) % self.servers.len();
            let attempt = async { call(self.servers[number].known().await?).await };
            match timeout(within, attempt).await.unwrap_or(Err(Error::TimedOut)) {
                Ok(answer) => {
                    self.current.store(number, Relaxed);
                    self.observer.answered(Observed::Clickhouse);
                    return Ok(answer);
                }
                Err(error) => {
                    self.observer.failed(Observed::Clickhouse, reason(&error));
                    failed = error;
                }
            }
        }
        Err(VisitStoreError::Engine(Box::new(failed)))
    }

    /// Runs a statement without an answer.
    pub(super) async fn run(&self, statement: &str) -> Result<()> {
        self.call(|client| async move { client.query_raw(statement).execute().await }).await
    }

    pub(super) async fn fetch<T>(&self, query: &str) -> Result<Vec<T>>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        self.call(|client| async move { client.query_raw(query).fetch_all::<T>().await }).await
    }

    /// Returns the number of rows, told by what stands after FROM.
    pub(super) async fn count(&self, rows: &str) -> Result<u64> {
        Ok(self.fetch::<u64>(&format!("SELECT count() FROM {rows}")).await?.first().copied().unwrap_or(0))
    }

    /// Returns whether the servers have release 18.
    pub(super) async fn are_old(&self) -> Result<bool> {
        self.call_one(ATTEMPT, async |server| Ok(server.is_old)).await
    }

    /// Waits until a replica has everything of a table that any other has.
    pub(super) async fn sync(&self, table: &str) -> Result<()> {
        if self.are_replicas { self.call_one(SYNC, |server| server.sync(table)).await } else { Ok(()) }
    }

    /// Waits until each replica has everything of a table. It fails while one is away.
    pub(super) async fn sync_all(&self, table: &str) -> Result<()> {
        if !self.are_replicas {
            return Ok(());
        }
        for server in &self.servers {
            let sync = async { server.known().await?.sync(table).await };
            let synced = timeout(ATTEMPT, sync).await.unwrap_or(Err(Error::TimedOut));
            synced.map_err(|error| {
                self.observer.failed(Observed::Clickhouse, reason(&error));
                VisitStoreError::Engine(Box::new(error))
            })?;
        }
        Ok(())
    }

    /// Returns the rows of a query from a server that has all rows of a table: a replica first
    /// fetches what others have. It fails while a replica is away that alone has some of it.
    pub(super) async fn fetch_latest<T>(&self, table: &str, query: &str) -> Result<Vec<T>>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        if !self.are_replicas {
            return self.fetch(query).await;
        }
        self.call_one(SYNC, |server| async move {
            server.sync(table).await?;
            server.client.query_raw(query).fetch_all::<T>().await
        })
        .await
    }
}
