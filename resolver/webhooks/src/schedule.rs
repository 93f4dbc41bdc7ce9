//! When a delivery is tried again, and when a webhook is disabled. Pure values: times and random
//! bits are parameters.

use std::time::Duration;

use crate::{
    outcome::{Outcome, RetryAdvice},
    time::UnixSeconds,
};

/// The wait before each attempt, counted from the end of the one before it. All of them take 52
/// hours and 13 minutes, so that a receiver can be down for a weekend.
const WAITS: [Duration; 10] = [
    Duration::ZERO,
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(3 * 60 * 60),
    Duration::from_secs(8 * 60 * 60),
    Duration::from_secs(16 * 60 * 60),
    Duration::from_secs(24 * 60 * 60),
];

/// How long the deliveries of a webhook may fail without a success in between.
const MAX_FAILING: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// The number of attempts that were made of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Attempts(u32);

impl Attempts {
    /// Wraps a number of attempts.
    #[must_use]
    pub const fn new(made: u32) -> Self {
        Self(made)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Returns the number after one more attempt.
    #[must_use]
    pub const fn plus_one(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// A change of a wait by up to 10 % in both directions, so that deliveries that failed together do
/// not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jitter {
    permille: u32,
}

impl Jitter {
    /// No change.
    pub const NONE: Self = Self { permille: 1_000 };

    /// Creates a jitter from random bits.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self { permille: 900 + bits % 201 }
    }

    fn apply(self, wait: Duration) -> Duration {
        wait * self.permille / 1_000
    }
}

/// What follows an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the event was delivered.
    Done,
    /// Another attempt after this time.
    RetryIn(Duration),
    /// Nothing: the delivery is dead, and stays visible to the webhook's owner.
    Dead,
    /// Nothing, and the webhook is to be disabled: its receiver is gone.
    Disable,
}

/// Returns what follows the latest attempt of a delivery, which is among the attempts made.
#[must_use]
pub fn next(outcome: &Outcome, made: Attempts, jitter: Jitter) -> Next {
    let not_before = match outcome {
        Outcome::Delivered(_) => return Next::Done,
        Outcome::Gone => return Next::Disable,
        Outcome::Failed(_, RetryAdvice::GiveUp) => return Next::Dead,
        Outcome::Failed(_, RetryAdvice::NotBefore(wait)) => *wait,
        Outcome::Failed(_, RetryAdvice::OnSchedule) | Outcome::Uncertain(_) => Duration::ZERO,
    };
    let wait = usize::try_from(made.0).ok().and_then(|made| WAITS.get(made));
    wait.map_or(Next::Dead, |wait| Next::RetryIn(jitter.apply(*wait).max(not_before)))
}

/// Since when the deliveries of a webhook have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Health {
    failing_since: Option<UnixSeconds>,
}

impl Health {
    /// Wraps the stored time of the first failure since the last success, `None` if there is none.
    #[must_use]
    pub const fn new(failing_since: Option<UnixSeconds>) -> Self {
        Self { failing_since }
    }

    /// Returns the time of the first failure since the last success.
    #[must_use]
    pub const fn failing_since(self) -> Option<UnixSeconds> {
        self.failing_since
    }

    /// Returns the health after an attempt.
    #[must_use]
    pub fn after(self, outcome: &Outcome, now: UnixSeconds) -> Self {
        match outcome {
            Outcome::Delivered(_) => Self::default(),
            _ => Self { failing_since: self.failing_since.or(Some(now)) },
        }
    }

    /// Tells whether the webhook is to be disabled: five days without a success. To be asked when a
    /// delivery has died, not after each attempt: a webhook with few events would be disabled by
    /// the first failure after a quiet week.
    #[must_use]
    pub fn is_exhausted(self, now: UnixSeconds) -> bool {
        self.failing_since.is_some_and(|since| now.since(since) >= MAX_FAILING)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ureq::http::StatusCode;

    use super::*;
    use crate::outcome::{Reason, Silence};

    const DELIVERED: Outcome = Outcome::Delivered(StatusCode::OK);
    const UNCERTAIN: Outcome = Outcome::Uncertain(Silence::Late);

    fn failed(advice: RetryAdvice) -> Outcome {
        Outcome::Failed(Reason::Busy, advice)
    }

    #[test]
    fn a_failing_delivery_is_tried_ten_times_and_is_then_dead() {
        for outcome in [failed(RetryAdvice::OnSchedule), UNCERTAIN] {
            let mut made = Attempts::default();
            let mut waits = Vec::new();
            loop {
                made = made.plus_one();
                match next(&outcome, made, Jitter::NONE) {
                    Next::RetryIn(wait) => waits.push(wait.as_secs()),
                    end => break assert_eq!(end, Next::Dead),
                }
            }
            assert_eq!(made.get(), 10);
            assert_eq!(waits, [5, 30, 120, 600, 3_600, 10_800, 28_800, 57_600, 86_400]);
            assert_eq!(waits.iter().sum::<u64>(), 52 * 3_600 + 12 * 60 + 35);
        }
        assert_eq!(next(&UNCERTAIN, Attempts::new(u32::MAX), Jitter::NONE), Next::Dead);
    }

    #[test]
    fn a_receiver_can_lengthen_a_wait_and_cannot_shorten_it() {
        let asks = |seconds| failed(RetryAdvice::NotBefore(Duration::from_secs(seconds)));
        for (made, asked, waited) in [(1, 60, 60), (1, 3, 5), (4, 60, 600)] {
            let following = next(&asks(asked), Attempts::new(made), Jitter::NONE);
            assert_eq!(following, Next::RetryIn(Duration::from_secs(waited)), "{made} {asked}");
        }
        assert_eq!(next(&asks(60), Attempts::new(10), Jitter::NONE), Next::Dead);
    }

    #[test]
    fn other_outcomes_end_a_delivery_at_once() {
        let first = Attempts::new(1);
        assert_eq!(next(&DELIVERED, first, Jitter::NONE), Next::Done);
        assert_eq!(next(&Outcome::Gone, first, Jitter::NONE), Next::Disable);
        assert_eq!(next(&failed(RetryAdvice::GiveUp), first, Jitter::NONE), Next::Dead);
    }

    #[test]
    fn jitter_reaches_both_of_its_ends() {
        let hour = Duration::from_secs(3_600);
        assert_eq!(Jitter::from_bits(0).apply(hour), Duration::from_secs(3_240));
        assert_eq!(Jitter::from_bits(100), Jitter::NONE);
        assert_eq!(Jitter::from_bits(200).apply(hour), Duration::from_secs(3_960));
    }

    #[test]
    fn five_days_without_a_success_exhaust_a_webhook() {
        let at = |seconds| UnixSeconds::new(1_000 + seconds);
        let five_days = 5 * 24 * 3_600;
        let failing = Health::default().after(&UNCERTAIN, at(0)).after(&UNCERTAIN, at(100));
        assert_eq!(failing.failing_since(), Some(at(0)));
        assert!(!failing.is_exhausted(at(five_days - 1)));
        assert!(failing.is_exhausted(at(five_days)));
        let healthy = failing.after(&DELIVERED, at(200));
        assert_eq!(healthy, Health::new(None));
        assert!(!healthy.is_exhausted(at(u64::MAX - 1_000)));
    }

    #[test]
    fn a_clock_that_was_set_back_exhausts_nothing() {
        assert!(!Health::new(Some(UnixSeconds::new(u64::MAX))).is_exhausted(UnixSeconds::new(0)));
    }

    proptest! {
        #[test]
        fn jitter_changes_a_wait_by_at_most_a_tenth(bits in any::<u32>(), made in 1..10_u32) {
            let Next::RetryIn(exact) = next(&UNCERTAIN, Attempts::new(made), Jitter::NONE) else {
                panic!("the delivery is alive");
            };
            let Next::RetryIn(wait) = next(&UNCERTAIN, Attempts::new(made), Jitter::from_bits(bits)) else {
                panic!("the delivery is alive");
            };
            prop_assert!(wait >= exact * 9 / 10 && wait <= exact * 11 / 10, "{:?}", wait);
        }
    }
}
