//! The database's clock, as this process knows it: when links begin and end is the same on every resolver.
//!
//! 1. An answer that names the database's time T came while that clock stood between T and T plus the round trip. The estimate
//!    moves only as far as it must to lie in there, so a slow answer does not spoil what a quick one told.
//! 2. Between two answers it advances with the monotonic clock. This machine's wall clock may be an hour off, and may jump.

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
    /// What the database's clock showed at `start`, in microseconds since 1970.
    at_start_us: AtomicI64,
}

impl DatabaseClock {
    /// A clock after the first answer, which took so long.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { start: Instant::now(), at_start_us: AtomicI64::new(now.as_microsecond()) }
    }

    /// Learns from an answer that has just come, to a question that was sent then.
    pub fn learn(&self, sent: Instant, now: Timestamp) {
        let earliest = now.as_microsecond() - micros(self.start.elapsed());
        let latest = earliest.saturating_add(micros(sent.elapsed()));
        let known = self.at_start_us.load(Ordering::Relaxed);
        self.at_start_us.store(known.clamp(earliest, latest), Ordering::Relaxed);
    }

    /// The database's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = self.at_start_us.load(Ordering::Relaxed).saturating_add(micros(self.start.elapsed()));
        // Past the year 9999 every time has come.
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
