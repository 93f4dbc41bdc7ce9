//! A real PgBouncer in front of a Postgres.

use std::{fs, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::Context;
use nix::sys::signal::Signal;

use crate::{
    account::Account, launch::Launch, net, postgres::Postgres, process::Process, programs::Program,
    scratch::Scratch, wait,
};

const START_WITHIN: Duration = Duration::from_secs(20);

/// When a client's connection to the server goes to another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolMode {
    /// When the client leaves.
    Session,
    /// After each transaction.
    Transaction,
}

/// A running PgBouncer.
#[derive(Debug)]
pub struct PgBouncer {
    /// Its process.
    pub process: Process,
    settings: Settings,
    url: String,
}

#[derive(Debug)]
struct Settings {
    file: PathBuf,
    addr: SocketAddr,
    user: String,
    mode: PoolMode,
}

impl PgBouncer {
    /// Starts a pooler, and waits until a query passes through it.
    ///
    /// # Errors
    /// Returns an error if PgBouncer is not installed or does not start; the message contains the
    /// end of its log.
    pub async fn start(scratch: &Scratch, postgres: &Postgres, mode: PoolMode) -> anyhow::Result<Self> {
        Self::before(scratch, postgres.addr(), &postgres.url(), mode).await
    }

    /// Starts a pooler before a server with this address and URL, and waits until a query passes
    /// through it.
    ///
    /// # Errors
    /// Returns an error if PgBouncer is not installed or does not start; the message contains the
    /// end of its log.
    pub async fn before(
        scratch: &Scratch,
        server: SocketAddr,
        url: &str,
        mode: PoolMode,
    ) -> anyhow::Result<Self> {
        let (account, addr) = (Account::unprivileged()?, net::free_addr()?);
        let folder = scratch.folder(&scratch.stem("pgbouncer"))?;
        // With `any` every client logs in as the user that the database's line names.
        let user = url.trim_start_matches("postgres://").split('@').next().unwrap_or("").to_owned();
        let settings = Settings { file: folder.join("pgbouncer.ini"), addr, user, mode };
        settings.write(server)?;
        if let Some(account) = account {
            account.own(&folder)?;
            account.own(&settings.file)?;
        }
        let launch = Launch::new(scratch, "pgbouncer", Program::Pgbouncer.path()?).account(account);
        let process = launch.arg(&settings.file).spawn()?;
        let pooler = Self { process, url: url.replace(&server.to_string(), &addr.to_string()), settings };
        wait::until(START_WITHIN, "PgBouncer answers", async || pooler.answers().await)
            .await
            .with_context(|| pooler.process.tail())?;
        Ok(pooler)
    }

    /// Leads to another server from now on, as after a fail-over.
    ///
    /// # Errors
    /// Returns an error if the settings cannot be written or the pooler has ended.
    pub fn lead_to(&mut self, server: SocketAddr) -> anyhow::Result<()> {
        self.settings.write(server)?;
        self.process.signal(Signal::SIGHUP)
    }

    /// Returns the address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.settings.addr
    }

    /// Returns the URL of the database through the pooler.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    async fn answers(&self) -> bool {
        let Ok((client, connection)) = tokio_postgres::connect(&self.url, tokio_postgres::NoTls).await else {
            return false;
        };
        tokio::spawn(connection);
        client.simple_query("SELECT 1").await.is_ok()
    }
}

impl Settings {
    fn write(&self, server: SocketAddr) -> anyhow::Result<()> {
        let mode = match self.mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
        };
        let settings = format!(
            "[databases]\n* = host={} user={} port={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 40\nserver_login_retry = 1\n\
             ignore_startup_parameters = extra_float_digits\n",
            server.ip(),
            self.user,
            server.port(),
            self.addr.ip(),
            self.addr.port()
        );
        fs::write(&self.file, settings).context("write PgBouncer's settings")
    }
}
