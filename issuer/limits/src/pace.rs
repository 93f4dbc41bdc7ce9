//! The minimum rate at which a client has to send a body.

use std::{pin::pin, task::Poll, time::Duration};

use futures_util::poll;
use tokio::time::{Instant, timeout};

/// The time spent waiting for a client, and the bytes received meanwhile. The server's own time
/// does not count: a client that waits for a database is not slow.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    grace: Duration,
    bytes_per_second: u32,
    waited: Duration,
    received: u64,
}

/// The error for a client that sends too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSlow;

impl Pace {
    /// Creates a pace that allows `grace`, and a second for every `bytes_per_second` bytes.
    pub fn new(grace: Duration, bytes_per_second: u32) -> Self {
        Self { grace, bytes_per_second, waited: Duration::ZERO, received: 0 }
    }

    /// Waits for the next piece for as long as the client may still take.
    pub async fn wait<T>(&mut self, piece: impl Future<Output = T>) -> Result<T, TooSlow> {
        let mut piece = pin!(piece);
        // A piece that is available already takes no time, so the clock is not read.
        if let Poll::Ready(piece) = poll!(&mut piece) {
            return Ok(piece);
        }
        let earned =
            Duration::from_millis(self.received.saturating_mul(1_000) / u64::from(self.bytes_per_second));
        let begun = Instant::now();
        let waited = timeout((self.grace + earned).saturating_sub(self.waited), piece).await;
        self.waited += begun.elapsed();
        waited.map_err(|_| TooSlow)
    }

    /// Records received bytes, which extend the client's time.
    pub fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_earn_time_and_our_own_time_costs_nothing() {
        let mut pace = Pace::new(Duration::from_secs(10), 100);
        assert_eq!(pace.wait(sleep(Duration::from_secs(9))).await, Ok(()));
        sleep(Duration::from_secs(60)).await;
        pace.received(500);
        assert_eq!(pace.wait(sleep(Duration::from_secs(5))).await, Ok(()));
        assert_eq!(pace.wait(sleep(Duration::from_secs(2))).await, Err(TooSlow));
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_is_not_enough() {
        let (mut pace, begun) = (Pace::new(Duration::from_secs(10), 100), Instant::now());
        while pace.wait(sleep(Duration::from_secs(8))).await.is_ok() {
            pace.received(1);
        }
        assert!(begun.elapsed() < Duration::from_secs(11));
    }
}
