//! The interval between beats: shorter while numbers are scarce, and shortest when this holder
//! starves.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The minimum interval between two beats, as a fraction of the usual one, because each beat costs
/// the issuer a commit.
const LEAST_SHARE: u32 = 20;

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// The interval that the issuer asked for, in milliseconds; 0 for the usual one.
    asked_ms: AtomicU64,
    changed: Notify,
    /// Signals that a beat is to be sent at once.
    beat_requested: Notify,
}

impl Pace {
    /// Sets the interval that the issuer asks for, in milliseconds.
    pub(super) fn ask(&self, milliseconds: u64) {
        if self.asked_ms.swap(milliseconds, Ordering::Relaxed) != milliseconds {
            self.changed.notify_one();
        }
    }

    /// Requests a beat at once, so that the issuer learns what is in hand now.
    pub(super) fn request_beat(&self) {
        self.beat_requested.notify_one();
    }

    /// Waits until the next beat is due.
    pub(super) async fn wait(&self, usual: Duration) {
        let started = Instant::now();
        let least = usual / LEAST_SHARE;
        loop {
            let asked = match self.asked_ms.load(Ordering::Relaxed) {
                0 => usual,
                milliseconds => Duration::from_millis(milliseconds).clamp(least, usual),
            };
            tokio::select! {
                () = sleep_until(started + asked) => return,
                () = self.beat_requested.notified() => return sleep_until(started + least).await,
                () = self.changed.notified() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn beats_come_as_often_as_the_issuer_asks_and_at_once_when_they_are_wanted() {
        let pace = Pace::default();
        let timed = async || {
            let started = Instant::now();
            pace.wait(USUAL).await;
            started.elapsed().as_millis()
        };
        assert_eq!(timed().await, 10_000);
        pace.ask(2_000);
        assert_eq!(timed().await, 2_000);
        pace.request_beat();
        assert_eq!(timed().await, 500, "and no more often than that");
        pace.ask(60_000);
        assert_eq!(timed().await, 10_000, "never later than usual");
        pace.ask(0);
        assert_eq!(timed().await, 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_under_way_follows_the_issuer_too() {
        let pace = Pace::default();
        let started = Instant::now();
        let waits = pace.wait(USUAL);
        let asks = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            pace.ask(3_000);
        };
        tokio::join!(waits, asks);
        assert_eq!(started.elapsed(), Duration::from_secs(3));
    }
}
