//! One attempt to deliver an event, and what it decides.

use jiff::Timestamp;
use links::webhook::{StoredSecret, Webhook};
use store::{AfterAttempt, AttemptEnd, ClaimedDelivery, Disable};

use ::webhooks::{
    Attempt, Jitter, Next, Outcome, Reason, RetryAdvice, Secret, Sender, SignedHeaders, Timeouts, WebhookUrl,
    failing_since, is_exhausted, next, sign,
};

/// Makes an attempt.
pub(super) async fn attempt(
    sender: &Sender,
    webhook: &Webhook,
    delivery: &ClaimedDelivery,
    now: Timestamp,
) -> Attempt {
    let prepared = WebhookUrl::parse(&webhook.url, sender.policy())
        .map_err(|error| error.to_string())
        .and_then(|url| Ok((url, signed(webhook, delivery, now)?)));
    match prepared {
        Ok((url, headers)) => {
            sender.deliver(&url, &headers, delivery.body.as_bytes(), Timeouts::default()).await
        }
        // The operator may have changed the policy by mistake, so the schedule goes on.
        Err(error) => unsent(Reason::Unsendable(error)),
    }
}

fn unsent(reason: Reason) -> Attempt {
    Attempt { outcome: Outcome::Failed(reason, RetryAdvice::OnSchedule), excerpt: String::new() }
}

/// Signs with the secret, and with the former one while it still counts.
fn signed(webhook: &Webhook, delivery: &ClaimedDelivery, now: Timestamp) -> Result<SignedHeaders, String> {
    let secret = |stored: &StoredSecret| stored.reveal().parse::<Secret>().map_err(|error| error.to_string());
    let former = webhook.former.iter().filter(|(_, until)| *until > now);
    let former = former.map(|(stored, _)| secret(stored)).collect::<Result<Vec<_>, _>>()?;
    let id = delivery.message_id.parse().map_err(|error: ::webhooks::MessageIdError| error.to_string())?;
    Ok(sign(&secret(&webhook.secret)?, &former, &id, now, delivery.body.as_bytes()))
}

/// Decides what follows an attempt.
pub(super) fn end_of(
    webhook: &Webhook,
    delivery: &ClaimedDelivery,
    attempt: Attempt,
    now: Timestamp,
    jitter: Jitter,
) -> AttemptEnd {
    let Attempt { outcome, excerpt } = attempt;
    let since = failing_since(webhook.failing_since, &outcome, now);
    let (next, disable) = match next(&outcome, delivery.attempts, jitter) {
        Next::Done => (AfterAttempt::Delivered, None),
        Next::RetryIn(wait) => (AfterAttempt::RetryIn(wait), None),
        Next::Dead if is_exhausted(since, now) => (AfterAttempt::Dead, Some(Disable::Failing)),
        Next::Dead => (AfterAttempt::Dead, None),
        Next::Disable => (AfterAttempt::Dead, Some(Disable::Gone)),
    };
    let (status, error) = shown(&outcome);
    AttemptEnd {
        delivery: delivery.id,
        webhook: webhook.id,
        attempts: delivery.attempts,
        due_at: delivery.due_at,
        status,
        error,
        excerpt,
        next,
        disable,
    }
}

/// Returns the status of an outcome and the error for people.
fn shown(outcome: &Outcome) -> (Option<u16>, Option<String>) {
    match outcome {
        Outcome::Delivered(status) => (Some(status.as_u16()), None),
        Outcome::Gone => (Some(410), Some(Disable::Gone.reason().to_owned())),
        Outcome::Uncertain(silence) => (None, Some(silence.to_string())),
        Outcome::Failed(reason, _) => {
            let status = match reason {
                Reason::Redirect(status)
                | Reason::Throttled(status)
                | Reason::ClientError(status)
                | Reason::ServerError(status) => Some(status.as_u16()),
                _ => None,
            };
            (status, Some(reason.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use links::webhook::{DeliveryId, WebhookId};

    use super::*;
    use ::webhooks::Silence;

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

    fn end(webhook: &Webhook, attempts: u32, outcome: Outcome) -> AttemptEnd {
        let attempt = Attempt { outcome, excerpt: "x".to_owned() };
        end_of(webhook, &delivery(attempts), attempt, NOW, Jitter::NONE)
    }

    #[test]
    fn a_delivery_is_done_retried_or_dead_as_the_schedule_says() {
        let fine = webhook(None);
        let done = end(&fine, 1, Outcome::Delivered(200_u16.try_into().unwrap()));
        assert_eq!((done.next, done.status, done.error), (AfterAttempt::Delivered, Some(200), None));
        let late = end(&fine, 1, Outcome::Uncertain(Silence::Late));
        assert!(matches!(late.next, AfterAttempt::RetryIn(wait) if !wait.is_zero()), "{late:?}");
        let moved = Outcome::Failed(Reason::Redirect(302_u16.try_into().unwrap()), RetryAdvice::OnSchedule);
        let moved = end(&fine, 10, moved);
        assert_eq!((moved.next, moved.status, moved.disable), (AfterAttempt::Dead, Some(302), None));
        assert!(moved.error.is_some_and(|error| error.contains("redirect")));
    }

    #[test]
    fn a_receiver_that_is_gone_or_fails_for_five_days_disables_its_webhook() {
        let gone = end(&webhook(None), 1, Outcome::Gone);
        assert_eq!((gone.next, gone.disable), (AfterAttempt::Dead, Some(Disable::Gone)));
        let failed = || Outcome::Uncertain(Silence::Late);
        for (failing_for, attempts, disable) in [
            (Some(DAY * 5), 10, Some(Disable::Failing)),
            (Some(DAY * 4), 10, None),
            (Some(DAY * 5), 2, None),
            (None, 10, None),
        ] {
            assert_eq!(end(&webhook(failing_for), attempts, failed()).disable, disable, "{attempts}");
        }
    }

    #[test]
    fn the_former_secret_signs_until_its_end() {
        let count = |until: Timestamp| {
            let former = Some((StoredSecret::new("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"), until));
            let headers = signed(&Webhook { former, ..webhook(None) }, &delivery(1), NOW).unwrap();
            let [_, _, (_, signatures)] = headers.pairs();
            signatures.split(' ').count()
        };
        assert_eq!(count(NOW + SignedDuration::from_secs(1)), 2);
        assert_eq!(count(NOW), 1);
    }
}
