//! Freshness of cached links: how long a link may be served without a new read.
//!
//! While the change listener is connected, a link is current if it was read after the listener
//! connected. While it is disconnected, a link is served for [`AWAY`] after its read. So a change
//! is visible everywhere within that time, and usually at once.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use supply::safety_rule::{self, SafetyRule};
use tokio::time::Instant;

/// How long a link may be served while the change listener is disconnected. It is longer than it
/// takes to notice a broken connection.
pub const AWAY: Duration = Duration::from_secs(2);
/// The value of `told_since` while the listener is disconnected. No read has so late a time.
const NEVER: u64 = u64::MAX;

/// When a link was read, in microseconds since the start of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadAt(u64);

/// The instant since which the change listener has missed no change.
#[derive(Debug)]
pub struct Freshness {
    start: Instant,
    told_since: AtomicU64,
}

impl Freshness {
    /// Creates the state of a listener that is not connected yet.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now(), told_since: AtomicU64::new(NEVER) }
    }

    /// Records that no change is missed from this instant on.
    pub fn mark_told_since(&self, since: Instant) {
        self.told_since.store(self.stamp(since).0, Ordering::Release);
    }

    /// Records that changes may be missed from now on.
    pub fn mark_not_told(&self) {
        self.told_since.store(NEVER, Ordering::Release);
    }

    /// Returns whether no change has been missed for at least `time`.
    #[must_use]
    pub fn is_told_for(&self, time: Duration) -> bool {
        let since = self.told_since.load(Ordering::Acquire);
        since != NEVER && self.start.elapsed() >= Duration::from_micros(since).saturating_add(time)
    }

    /// Returns the read time of a link that is read now.
    #[must_use]
    pub fn now(&self) -> ReadAt {
        self.stamp(Instant::now())
    }

    /// Returns the read time of a link that was read at `instant`.
    #[must_use]
    pub fn at(&self, instant: Instant) -> ReadAt {
        self.stamp(instant)
    }

    /// Returns whether the listener has missed no change of a link since the link was read.
    #[must_use]
    pub fn is_settled(&self, read_at: ReadAt) -> bool {
        let told_since = self.told_since.load(Ordering::Acquire);
        read_at.0 >= told_since || (told_since != NEVER && !safety_rule::is_on(SafetyRule::Settled))
    }

    /// Returns whether a link was read less than [`AWAY`] ago, so that it may be served whatever
    /// was missed.
    #[must_use]
    pub fn is_young(&self, read_at: ReadAt) -> bool {
        let until = Duration::from_micros(read_at.0).saturating_add(AWAY);
        self.start.elapsed() < until || !safety_rule::is_on(SafetyRule::Away)
    }

    fn stamp(&self, at: Instant) -> ReadAt {
        let since_start = at.saturating_duration_since(self.start);
        ReadAt(u64::try_from(since_start.as_micros()).unwrap_or(NEVER - 1))
    }
}

impl Default for Freshness {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_is_believed_for_long_only_if_no_change_can_have_been_missed_since() {
        let freshness = Freshness::new();
        let early = freshness.now();
        advance(AWAY - Duration::from_millis(1)).await;
        assert!(freshness.is_young(early) && !freshness.is_settled(early), "nobody tells");
        advance(Duration::from_millis(1)).await;
        assert!(!freshness.is_young(early));
        freshness.mark_told_since(Instant::now());
        assert!(!freshness.is_settled(early), "what changed before that was not told");
        let late = freshness.now();
        assert!(!freshness.is_told_for(Duration::from_secs(1)));
        advance(Duration::from_secs(3_000)).await;
        assert!(freshness.is_settled(late) && freshness.is_told_for(Duration::from_secs(1)));
        freshness.mark_not_told();
        assert!(!freshness.is_settled(late) && !freshness.is_told_for(Duration::ZERO));
    }
}
