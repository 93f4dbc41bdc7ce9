//! The memory of a resolver that lists a million visits in one answer.

use std::fs;

use anyhow::Context as _;
use tokio::time::Instant;
use visits::{DAY, VisitId};

use super::{Platform, Unpaged, load::Loaded};
use crate::progress;

/// The most that memory may grow, in MiB.
pub(super) const MOST_MIB: u64 = 64;
/// Days whose visits are listed: a tenth of a year.
const DAYS: i64 = 37;
/// Beginning of each visit.
const VISIT: &[u8] = b"{\"referer\":";

/// Lists the visits of some weeks, and measures the peak of the resolver's memory.
pub(super) async fn list_all(platform: &Platform, stored: &Loaded) -> anyhow::Result<Unpaged> {
    progress::show("listing all visits of some weeks …");
    let pid = platform.resolver.process.pid();
    // 5 resets the peak.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").context("reset the peak of the memory")?;
    let before = peak_kib(pid)?;
    let from = stored.last.start() - DAYS * DAY;
    let start = jiff::Timestamp::from_microsecond(from)?;
    let path = format!("short-urls/{}/visits?startDate={start}", stored.code);
    let url = format!("{}/rest/v3/{path}", platform.resolver.api.url());
    let begun = Instant::now();
    let answer = reqwest::Client::new().get(url).header("X-Api-Key", &platform.key).send().await?;
    let mut answer = answer.error_for_status()?;
    let (mut visits, mut tail) = (0, Vec::new());
    while let Some(piece) = answer.chunk().await? {
        tail.extend_from_slice(&piece);
        visits += tail.windows(VISIT.len()).filter(|window| *window == VISIT).count();
        // The beginning of a visit may be cut.
        tail.drain(..tail.len().saturating_sub(VISIT.len() - 1));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let count = format!(
        "SELECT count(*) FROM visit WHERE link_id = {} AND id >= {}",
        stored.link,
        VisitId::floor(from).get()
    );
    let expected: i64 = platform.sql.query_one(&count, &[]).await?.get(0);
    let grown = peak_kib(pid)?.saturating_sub(before);
    Ok(Unpaged {
        visits: visits as u64,
        expected: expected.unsigned_abs(),
        grown_mib: grown.div_ceil(1_024),
        seconds,
    })
}

fn peak_kib(pid: nix::unistd::Pid) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("the peak of the memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
