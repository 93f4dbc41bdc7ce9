//! The clock that the pure core is told the time by.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holder::Moment;
use numbers::Millis;
use tokio::time::Instant;

/// A monotonic clock in milliseconds. All parts of one process share a copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts at zero.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns the time now.
    #[must_use]
    pub fn now(self) -> Millis {
        self.at(Instant::now())
    }

    /// Returns the time of an instant; zero for one before the start.
    #[must_use]
    pub fn at(self, instant: Instant) -> Millis {
        Millis(milliseconds(instant.saturating_duration_since(self.origin)))
    }

    /// Returns the instant of a time.
    #[must_use]
    pub fn instant(self, time: Millis) -> Instant {
        self.origin + Duration::from_millis(time.0)
    }

    /// Returns an instant with the wall clock's time now.
    #[must_use]
    pub fn moment(self, instant: Instant) -> Moment {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { monotonic: self.at(instant), wall: Millis(milliseconds(wall)) }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
