//! Attempts at a call until it succeeds.

use std::time::Duration;

use tokio::time::sleep;

/// Pauses between attempts, from the first to the longest.
const RETRY: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// Attempts at a call that fails: logs the first failure and every tenth one, and waits longer each
/// time.
#[derive(Default)]
pub(crate) struct Attempts {
    pub(crate) count: u32,
}

impl Attempts {
    pub(crate) async fn failed(&mut self, what: &'static str, error: &(dyn std::error::Error + 'static)) {
        if self.count.is_multiple_of(10) {
            tracing::warn!(error, attempts = self.count + 1, "{what}");
        }
        let [first, longest] = RETRY;
        sleep(first.saturating_mul(1 << self.count.min(10)).min(longest)).await;
        self.count += 1;
    }
}
