//! The load: wrk, with a script that asks for every path in turn and prints what the summary does not.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use harness::{Launch, Program, Scratch};

use super::server::cores;

/// Prepares each request once, and prints one line at the end: requests, microseconds, p50, p99 and p99.9 in microseconds, errors.
const SCRIPT: &str = r#"
local requests, count, index = {}, 0, 0
init = function(args)
  for path in io.lines(args[1]) do
    count = count + 1
    requests[count] = wrk.format("GET", path)
  end
end
request = function()
  index = index % count + 1
  return requests[index]
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("figures %d %d %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), failed))
end
"#;

/// How much longer than its time a run may take.
const SLACK: Duration = Duration::from_secs(30);

/// wrk with its script and paths.
pub(super) struct Wrk {
    scratch: Scratch,
    program: PathBuf,
    script: PathBuf,
    paths: PathBuf,
}

/// What one run came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loaded {
    pub(super) requests: f64,
    pub(super) seconds: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) p999_us: f64,
}

impl Wrk {
    pub(super) fn new(scratch: &Scratch, paths: &[String]) -> anyhow::Result<Self> {
        let script = scratch.file("load.lua", SCRIPT)?;
        let paths = scratch.file("paths.txt", &(paths.join("\n") + "\n"))?;
        Ok(Self { scratch: scratch.clone(), program: Program::Wrk.path()?, script, paths })
    }

    /// Loads a server. With one thread it has the second core; with more it takes what there is.
    pub(super) async fn load(
        &self,
        url: &str,
        threads: usize,
        connections: usize,
        seconds: u64,
    ) -> anyhow::Result<Loaded> {
        let cores = if threads == 1 { "1".to_owned() } else { cores(threads) };
        let launch = Launch::new(&self.scratch, "wrk", Program::Taskset.path()?);
        let launch = launch.args(["-c", &cores]).arg(&self.program);
        let launch = launch.args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"]);
        let launch = launch.arg(&self.script).arg(url).arg("--").arg(&self.paths);
        let finished = launch.run(Duration::from_secs(seconds) + SLACK).await?.success()?;
        // The log holds all runs of this name.
        let line = finished.stdout.lines().rev().find_map(|line| line.strip_prefix("figures "));
        read(line.context("wrk prints its figures")?)
    }
}

fn read(line: &str) -> anyhow::Result<Loaded> {
    let figures: Vec<f64> =
        line.split(' ').map(str::parse).collect::<Result<_, _>>().context("read a figure")?;
    let [requests, micros, p50_us, p99_us, p999_us, failed] = figures[..] else {
        anyhow::bail!("expected six figures, got {line:?}");
    };
    anyhow::ensure!(failed == 0.0, "{failed} requests failed or were not answered with a redirect");
    Ok(Loaded { requests, seconds: micros / 1e6, p50_us, p99_us, p999_us })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_run_with_failures_is_no_measurement() {
        let read_well = read("100 2000000 5 9 11 0").unwrap();
        assert_eq!((read_well.requests, read_well.seconds, read_well.p999_us), (100.0, 2.0, 11.0));
        assert!(read("100 2000000 5 9 11 3").is_err());
        assert!(read("100 2000000").is_err());
    }
}
