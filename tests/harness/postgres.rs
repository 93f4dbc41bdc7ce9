//! A private Postgres server: its own data folder, its own port, nothing shared with one that the machine runs.
//!
//! 1. It writes to disk as in production (`fsync` on): tests kill it and look at what is left.
//! 2. It listens on TCP only: the path of a Unix socket in a temp folder may exceed the 107 bytes allowed.
//! 3. After [`Postgres::kill_now`] no process of it is left, so it can start again at once.

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
use crate::launch::Launch;
use crate::process::Process;
use crate::programs::Program;
use crate::proxy::Proxy;
use crate::scratch::Scratch;
use crate::{net, procfs, wait};

/// Name of the superuser and of the database.
const NAME: &str = "shortmint";

const INITDB_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(60);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const STOP_WITHIN: Duration = Duration::from_secs(30);
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// After SIGQUIT the server gives its children five seconds before it kills them itself.
const QUIT_WITHIN: Duration = Duration::from_secs(6);

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct PostgresBuilder {
    scratch: Option<Scratch>,
    settings: Vec<String>,
}

impl PostgresBuilder {
    /// Puts data and logs into this folder instead of a new one.
    #[must_use]
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.scratch = Some(scratch.clone());
        self
    }

    /// Sets a configuration parameter; the last value given for a name counts.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push(format!("{name}={value}"));
        self
    }

    /// Makes the data folder, starts the server and creates the database.
    ///
    /// # Errors
    /// Postgres is not installed or does not start; the message holds the end of its log.
    pub async fn start(self) -> anyhow::Result<Postgres> {
        let scratch = self.scratch.clone().map_or_else(Scratch::new, Ok)?;
        let account = Account::unprivileged()?;
        let data = scratch.folder(&scratch.stem("postgres-data"))?;
        if let Some(account) = account {
            account.own(&data)?;
        }
        let initdb = Launch::new(&scratch, "initdb", Program::Initdb.path()?).account(account);
        let initdb = initdb.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
        let initdb = initdb.args(["--username", NAME, "--pgdata"]).arg(&data);
        initdb.run(INITDB_WITHIN).await?.success().context("make a Postgres data folder")?;

        let addr = net::free_addr()?;
        let server = Launch::new(&scratch, "postgres", Program::Postgres.path()?).account(account);
        let server = server.arg("-D").arg(&data).args(self.parameters(addr));
        let mut postgres = Postgres { process: server.spawn()?, addr, data };
        postgres.wait_answering("postgres").await?;
        let client = connect(&postgres.url_of(addr, "postgres")).await?;
        client.batch_execute(&format!("CREATE DATABASE {NAME}")).await.context("create the database")?;
        Ok(postgres)
    }

    fn parameters(&self, addr: SocketAddr) -> Vec<String> {
        let ours = [
            format!("listen_addresses={}", addr.ip()),
            format!("port={}", addr.port()),
            "unix_socket_directories=".to_owned(),
            // Else a killed server leaves its segments in /dev/shm behind for ever.
            "dynamic_shared_memory_type=mmap".to_owned(),
        ];
        ours.iter().chain(&self.settings).flat_map(|setting| ["-c".to_owned(), setting.clone()]).collect()
    }
}

/// A running server with one database.
#[derive(Debug)]
pub struct Postgres {
    process: Process,
    addr: SocketAddr,
    data: PathBuf,
}

impl Postgres {
    /// A server with the settings of a fresh installation.
    ///
    /// # Errors
    /// See [`PostgresBuilder::start`].
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// A server with settings of its own.
    pub fn builder() -> PostgresBuilder {
        PostgresBuilder::default()
    }

    /// A standby that streams from this server.
    ///
    /// # Errors
    /// The data folder cannot be copied, or the standby does not start; the message holds the end of its log.
    pub async fn standby(&self, scratch: &Scratch) -> anyhow::Result<Self> {
        let account = Account::unprivileged()?;
        let data = scratch.folder(&scratch.stem("postgres-standby"))?;
        // As initdb makes it; a server refuses a folder that others may read.
        std::fs::set_permissions(&data, Permissions::from_mode(0o700))
            .context("close the standby's folder")?;
        if let Some(account) = account {
            account.own(&data)?;
        }
        let copy = Launch::new(scratch, "pg_basebackup", Program::Basebackup.path()?).account(account);
        let copy = copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "--dbname"]);
        let copy = copy.arg(self.url()).arg("--pgdata").arg(&data);
        copy.run(INITDB_WITHIN).await?.success().context("copy the primary's data folder")?;
        let addr = net::free_addr()?;
        let server = Launch::new(scratch, "postgres", Program::Postgres.path()?).account(account);
        let server = server.arg("-D").arg(&data).args(PostgresBuilder::default().parameters(addr));
        let mut standby = Self { process: server.spawn()?, addr, data };
        standby.wait_answering(NAME).await?;
        Ok(standby)
    }

    /// The process id of its postmaster.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The database's URL.
    pub fn url(&self) -> String {
        self.url_of(self.addr, NAME)
    }

    /// The database's URL by way of a proxy, which must lead to this server.
    pub fn url_via(&self, proxy: &Proxy) -> String {
        self.url_of(proxy.addr(), NAME)
    }

    fn url_of(&self, addr: SocketAddr, database: &str) -> String {
        format!("postgres://{NAME}@{addr}/{database}")
    }

    /// A new connection to the database.
    ///
    /// # Errors
    /// The server does not accept one.
    pub async fn client(&self) -> anyhow::Result<Client> {
        connect(&self.url()).await
    }

    /// The server's main process.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The folder with its data. While the server stands still, copies of it are copies of the database.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }

    /// SIGKILL to the server and all its children at once, as a machine that loses power; returns when they are gone.
    ///
    /// # Errors
    /// A process survives, which the kernel should not allow.
    pub async fn kill_now(&mut self) -> anyhow::Result<()> {
        if !self.process.is_running() {
            return Ok(());
        }
        // A stopped server starts no more children while they are counted.
        self.process.pause().await?;
        let children = procfs::children(self.process.pid());
        self.process.kill_now()?;
        for child in children.iter().filter(|child| !child.is_gone()) {
            // It may have noticed the server's death and ended just now.
            let _ = kill(child.pid, Signal::SIGKILL);
        }
        wait::until(KILLED_WITHIN, "Postgres' children are gone", async || {
            children.iter().all(|child| child.is_gone())
        })
        .await
    }

    /// Fast shutdown: running transactions are rolled back, connections closed, and a checkpoint is written.
    ///
    /// # Errors
    /// It has ended already, or does not end in time; the message holds the end of its log.
    pub async fn stop_fast(&mut self) -> anyhow::Result<()> {
        self.process.interrupt()?;
        self.process.wait_exit(STOP_WITHIN).await.map(drop)
    }

    /// Immediate shutdown (SIGQUIT): every backend ends at once, whatever it was at, and flushes what it had buffered for its
    /// client; nothing is written. The next start recovers from the log.
    ///
    /// # Errors
    /// It has ended already, or does not end in time; the message holds the end of its log.
    pub async fn stop_immediately(&mut self) -> anyhow::Result<()> {
        self.process.quit()?;
        self.process.wait_exit(STOP_WITHIN).await.map(drop)
    }

    /// SIGKILL to one backend: the server then ends all others at once and recovers. Returns when it answers again.
    ///
    /// # Errors
    /// No backend can be started, or the server does not come back; the message holds the end of its log.
    pub async fn kill_a_backend(&mut self) -> anyhow::Result<()> {
        let client = self.client().await?;
        let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.try_get(0)?;
        kill(Pid::from_raw(backend), Signal::SIGKILL).context("kill a backend")?;
        // Until its own end is noticed the server still answers as before.
        wait::until(KILLED_WITHIN, "the killed backend's connection ends", async || client.is_closed())
            .await?;
        self.wait_answering(NAME).await
    }

    /// Starts it again on the same data and port, after a fast shutdown if it runs.
    ///
    /// # Errors
    /// It does not stop or start; the message holds the end of its log.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        if self.process.is_running() {
            self.stop_fast().await?;
        }
        self.process.respawn()?;
        self.wait_answering(NAME).await
    }

    /// A server that accepts connections may still refuse queries while it recovers, so it is asked one.
    async fn wait_answering(&mut self, database: &str) -> anyhow::Result<()> {
        let url = self.url_of(self.addr, database);
        self.process.wait_ready(READY_WITHIN, async || answers(&url).await).await
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGKILL to the server alone would leave its children behind: it is asked to end them first. It may be
        // paused, and then hears nothing before it goes on.
        if self.process.quit().is_ok() && self.process.resume().is_ok() {
            self.process.wait_exit_blocking(QUIT_WITHIN);
        }
    }
}

async fn answers(url: &str) -> bool {
    let Ok(client) = connect(url).await else { return false };
    client.simple_query("SELECT 1").await.is_ok()
}

async fn connect(url: &str) -> anyhow::Result<Client> {
    let mut config: tokio_postgres::Config = url.parse().context("parse the database's URL")?;
    config.connect_timeout(CONNECT_WITHIN);
    let (client, connection) = config.connect(NoTls).await.with_context(|| format!("connect to {url}"))?;
    // The connection ends when the client is dropped; its errors reach the client's calls.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}
