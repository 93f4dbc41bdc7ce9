//! How fast visits are stored while redirects keep the machine busy.

use std::time::Duration;

/// Visits recorded in a second from which this process counts as busy. Below it, storing costs less
/// than a tenth of a core.
const BUSY: u64 = 20_000;
/// The pause after a batch of a busy process. A batch takes about 70 ms here, and as much in
/// Postgres: storing takes about a thirtieth of one core.
const PAUSE: Duration = Duration::from_secs(4);
/// The age up to which the last visit of a batch tells how busy the process is now.
const RECENT: Duration = Duration::from_millis(300);
/// The age of the oldest waiting visit from which the store catches up, busy or not.
const LATE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    pub(crate) recorded: u64,
    /// Visits of the last batch, and the time in which they were recorded.
    pub(crate) batch: (u64, Duration),
    /// The age of the last visit of that batch: those that wait are younger.
    pub(crate) age: Duration,
    /// Bytes of the spool in thousandths of its bound.
    pub(crate) filled_permille: u64,
}

/// Returns how long to wait before the next batch.
///
/// Redirects come first: on a machine that they keep busy, visits are only spooled, which takes a
/// fraction of the time, and stored once there is room. But they are never a minute late, and a
/// spool that is a quarter full is emptied.
pub(crate) fn pause(backlog: Backlog) -> Duration {
    let is_urgent = backlog.age >= LATE || backlog.filled_permille >= 250;
    let is_busy = backlog.recorded >= BUSY || backlog.age <= RECENT && rate(backlog.batch) >= BUSY;
    if is_busy && !is_urgent { PAUSE } else { Duration::ZERO }
}

/// Returns the visits in a second at which a batch was recorded. A load that has just begun shows
/// in its first batch, long before the last second is over. Of a few visits it tells nothing.
fn rate((visits, within): (u64, Duration)) -> u64 {
    if visits < BUSY / 10 {
        return 0;
    }
    let micros = u64::try_from(within.as_micros()).unwrap_or(u64::MAX);
    visits.saturating_mul(1_000_000) / micros.max(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_stores_slowly_unless_visits_are_late_or_the_spool_fills() {
        let backlog = |recorded, age, filled_permille| Backlog {
            recorded,
            batch: (0, Duration::ZERO),
            age: Duration::from_secs(age),
            filled_permille,
        };
        for (backlog, expected) in [
            (backlog(0, 0, 0), Duration::ZERO),
            (backlog(BUSY - 1, 0, 0), Duration::ZERO),
            (backlog(BUSY, 59, 249), PAUSE),
            (backlog(BUSY, 60, 0), Duration::ZERO),
            (backlog(BUSY, 0, 250), Duration::ZERO),
        ] {
            assert_eq!(pause(backlog), expected, "{backlog:?}");
        }
    }

    #[test]
    fn the_first_batch_of_a_load_tells_that_the_process_is_busy() {
        let backlog = |visits, millis, age| Backlog {
            recorded: 0,
            batch: (visits, Duration::from_millis(millis)),
            age: Duration::from_millis(age),
            filled_permille: 0,
        };
        assert_eq!(pause(backlog(12_000, 100, 50)), PAUSE);
        assert_eq!(pause(backlog(12_000, 100, 301)), Duration::ZERO, "the load is over");
        assert_eq!(pause(backlog(1_900, 100, 50)), Duration::ZERO, "too few to tell");
        assert_eq!(pause(backlog(19_000, 1_000, 50)), Duration::ZERO);
    }
}
