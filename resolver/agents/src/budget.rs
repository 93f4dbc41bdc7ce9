//! A bound on the parses of a second.

use std::{num::NonZeroU32, time::Duration};

/// The time over which unused parses are saved up.
const SAVED: Duration = Duration::from_secs(1);

/// A budget of new parses: a constant rate, of which at most a second's worth is saved up.
///
/// Times are those since any fixed instant, from a monotonic clock.
#[derive(Clone, Debug)]
pub struct Budget {
    cost: Duration,
    /// The instant, later by [`SAVED`], until which the budget is spent.
    spent_until: Duration,
}

impl Budget {
    /// The rate that a resolver affords: at most a seventh of one core.
    pub const PER_SECOND: NonZeroU32 = NonZeroU32::new(20_000).expect("the rate is not zero");

    /// Creates a budget with a second's worth saved up.
    #[must_use]
    pub fn new(per_second: NonZeroU32) -> Self {
        Self { cost: SAVED / per_second.get(), spent_until: Duration::ZERO }
    }

    /// Takes one parse from the budget. Returns whether there was one left.
    pub fn take(&mut self, now: Duration) -> bool {
        let spent_until = self.spent_until.max(now).saturating_add(self.cost);
        let has_one = spent_until <= now.saturating_add(SAVED);
        if has_one {
            self.spent_until = spent_until;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(budget: &mut Budget, now_ms: u64) -> u32 {
        let now = Duration::from_millis(now_ms);
        (0..100_000).take_while(|_| budget.take(now)).fold(0, |count, _| count + 1)
    }

    #[test]
    fn a_second_s_worth_is_saved_up_and_no_more() {
        let mut budget = Budget::new(Budget::PER_SECOND);
        let taken = [0, 0, 250, 250, 1250, 60_000, 60_000].map(|now_ms| taken(&mut budget, now_ms));
        assert_eq!(taken, [20_000, 0, 5_000, 0, 20_000, 20_000, 0]);
    }

    #[test]
    fn a_clock_that_goes_back_saves_nothing_up() {
        let mut budget = Budget::new(NonZeroU32::new(10).unwrap());
        assert_eq!([5_000, 4_000, 5_100].map(|now_ms| taken(&mut budget, now_ms)), [10, 0, 1]);
    }

    #[test]
    fn extreme_times_and_rates_do_not_panic() {
        let mut budget = Budget::new(NonZeroU32::MAX);
        assert!(budget.take(Duration::ZERO));
        let mut budget = Budget::new(NonZeroU32::MIN);
        assert!(budget.take(Duration::from_secs(u64::from(u32::MAX))));
        let _ = budget.take(Duration::MAX);
    }
}
