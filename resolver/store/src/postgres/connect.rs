//! Connections to Postgres servers, and pools of them.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bb8::{ManageConnection, Pool, PooledConnection, State};
use futures_util::FutureExt as _;
use tls::ClientTls;
use tokio::time::{Instant, timeout};
use tokio_postgres::{
    Client, Config, Socket,
    config::{Host, LoadBalanceHosts, SslMode, TargetSessionAttrs},
    error::SqlState,
    tls::MakeTlsConnect,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{
    budget::{DatabaseObserver, PoolCount, Server},
    passfile::Passfile,
    transaction::DEADLINE,
    url::Url,
};
use crate::{Result, StoreError};

/// Deadline of a TCP connection. The address of a pod that has moved answers nothing; the next
/// attempt resolves the name again. bb8 begins no attempt once [`DEADLINE`] is over, even if
/// callers wait for a connection, so that one attempt must not take as long.
const ACCEPTED_WITHIN: Duration = Duration::from_secs(1);

/// A pool of connections to the primary.
#[derive(Clone)]
pub struct Connections {
    name: &'static str,
    pool: Pool<Address>,
    max: u32,
    observer: Arc<dyn DatabaseObserver>,
}

impl Connections {
    /// Returns how many connections are open.
    pub fn count(&self) -> PoolCount {
        let State { connections, idle_connections: idle, .. } = self.pool.state();
        PoolCount { pool: self.name, busy: connections.saturating_sub(idle), idle, max: self.max }
    }
}

/// The task of a connection, which ends with its client.
pub type Connection =
    tokio_postgres::Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Where a server is, and how a connection to it is made.
#[derive(Clone)]
pub struct Address {
    /// Configuration of every connection.
    pub config: Config,
    tls: ClientTls,
    passfile: Option<Arc<Passfile>>,
    /// Whether the URL says if connections are encrypted.
    has_mode: bool,
    /// The server, as the observer is told.
    pub(super) server: Server,
    /// Who is told of waits and errors.
    pub observer: Arc<dyn DatabaseObserver>,
    /// Of the servers of the URL, the one to try first: the last that took a connection, or the
    /// next after one that did not answer. A caller may give up before this address does.
    first: Arc<AtomicUsize>,
}

impl Address {
    /// Parses a URL. Every connection has deadlines and TCP keep-alives.
    pub fn parse(url: &str) -> Result<Self> {
        let url = Url::parse(url)?;
        let mut config: Config = url.for_driver.parse()?;
        config
            .application_name("shortmint-resolver")
            .connect_timeout(ACCEPTED_WITHIN)
            .tcp_user_timeout(DEADLINE)
            .keepalives_idle(Duration::from_secs(5))
            .keepalives_interval(Duration::from_secs(2))
            .keepalives_retries(3);
        if !url.has_mode && distant_hosts(&config).is_empty() {
            config.ssl_mode(SslMode::Disable);
        }
        let (tls, has_mode) = (ClientTls::new(url.files, url.verify)?, url.has_mode);
        let passfile = url.passfile.map(|path| Arc::new(Passfile(path)));
        let (hosts, ports) = (config.get_hosts().len().max(config.get_hostaddrs().len()), config.get_ports());
        if ports.len() > 1 && ports.len() != hosts {
            let counts = format!("expected one port, or one for each of the {hosts} hosts");
            return Err(StoreError::Address(counts));
        }
        let first = match config.get_load_balance_hosts() {
            LoadBalanceHosts::Random => getrandom::u32().unwrap_or_default() as usize,
            _ => 0,
        };
        let (observer, first) = (Arc::new(()), Arc::new(AtomicUsize::new(first)));
        Ok(Self { config, tls, passfile, has_mode, server: Server::Database, observer, first })
    }

    /// Tells the observer of an error, if it is one of the connection or the server.
    pub fn note_error(&self, error: &StoreError) {
        let reason = match error {
            StoreError::Postgres(error) => error.code().map_or("lost", |code| code.code()),
            StoreError::TimedOut => "timeout",
            _ => return,
        };
        self.observer.failed(self.server, reason);
    }

    /// Returns the address without the demand for a server that can write.
    #[must_use]
    pub(super) fn reads_anywhere(&self) -> Self {
        let mut address = self.clone();
        address.config.target_session_attrs(TargetSessionAttrs::Any);
        address.first = Arc::default();
        address
    }

    /// Returns the address of a node of the database, with the same user, password and TLS.
    #[must_use]
    pub(super) fn of_node(&self, (host, port): &(String, u16)) -> Self {
        let mut config = without_servers(&self.config);
        config.host(host).port(*port);
        // A URL of a server on this machine may have no mode, and the node be elsewhere.
        if config.get_ssl_mode() == SslMode::Disable && !self.has_mode && !tls::is_local_host(host) {
            config.ssl_mode(SslMode::Require);
        }
        Self { config, first: Arc::default(), ..self.clone() }
    }

    /// Leaves the server that took the last connection to the end of the next attempt.
    pub(super) fn skip(&self) {
        self.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Opens a connection to the first server of the URL that takes it. The password file and the
    /// certificates are those of now.
    ///
    /// # Errors
    /// Returns [`StoreError::Unreachable`] if there is no connection, and [`StoreError::TimedOut`]
    /// if the last server neither accepts nor refuses it.
    pub async fn connect(&self) -> Result<(Client, Connection)> {
        let tls = MakeRustlsConnect::new((*self.tls.config()).clone());
        let mut last = StoreError::TimedOut;
        let mut servers = servers(&self.config);
        let (count, first) = (servers.len(), self.first.load(Ordering::Relaxed));
        for turn in first..first + count {
            let (index, server) = (turn % count, &mut servers[turn % count]);
            self.first.store((index + 1) % count, Ordering::Relaxed);
            if let Some(passfile) = self.passfile.as_ref().filter(|_| server.get_password().is_none())
                && let Some(password) = passfile.password(server).await?
            {
                server.password(password);
            }
            // A deadline for each: the driver's own is for TCP alone, and a server that stands
            // still must leave time for the others.
            match timeout(DEADLINE, server.connect(tls.clone())).await {
                Ok(Ok(connected)) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(error)) => last = StoreError::Unreachable(Box::new(error)),
                Err(_) => last = StoreError::TimedOut,
            }
        }
        // A time-out is counted by the call that waits.
        if matches!(last, StoreError::Unreachable(_)) {
            self.observer.failed(self.server, "lost");
        }
        Err(last)
    }
}

/// Returns a configuration for each server of a URL that names several.
fn servers(config: &Config) -> Vec<Config> {
    let (hosts, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = hosts.len().max(addresses.len());
    if count < 2 {
        return vec![config.clone()];
    }
    let one = |index: usize| {
        let mut one = without_servers(config);
        match hosts.get(index) {
            Some(Host::Tcp(name)) => _ = one.host(name),
            Some(Host::Unix(path)) => _ = one.host_path(path),
            None => {}
        }
        addresses.get(index).map(|address| one.hostaddr(*address));
        // One port stands for all.
        ports.get(index).or(ports.first()).map(|port| one.port(*port));
        one
    };
    (0..count).map(one).collect()
}

/// Copies what does not belong to a single server: the driver has no way to take hosts back.
fn without_servers(config: &Config) -> Config {
    let mut copy = Config::new();
    config.get_user().map(|user| copy.user(user));
    config.get_password().map(|password| copy.password(password));
    config.get_dbname().map(|name| copy.dbname(name));
    config.get_options().map(|options| copy.options(options));
    config.get_application_name().map(|name| copy.application_name(name));
    config.get_connect_timeout().map(|time| copy.connect_timeout(*time));
    config.get_tcp_user_timeout().map(|time| copy.tcp_user_timeout(*time));
    config.get_keepalives_interval().map(|time| copy.keepalives_interval(time));
    config.get_keepalives_retries().map(|count| copy.keepalives_retries(count));
    copy.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts());
    copy
}

/// Makes the server end a statement within a second of its connection's end: that of a process that
/// was killed, or of a [`Line`](super::line::Line) whose caller gave up. A statement that waits for
/// a lock would not notice otherwise, and its successors would use up the server's connections.
/// Postgres before 14 does not know the setting, nor do servers that are not on Linux.
pub(super) async fn end_with_client(client: &Client) -> Result<()> {
    let set = client.batch_execute("SET client_connection_check_interval = '1s'");
    let done = timeout(DEADLINE, set).await.map_err(|_| StoreError::TimedOut)?;
    let unknown = [SqlState::UNDEFINED_OBJECT, SqlState::INVALID_PARAMETER_VALUE];
    match done {
        Err(error) if !error.code().is_some_and(|code| unknown.contains(code)) => Err(error.into()),
        _ => Ok(()),
    }
}

impl ManageConnection for Address {
    type Connection = Client;
    type Error = StoreError;

    /// The pool counts a connection that is being opened until this returns. After a panic it would
    /// wait for ever for one that nobody opens any more.
    async fn connect(&self) -> Result<Client> {
        let connecting = AssertUnwindSafe(Self::connect(self)).catch_unwind().await;
        let (client, connection) =
            connecting.unwrap_or_else(|_| Err(StoreError::Unreachable("a panic while connecting".into())))?;
        // It ends with the client; an error shows at the client's next call.
        tokio::spawn(connection);
        end_with_client(&client).await?;
        Ok(client)
    }

    /// Asks the client alone, which knows of a restart by now: to ask the server would cost a round
    /// trip each time.
    async fn is_valid(&self, client: &mut Client) -> Result<()> {
        if client.is_closed() {
            return Err(StoreError::Unreachable("a connection of the pool was closed".into()));
        }
        Ok(())
    }

    fn has_broken(&self, client: &mut Client) -> bool {
        client.is_closed()
    }
}

/// Creates a pool. It opens no connection before one is needed.
pub fn pool(name: &'static str, address: &Address, size: u32) -> Connections {
    let pool = Pool::builder()
        .max_size(size)
        .connection_timeout(DEADLINE)
        .max_lifetime(Some(Duration::from_secs(600)))
        .error_sink(Box::new(LogErrors))
        .build_unchecked(address.clone());
    Connections { name, pool, max: size, observer: Arc::clone(&address.observer) }
}

/// Logs errors of background connections. bb8 drops them otherwise.
#[derive(Clone, Debug)]
struct LogErrors;

impl bb8::ErrorSink<StoreError> for LogErrors {
    fn sink(&self, error: StoreError) {
        let log = || tracing::warn!(error = &error as &dyn std::error::Error, "connect to Postgres");
        // A panic here would end the attempt, and the pool would count it as under way for ever.
        let _ = catch_unwind(AssertUnwindSafe(log));
    }

    fn boxed_clone(&self) -> Box<dyn bb8::ErrorSink<StoreError>> {
        Box::new(self.clone())
    }
}

/// Checks a connection out of a pool.
///
/// # Errors
/// Returns [`StoreError::TimedOut`] if none is free or connects in time.
pub async fn check_out(pool: &Connections) -> Result<PooledConnection<'_, Address>> {
    let begun = Instant::now();
    let got = pool.pool.get().await;
    pool.observer.waited(pool.name, begun.elapsed());
    got.map_err(|error| match error {
        bb8::RunError::User(error) => error,
        bb8::RunError::TimedOut => StoreError::TimedOut,
    })
}

/// Returns the hosts of a URL that are not this machine, and that its connections may reach in
/// plaintext.
pub fn hosts_in_plaintext(url: &str) -> Result<Vec<String>> {
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn each_server_of_a_url_has_its_own_host_and_port_and_all_else_in_common() {
        let of = |url: &str| servers(&Address::parse(url).unwrap().config);
        let named = of("postgres://me:word@one:1,two:2/links?application_name=x");
        let ports: Vec<&[u16]> = named.iter().map(Config::get_ports).collect();
        assert_eq!(ports, [[1], [2]]);
        assert_eq!(named[0].get_hosts(), [Host::Tcp("one".to_owned())]);
        assert_eq!(named[1].get_hosts(), [Host::Tcp("two".to_owned())]);
        for server in &named {
            assert_eq!((server.get_user(), server.get_password()), (Some("me"), Some(&b"word"[..])));
            assert_eq!(server.get_tcp_user_timeout(), Some(&DEADLINE));
        }
        let numbered = of("postgres://me@/links?hostaddr=127.0.0.1,127.0.0.2&port=7");
        assert_eq!(numbered[1].get_hostaddrs().len(), 1);
        assert_eq!(numbered[1].get_ports(), [7]);
    }

    #[test]
    fn ports_are_one_or_one_for_each_host() {
        assert!(Address::parse("postgres://me@a:1,b:2/links").is_ok());
        let error = Address::parse("postgres://me@/links?hostaddr=127.0.0.1,127.0.0.2,127.0.0.3&port=1,2");
        assert!(matches!(error, Err(StoreError::Address(text)) if text.contains("3 hosts")));
    }

    /// Two servers, and the address that names them. The kernel opens connections to the first,
    /// which never accepts them.
    async fn two_servers() -> (TcpListener, TcpListener, Address) {
        let still = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let next = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (one, two) = (still.local_addr().unwrap(), next.local_addr().unwrap());
        let address = Address::parse(&format!("postgres://me@{one},{two}/links")).unwrap();
        (still, next, address)
    }

    /// A caller with less time than a server that stands still takes.
    #[tokio::test]
    async fn a_caller_that_gives_up_begins_with_the_next_server() {
        let (_still, next, address) = two_servers().await;
        assert!(timeout(Duration::from_millis(200), address.connect()).await.is_err());
        let again =
            tokio::spawn(async move { timeout(Duration::from_millis(200), address.connect()).await.is_ok() });
        let _ = timeout(DEADLINE, next.accept()).await.expect("the second is tried first").unwrap();
        let _ = again.await;
    }

    /// Each panic ends an attempt that the pool would never make again.
    #[tokio::test]
    async fn a_pool_whose_errors_cannot_be_logged_goes_on_connecting() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://me@{}/links", listener.local_addr().unwrap());
        let pool = pool("test", &Address::parse(&url).unwrap(), 1);
        let subscriber =
            tracing_subscriber::fmt().with_writer(|| -> std::io::Sink { panic!("no log") }).finish();
        let _logs = tracing::subscriber::set_default(subscriber);
        let asked = tokio::spawn(async move { check_out(&pool).await.map(drop) });
        for _ in 0..3 {
            // The client is answered by the end of its connection.
            drop(timeout(DEADLINE, listener.accept()).await.expect("another attempt").unwrap());
        }
        asked.abort();
    }

    #[tokio::test]
    async fn a_server_that_stands_still_leaves_time_for_the_next() {
        let (_still, next, address) = two_servers().await;
        let connecting = tokio::spawn(async move { address.connect().await.map(|_| ()) });
        let (reached, _) = timeout(DEADLINE * 2, next.accept()).await.expect("the second is tried").unwrap();
        drop(reached);
        assert!(matches!(connecting.await.unwrap(), Err(StoreError::Unreachable(_))));
    }
}
