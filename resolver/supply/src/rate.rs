//! The rate at which numbers are claimed, over the last minute.

use std::{collections::VecDeque, time::Duration};

use tokio::time::Instant;

/// The window of the rate: long enough to smooth a burst, short enough to notice a rising load
/// before a block runs out.
const WINDOW: Duration = Duration::from_secs(60);
/// The minimum time between samples. Closer samples replace each other, so that the window holds a
/// bounded number of them.
const STEP: Duration = Duration::from_millis(500);

/// Samples of a counter that only grows.
#[derive(Debug, Default)]
pub(super) struct Rate {
    samples: VecDeque<(Instant, u64)>,
}

impl Rate {
    pub(super) fn sample(&mut self, now: Instant, count: u64) {
        let step = |last: &&(Instant, u64)| self.samples.len() > 1 && now.duration_since(last.0) < STEP;
        if self.samples.back().filter(step).is_some() {
            self.samples.pop_back();
        }
        self.samples.push_back((now, count));
        // The oldest sample kept is the last one from before the window, so that a full window is
        // measured.
        while self.samples.get(1).is_some_and(|(then, _)| now.duration_since(*then) >= WINDOW) {
            self.samples.pop_front();
        }
    }

    /// Returns the mean rate over the window, or over the time sampled so far; 0 before the second
    /// sample.
    pub(super) fn per_second(&self) -> f64 {
        let (elapsed, counted) = self.span();
        let seconds = elapsed.as_secs_f64();
        if seconds > 0.0 { f64::from(u32::try_from(counted).unwrap_or(u32::MAX)) / seconds } else { 0.0 }
    }

    /// Returns how much the counter would grow in `length` at this rate.
    pub(super) fn claims_in(&self, length: Duration) -> u64 {
        let (elapsed, counted) = self.span();
        let elapsed = elapsed.as_millis().max(1);
        let grown = u128::from(counted) * length.as_millis() / elapsed;
        u64::try_from(grown).unwrap_or(u64::MAX)
    }

    fn span(&self) -> (Duration, u64) {
        match (self.samples.front(), self.samples.back()) {
            (Some((first, before)), Some((last, after))) => (*last - *first, after - before),
            _ => (Duration::ZERO, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_minute() {
        let start = Instant::now();
        let mut rate = Rate::default();
        assert_eq!((rate.per_second(), rate.claims_in(Duration::from_secs(600))), (0.0, 0));
        let mut count = 0;
        for second in 0..300 {
            count += if second < 200 { 1_000 } else { 10 };
            rate.sample(start + Duration::from_secs(second), count);
        }
        assert!((rate.per_second() - 10.0).abs() < 0.01, "{}", rate.per_second());
        assert_eq!(rate.claims_in(Duration::from_secs(600)), 6_000);
        assert!(rate.samples.len() <= 62);
    }

    #[test]
    fn many_samples_take_no_more_room_and_change_nothing() {
        let start = Instant::now();
        let mut rate = Rate::default();
        for millisecond in 0..120_000 {
            rate.sample(start + Duration::from_millis(millisecond), millisecond / 2);
        }
        assert!(rate.samples.len() <= 124, "{}", rate.samples.len());
        assert!((rate.per_second() - 500.0).abs() < 1.0, "{}", rate.per_second());
    }
}
