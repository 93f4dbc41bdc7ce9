//! A real PgBouncer in front of a Postgres.

use std::{fs, net::SocketAddr, time::Duration};

use anyhow::Context;

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
    addr: SocketAddr,
    url: String,
}

impl PgBouncer {
    /// Starts a pooler, and waits until a query passes through it.
    ///
    /// # Errors
    /// Returns an error if PgBouncer is not installed or does not start; the message contains the
    /// end of its log.
    pub async fn start(scratch: &Scratch, postgres: &Postgres, mode: PoolMode) -> anyhow::Result<Self> {
        let (account, addr) = (Account::unprivileged()?, net::free_addr()?);
        let folder = scratch.folder(&scratch.stem("pgbouncer"))?;
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
        };
        let server = postgres.addr();
        let settings = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = {}\nlisten_port = {}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 40\n\
             ignore_startup_parameters = extra_float_digits\n",
            server.ip(),
            server.port(),
            addr.ip(),
            addr.port()
        );
        // With `any` every client logs in as the user that the database's line names.
        let user =
            postgres.url().trim_start_matches("postgres://").split('@').next().unwrap_or("").to_owned();
        let settings = settings.replacen("port=", &format!("user={user} port="), 1);
        let file = folder.join("pgbouncer.ini");
        fs::write(&file, settings).context("write PgBouncer's settings")?;
        if let Some(account) = account {
            account.own(&folder)?;
            account.own(&file)?;
        }
        let launch = Launch::new(scratch, "pgbouncer", Program::Pgbouncer.path()?).account(account);
        let process = launch.arg(&file).spawn()?;
        let url = postgres.url().replace(&server.to_string(), &addr.to_string());
        let pooler = Self { process, addr, url };
        wait::until(START_WITHIN, "PgBouncer answers", async || pooler.answers().await)
            .await
            .with_context(|| pooler.process.tail())?;
        Ok(pooler)
    }

    /// Returns the address that it listens on.
    pub fn addr(&self) -> SocketAddr {
        self.addr
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
