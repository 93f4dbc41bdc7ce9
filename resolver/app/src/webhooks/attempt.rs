//! One attempt to deliver an event, and what it decides.

use jiff::Timestamp;
use links::webhook::Webhook;
use store::{AfterAttempt, AttemptEnd, ClaimedDelivery, Disable};

use super::schedule::{is_exhausted, next};
use ::webhooks::{Attempt, Failure, Outcome, SecretError, Sender, SignedHeaders, WebhookUrl, sign};

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
            let is_over = next == AfterAttempt::Dead && is_exhausted(since, now);
            (status.map(|status| status.as_u16()), Some(error), is_over.then_some(Disable::Failing))
        }
    };
    AttemptEnd { delivery: delivery.clone(), status, error, excerpt, next, disable }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use links::webhook::{DeliveryId, StoredSecret, WebhookId};

    use super::{super::schedule::UNCHANGED, *};

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
        let moved = Failure { status: Some(302_u16.try_into().unwrap()), ..Failure::again("redirect") };
        let moved = end(&fine, 10, moved.into());
        assert_eq!((moved.next, moved.status, moved.disable), (AfterAttempt::Dead, Some(302), None));
        assert_eq!(moved.error.as_deref(), Some("redirect"));
    }

    #[test]
    fn a_receiver_that_is_gone_or_fails_for_five_days_disables_its_webhook() {
        let gone = end(&webhook(None), 1, answered(Outcome::Gone));
        assert_eq!((gone.next, gone.disable), (AfterAttempt::Dead, Some(Disable::Gone)));
        for (failing_for, attempts, disable) in [
            (Some(DAY * 5), 10, Some(Disable::Failing)),
            (Some(DAY * 4), 10, None),
            (Some(DAY * 5), 2, None),
            (None, 10, None),
        ] {
            assert_eq!(
                end(&webhook(failing_for), attempts, Failure::again("late").into()).disable,
                disable,
                "{attempts}"
            );
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
}
