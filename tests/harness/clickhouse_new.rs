//! A recent ClickHouse: the engine of the Python package `chdb-core`, behind HTTP.
//!
//! Debian has 18.16, and the engine alone is to be had from a registry. `chdb_http.py` serves it as
//! far as a client can tell. Replicas need servers, so it has no cluster.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::clickhouse::{PASSWORD, USER, query};
use crate::launch::Launch;
use crate::net;
use crate::process::Process;
use crate::scratch::Scratch;

const READY_WITHIN: Duration = Duration::from_secs(120);

/// A server of the engine, with a folder of its own.
#[derive(Debug)]
pub struct NewClickhouse {
    process: Process,
    addr: SocketAddr,
}

impl NewClickhouse {
    /// Starts the engine without data.
    ///
    /// # Errors
    /// Returns an error if `chdb-core` is not in `SHORTMINT_VENV`, or the program does not start;
    /// the message contains the end of its log.
    pub async fn start(scratch: &Scratch) -> anyhow::Result<Self> {
        let (addr, folder) = (net::free_addr()?, scratch.folder(&scratch.stem("chdb"))?);
        let program = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/harness/chdb_http.py"));
        let server = Launch::new(scratch, "chdb", python()?).arg(program).arg(addr.ip().to_string());
        let server = server.arg(addr.port().to_string()).arg(folder).args([USER, PASSWORD]);
        let mut server = Self { process: server.spawn()?, addr };
        server.wait_ready().await?;
        Ok(server)
    }

    /// Returns the address for HTTP.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the address of a database, as `--visits-store` expects it.
    pub fn url(&self, database: &str) -> String {
        format!("clickhouse+http://{USER}:p%40ss%2Fword@{}/{database}", self.addr)
    }

    /// Returns the process, to kill it.
    pub fn process_mut(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Starts the engine again on its data, and waits until it answers.
    ///
    /// # Errors
    /// Returns an error if it does not start; the message contains the end of its log.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.process.respawn()?;
        self.wait_ready().await
    }

    /// Runs a statement, and returns what it answers as text.
    ///
    /// # Errors
    /// Returns an error if the engine does not answer, or with an error.
    pub async fn query(&self, statement: &str) -> anyhow::Result<String> {
        query(self.addr, statement).await
    }

    async fn wait_ready(&mut self) -> anyhow::Result<()> {
        let addr = self.addr;
        self.process.wait_ready(READY_WITHIN, async || query(addr, "SELECT 1").await.is_ok()).await
    }
}

/// Returns the Python of the tests' environment.
fn python() -> anyhow::Result<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/venv");
    let folder = std::env::var_os("SHORTMINT_VENV").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let python = folder.join("bin/python");
    anyhow::ensure!(python.exists(), "{} not found: run tests/run once", python.display());
    Ok(python)
}
