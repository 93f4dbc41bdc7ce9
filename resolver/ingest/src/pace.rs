//! How fast visits are stored while redirects keep the machine busy.

use std::time::Duration;

/// Visits recorded in a second from which this process counts as busy. Below it, storing costs less
/// than a tenth of a core.
const BUSY: u64 = 20_000;
/// The pause after a batch of a busy process: storing takes at most about a fiftieth of its time.
const PAUSE: Duration = Duration::from_secs(2);
/// The age of the oldest waiting visit from which the store catches up, busy or not.
const LATE: Duration = Duration::from_secs(60);

/// What the pace depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    /// Visits recorded in the last second.
    pub(crate) recorded: u64,
    /// The age of the oldest visit that waits.
    pub(crate) oldest: Duration,
    /// Bytes of the spool in thousandths of its bound.
    pub(crate) filled_permille: u64,
}

/// Returns how long to wait before the next batch.
///
/// Redirects come first: on a machine that they keep busy, visits are only spooled, which takes a
/// fraction of the time, and stored once there is room. But they are never a minute late, and a spool
/// that is a quarter full is emptied.
pub(crate) fn pause(backlog: Backlog) -> Duration {
    let is_urgent = backlog.oldest >= LATE || backlog.filled_permille >= 250;
    if backlog.recorded < BUSY || is_urgent { Duration::ZERO } else { PAUSE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_process_stores_slowly_unless_visits_are_late_or_the_spool_fills() {
        let backlog = |recorded, oldest, filled_permille| Backlog {
            recorded,
            oldest: Duration::from_secs(oldest),
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
}
