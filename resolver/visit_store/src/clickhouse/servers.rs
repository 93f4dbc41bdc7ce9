//! The servers of a database. A call goes to one of them, and to the next one if that fails.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use clickhouse::{Client, Compression, error::Error};
use tokio::time::timeout;

use super::address::ClickhouseAddress;
use crate::VisitStoreError;

/// How long a server may take for a call. A server that stands still accepts connections.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Maximum size in bytes of a statement, which may list the links of a tag.
const STATEMENT_MAX: usize = 64 << 20;

/// The servers.
pub(super) struct Servers {
    clients: Vec<Client>,
    /// The one that answered last.
    current: AtomicUsize,
}

impl Servers {
    pub(super) fn new(address: &ClickhouseAddress) -> Self {
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
            client
        };
        Self { clients: address.servers.iter().map(client).collect(), current: AtomicUsize::new(0) }
    }

    /// Makes a call to the server that answered last. If it fails, the others get the call as well, so
    /// it must be idempotent.
    pub(super) async fn call<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, VisitStoreError>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let first = self.current.load(Relaxed);
        let mut failed = Error::TimedOut;
        for number in 0..self.clients.len() {
            let number = (first + number) % self.clients.len();
            match timeout(ATTEMPT, call(self.clients[number].clone())).await.unwrap_or(Err(Error::TimedOut)) {
                Ok(answer) => {
                    self.current.store(number, Relaxed);
                    return Ok(answer);
                }
                Err(error) => failed = error,
            }
        }
        Err(VisitStoreError::Engine(Box::new(failed)))
    }

    /// Runs a statement without an answer.
    pub(super) async fn run(&self, statement: &str) -> Result<(), VisitStoreError> {
        self.call(|client| async move { client.query_raw(statement).execute().await }).await
    }

    /// Returns the rows of a query.
    pub(super) async fn fetch<T>(&self, query: &str) -> Result<Vec<T>, VisitStoreError>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        self.call(|client| async move { client.query_raw(query).fetch_all::<T>().await }).await
    }

    /// Returns the rows of a query from a replica that first fetches what others have of a table. It
    /// fails while a replica is away that alone has some of it.
    pub(super) async fn fetch_synced<T>(&self, table: &str, query: &str) -> Result<Vec<T>, VisitStoreError>
    where
        T: clickhouse::RowOwned + clickhouse::RowRead + Send,
    {
        let sync = format!("SYSTEM SYNC REPLICA {table}");
        let sync = sync.as_str();
        self.call(|client| async move {
            client.query_raw(sync).execute().await?;
            client.query_raw(query).fetch_all::<T>().await
        })
        .await
    }
}
