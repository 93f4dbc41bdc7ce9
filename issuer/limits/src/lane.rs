//! Waiting for a rate to recover, in place of a refusal.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use crate::{Account, Pool};

/// A bounded number of places in which callers wait until a spent rate has recovered.
pub struct Lane {
    /// The places.
    pub places: Arc<Pool>,
    /// How long a caller may hold one.
    pub patience: Duration,
}

impl Lane {
    /// Spends from a rate, at once or as soon as it has recovered. Fails with the time until the
    /// rate recovers if that exceeds the lane's patience, or if all places are taken.
    pub async fn pass<T>(
        &self,
        account: Account,
        mut spend: impl FnMut() -> Result<T, Duration>,
    ) -> Result<T, Duration> {
        let mut wait = match spend() {
            Ok(spent) => return Ok(spent),
            Err(wait) => wait,
        };
        let _place = self.places.take(account, 1).map_err(|_| wait)?;
        let until = Instant::now() + self.patience;
        loop {
            if Instant::now() + wait > until {
                return Err(wait);
            }
            sleep(wait).await;
            match spend() {
                Ok(spent) => return Ok(spent),
                // Another caller was faster.
                Err(longer) => wait = longer.max(Duration::from_millis(1)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(8);

    #[tokio::test(start_paused = true)]
    async fn who_has_spent_a_rate_waits_for_it_and_few_wait_at_a_time() {
        let lane = Arc::new(Lane { places: Pool::of_clients((8, 1)), patience: PATIENCE });
        let one = Account::client([192, 0, 2, 1].into());
        let begun = Instant::now();
        let grown = begun + Duration::from_secs(6);
        let spend = move || {
            grown.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()).map_or(Ok(()), Err)
        };
        let waiting = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.pass(one, spend).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(lane.pass(one, spend).await, Err(Duration::from_secs(6)), "no place is left");
        assert_eq!(waiting.await.unwrap(), Ok(()));
        assert_eq!(begun.elapsed(), Duration::from_secs(6));
        let long = || Err::<(), _>(PATIENCE + Duration::from_secs(1));
        assert!(lane.pass(one, long).await.is_err());
        assert_eq!(begun.elapsed(), Duration::from_secs(6), "what takes too long is not waited for");
    }
}
