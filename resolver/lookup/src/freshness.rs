//! Freshness of cached links: how long a link may be served without a new read.
//!
//! While the change listener is connected, a link is current if it was read after the listener
//! connected. While it is disconnected, a link is served for [`AWAY`] after its read. So a change
//! is visible everywhere within that time, and usually at once.

use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use supply::safety_rule::{SafetyRule, SafetyRules};
use tokio::time::Instant;

/// How long a link may be served while the change listener is disconnected. It is longer than it
/// takes to notice a broken connection.
pub const AWAY: Duration = Duration::from_secs(2);
/// The value of `told_since` while the listener is disconnected. No read has so late a time.
const NEVER: u64 = u64::MAX;

/// When a link was read, in microseconds since the start of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadAt(pub(crate) u64);

/// The instant since which the change listener has missed no change.
#[derive(Debug)]
pub struct Freshness {
    start: Instant,
    told_since: AtomicU64,
    last: Mutex<ListeningSpan>,
    rules: SafetyRules,
}

/// The last span of time in which the change listener has missed no change.
#[derive(Clone, Copy, Debug)]
struct ListeningSpan {
    since: ReadAt,
    until: ReadAt,
}

impl Freshness {
    /// Creates the state of a listener that is not connected yet.
    pub fn new(rules: SafetyRules) -> Self {
        let last = ListeningSpan { since: ReadAt(NEVER), until: ReadAt(0) };
        Self { start: Instant::now(), told_since: AtomicU64::new(NEVER), last: Mutex::new(last), rules }
    }

    /// Records that no change is missed from this instant on.
    pub fn mark_told_since(&self, since: Instant) {
        let since = self.at(since);
        *self.last() = ListeningSpan { since, until: since };
        self.told_since.store(since.0, Ordering::Release);
    }

    /// Records that every change until this instant was reported, since the listener connected.
    pub fn mark_told_until(&self, until: Instant) {
        let until = self.at(until);
        let mut last = self.last();
        last.until = last.until.max(until);
    }

    /// Records that changes may be missed from now on.
    pub fn mark_not_told(&self) {
        self.told_since.store(NEVER, Ordering::Release);
    }

    /// Returns whether no change has been missed for at least `time`.
    pub fn is_told_for(&self, time: Duration) -> bool {
        let since = self.told_since.load(Ordering::Acquire);
        since != NEVER && self.start.elapsed() >= Duration::from_micros(since).saturating_add(time)
    }

    /// Returns the read time of a link that is read now.
    pub fn now(&self) -> ReadAt {
        self.at(Instant::now())
    }

    /// Returns whether the listener has missed no change of a link since the link was read.
    pub fn is_settled(&self, read_at: ReadAt) -> bool {
        let told_since = self.told_since.load(Ordering::Acquire);
        read_at.0 >= told_since || (told_since != NEVER && !self.rules.keep(SafetyRule::Settled))
    }

    /// Returns whether a link was read less than [`AWAY`] ago, so that it may be served whatever
    /// was missed.
    pub fn is_young(&self, read_at: ReadAt) -> bool {
        let until = Duration::from_micros(read_at.0).saturating_add(AWAY);
        self.start.elapsed() < until || !self.rules.keep(SafetyRule::Away)
    }

    /// Returns whether the link was read since the change listener last connected, so that it was
    /// current when the listener last heard from the database.
    pub fn was_told_of(&self, read_at: ReadAt) -> bool {
        read_at >= self.last().since
    }

    /// Returns whether a link is known to have been current at some time within the last `time`.
    pub fn was_current_within(&self, read_at: ReadAt, time: Duration) -> bool {
        let ListeningSpan { since, until } = *self.last();
        let current_at = if read_at >= since { read_at.max(until) } else { read_at };
        self.start.elapsed() <= Duration::from_micros(current_at.0).saturating_add(time)
    }

    /// Returns the read time of a link that was read this long ago.
    pub fn ago(&self, time: Duration) -> ReadAt {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        ReadAt(self.now().0.saturating_sub(micros))
    }

    fn last(&self) -> MutexGuard<'_, ListeningSpan> {
        self.last.lock().expect("no code panics while it holds this lock")
    }

    /// Returns the read time of a link that was read at `instant`.
    pub fn at(&self, instant: Instant) -> ReadAt {
        let since_start = instant.saturating_duration_since(self.start);
        ReadAt(u64::try_from(since_start.as_micros()).unwrap_or(NEVER - 1))
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_link_is_believed_for_long_only_if_no_change_can_have_been_missed_since() {
        let freshness = Freshness::new(SafetyRules::default());
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

    #[tokio::test(start_paused = true)]
    async fn a_link_was_current_until_the_listener_last_heard_from_the_database() {
        const SECOND: Duration = Duration::from_secs(1);
        let freshness = Freshness::new(SafetyRules::default());
        let early = freshness.now();
        advance(SECOND).await;
        freshness.mark_told_since(Instant::now());
        let late = freshness.now();
        advance(10 * SECOND).await;
        freshness.mark_told_until(Instant::now());
        freshness.mark_not_told();
        advance(SECOND).await;
        assert!(freshness.was_told_of(late) && !freshness.was_told_of(early));
        assert!(freshness.was_current_within(late, SECOND) && !freshness.was_current_within(early, SECOND));
        assert!(freshness.was_current_within(early, 12 * SECOND));
        freshness.mark_told_since(Instant::now());
        assert!(!freshness.was_told_of(late) && !freshness.was_current_within(late, 10 * SECOND));
    }
}
