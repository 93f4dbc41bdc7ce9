//! Single-row inserts by Postgres' own load generator: what a database gives to an application that commits each link by itself.

use std::{fs, path::PathBuf, time::Duration};

use anyhow::Context;
use harness::{Launch, Postgres, Program, Scratch};

use crate::stats::Latencies;

/// The same columns as `link`, without its name: what is inserted here must not be in the resolver's way.
const TABLE: &str = "
    CREATE TABLE peer (LIKE link INCLUDING ALL);
    CREATE SEQUENCE peer_id";
const INSERT: &str = "INSERT INTO peer (id, long_url, title, crawlable, forward_query, created_by) \
    VALUES (nextval('peer_id'), 'https://example.org/some/where/1', NULL, false, true, 1);\n";
/// One transaction of so many is in the log that percentiles come from.
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
    /// Makes the table.
    pub(crate) async fn new(scratch: &Scratch, postgres: &Postgres) -> anyhow::Result<Self> {
        let program = Program::Pgbench.path()?;
        postgres.client().await?.batch_execute(TABLE).await.context("make the peer's table")?;
        let script = scratch.file("insert.sql", INSERT)?;
        Ok(Self { scratch: scratch.clone(), program, script, url: postgres.url() })
    }

    /// Inserts rows, each in a transaction of its own, from so many connections; how many a second, and how long they took.
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
        // The log holds all runs of this name.
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

/// `tps = 28123.4 (without initial connection time)`
fn read_rate(line: &str) -> Option<f64> {
    line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok()
}

/// Client, transaction, microseconds, …
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
