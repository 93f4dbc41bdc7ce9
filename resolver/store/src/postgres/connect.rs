//! Connections to Postgres servers, and pools of them.

use std::{sync::Arc, time::Duration};

use bb8::{ManageConnection, Pool, PooledConnection};
use tls::ClientTls;
use tokio::time::timeout;
use tokio_postgres::{
    Client, Config, Socket,
    config::{Host, SslMode, TargetSessionAttrs},
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{deadline::DEADLINE, passfile::Passfile, url::Url};
use crate::StoreError;

/// A pool of connections to the primary.
pub type Connections = Pool<Address>;

/// The task of a connection, which ends with its client.
pub type Connection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Where a server is, and how a connection to it is made.
#[derive(Clone)]
pub struct Address {
    /// What every connection is configured with.
    pub config: Config,
    tls: ClientTls,
    passfile: Option<Arc<Passfile>>,
}

impl Address {
    /// Parses a URL. Every connection has deadlines and TCP keep-alives.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or a file that it names cannot be used.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let url = Url::parse(url)?;
        let mut config: Config = url.for_driver.parse()?;
        config
            .application_name("shortmint-resolver")
            .connect_timeout(DEADLINE)
            .tcp_user_timeout(DEADLINE)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3);
        if !url.has_mode && distant_hosts(&config).is_empty() {
            config.ssl_mode(SslMode::Disable);
        }
        let tls = ClientTls::new(url.files, url.verify)?;
        Ok(Self { config, tls, passfile: url.passfile.map(|path| Arc::new(Passfile(path))) })
    }

    /// Returns the address without the demand for a server that can write.
    #[must_use]
    pub(super) fn reads_anywhere(&self) -> Self {
        let mut address = self.clone();
        address.config.target_session_attrs(TargetSessionAttrs::Any);
        address
    }

    /// Opens a connection. The password file and the certificates are those of now.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if there is no connection, and [`StoreError::TimedOut`]
    /// if a server neither accepts nor refuses it: the driver's own deadline is for TCP alone.
    pub async fn connect(&self) -> Result<(Client, Connection), StoreError> {
        let servers = self.config.get_hosts().len().max(self.config.get_hostaddrs().len()).max(1);
        let within = DEADLINE * u32::try_from(servers).unwrap_or(u32::MAX);
        timeout(within, self.connect_to_any()).await.unwrap_or(Err(StoreError::TimedOut))
    }

    async fn connect_to_any(&self) -> Result<(Client, Connection), StoreError> {
        let unreachable = |error| StoreError::Unreachable(Box::new(error));
        let tls = MakeRustlsConnect::new((*self.tls.config()).clone());
        let Some(passfile) = self.passfile.as_ref().filter(|_| self.config.get_password().is_none()) else {
            return self.config.connect(tls).await.map_err(unreachable);
        };
        let mut config = self.config.clone();
        if let Some(password) = passfile.password(&config).await? {
            config.password(password);
        }
        config.connect(tls).await.map_err(unreachable)
    }
}

impl ManageConnection for Address {
    type Connection = Client;
    type Error = StoreError;

    async fn connect(&self) -> Result<Client, StoreError> {
        let (client, connection) = Self::connect(self).await?;
        // It ends with the client; an error shows at the client's next call.
        tokio::spawn(connection);
        Ok(client)
    }

    async fn is_valid(&self, client: &mut Client) -> Result<(), StoreError> {
        Ok(client.simple_query("").await.map(|_| ())?)
    }

    fn has_broken(&self, client: &mut Client) -> bool {
        client.is_closed()
    }
}

/// Creates a pool. It opens no connection before one is needed.
#[must_use]
pub fn pool(address: &Address, size: u32) -> Connections {
    Pool::builder()
        .max_size(size)
        .connection_timeout(DEADLINE)
        // A check would cost a round trip each time; a broken connection shows at its first use.
        .test_on_check_out(false)
        .max_lifetime(Some(Duration::from_secs(600)))
        .error_sink(Box::new(LogErrors))
        .build_unchecked(address.clone())
}

/// Logs errors of background connections. bb8 drops them otherwise.
#[derive(Clone, Debug)]
struct LogErrors;

impl bb8::ErrorSink<StoreError> for LogErrors {
    fn sink(&self, error: StoreError) {
        tracing::warn!(error = &error as &dyn std::error::Error, "connect to Postgres");
    }

    fn boxed_clone(&self) -> Box<dyn bb8::ErrorSink<StoreError>> {
        Box::new(self.clone())
    }
}

/// Checks a connection out of a pool.
///
/// # Errors
/// Returns [`StoreError::TimedOut`] if none is free or connects in time.
pub async fn check_out(pool: &Connections) -> Result<PooledConnection<'_, Address>, StoreError> {
    pool.get().await.map_err(|error| match error {
        bb8::RunError::User(error) => error,
        bb8::RunError::TimedOut => StoreError::TimedOut,
    })
}

/// Returns the hosts of a URL that are not this machine, and that its connections may reach in
/// plaintext.
///
/// # Errors
/// Returns an error if the URL is invalid.
pub fn hosts_in_plaintext(url: &str) -> Result<Vec<String>, StoreError> {
    let config: Config = Url::parse(url)?.for_driver.parse()?;
    if config.get_ssl_mode() == SslMode::Require {
        return Ok(Vec::new());
    }
    Ok(distant_hosts(&config))
}

/// Returns the hosts that are not this machine.
fn distant_hosts(config: &Config) -> Vec<String> {
    let mut hosts: Vec<String> = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    if hosts.is_empty() {
        hosts.extend(config.get_hosts().iter().filter_map(|host| match host {
            Host::Tcp(name) => Some(name.clone()),
            Host::Unix(_) => None,
        }));
    }
    hosts.retain(|host| !tls::is_local_host(host));
    // The driver takes the rest of a password with an `@` for the beginning of a host.
    for host in &mut hosts {
        if let Some(at) = host.rfind('@') {
            host.drain(..=at);
        }
    }
    hosts
}
