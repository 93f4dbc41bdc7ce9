//! When a delivery is tried again, and when a webhook is disabled. Pure values: times and random
//! bits are parameters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use store::AfterAttempt;

use ::webhooks::{Failure, Outcome};

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

/// Returns a wait changed by up to 10 % in both directions, so that deliveries that failed together
/// do not come back together.
fn jittered(wait: Duration, bits: u32) -> Duration {
    wait * (900 + bits % 201) / 1_000
}

/// Random bits with which a wait is not changed.
pub(super) const UNCHANGED: u32 = 100;

/// Returns what follows the latest attempt of a delivery. `made` counts its attempts with that one,
/// and `jitter` are random bits.
pub(super) fn next(outcome: &Outcome, made: u32, jitter: u32) -> AfterAttempt {
    let not_before = match outcome {
        Outcome::Delivered(_) => return AfterAttempt::Delivered,
        Outcome::Gone | Outcome::Failed(Failure { retry: None, .. }) => return AfterAttempt::Dead,
        Outcome::Failed(Failure { retry: Some(not_before), .. }) => *not_before,
    };
    let wait = usize::try_from(made).ok().and_then(|made| WAITS.get(made));
    wait.map_or(AfterAttempt::Dead, |wait| AfterAttempt::RetryIn(jittered(*wait, jitter).max(not_before)))
}

/// Returns whether a webhook that has failed since then is to be disabled: five days without a
/// success. To be asked when a delivery has died, not after each attempt: a webhook with few events
/// would be disabled by the first failure after a quiet week.
pub(super) fn is_exhausted(failing_since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(failing_since) >= MAX_FAILING
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn failed(retry: Option<Duration>) -> Outcome {
        Outcome::Failed(Failure { retry, ..Failure::again("busy") })
    }

    fn again() -> Outcome {
        failed(Some(Duration::ZERO))
    }

    #[test]
    fn a_failing_delivery_is_tried_ten_times_and_is_then_dead() {
        let mut made = 0;
        let mut waits = Vec::new();
        loop {
            made += 1;
            match next(&again(), made, UNCHANGED) {
                AfterAttempt::RetryIn(wait) => waits.push(wait.as_secs()),
                end => break assert_eq!(end, AfterAttempt::Dead),
            }
        }
        assert_eq!(made, 10);
        assert_eq!(waits, [5, 30, 120, 600, 3_600, 10_800, 28_800, 57_600, 86_400]);
        assert_eq!(waits.iter().sum::<u64>(), 52 * 3_600 + 12 * 60 + 35);
        assert_eq!(next(&again(), u32::MAX, UNCHANGED), AfterAttempt::Dead);
    }

    #[test]
    fn a_receiver_can_lengthen_a_wait_and_cannot_shorten_it() {
        let asks = |seconds| failed(Some(Duration::from_secs(seconds)));
        for (made, asked, waited) in [(1, 60, 60), (1, 3, 5), (4, 60, 600)] {
            let following = next(&asks(asked), made, UNCHANGED);
            assert_eq!(following, AfterAttempt::RetryIn(Duration::from_secs(waited)), "{made} {asked}");
        }
        assert_eq!(next(&asks(60), 10, UNCHANGED), AfterAttempt::Dead);
    }

    #[test]
    fn other_outcomes_end_a_delivery_at_once() {
        let delivered = Outcome::Delivered(200_u16.try_into().unwrap());
        assert_eq!(next(&delivered, 1, UNCHANGED), AfterAttempt::Delivered);
        assert_eq!(next(&Outcome::Gone, 1, UNCHANGED), AfterAttempt::Dead);
        assert_eq!(next(&failed(None), 1, UNCHANGED), AfterAttempt::Dead);
    }

    #[test]
    fn jitter_reaches_both_of_its_ends() {
        let hour = Duration::from_secs(3_600);
        for (bits, seconds) in [(0, 3_240), (UNCHANGED, 3_600), (200, 3_960)] {
            assert_eq!(jittered(hour, bits), Duration::from_secs(seconds), "{bits}");
        }
    }

    #[test]
    fn five_days_without_a_success_exhaust_a_webhook() {
        let at = |seconds: i64| Timestamp::from_second(1_000 + seconds).unwrap();
        let five_days = 5 * 24 * 3_600;
        assert!(!is_exhausted(at(0), at(five_days - 1)));
        assert!(is_exhausted(at(0), at(five_days)));
        assert!(!is_exhausted(Timestamp::MAX, at(0)), "a clock that was set back");
    }

    proptest! {
        #[test]
        fn jitter_changes_a_wait_by_at_most_a_tenth(bits in any::<u32>(), made in 1..10_usize) {
            let wait = jittered(WAITS[made], bits);
            prop_assert!(wait >= WAITS[made] * 9 / 10 && wait <= WAITS[made] * 11 / 10, "{:?}", wait);
        }
    }
}
