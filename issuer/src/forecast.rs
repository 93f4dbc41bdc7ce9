//! Forecast of when a namespace runs out (C5), from its consumption over the last hours.

use std::collections::VecDeque;

use numbers::Millis;

use crate::core::NamespaceRecord;

/// Window over which the rate is measured, in milliseconds: six hours.
const WINDOW_MS: u64 = 6 * 3_600_000;
/// Minimum distance of samples, in milliseconds. A closer sample replaces the one before it, so
/// that a window holds a bounded number.
const STEP_MS: u64 = 60_000;
/// Share of the capacity below which a namespace is low.
const LOW_SHARE: f64 = 0.1;
/// Remaining time at the measured rate below which a namespace is low, in seconds: thirty days.
const LOW_SECONDS: f64 = 30.0 * 86_400.0;

/// The numbers left in a namespace, and how long they last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// Numbers that no holder has: never allocated, or free.
    pub remaining: u64,
    /// Numbers left as a share of the capacity, 0 to 1.
    pub ratio: f64,
    /// Time until none is left at the measured rate, in seconds; infinite if none was consumed.
    pub seconds: f64,
}

impl Outlook {
    /// Returns whether the namespace is low, so that an operator should act now.
    pub fn is_low(&self) -> bool {
        self.ratio < LOW_SHARE || self.seconds < LOW_SECONDS
    }
}

/// Samples of the unconsumed numbers of one namespace, over the last hours.
#[derive(Clone, Debug, Default)]
pub struct Forecast {
    samples: VecDeque<(Millis, u64)>,
}

impl Forecast {
    /// Adds a sample, and returns the outlook. If more numbers are left than at the start of the
    /// window, as after a return or a raised capacity, none counts as consumed. Nor do burned
    /// numbers: very many are burned at once after a restore from a backup.
    #[expect(clippy::cast_precision_loss, reason = "counts of numbers stay below 2^53")]
    pub fn look(&mut self, now: Millis, record: &NamespaceRecord) -> Outlook {
        let remaining = record.capacity.saturating_sub(record.high_watermark) + record.account.free;
        let unconsumed = remaining.saturating_add(record.account.burned);
        self.sample(now, unconsumed);
        let (since, before) = self.samples.front().copied().unwrap_or((now, unconsumed));
        let gone = before.saturating_sub(unconsumed) as f64;
        let elapsed = now.since(since) as f64 / 1_000.0;
        let seconds =
            if gone > 0.0 && elapsed > 0.0 { remaining as f64 * elapsed / gone } else { f64::INFINITY };
        Outlook { remaining, ratio: remaining as f64 / record.capacity.max(1) as f64, seconds }
    }

    fn sample(&mut self, now: Millis, unconsumed: u64) {
        let near = |then: &Millis| self.samples.len() > 1 && now.since(*then) < STEP_MS;
        if self.samples.back().is_some_and(|(then, _)| near(then)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, unconsumed));
        while self.samples.get(1).is_some_and(|(then, _)| now.since(*then) >= WINDOW_MS) {
            self.samples.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Account;

    fn record(high_watermark: u64, free: u64) -> NamespaceRecord {
        let (capacity, account) = (1_000_000, Account { free, ..Account::default() });
        NamespaceRecord { capacity, high_watermark, ceiling: capacity, announced: capacity, account }
    }

    #[test]
    fn the_end_is_foretold_from_the_rate_and_the_alarm_comes_before_it() {
        let mut forecast = Forecast::default();
        let mut last = forecast.look(Millis(0), &record(0, 0));
        assert_eq!((last.remaining, last.ratio, last.seconds), (1_000_000, 1.0, f64::INFINITY));
        assert!(!last.is_low());
        // 10 numbers a minute: the rest lasts 69 days, then 30, then less.
        let mut low_at = None;
        for minute in 1..=99_000 {
            last = forecast.look(Millis(minute * 60_000), &record(minute * 10, 0));
            if last.is_low() && low_at.is_none() {
                low_at = Some(last);
            }
        }
        let low = low_at.expect("the alarm was raised");
        assert!((low.seconds / 86_400.0 - 30.0).abs() < 0.1, "{low:?}");
        assert!((last.seconds - 60_000.0).abs() < 10.0, "{last:?}");
        assert!(forecast.samples.len() <= 362, "{}", forecast.samples.len());
    }

    #[test]
    fn a_small_rest_is_low_even_when_nothing_goes_and_returned_numbers_count() {
        let mut forecast = Forecast::default();
        assert!(forecast.look(Millis(0), &record(950_000, 0)).is_low());
        let after = forecast.look(Millis(60_000), &record(950_000, 100_000));
        assert_eq!((after.remaining, after.seconds), (150_000, f64::INFINITY));
        assert!(!after.is_low());
    }

    #[test]
    fn samples_close_together_take_no_more_room() {
        let mut forecast = Forecast::default();
        for second in 0..100_000 {
            forecast.look(Millis(second * 1_000), &record(second, 0));
        }
        assert!(forecast.samples.len() <= 364, "{}", forecast.samples.len());
    }
}
