//! When a delivery is tried again, and when a webhook is disabled. Pure values: times and random
//! bits are parameters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::outcome::{Outcome, RetryAdvice};

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
const MAX_FAILING: SignedDuration = SignedDuration::from_hours(5 * 24);

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

/// Returns what follows the latest attempt of a delivery. `made` counts its attempts with that one.
#[must_use]
pub fn next(outcome: &Outcome, made: u32, jitter: Jitter) -> Next {
    let not_before = match outcome {
        Outcome::Delivered(_) => return Next::Done,
        Outcome::Gone => return Next::Disable,
        Outcome::Failed(_, RetryAdvice::GiveUp) => return Next::Dead,
        Outcome::Failed(_, RetryAdvice::NotBefore(wait)) => *wait,
        Outcome::Failed(_, RetryAdvice::OnSchedule) | Outcome::Uncertain(_) => Duration::ZERO,
    };
    let wait = usize::try_from(made).ok().and_then(|made| WAITS.get(made));
    wait.map_or(Next::Dead, |wait| Next::RetryIn(jitter.apply(*wait).max(not_before)))
}

/// Returns the time of the first failure since the last success, after an attempt: `before` is that
/// time before it.
#[must_use]
pub fn failing_since(before: Option<Timestamp>, outcome: &Outcome, now: Timestamp) -> Option<Timestamp> {
    match outcome {
        Outcome::Delivered(_) => None,
        _ => before.or(Some(now)),
    }
}

/// Returns whether a webhook that has failed since then is to be disabled: five days without a
/// success. To be asked when a delivery has died, not after each attempt: a webhook with few events
/// would be disabled by the first failure after a quiet week.
#[must_use]
pub fn is_exhausted(failing_since: Option<Timestamp>, now: Timestamp) -> bool {
    failing_since.is_some_and(|since| now.duration_since(since) >= MAX_FAILING)
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;
    use proptest::prelude::*;

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
            let mut made = 0;
            let mut waits = Vec::new();
            loop {
                made += 1;
                match next(&outcome, made, Jitter::NONE) {
                    Next::RetryIn(wait) => waits.push(wait.as_secs()),
                    end => break assert_eq!(end, Next::Dead),
                }
            }
            assert_eq!(made, 10);
            assert_eq!(waits, [5, 30, 120, 600, 3_600, 10_800, 28_800, 57_600, 86_400]);
            assert_eq!(waits.iter().sum::<u64>(), 52 * 3_600 + 12 * 60 + 35);
        }
        assert_eq!(next(&UNCERTAIN, u32::MAX, Jitter::NONE), Next::Dead);
    }

    #[test]
    fn a_receiver_can_lengthen_a_wait_and_cannot_shorten_it() {
        let asks = |seconds| failed(RetryAdvice::NotBefore(Duration::from_secs(seconds)));
        for (made, asked, waited) in [(1, 60, 60), (1, 3, 5), (4, 60, 600)] {
            let following = next(&asks(asked), made, Jitter::NONE);
            assert_eq!(following, Next::RetryIn(Duration::from_secs(waited)), "{made} {asked}");
        }
        assert_eq!(next(&asks(60), 10, Jitter::NONE), Next::Dead);
    }

    #[test]
    fn other_outcomes_end_a_delivery_at_once() {
        assert_eq!(next(&DELIVERED, 1, Jitter::NONE), Next::Done);
        assert_eq!(next(&Outcome::Gone, 1, Jitter::NONE), Next::Disable);
        assert_eq!(next(&failed(RetryAdvice::GiveUp), 1, Jitter::NONE), Next::Dead);
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
        let at = |seconds: i64| Timestamp::from_second(1_000 + seconds).unwrap();
        let five_days = 5 * 24 * 3_600;
        let failing = failing_since(failing_since(None, &UNCERTAIN, at(0)), &UNCERTAIN, at(100));
        assert_eq!(failing, Some(at(0)));
        assert!(!is_exhausted(failing, at(five_days - 1)));
        assert!(is_exhausted(failing, at(five_days)));
        assert_eq!(failing_since(failing, &DELIVERED, at(200)), None);
        assert!(!is_exhausted(None, Timestamp::MAX));
        assert!(!is_exhausted(Some(Timestamp::MAX), at(0)), "a clock that was set back");
    }

    proptest! {
        #[test]
        fn jitter_changes_a_wait_by_at_most_a_tenth(bits in any::<u32>(), made in 1..10_u32) {
            let Next::RetryIn(exact) = next(&UNCERTAIN, made, Jitter::NONE) else {
                panic!("the delivery is alive");
            };
            let Next::RetryIn(wait) = next(&UNCERTAIN, made, Jitter::from_bits(bits)) else {
                panic!("the delivery is alive");
            };
            prop_assert!(wait >= exact * 9 / 10 && wait <= exact * 11 / 10, "{:?}", wait);
        }
    }
}
