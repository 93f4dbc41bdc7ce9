//! A load generator: wrk with a script that sends prepared requests and prints figures in one line.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::Context;
use harness::{Launch, Program, Scratch};

/// A script part that prepares a GET request per path of a file and sends the requests in turn.
const GETS: &str = r#"
local function pick(index, count) return index % count + 1 end
local function prepare(args, add)
  for path in io.lines(args[1]) do add(wrk.format("GET", path)) end
end
"#;

/// A script part that prepares the same requests and sends them in random order.
const RANDOM_GETS: &str = r#"
local function pick(index, count) return math.random(count) end
local function prepare(args, add)
  for path in io.lines(args[1]) do add(wrk.format("GET", path)) end
end
"#;

/// A script part that does the same, each request on behalf of another of several clients, as a
/// proxy forwards them.
const FORWARDED_GETS: &str = r#"
local function pick(index, count) return math.random(count) end
local function prepare(args, add)
  local number, clients = 0, tonumber(args[2])
  for path in io.lines(args[1]) do
    number = number + 1
    local client = number % clients
    local address = string.format("10.%d.%d.1", math.floor(client / 250), client % 250)
    add(wrk.format("GET", path, { ["X-Forwarded-For"] = address }))
  end
end
"#;

/// A script part that prepares a GET request per path of a file, with the headers of one of fifty
/// browsers, and sends the requests in turn.
const VISITS: &str = r#"
local function pick(index, count) return index % count + 1 end
local function prepare(args, add)
  local number = 0
  for path in io.lines(args[1]) do
    number = number + 1
    local browser = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.0.0 Safari/537.36"
    add(wrk.format("GET", path, {
      ["User-Agent"] = browser:format(100 + number % 50),
      ["Referer"] = string.format("https://site-%d.example.com/articles/2026", number % 300),
      ["Accept-Language"] = ({ "de-CH,de;q=0.9", "en-US,en;q=0.8", "fr" })[number % 3 + 1],
    }))
  end
end
"#;

/// A script part that prepares a number of create requests and sends them in turn. With a length
/// above zero, each has a random slug of that many digits.
const CREATES: &str = r#"
local function pick(index, count) return index % count + 1 end
local function prepare(args, add)
  local key, count, length = args[1], tonumber(args[2]), tonumber(args[3])
  local headers = { ["X-Api-Key"] = key, ["Content-Type"] = "application/json" }
  local digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
  local function slug()
    local text = {}
    for place = 1, length do
      local digit = math.random(#digits)
      text[place] = digits:sub(digit, digit)
    end
    return table.concat(text)
  end
  math.randomseed(os.time())
  for number = 1, count do
    local body = string.format('{"longUrl":"https://example.org/some/where/%d"', number % 1000)
    if length > 0 then body = body .. ',"customSlug":"' .. slug() .. '"' end
    add(wrk.format("POST", "/rest/v3/short-urls", headers, body .. "}"))
  end
end
"#;

/// The common script part, which sends the prepared requests. At the end it prints one line:
/// requests, duration, p50, p99 and p99.9 (all times in microseconds), and errors.
const LOAD: &str = r#"
local requests, index = {}, 0
init = function(args)
  prepare(args, function(request) requests[#requests + 1] = request end)
end
request = function()
  index = pick(index, #requests)
  return requests[index]
end
done = function(summary, latency)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(string.format("figures %d %d %d %d %d %d\n", summary.requests, summary.duration,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), failed))
end
"#;

/// How many creates are prepared and sent again and again.
const CREATES_PREPARED: u64 = 1_000;
/// How many creates with slugs are prepared for each second, more than any resolver answers: a slug
/// that is sent again is refused.
const SLUGS_PER_SECOND: u64 = 100_000;

/// The extra time that a run may take.
const SLACK: Duration = Duration::from_secs(30);

/// wrk with its script and the script's argument.
pub(crate) struct Wrk {
    scratch: Scratch,
    program: PathBuf,
    script: PathBuf,
    arguments: Vec<OsString>,
}

/// The figures of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(crate) requests: f64,
    pub(crate) seconds: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) p999_us: f64,
    pub(crate) failed: f64,
}

impl Wrk {
    /// Returns a load that requests every path in turn.
    pub(crate) fn getting(scratch: &Scratch, paths: &[String]) -> anyhow::Result<Self> {
        let paths = scratch.file("paths.txt", &(paths.join("\n") + "\n"))?;
        Self::new(scratch, "gets.lua", GETS, paths.into())
    }

    /// Returns a load that requests paths at random.
    pub(crate) fn getting_at_random(scratch: &Scratch, paths: &[String]) -> anyhow::Result<Self> {
        let paths = scratch.file("random-paths.txt", &(paths.join("\n") + "\n"))?;
        Self::new(scratch, "random-gets.lua", RANDOM_GETS, paths.into())
    }

    /// Returns a load that requests paths at random, each on behalf of one of this many clients.
    pub(crate) fn forwarding_at_random(
        scratch: &Scratch,
        paths: &[String],
        clients: usize,
    ) -> anyhow::Result<Self> {
        let paths = scratch.file("forwarded-paths.txt", &(paths.join("\n") + "\n"))?;
        let mut wrk = Self::new(scratch, "forwarded-gets.lua", FORWARDED_GETS, paths.into())?;
        wrk.arguments.push(clients.to_string().into());
        Ok(wrk)
    }

    /// Returns a load that requests every path in turn as browsers do.
    pub(crate) fn visiting(scratch: &Scratch, paths: &[String]) -> anyhow::Result<Self> {
        let paths = scratch.file("visited-paths.txt", &(paths.join("\n") + "\n"))?;
        Self::new(scratch, "visits.lua", VISITS, paths.into())
    }

    /// Returns a load that creates links with an API key.
    pub(crate) fn creating(scratch: &Scratch, key: &str) -> anyhow::Result<Self> {
        Self::preparing_creates(scratch, "creates.lua", key, CREATES_PREPARED, 0)
    }

    /// Returns a load that creates links with random slugs of this many digits, enough for so many
    /// seconds.
    pub(crate) fn creating_slugs(
        scratch: &Scratch,
        key: &str,
        digits: usize,
        seconds: u64,
    ) -> anyhow::Result<Self> {
        Self::preparing_creates(scratch, "slugs.lua", key, SLUGS_PER_SECOND * seconds, digits)
    }

    fn preparing_creates(
        scratch: &Scratch,
        name: &str,
        key: &str,
        count: u64,
        digits: usize,
    ) -> anyhow::Result<Self> {
        let mut wrk = Self::new(scratch, name, CREATES, key.into())?;
        wrk.arguments.extend([count.to_string().into(), digits.to_string().into()]);
        Ok(wrk)
    }

    fn new(scratch: &Scratch, name: &str, prepare: &str, argument: OsString) -> anyhow::Result<Self> {
        let script = scratch.file(name, &format!("{prepare}{LOAD}"))?;
        Ok(Self {
            scratch: scratch.clone(),
            program: Program::Wrk.path()?,
            script,
            arguments: vec![argument],
        })
    }

    /// Runs the load against a server from these cores; every request must succeed.
    ///
    /// # Errors
    /// Returns an error if wrk cannot be run or a request fails.
    pub(crate) async fn load(
        &self,
        url: &str,
        cores: &str,
        connections: usize,
        seconds: u64,
    ) -> anyhow::Result<Loaded> {
        let loaded = self.load_whatever_is_answered(url, cores, connections, seconds).await?;
        anyhow::ensure!(
            loaded.failed == 0.0,
            "{} requests failed or were answered with an error",
            loaded.failed
        );
        Ok(loaded)
    }

    /// Runs the load against a server from these cores, whatever the responses are.
    pub(crate) async fn load_whatever_is_answered(
        &self,
        url: &str,
        cores: &str,
        connections: usize,
        seconds: u64,
    ) -> anyhow::Result<Loaded> {
        let launch = Launch::new(&self.scratch, "wrk", Program::Taskset.path()?);
        let launch = launch.args(["-c", cores]).arg(&self.program);
        let launch = launch.args(["-t1", &format!("-c{connections}"), &format!("-d{seconds}s"), "-s"]);
        let launch = launch.arg(&self.script).arg(url).arg("--").args(&self.arguments);
        let finished = launch.run(Duration::from_secs(seconds) + SLACK).await?.success()?;
        let line = finished.stdout.lines().find_map(|line| line.strip_prefix("figures "));
        read(line.context("wrk prints its figures")?)
    }
}

fn read(line: &str) -> anyhow::Result<Loaded> {
    let figures: Vec<f64> =
        line.split(' ').map(str::parse).collect::<Result<_, _>>().context("read a figure")?;
    let [requests, micros, p50_us, p99_us, p999_us, failed] = figures[..] else {
        anyhow::bail!("expected six figures, got {line:?}");
    };
    Ok(Loaded { requests, seconds: micros / 1e6, p50_us, p99_us, p999_us, failed })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn the_scripts_line_is_read_and_nothing_else() {
        let loaded = read("100 2000000 5 9 11 3").unwrap();
        assert_eq!((loaded.requests, loaded.seconds, loaded.p999_us, loaded.failed), (100.0, 2.0, 11.0, 3.0));
        assert!(read("100 2000000").is_err());
        assert!(read("a 2000000 5 9 11 3").is_err());
    }
}
