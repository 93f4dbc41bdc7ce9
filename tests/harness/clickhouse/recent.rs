//! A recent ClickHouse: the engine of the Python package `chdb-core`, behind HTTP.
//!
//! Debian has 18.16, and the engine alone is to be had from a registry. `chdb_http.py` serves it as
//! far as a client can tell. Replicas need servers, so it has no cluster.

use std::net::Ipv4Addr;

use super::{Clickhouse, PASSWORD, USER, free_port};
use crate::installed::in_venv;
use crate::launch::Launch;
use crate::scratch::Scratch;

impl Clickhouse {
    /// Starts the engine without data, in place of a server of Debian's package.
    ///
    /// # Errors
    /// Returns an error if `chdb-core` is not in `SHORTMINT_VENV`, or the program does not start;
    /// the message contains the end of its log.
    pub async fn start_recent(scratch: &Scratch) -> anyhow::Result<Self> {
        let (port, folder) = (free_port()?, scratch.folder(&scratch.stem("chdb"))?);
        let server = Launch::new(scratch, "chdb", in_venv("python")?);
        let server = server.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/harness/chdb_http.py"));
        let server = server.args([Ipv4Addr::LOCALHOST.to_string(), port.to_string()]);
        let server = server.arg(&folder).args([USER, PASSWORD]);
        let mut server = Self { process: server.spawn()?, port, folder };
        server.wait_ready().await?;
        Ok(server)
    }
}
