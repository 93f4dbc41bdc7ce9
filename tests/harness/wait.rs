//! Waiting for a condition instead of sleeping for a guessed time.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

/// Short beside every delay measured here, long beside what one poll costs.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Polls until the condition holds.
///
/// # Errors
/// It did not hold within the given time; `what` names it in the message, as in "a follower leads". A condition
/// that never returns counts as one that does not hold.
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
/// There was none within the given time.
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
