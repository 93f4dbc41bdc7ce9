//! An estimate of the database's clock, so that links begin and end at the same time on every
//! resolver.
//!
//! 1. An answer with the database's time T arrived while that clock showed a time between T and T
//!    plus the round trip. The estimate moves only as far as needed to lie in that interval, so a
//!    slow answer does not spoil what a quick one established.
//! 2. Between two answers the estimate advances with the monotonic clock. This machine's wall clock
//!    may be an hour off, and may jump.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

/// An estimate of the database's clock.
#[derive(Debug)]
pub struct DatabaseClock {
    start: Instant,
    /// The database's time at `start`, in microseconds since 1970.
    at_start_us: AtomicI64,
}

impl DatabaseClock {
    /// Creates a clock that shows `now` at this moment: the time in the database's first answer.
    pub fn new(now: Timestamp) -> Self {
        Self { start: Instant::now(), at_start_us: AtomicI64::new(now.as_microsecond()) }
    }

    /// Adjusts the estimate by an answer that has just arrived. `sent` is when its question was
    /// sent, and `now` is the database's time in the answer.
    pub fn learn(&self, sent: Instant, now: Timestamp) {
        let earliest = now.as_microsecond() - micros(self.start.elapsed());
        let latest = earliest.saturating_add(micros(sent.elapsed()));
        let known = self.at_start_us.load(Ordering::Relaxed);
        self.at_start_us.store(known.clamp(earliest, latest), Ordering::Relaxed);
    }

    /// Returns the estimated time of the database.
    pub fn now(&self) -> Timestamp {
        let now = self.at_start_us.load(Ordering::Relaxed).saturating_add(micros(self.start.elapsed()));
        // A time past the year 9999 is capped: every link's time has come by then.
        Timestamp::from_microsecond(now).unwrap_or(Timestamp::MAX)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_moves_the_clock_only_as_far_as_it_must() {
        let clock = DatabaseClock::new(at(1_000));
        advance(5 * SECOND).await;
        assert_eq!(clock.now(), at(1_005), "it goes on by itself");
        let sent = Instant::now();
        advance(2 * SECOND).await;
        clock.learn(sent, at(1_006));
        assert_eq!(clock.now(), at(1_007), "between 1,006 and 1,008, as it was");
        clock.learn(sent, at(990));
        assert_eq!(clock.now(), at(992), "the latest that it can be");
        clock.learn(Instant::now(), at(5_000));
        assert_eq!(clock.now(), at(5_000), "the database's clock was set");
    }
}
