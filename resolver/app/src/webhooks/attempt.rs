//! One attempt to deliver an event, what it decides, and when a delivery is tried again. Times and
//! random bits are parameters.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use links::webhook::Webhook;
use store::{AfterAttempt, AttemptEnd, ClaimedDelivery, Disable};

use ::webhooks::{Attempt, Failure, Outcome, SecretError, Sender, SignedHeaders, WebhookUrl, sign};

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

/// How long the deliveries of a webhook may fail without a success in between. It counts when a
/// delivery has died, not after each attempt: a webhook with few events would be disabled by the
/// first failure after a quiet week.
const MAX_FAILING: SignedDuration = SignedDuration::from_hours(5 * 24);

/// Random bits with which a wait is not changed.
pub(super) const UNCHANGED: u32 = 100;

pub(super) async fn attempt(
    sender: &Sender,
    webhook: &Webhook,
    delivery: &ClaimedDelivery,
    now: Timestamp,
) -> Attempt {
    let prepared = WebhookUrl::parse(&webhook.url, &sender.policy)
        .map_err(|error| error.to_string())
        .and_then(|url| Ok((url, signed(webhook, delivery, now).map_err(|error| error.to_string())?)));
    match prepared {
        Ok((url, headers)) => sender.deliver(&url, &headers, delivery.body.as_bytes()).await,
        // The operator may have changed the policy by mistake, so the schedule goes on.
        Err(error) => Failure::again(format!("the request cannot be sent: {error}")).into(),
    }
}

/// Signs with the secret, and with the former one while it still counts.
fn signed(
    webhook: &Webhook,
    delivery: &ClaimedDelivery,
    now: Timestamp,
) -> Result<SignedHeaders, SecretError> {
    let former = webhook.former.iter().filter(|(_, until)| *until > now).map(|(secret, _)| secret);
    let secrets: Vec<&str> =
        std::iter::once(&webhook.secret).chain(former).map(|secret| secret.reveal()).collect();
    sign(&secrets, &delivery.message_id, now, delivery.body.as_bytes())
}

/// Decides what follows an attempt. `jitter` are random bits.
pub(super) fn end_of(
    webhook: &Webhook,
    delivery: &ClaimedDelivery,
    attempt: Attempt,
    now: Timestamp,
    jitter: u32,
) -> AttemptEnd {
    let Attempt { outcome, excerpt } = attempt;
    let next = next(&outcome, delivery.attempts, jitter);
    let (status, error, disable) = match outcome {
        Outcome::Delivered(status) => (Some(status.as_u16()), None, None),
        Outcome::Gone => (Some(410), Some(Disable::Gone.reason().to_owned()), Some(Disable::Gone)),
        Outcome::Failed(Failure { status, error, .. }) => {
            let since = webhook.failing_since.unwrap_or(now);
            let is_over = next == AfterAttempt::Dead && now.duration_since(since) >= MAX_FAILING;
            (status.map(|status| status.as_u16()), Some(error), is_over.then_some(Disable::Failing))
        }
    };
    AttemptEnd { delivery: delivery.clone(), status, error, excerpt, next, disable }
}

/// Returns a wait changed by up to 10 % in both directions, so that deliveries that failed together
/// do not come back together.
fn jittered(wait: Duration, bits: u32) -> Duration {
    wait * (900 + bits % 201) / 1_000
}

/// Returns what follows the latest attempt of a delivery. `made` counts its attempts with that one,
/// and `jitter` are random bits.
fn next(outcome: &Outcome, made: u32, jitter: u32) -> AfterAttempt {
    let not_before = match outcome {
        Outcome::Delivered(_) => return AfterAttempt::Delivered,
        Outcome::Gone | Outcome::Failed(Failure { retry: None, .. }) => return AfterAttempt::Dead,
        Outcome::Failed(Failure { retry: Some(not_before), .. }) => *not_before,
    };
    let wait = usize::try_from(made).ok().and_then(|made| WAITS.get(made));
    wait.map_or(AfterAttempt::Dead, |wait| AfterAttempt::RetryIn(jittered(*wait, jitter).max(not_before)))
}

#[cfg(test)]
mod tests {
    use links::webhook::{DeliveryId, StoredSecret, WebhookId};

    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);
    const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

    fn webhook(failing_for: Option<SignedDuration>) -> Webhook {
        let failing_since = failing_for.map(|since| NOW - since);
        Webhook { failing_since, ..super::super::tests::webhook(3, "https://a.test/") }
    }

    fn delivery(attempts: u32) -> ClaimedDelivery {
        ClaimedDelivery {
            id: DeliveryId::from_stored(1),
            webhook: WebhookId::from_stored(3),
            message_id: "msg_1".to_owned(),
            attempts,
            due_at: NOW,
            body: "{}".to_owned(),
        }
    }

    fn end(webhook: &Webhook, attempts: u32, attempt: Attempt) -> AttemptEnd {
        end_of(webhook, &delivery(attempts), attempt, NOW, UNCHANGED)
    }

    fn answered(outcome: Outcome) -> Attempt {
        Attempt { outcome, excerpt: "x".to_owned() }
    }

    #[test]
    fn a_delivery_is_done_retried_or_dead_as_the_schedule_says() {
        let fine = webhook(None);
        let done = end(&fine, 1, answered(Outcome::Delivered(200_u16.try_into().unwrap())));
        assert_eq!((done.next, done.status, done.error), (AfterAttempt::Delivered, Some(200), None));
        let late = end(&fine, 1, Failure::again("late").into());
        assert!(matches!(late.next, AfterAttempt::RetryIn(wait) if !wait.is_zero()), "{late:?}");
        let status = Some(302_u16.try_into().unwrap());
        let moved = Failure { status, retry: None, ..Failure::again("redirect") };
        let moved = end(&fine, 1, moved.into());
        assert_eq!((moved.next, moved.status, moved.disable), (AfterAttempt::Dead, Some(302), None));
        assert_eq!(moved.error.as_deref(), Some("redirect"));
    }

    #[test]
    fn a_receiver_that_is_gone_or_fails_for_five_days_disables_its_webhook() {
        let gone = end(&webhook(None), 1, answered(Outcome::Gone));
        assert_eq!((gone.next, gone.disable), (AfterAttempt::Dead, Some(Disable::Gone)));
        for (failing_for, attempts, disable) in [
            (Some(DAY * 5), 10, Some(Disable::Failing)),
            (Some(DAY * 5 - SignedDuration::from_secs(1)), 10, None),
            // A clock that was set back.
            (Some(-DAY), 10, None),
            (Some(DAY * 5), 2, None),
            (None, 10, None),
        ] {
            let end = end(&webhook(failing_for), attempts, Failure::again("late").into());
            assert_eq!(end.disable, disable, "{attempts}");
        }
    }

    #[test]
    fn the_former_secret_signs_until_its_end() {
        let count = |until: Timestamp| {
            let former = Some((StoredSecret::new("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"), until));
            let [_, _, (_, signatures)] =
                signed(&Webhook { former, ..webhook(None) }, &delivery(1), NOW).unwrap();
            signatures.split(' ').count()
        };
        assert_eq!(count(NOW + SignedDuration::from_secs(1)), 2);
        assert_eq!(count(NOW), 1);
    }

    fn failed(not_before: Duration) -> Outcome {
        Outcome::Failed(Failure { retry: Some(not_before), ..Failure::again("busy") })
    }

    #[test]
    fn a_failing_delivery_is_tried_ten_times_and_is_then_dead() {
        let mut made = 0;
        let mut waits = Vec::new();
        loop {
            made += 1;
            match next(&failed(Duration::ZERO), made, UNCHANGED) {
                AfterAttempt::RetryIn(wait) => waits.push(wait.as_secs()),
                end => break assert_eq!(end, AfterAttempt::Dead),
            }
        }
        assert_eq!(made, 10);
        assert_eq!(waits, [5, 30, 120, 600, 3_600, 10_800, 28_800, 57_600, 86_400]);
        assert_eq!(waits.iter().sum::<u64>(), 52 * 3_600 + 12 * 60 + 35);
        assert_eq!(next(&failed(Duration::ZERO), u32::MAX, UNCHANGED), AfterAttempt::Dead);
    }

    #[test]
    fn a_receiver_can_lengthen_a_wait_and_cannot_shorten_it() {
        let asks = |seconds| failed(Duration::from_secs(seconds));
        for (made, asked, waited) in [(1, 60, 60), (1, 3, 5), (4, 60, 600)] {
            let following = next(&asks(asked), made, UNCHANGED);
            assert_eq!(following, AfterAttempt::RetryIn(Duration::from_secs(waited)), "{made} {asked}");
        }
        assert_eq!(next(&asks(60), 10, UNCHANGED), AfterAttempt::Dead);
    }

    #[test]
    fn jitter_changes_a_wait_by_at_most_a_tenth_and_reaches_both_ends() {
        let hour = Duration::from_secs(3_600);
        for (bits, seconds) in [(0, 3_240), (UNCHANGED, 3_600), (200, 3_960)] {
            assert_eq!(jittered(hour, bits), Duration::from_secs(seconds), "{bits}");
        }
        for (bits, wait) in (0..1_000).chain([u32::MAX]).flat_map(|bits| WAITS.map(|wait| (bits, wait))) {
            let changed = jittered(wait, bits);
            assert!(changed >= wait * 9 / 10 && changed <= wait * 11 / 10, "{bits} {wait:?}");
        }
    }
}
