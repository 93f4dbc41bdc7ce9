//! A private Postgres server with its own data folder and port; it shares nothing with a server of
//! the machine.
//!
//! 1. It writes to disk as in production (`fsync` on): tests kill it and inspect the data that is
//!    left.
//! 2. It listens on TCP only: the path of a Unix socket in a temp folder may exceed the limit of
//!    107 bytes.
//! 3. After [`Postgres::kill_now`] none of its processes is left, so it can start again at once.

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio_postgres::{Client, NoTls};

use crate::account::Account;
use crate::certificates::Pair;
use crate::launch::Launch;
use crate::process::Process;
use crate::programs::Program;
use crate::proxy::Proxy;
use crate::scratch::Scratch;
use crate::{net, postgres_template, procfs, wait};

/// The name of the superuser and of the database.
pub(crate) const NAME: &str = "shortmint";

/// The environment variable with the number of nodes of Citus that each server gets: a run of the
/// suite against a distributed database. The Postgres of `SHORTMINT_POSTGRES` must have Citus.
const NODES_VARIABLE: &str = "SHORTMINT_CITUS_NODES";

const COPY_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(60);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const STOP_WITHIN: Duration = Duration::from_secs(30);
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// The time limit for an immediate shutdown. After SIGQUIT the server waits five seconds for its
/// children before it kills them itself.
const QUIT_WITHIN: Duration = Duration::from_secs(6);

/// A builder for a [`Postgres`] server.
#[derive(Clone, Debug, Default)]
pub struct PostgresBuilder {
    scratch: Option<Scratch>,
    settings: Vec<String>,
    tls: Option<(String, Pair)>,
}

impl PostgresBuilder {
    /// Puts data and logs into this folder instead of a new one.
    #[must_use]
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// Sets a configuration parameter. The last value for a name takes effect.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Serves TLS with a certificate, beside plaintext. The authority's certificate verifies those
    /// of clients that show one.
    #[must_use]
    pub fn tls(mut self, ca: &str, pair: &Pair) -> Self {
        self.tls = Some((ca.to_owned(), pair.clone()));
        self.setting("ssl", "on").setting("ssl_ca_file", "root.crt")
    }

    /// Fills the data folder and starts the server, with nodes of Citus if the environment asks for
    /// them.
    ///
    /// # Errors
    /// Returns an error if Postgres is not installed or does not start; the message contains the
    /// end of its log.
    pub async fn start(self) -> anyhow::Result<Postgres> {
        match std::env::var(NODES_VARIABLE) {
            Ok(count) => self.start_with_nodes(count.parse().context(NODES_VARIABLE)?).await,
            Err(_) => self.start_one().await,
        }
    }

    /// Starts the server as the coordinator of so many nodes of Citus.
    ///
    /// # Errors
    /// Like [`start`](Self::start), or if the Postgres has no Citus.
    pub async fn start_with_nodes(self, count: usize) -> anyhow::Result<Postgres> {
        let with_citus = |builder: Self| {
            let builder = builder.setting("shared_preload_libraries", "citus");
            let ssl = if builder.tls.is_some() { "require" } else { "disable" };
            let builder = builder.setting("citus.node_conninfo", &format!("sslmode={ssl}"));
            // Tests raise errors at COMMIT by a trigger.
            builder.setting("citus.shard_count", "4").setting("citus.enable_unsafe_triggers", "on")
        };
        let nodes = (0..count).map(|_| with_citus(self.clone()).start_one());
        let nodes = futures_util::future::try_join_all(nodes).await?;
        let mut postgres = with_citus(self).start_one().await?;
        for server in nodes.iter().chain([&postgres]) {
            let extend = server.client().await?.batch_execute("CREATE EXTENSION citus").await;
            extend.context("add the extension citus")?;
        }
        let coordinator = postgres.client().await?;
        for node in &nodes {
            let (host, port) = (node.addr.ip().to_string(), i32::from(node.addr.port()));
            coordinator
                .query("SELECT citus_add_node($1, $2)", &[&host, &port])
                .await
                .context("add a node")?;
        }
        postgres.nodes = nodes;
        Ok(postgres)
    }

    /// Starts the server without nodes, whatever the environment asks for.
    ///
    /// # Errors
    /// Like [`start`](Self::start).
    pub async fn start_one(self) -> anyhow::Result<Postgres> {
        let scratch = self.scratch.clone().map_or_else(Scratch::new, Ok)?;
        let account = Account::unprivileged()?;
        let data = scratch.folder(&scratch.stem("postgres-data"))?;
        if let Some(account) = account {
            account.own(&data)?;
        }
        postgres_template::fill(&data, &scratch, account).await?;
        if let Some((ca, pair)) = &self.tls {
            write_certificates(&data, account, ca, pair)?;
        }

        let addr = net::free_addr()?;
        let server = Launch::new(&scratch, "postgres", Program::Postgres.path()?).account(account);
        // As a client of its nodes it reads files of its home, which is that of the tests' account.
        let server = server.arg("-D").arg(&data).args(self.parameters(addr)).env("HOME", &data);
        let mut postgres = Postgres { process: server.spawn()?, addr, data, nodes: Vec::new() };
        postgres.wait_answering().await?;
        Ok(postgres)
    }

    fn parameters(&self, addr: SocketAddr) -> Vec<String> {
        let ours = [
            format!("listen_addresses={}", addr.ip()),
            format!("port={}", addr.port()),
            "unix_socket_directories=".to_owned(),
            // Otherwise a killed server leaves its segments in /dev/shm.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        ours.iter().chain(&self.settings).flat_map(|setting| ["-c".to_owned(), setting.clone()]).collect()
    }
}

/// Writes the files that a server with TLS reads from its data folder.
fn write_certificates(data: &Path, account: Option<Account>, ca: &str, pair: &Pair) -> anyhow::Result<()> {
    let files = [("root.crt", ca), ("server.crt", &pair.certificate), ("server.key", &pair.key)];
    for (name, text) in files {
        let path = data.join(name);
        std::fs::write(&path, text).context("write a server's certificate")?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).context("close a server's key")?;
        if let Some(account) = account {
            account.own(&path)?;
        }
    }
    Ok(())
}

/// A Postgres server with one database.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    addr: SocketAddr,
    data: PathBuf,
    nodes: Vec<Postgres>,
}

impl Postgres {
    /// Starts a server with the settings of a fresh installation.
    ///
    /// # Errors
    /// See [`PostgresBuilder::start`].
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// Returns a builder for a server.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// Starts a standby that streams from this server.
    ///
    /// # Errors
    /// Returns an error if the data folder cannot be copied or the standby does not start; the
    /// message contains the end of its log.
    pub async fn standby(&self, scratch: &Scratch) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let data = scratch.folder(&scratch.stem("postgres-standby"))?;
        // The mode that initdb sets. A server refuses a data folder that others may read.
        std::fs::set_permissions(&data, Permissions::from_mode(0o700))
            .context("close the standby's folder")?;
        if let Some(account) = account {
            account.own(&data)?;
        }
        let copy = Launch::new(scratch, "pg_basebackup", Program::Basebackup.path()?).account(account);
        let copy = copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname"]);
        let copy = copy.arg(self.url()).arg("--pgdata").arg(&data);
        copy.run(COPY_WITHIN).await?.success().context("copy the primary's data folder")?;
        let addr = net::free_addr()?;
        let server = Launch::new(scratch, "postgres", Program::Postgres.path()?).account(account);
        let server = server.arg("-D").arg(&data).args(PostgresBuilder::default().parameters(addr));
        let mut standby = Self { process: server.spawn()?, addr, data, nodes: Vec::new() };
        standby.wait_answering().await?;
        Ok(standby)
    }

    /// Returns the nodes of Citus whose coordinator this server is.
    pub fn nodes(&self) -> &[Self] {
        &self.nodes
    }

    /// Returns the server and its nodes.
    pub fn servers(&self) -> impl Iterator<Item = &Self> {
        [self].into_iter().chain(&self.nodes)
    }

    /// Returns the server that has links: one of the nodes, or else this one.
    pub fn with_links(&mut self) -> &mut Self {
        if self.nodes.is_empty() { self } else { &mut self.nodes[0] }
    }

    /// Returns the same nodes, to stop them.
    pub fn nodes_mut(&mut self) -> &mut [Self] {
        &mut self.nodes
    }

    /// Returns the process id of the postmaster.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Returns the address that the server listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Replaces the certificates of a server with TLS and of its nodes.
    ///
    /// # Errors
    /// Returns an error if the files cannot be written or a server does not read them.
    pub async fn renew(&self, ca: &str, pair: &Pair) -> anyhow::Result<()> {
        for server in self.servers() {
            write_certificates(&server.data, Account::unprivileged()?, ca, pair)?;
            server.reload().await?;
        }
        Ok(())
    }

    /// Puts rules before those for host-based authentication, of the nodes too.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written or a server does not read it.
    pub async fn authenticate(&self, rules: &str) -> anyhow::Result<()> {
        for server in self.servers() {
            let path = server.data.join("pg_hba.conf");
            let before = std::fs::read_to_string(&path).context("read pg_hba.conf")?;
            std::fs::write(&path, format!("{rules}\n{before}")).context("write pg_hba.conf")?;
            server.reload().await?;
        }
        Ok(())
    }

    async fn reload(&self) -> anyhow::Result<()> {
        let reload = self.client().await?.batch_execute("SELECT pg_reload_conf()").await;
        reload.context("reload the configuration")
    }

    /// Sets the password of a role, which the server presents to its nodes as well.
    ///
    /// # Errors
    /// Returns an error if there is no such role.
    pub async fn set_password(&self, role: &str, password: &str) -> anyhow::Result<()> {
        let client = self.client().await?;
        if !self.nodes.is_empty() {
            let present = format!(
                "INSERT INTO pg_dist_authinfo (nodeid, rolename, authinfo)
                 VALUES (0, '{role}', 'password={password}')
                 ON CONFLICT (nodeid, rolename) DO UPDATE SET authinfo = excluded.authinfo"
            );
            client.batch_execute(&present).await.context("present the password to the nodes")?;
        }
        let set = format!("ALTER ROLE {role} PASSWORD '{password}'");
        client.batch_execute(&set).await.context("set a role's password")
    }

    /// Returns the database's URL.
    pub fn url(&self) -> String {
        url_of(self.addr)
    }

    /// Starts a proxy in front of the server and of its nodes, which it reaches only through the
    /// proxy from then on, as resolvers do.
    ///
    /// # Errors
    /// Returns an error if a port cannot be bound, or if the server does not take the addresses.
    pub async fn proxy(&self) -> anyhow::Result<Proxy> {
        let proxy = Proxy::start_before(self.servers().map(|server| server.addr)).await?;
        let move_node = "SELECT citus_update_node(nodeid, $1, $2) FROM pg_dist_node WHERE nodeport = $3";
        for (node, via) in self.nodes.iter().zip(proxy.addrs().skip(1)) {
            let [from, to] = [node.addr, via].map(|addr| i32::from(addr.port()));
            let moved = self.client().await?.execute(move_node, &[&via.ip().to_string(), &to, &from]).await;
            moved.context("move a node behind the proxy")?;
        }
        if !self.nodes.is_empty() {
            let tell = "SELECT start_metadata_sync_to_all_nodes()";
            self.client().await?.execute(tell, &[]).await.context("tell the nodes where they are")?;
        }
        Ok(proxy)
    }

    /// Returns the database's URL through a proxy, which must forward to this server.
    pub fn url_via(&self, proxy: &Proxy) -> String {
        url_of(proxy.addr())
    }

    /// Opens a connection to the database.
    ///
    /// # Errors
    /// Returns an error if the server does not accept the connection.
    pub async fn client(&self) -> anyhow::Result<Client> {
        connect(&self.url()).await
    }

    /// Returns the postmaster's process.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Returns the data folder. While the server is stopped, a copy of the folder is a copy of the
    /// database.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }

    /// Sends SIGKILL to the server and all its children at once, like a power loss, and returns
    /// when they have ended.
    ///
    /// # Errors
    /// Returns an error if a process survives, which the kernel should not allow.
    pub async fn kill_now(&mut self) -> anyhow::Result<()> {
        if !self.process.is_running() {
            return Ok(());
        }
        // A stopped postmaster starts no more children while they are listed.
        self.process.pause().await?;
        let children = procfs::children(self.process.pid());
        self.process.kill_now()?;
        for child in children.iter().filter(|child| !child.is_gone()) {
            // The child may have noticed the postmaster's death and exited just now.
            let _ = kill(child.pid, Signal::SIGKILL);
        }
        wait::until(KILLED_WITHIN, "Postgres' children are gone", async || {
            children.iter().all(|child| child.is_gone())
        })
        .await
    }

    /// Performs a fast shutdown: rolls back running transactions, closes connections and writes a
    /// checkpoint.
    ///
    /// # Errors
    /// Returns an error if the server has already ended or does not end in time; the message
    /// contains the end of its log.
    pub async fn stop_fast(&mut self) -> anyhow::Result<()> {
        self.process.interrupt()?;
        self.process.wait_exit(STOP_WITHIN).await.map(drop)
    }

    /// Performs an immediate shutdown (SIGQUIT): every backend exits at once, even in the middle of
    /// a statement, and flushes the output buffered for its client. No checkpoint is written; the
    /// next start recovers from the WAL.
    ///
    /// # Errors
    /// Returns an error if the server has already ended or does not end in time; the message
    /// contains the end of its log.
    pub async fn stop_immediately(&mut self) -> anyhow::Result<()> {
        self.process.quit()?;
        self.process.wait_exit(STOP_WITHIN).await.map(drop)
    }

    /// Sends SIGKILL to one backend, and returns when the server responds again. The server ends
    /// all other backends at once and recovers.
    ///
    /// # Errors
    /// Returns an error if no backend can be started or the server does not come back; the message
    /// contains the end of its log.
    pub async fn kill_a_backend(&mut self) -> anyhow::Result<()> {
        let (client, witness) = (self.client().await?, self.client().await?);
        let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
        kill(Pid::from_raw(backend), Signal::SIGKILL).context("kill a backend")?;
        // Until the server notices the backend's end it still responds as before. Then it ends the
        // others; the connection of the killed one ends earlier.
        wait::until(KILLED_WITHIN, "another backend's connection ends", async || witness.is_closed()).await?;
        self.wait_answering().await
    }

    /// Makes the server refuse writes, as a primary that has become a standby, or accept them
    /// again.
    ///
    /// # Errors
    /// Returns an error if the server does not take the setting.
    pub async fn set_read_only(&self, is_read_only: bool) -> anyhow::Result<()> {
        let client = self.client().await?;
        let setting = format!("ALTER SYSTEM SET default_transaction_read_only = {is_read_only}");
        client.batch_execute(&setting).await.context("change the setting")?;
        self.reload().await
    }

    /// Takes every connection that the server and its nodes have, and ends those of others, until
    /// it is dropped.
    ///
    /// # Errors
    /// The future returns an error if a server has no connection at all.
    pub fn use_up_connections(&self) -> impl Future<Output = anyhow::Result<()>> + Send + 'static {
        let each: Vec<_> = self.servers().map(|server| use_up_connections(server.url())).collect();
        async move { futures_util::future::try_join_all(each).await.map(drop) }
    }

    /// Restarts the server on the same data and port, after a fast shutdown if it runs.
    ///
    /// # Errors
    /// Returns an error if the server does not stop or start; the message contains the end of its
    /// log.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        if self.process.is_running() {
            self.stop_fast().await?;
        }
        self.process.respawn()?;
        self.wait_answering().await
    }

    /// Waits until the server answers a query. Accepting connections is not enough, since it may
    /// refuse queries during recovery.
    async fn wait_answering(&mut self) -> anyhow::Result<()> {
        let url = self.url();
        self.process.wait_ready(READY_WITHIN, async || answers(&url).await).await
    }
}

async fn use_up_connections(url: String) -> anyhow::Result<()> {
    let mut config: tokio_postgres::Config = url.parse().context("read the database's URL")?;
    config.application_name("taken");
    let mut taken: Vec<Client> = Vec::new();
    loop {
        while let Ok((client, connection)) = config.connect(NoTls).await {
            tokio::spawn(connection);
            taken.push(client);
        }
        let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                      WHERE backend_type = 'client backend' AND application_name <> 'taken'";
        let client = taken.last().context("Postgres has a connection")?;
        client.execute(others, &[]).await.context("end other connections")?;
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGKILL to the postmaster alone would orphan its children, so SIGQUIT asks it to end them
        // first. A paused postmaster handles the signal only after SIGCONT.
        if self.process.quit().is_ok() && self.process.resume().is_ok() {
            self.process.wait_exit_blocking(QUIT_WITHIN);
        }
    }
}

fn url_of(addr: SocketAddr) -> String {
    format!("postgres://{NAME}@{addr}/{NAME}")
}

async fn answers(url: &str) -> bool {
    let Ok(client) = connect(url).await else { return false };
    client.simple_query("SELECT 1").await.is_ok()
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let mut config: tokio_postgres::Config = url.parse().context("parse the database's URL")?;
    config.connect_timeout(CONNECT_WITHIN);
    let (client, connection) = config.connect(NoTls).await.with_context(|| format!("connect to {url}"))?;
    // The task ends when the client is dropped; its errors reach the client's calls.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}
