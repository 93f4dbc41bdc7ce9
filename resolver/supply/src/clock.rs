//! The clock that provides the pure core with the time.

use std::time::Duration;

use numbers::Millis;
use tokio::time::Instant;

/// A monotonic clock in milliseconds. All parts of one process share a copy.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Starts a clock at zero.
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns the current time.
    pub fn now(self) -> Millis {
        Millis(u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Converts a time to an instant.
    pub fn instant(self, time: Millis) -> Instant {
        self.origin + Duration::from_millis(time.0)
    }
}
