//! Values that are fixed, with the reason, and that tests change with the hidden flag `--tune`.

use std::time::Duration;

use cli::Error;
use daemon::parse_duration;
use recorder::Flush;

use super::{Config, entries::Entries};

const HOUR: u64 = 3_600;
/// A link that was changed within this time is read from the primary. A replica that is further
/// behind proves that itself, and is not used.
const REPLICA_LAG: Duration = Duration::from_secs(60);
/// Repeated creates with `findIfExists` find the link by a digest for this long after the last of
/// them, and by the index of long URLs later. So a longer time saves nothing but lookups.
const FIND_EXISTING_FOR: Duration = Duration::from_secs(30 * 24 * HOUR);
/// The lifetime of idempotency keys: a client that repeats a call does so within a day.
const IDEMPOTENCY_FOR: Duration = Duration::from_secs(24 * HOUR);
/// When visits are written to the spool. A killed process loses those of one interval. Before each
/// answer (`turn`) it would lose none, and each redirect would wait for a write.
const FLUSH: Flush = Flush::Every(Duration::from_millis(100));
const FLUSH_MIN: Duration = Duration::from_millis(1);
const FLUSH_MAX: Duration = Duration::from_secs(10);

pub(super) struct Tuning {
    pub(super) replica_lag: Duration,
    pub(super) find_existing_for: Duration,
    pub(super) idempotency_for: Duration,
    pub(super) flush: Flush,
    /// Target rules apply to redirects of existing links too, because a denied host is to get no
    /// more visitors.
    pub(super) checks_redirects: bool,
    /// Redirects of cached links bypass hyper, which answers the same at a tenth more processor
    /// time. The tests compare both.
    pub(super) fast_path: bool,
}

impl Config {
    pub(super) fn tuning(&self) -> Result<Tuning, Error> {
        let names =
            ["replica-lag", "find-existing", "idempotency-keys", "visits-flush", "target-rules", "fast-path"];
        let tuned = Entries::of("--tune", &names, &self.tune)?;
        let target_rules = tuned.parse("target-rules", |value| match value {
            "always" => Ok(true),
            "creation" => Ok(false),
            _ => Err("use always or creation"),
        });
        Ok(Tuning {
            replica_lag: tuned.parse("replica-lag", parse_duration)?.unwrap_or(REPLICA_LAG),
            find_existing_for: tuned.parse("find-existing", parse_duration)?.unwrap_or(FIND_EXISTING_FOR),
            idempotency_for: tuned.parse("idempotency-keys", parse_duration)?.unwrap_or(IDEMPOTENCY_FOR),
            flush: tuned.parse("visits-flush", parse_flush)?.unwrap_or(FLUSH),
            checks_redirects: target_rules?.unwrap_or(true),
            fast_path: tuned.switch("fast-path")?.unwrap_or(true),
        })
    }
}

fn parse_flush(text: &str) -> Result<Flush, &'static str> {
    if text == "turn" {
        return Ok(Flush::Turn);
    }
    let interval = parse_duration(text).ok().filter(|time| (FLUSH_MIN..=FLUSH_MAX).contains(time));
    interval.map(Flush::Every).ok_or("use a time from 1ms to 10s, or turn")
}
