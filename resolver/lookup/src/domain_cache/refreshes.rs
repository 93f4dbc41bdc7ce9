//! Refreshes of the settings, shared by all calls that wait for one.
//!
//! 1. One refresh is in progress at a time, so none overtakes another.
//! 2. A call is served by a refresh that began after the call, so the result has every change
//!    committed before the call.
//! 3. A call waits for at most two refreshes, the one in progress and the next, and each has a
//!    deadline. So no call waits longer than [`WAIT_MAX`] while the database hangs, however many
//!    calls wait.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use store::StoreError;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

/// Interval of refreshes when no call requests one.
const INTERVAL: Duration = Duration::from_millis(250);
const DEADLINE: Duration = Duration::from_millis(2_000);
const WAIT_MAX: Duration = Duration::from_millis(4_000);
const _: () = assert!(WAIT_MAX.as_millis() >= 2 * DEADLINE.as_millis());

/// The refreshes of one process, numbered from 1.
#[derive(Debug, Default)]
pub(super) struct Refreshes {
    /// The number of the refresh that began last.
    begun: AtomicU64,
    wanted: Notify,
    /// The number of the refresh that ended last, and its error if it failed.
    ended: watch::Sender<(u64, Option<Arc<StoreError>>)>,
}

impl Refreshes {
    /// Waits for a refresh that begins after this call.
    pub(super) async fn next(&self) -> Result<(), StoreError> {
        let number = self.begun.load(Ordering::SeqCst) + 1;
        let mut ended = self.ended.subscribe();
        self.wanted.notify_one();
        match timeout(WAIT_MAX, ended.wait_for(|(ended, _)| *ended >= number)).await {
            Ok(Ok(ended)) => match &ended.1 {
                Some(error) => Err(StoreError::Unreachable(Box::new(Arc::clone(error)))),
                None => Ok(()),
            },
            Ok(Err(_)) | Err(_) => Err(StoreError::TimedOut),
        }
    }

    /// Refreshes at intervals, and at once when a call waits.
    pub(super) async fn run<F>(&self, refresh: impl Fn() -> F)
    where
        F: Future<Output = Result<(), StoreError>> + Send,
    {
        let mut is_away = false;
        loop {
            tokio::select! {
                biased;
                () = self.wanted.notified() => {}
                () = sleep(INTERVAL) => {}
            }
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let refreshed = timeout(DEADLINE, refresh()).await.unwrap_or(Err(StoreError::TimedOut));
            if let Err(error) = &refreshed
                && !is_away
            {
                tracing::warn!(error = error as &dyn std::error::Error, "read domains");
            }
            is_away = refreshed.is_err();
            self.ended.send_replace((number, refreshed.err().map(Arc::new)));
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{join, time::Instant};

    use super::*;

    /// Runs calls beside refreshes that take a second each.
    async fn beside<T>(refreshes: &Refreshes, began: &AtomicU64, calls: impl Future<Output = T>) -> T {
        let refresh = || async {
            began.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            Ok(())
        };
        tokio::select! {
            done = calls => done,
            () = refreshes.run(refresh) => unreachable!("refreshes do not end"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn calls_share_a_refresh_that_began_after_them() {
        let (refreshes, began) = (Refreshes::default(), AtomicU64::new(0));
        let start = Instant::now();
        let late = async {
            sleep(Duration::from_millis(500)).await;
            refreshes.next().await.unwrap();
            (start.elapsed(), began.load(Ordering::SeqCst))
        };
        let calls = async { join!(refreshes.next(), late, refreshes.next()) };
        let (first, late, second) = beside(&refreshes, &began, calls).await;
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(late, (Duration::from_secs(2), 2), "the refresh under way had begun before the call");
    }

    #[tokio::test(start_paused = true)]
    async fn a_database_that_hangs_holds_no_call_for_longer_than_its_bound() {
        let (refreshes, start) = (Refreshes::default(), Instant::now());
        let call = async {
            assert!(refreshes.next().await.is_err());
            assert!(start.elapsed() <= WAIT_MAX);
        };
        let calls = async {
            join!(call, async {
                sleep(Duration::from_millis(100)).await;
                let asked = Instant::now();
                let waiting = (0..100).map(|_| refreshes.next());
                for refreshed in futures_util::future::join_all(waiting).await {
                    assert!(matches!(refreshed, Err(StoreError::Unreachable(_))));
                }
                assert!(asked.elapsed() <= WAIT_MAX, "they wait beside each other, not in turns");
            });
        };
        tokio::select! {
            () = calls => {}
            () = refreshes.run(std::future::pending) => {}
        }
    }
}
