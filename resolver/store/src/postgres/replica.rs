//! The age of an answer from another server than the primary, proved by positions in the
//! write-ahead log.
//!
//! 1. The primary's position is sampled with every poll of the settings. Every transaction that
//!    committed before the poll was sent lies before the position in its answer.
//! 2. A replica is asked for its replay position *before* the rows, on the same connection. If that
//!    has reached a sample, the rows are at least as recent as the instant of the sample. A primary
//!    that takes no writes is asked for the position of its own log.
//! 3. Positions are compared within one history only: a replica that does not follow the new
//!    primary after a fail-over may be ahead of it, in a log that was given up. The primary records
//!    its server's start time when its mark is compared with the ledger's. A replica has that
//!    record if it follows this very server.
//! 4. A replica that stands still, lags longer than it may, or cannot tell its position is not
//!    believed; the primary is asked.
//! 5. While the primary is away, there are no later samples. Another server of the URL is believed
//!    only if it has replayed all that it received, and all that was flushed at the last sample: a
//!    primary that crashed never sent more, and had acknowledged no more. A process that has
//!    sampled nothing, such as one that starts meanwhile, believes none.
//!
//! Rejected: a promised upper bound of the lag. A replica that breaks the promise serves stale rows
//! for as long as it lags, and nothing tells them from recent ones.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

/// Query for the replay position, for the start time of the server that it follows, and for whether
/// all that it received is replayed. A server that replays nothing reports its own log and start.
pub(super) const REPLAYED: &str = "
    SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END
            - '0/0')::bigint,
        CASE WHEN pg_is_in_recovery() THEN (SELECT compared_start FROM deployment)
            ELSE pg_postmaster_start_time() END,
        coalesce(pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn(), true)";

/// Maximum number of samples: at four a second they reach back four minutes.
const SAMPLES_MAX: usize = 1_024;

/// A position in the log of one server, since one start of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// Start time of the server: the primary's own, or the one that the replica has on record.
    pub(super) start: Timestamp,
    /// Bytes since the beginning of the log.
    pub(super) at: i64,
}

/// How far a server has replayed the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replayed {
    /// The position; `None` if the server follows none that is known.
    pub(super) position: Option<Position>,
    /// Whether the server has replayed all that it received.
    pub(super) is_all: bool,
}

/// Sampled positions of the primary, oldest first, all of one start.
#[derive(Debug, Default)]
pub(super) struct Positions(Mutex<VecDeque<Sample>>);

#[derive(Clone, Copy, Debug)]
struct Sample {
    sent: Instant,
    position: Position,
    /// How much of the log was flushed. No later commit was acknowledged.
    flushed: i64,
}

impl Positions {
    /// Records a position of the primary's log and how much of it is flushed, as answered to a poll
    /// that was sent at `sent`.
    pub(super) fn note(&self, sent: Instant, position: Position, flushed: i64) {
        let mut samples = self.samples();
        // Another server, or the same one after a restart: earlier samples prove nothing.
        let is_another = |last: &Position| last.start != position.start || last.at > position.at;
        if samples.back().is_some_and(|last| is_another(&last.position)) {
            samples.clear();
        }
        if samples.len() == SAMPLES_MAX {
            samples.pop_front();
        }
        samples.push_back(Sample { sent, position, flushed });
    }

    /// Returns the instant that a replica with this replay position is at least as recent as.
    /// Returns `None` if that is more than `lag` ago, or no sample was reached.
    pub(super) fn as_of(&self, replayed: Position, lag: Duration) -> Option<Instant> {
        let samples = self.samples();
        let is_reached = |at: &Position| at.start == replayed.start && at.at <= replayed.at;
        let reached = samples.iter().rev().find(|sample| is_reached(&sample.position));
        reached.map(|sample| sample.sent).filter(|sent| sent.elapsed() <= lag)
    }

    /// Returns the instant of the last sample, if a server with this position has all that was
    /// flushed by then.
    pub(super) fn as_of_the_last(&self, replayed: Position) -> Option<Instant> {
        let Sample { sent, position, flushed } = *self.samples().back()?;
        (position.start == replayed.start && flushed <= replayed.at).then_some(sent)
    }

    fn samples(&self) -> MutexGuard<'_, VecDeque<Sample>> {
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
        let server = |number| Timestamp::from_second(number).unwrap();
        let at = |at| Position { start: server(1), at };
        assert_eq!(positions.as_of(at(i64::MAX), SECOND), None, "nothing was sampled");
        positions.note(start, at(100), 100);
        advance(SECOND).await;
        positions.note(Instant::now(), at(200), 180);
        assert_eq!(positions.as_of(at(99), 2 * SECOND), None);
        assert_eq!(positions.as_of(at(199), 2 * SECOND), Some(start));
        assert_eq!(positions.as_of(at(200), 2 * SECOND), Some(start + SECOND));
        advance(SECOND).await;
        assert_eq!(positions.as_of(at(199), SECOND), None, "it lags longer than it may");
        assert_eq!(positions.as_of_the_last(at(179)), None, "the primary has acknowledged more");
        assert_eq!(positions.as_of_the_last(at(180)), Some(start + SECOND), "however long ago");
        positions.note(Instant::now(), Position { start: server(2), at: 150 }, 150);
        assert_eq!(positions.as_of(at(200), 9 * SECOND), None, "it is ahead in a log that was given up");
        let follows = Position { start: server(2), at: 150 };
        assert_eq!(positions.as_of(follows, 9 * SECOND), Some(start + 2 * SECOND));
        positions.note(Instant::now(), Position { start: server(2), at: 50 }, 50);
        let before = Position { start: server(2), at: 49 };
        assert_eq!(positions.as_of(before, 9 * SECOND), None, "another log, which goes on from before");
    }
}
