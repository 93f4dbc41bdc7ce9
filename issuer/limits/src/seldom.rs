//! Limits log messages to one a second for each event, so that a flood does not fill the log.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(1);

/// Limits a repeated event to one log message a second, and counts the suppressed events.
#[derive(Debug, Default)]
pub struct Seldom(Mutex<(Option<Instant>, u64)>);

impl Seldom {
    /// Records one event. If a message is due, returns the count of events since the last message,
    /// this one included; otherwise `None`.
    pub fn happened(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (last, count) = &mut *state;
        *count += 1;
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return None;
        }
        *last = Some(Instant::now());
        Some(std::mem::take(count))
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
