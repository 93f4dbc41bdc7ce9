//! How long a cached link may be believed.
//!
//! While this process hears of every change, a link is right if it was read since then. While it does not, because the connection that
//! tells is broken, a link is believed for [`AWAY`]. So a change shows everywhere within that time, and at once as a rule.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use supply::guard::{self, Guard};
use tokio::time::Instant;

/// How long a link is believed while nobody tells of changes. It is longer than it takes to notice that.
pub const AWAY: Duration = Duration::from_secs(2);
/// Nothing was read at so late a time.
const NEVER: u64 = u64::MAX;

/// When a link was read, in microseconds since the start of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadAt(u64);

/// Since when no change was missed.
#[derive(Debug)]
pub struct Freshness {
    start: Instant,
    told_since: AtomicU64,
}

impl Freshness {
    /// Nobody tells yet.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now(), told_since: AtomicU64::new(NEVER) }
    }

    /// From this time on nothing is missed.
    pub fn mark_told_since(&self, since: Instant) {
        self.told_since.store(self.stamp(since).0, Ordering::Release);
    }

    /// Changes may be missed from now on.
    pub fn mark_not_told(&self) {
        self.told_since.store(NEVER, Ordering::Release);
    }

    /// Whether every change has been heard of for so long.
    #[must_use]
    pub fn is_told_for(&self, time: Duration) -> bool {
        let since = self.told_since.load(Ordering::Acquire);
        since != NEVER && self.start.elapsed() >= Duration::from_micros(since).saturating_add(time)
    }

    /// The mark of what is read now.
    #[must_use]
    pub fn now(&self) -> ReadAt {
        self.stamp(Instant::now())
    }

    /// The mark of what was read then.
    #[must_use]
    pub fn at(&self, instant: Instant) -> ReadAt {
        self.stamp(instant)
    }

    /// Whether no change of a link can have been missed since it was read.
    #[must_use]
    pub fn is_settled(&self, read_at: ReadAt) -> bool {
        let told_since = self.told_since.load(Ordering::Acquire);
        read_at.0 >= told_since || (told_since != NEVER && !guard::is_on(Guard::Settled))
    }

    /// Whether it was read so lately that it may be believed for a moment, whatever was missed.
    #[must_use]
    pub fn is_young(&self, read_at: ReadAt) -> bool {
        let until = Duration::from_micros(read_at.0).saturating_add(AWAY);
        self.start.elapsed() < until || !guard::is_on(Guard::Away)
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
