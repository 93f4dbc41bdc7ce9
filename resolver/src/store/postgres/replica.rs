//! How old a replica's answer is, proved by positions in the write-ahead log.
//!
//! 1. The primary's position is sampled with every poll of the settings. Whatever had committed when the question was sent lies
//!    before the position in its answer.
//! 2. A replica is asked for its replay position *before* the rows, on the same connection. If that has reached a sample, the
//!    rows are at least as new as the instant of the sample.
//! 3. A replica that stands still, lags longer than it may, or cannot say how far it is, is not believed: the primary is asked.
//!
//! Rejected: a promised upper bound of the lag. A replica that breaks the promise gives old rows for as long as it lags, and
//! nothing tells them from new ones.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;

/// The replay position; NULL on a server that replays nothing.
pub(super) const REPLAYED: &str = "SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint";

/// Samples that are kept: at four a second they reach back for four minutes.
const SAMPLES_MAX: usize = 1_024;

/// Positions of the primary, oldest first.
#[derive(Debug, Default)]
pub(super) struct Positions(Mutex<VecDeque<(Instant, i64)>>);

impl Positions {
    /// Notes where the primary's log ended, as a question that was sent then was answered.
    pub(super) fn note(&self, sent: Instant, position: i64) {
        let mut samples = self.samples();
        // After a fail-over the log may go on from an earlier position, and nothing is known of the time before.
        if samples.back().is_some_and(|(_, last)| *last > position) {
            samples.clear();
        }
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back((sent, position));
    }

    /// The instant that a replica which has replayed this far is at least as new as, if that is at most `lag` ago.
    pub(super) fn as_of(&self, replayed: i64, lag: Duration) -> Option<Instant> {
        let samples = self.samples();
        let reached = samples.iter().rev().find(|(_, position)| *position <= replayed);
        reached.map(|(sent, _)| *sent).filter(|sent| sent.elapsed() <= lag)
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<(Instant, i64)>> {
        self.0.lock().expect("no code panics while it holds this lock")
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_as_old_as_the_newest_sample_that_the_replica_has_reached() {
        const SECOND: Duration = Duration::from_secs(1);
        let (positions, start) = (Positions::default(), Instant::now());
        assert_eq!(positions.as_of(i64::MAX, SECOND), None, "nothing was sampled");
        positions.note(start, 100);
        advance(SECOND).await;
        positions.note(Instant::now(), 200);
        assert_eq!(positions.as_of(99, 2 * SECOND), None);
        assert_eq!(positions.as_of(199, 2 * SECOND), Some(start));
        assert_eq!(positions.as_of(200, 2 * SECOND), Some(start + SECOND));
        advance(SECOND).await;
        assert_eq!(positions.as_of(199, SECOND), None, "it lags longer than it may");
        positions.note(Instant::now(), 50);
        assert_eq!(positions.as_of(49, 9 * SECOND), None, "another log, which goes on from before");
    }
}
