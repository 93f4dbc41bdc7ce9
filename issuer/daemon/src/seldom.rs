//! A rate limiter for log messages: at most one a second for each event, so that a flood of events
//! does not fill the log.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

/// The minimum interval between two messages.
const PAUSE: Duration = Duration::from_secs(1);

/// Limits a repeated event to one log message a second, and counts the suppressed events.
#[derive(Debug)]
pub struct Seldom {
    since: Instant,
    /// The end of the current pause, in milliseconds since `since`.
    silent_until: AtomicU64,
    unsaid: AtomicU64,
}

impl Default for Seldom {
    fn default() -> Self {
        Self { since: Instant::now(), silent_until: AtomicU64::new(0), unsaid: AtomicU64::new(0) }
    }
}

impl Seldom {
    /// Records one event. If a message is due, returns the count of events since the last message,
    /// this one included; otherwise `None`.
    pub fn happened(&self) -> Option<u64> {
        let unsaid = self.unsaid.fetch_add(1, Ordering::Relaxed) + 1;
        let now = self.since.elapsed();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let silent_until = self.silent_until.load(Ordering::Relaxed);
        let is_due = milliseconds(now) >= silent_until;
        let next = milliseconds(now + PAUSE);
        let is_first = is_due
            && self
                .silent_until
                .compare_exchange(silent_until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_first.then(|| {
            self.unsaid.fetch_sub(unsaid, Ordering::Relaxed);
            unsaid
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_told_once_a_second_with_its_count() {
        let seldom = Seldom::default();
        assert_eq!(seldom.happened(), Some(1));
        assert!((0..100).all(|_| seldom.happened().is_none()));
        tokio::time::advance(PAUSE).await;
        assert_eq!(seldom.happened(), Some(101));
    }
}
