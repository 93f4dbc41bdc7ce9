//! Single-row inserts by pgbench, Postgres' own load generator: the rate available to an
//! application that commits each link in its own transaction.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context;
use harness::{Launch, Postgres, Program, Scratch};

use crate::stats::Latencies;

/// A table with the columns of `link` under another name, so that these rows do not interfere with
/// the resolver.
const TABLE: &str = "
    CREATE TABLE peer (LIKE link INCLUDING ALL);
    CREATE SEQUENCE peer_id";
const INSERT: &str = "INSERT INTO peer (id, long_url, title, crawlable, forward_query, created_by) \
    VALUES (nextval('peer_id'), 'https://example.org/some/where/1', NULL, false, true, 1);\n";
/// The sampling interval of the log: one transaction in this many is logged for the percentiles.
const SAMPLED: u8 = 10;
const SLACK: Duration = Duration::from_secs(60);

/// pgbench with its script.
pub(crate) struct Pgbench {
    scratch: Scratch,
    program: PathBuf,
    script: PathBuf,
    url: String,
}

impl Pgbench {
    /// Creates the table and writes the script.
    pub(crate) async fn new(scratch: &Scratch, postgres: &Postgres) -> anyhow::Result<Self> {
        let program = Program::Pgbench.path()?;
        postgres.client().await?.batch_execute(TABLE).await.context("make the peer's table")?;
        let script = scratch.file("insert.sql", INSERT)?;
        Ok(Self { scratch: scratch.clone(), program, script, url: postgres.url() })
    }

    /// Inserts rows, each in its own transaction, from that many connections. Returns the rows per
    /// second and the latencies.
    pub(crate) async fn run(&self, clients: usize, seconds: u64) -> anyhow::Result<(f64, Latencies)> {
        let folder = self.scratch.folder(&self.scratch.stem("pgbench-log"))?;
        let launch = Launch::new(&self.scratch, "pgbench", &self.program);
        let launch = launch.args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--log", "--file"]);
        let launch = launch.arg(&self.script).args([
            format!("--client={clients}"),
            format!("--time={seconds}"),
            format!("--sampling-rate={}", 1.0 / f64::from(SAMPLED)),
            format!("--log-prefix={}", folder.join("t").display()),
            self.url.clone(),
        ]);
        let finished = launch.run(Duration::from_secs(seconds) + SLACK).await?.success()?;
        let rate = finished.stdout.lines().rev().find_map(read_rate).context("pgbench prints its rate")?;
        let mut samples = Vec::new();
        for file in fs::read_dir(&folder).context("find pgbench's log")? {
            let log = fs::read_to_string(file?.path()).context("read pgbench's log")?;
            samples.extend(log.lines().filter_map(read_latency));
        }
        anyhow::ensure!(!samples.is_empty(), "pgbench logged no transaction");
        Ok((rate, Latencies::new(samples)))
    }
}

/// Parses the line `tps = 28123.4 (without initial connection time)`.
fn read_rate(line: &str) -> Option<f64> {
    line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok()
}

/// Parses the latency from a log line of client, transaction, microseconds and further fields.
fn read_latency(line: &str) -> Option<Duration> {
    line.split(' ').nth(2)?.parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_latencies_are_found_in_what_pgbench_writes() {
        assert_eq!(read_rate("tps = 28123.5 (without initial connection time)"), Some(28_123.5));
        assert_eq!(read_rate("latency average = 2.1 ms"), None);
        assert_eq!(read_latency("0 199 2241 0 1175850568 995598"), Some(Duration::from_micros(2_241)));
    }
}
