//! Polling for a condition instead of sleeping for a guessed time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// The time between two polls: short compared with every delay measured here, long compared with
/// the cost of a poll.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until the condition holds.
///
/// # Errors
/// Returns an error if the condition does not hold within the given time. `what` names it in the
/// message, for example "a follower leads". A condition that does not return in time counts as
/// false.
pub async fn until(
    within: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> bool,
) -> anyhow::Result<()> {
    until_some(within, what, async || condition().await.then_some(())).await
}

/// Polls until there is a value, and returns it.
///
/// # Errors
/// Returns an error if there is no value within the given time.
pub async fn until_some<T>(
    within: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> anyhow::Result<T> {
    let deadline = Instant::now() + within;
    let mut polls = 0_u32;
    loop {
        match timeout_at(deadline, look()).await {
            Ok(Some(value)) => return Ok(value),
            Ok(None) if Instant::now() < deadline => {}
            Ok(None) => anyhow::bail!("waited {within:?} in vain ({polls} polls): {what}"),
            Err(_) => anyhow::bail!("waited {within:?} in vain (poll {polls} gave no answer): {what}"),
        }
        polls += 1;
        sleep(POLL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{until, until_some};

    #[tokio::test]
    async fn a_value_is_returned_as_soon_as_it_is_there() {
        let mut polls = 0;
        let found = until_some(Duration::from_secs(5), "the third poll", async || {
            polls += 1;
            (polls == 3).then_some(polls)
        });
        assert_eq!(found.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_message_names_what_did_not_happen() {
        let failed = until(Duration::from_millis(30), "pigs fly", async || false).await.unwrap_err();
        assert!(failed.to_string().ends_with("pigs fly"), "{failed}");
        let hung = until(Duration::from_millis(30), "it answers", std::future::pending).await.unwrap_err();
        assert!(hung.to_string().contains("gave no answer"), "{hung}");
    }
}
