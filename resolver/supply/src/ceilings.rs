//! What the issuer said of the end of the allocated numbers, and for how long it may be believed (G2).
//!
//! 1. A ceiling is believed for nine tenths of the holder TTL that came with it, counted from *before* the beat was sent; the
//!    rest is for clocks that run at different speeds. The issuer allocates nothing above it for the whole TTL.
//!    They are also clocks of which one may stand still or jump: the monotonic one does not count while a machine is suspended, and
//!    the wall clock is set. A ceiling is believed only while neither says that the time is over.
//! 2. A ceiling never sinks, not even if a ledger from a backup says less: numbers below the higher one may be in use.
//! 3. Nor is it below what the database has registered: the same backup would put it there.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use codes::{KeyspaceIndex, LinkId};
use tokio::time::Instant;

use crate::guard::{self, Guard};

/// The trusted copies of all keyspaces that this resolver asks about.
#[derive(Debug, Default)]
pub struct Ceilings {
    /// A std mutex: it is held for a few instructions and never across an await. Only misses of the cache come here.
    trusted: Mutex<HashMap<KeyspaceIndex, Trusted>>,
}

#[derive(Clone, Copy, Debug)]
struct Trusted {
    ceiling: u64,
    sent: Moment,
    lasts: Duration,
}

/// An instant by both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    monotonic: Instant,
    wall: SystemTime,
}

impl Moment {
    pub(super) fn now() -> Self {
        Self { monotonic: Instant::now(), wall: SystemTime::now() }
    }
}

impl Trusted {
    /// Whether neither clock has counted as much as it lasts. A wall clock that was set back says nothing.
    fn is_fresh(&self, now: Moment) -> bool {
        let by_wall = now.wall.duration_since(self.sent.wall).is_ok_and(|passed| passed < self.lasts);
        (now.monotonic < self.sent.monotonic + self.lasts && by_wall) || !guard::is_on(Guard::Ceiling)
    }
}

impl Ceilings {
    fn trusted(&self) -> MutexGuard<'_, HashMap<KeyspaceIndex, Trusted>> {
        self.trusted.lock().expect("no code panics while it holds this lock")
    }

    /// Believes a ceiling that answered a beat.
    pub(super) fn trust(&self, index: KeyspaceIndex, ceiling: u64, sent: Moment, holder_ttl: Duration) {
        let tenths = if guard::is_on(Guard::Margin) { 9 } else { 10 };
        let lasts = guard::by_this_clock(holder_ttl * tenths / 10);
        let fresh = Trusted { ceiling, sent, lasts };
        let mut trusted = self.trusted();
        let entry = trusted.entry(index).or_insert(fresh);
        let ceiling = entry.ceiling.max(ceiling);
        if fresh.sent.monotonic + fresh.lasts >= entry.sent.monotonic + entry.lasts {
            *entry = fresh;
        }
        entry.ceiling = ceiling;
    }

    /// Whether surely no link has this id: its number was never allocated.
    #[must_use]
    pub fn rules_out(&self, id: LinkId, now: Instant) -> bool {
        self.rules_out_at(id, Moment { monotonic: now, wall: SystemTime::now() })
    }

    fn rules_out_at(&self, id: LinkId, now: Moment) -> bool {
        let Some((index, number)) = id.unpack() else { return false };
        self.trusted().get(&index).is_some_and(|trusted| number >= trusted.ceiling && trusted.is_fresh(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_believed_while_it_is_fresh_and_never_sinks() {
        let (began, ttl) = (Moment::now(), Duration::from_secs(30));
        let sent = began.monotonic;
        let index = KeyspaceIndex::new(1).unwrap();
        let id = |number| LinkId::new(index, number);
        let ceilings = Ceilings::default();
        assert!(!ceilings.rules_out(id(500), sent), "nothing is known");
        ceilings.trust(index, 100, began, ttl);
        assert!(ceilings.rules_out(id(100), sent));
        assert!(!ceilings.rules_out(id(99), sent));
        let other = LinkId::new(KeyspaceIndex::new(2).unwrap(), 500);
        assert!(!ceilings.rules_out(other, sent), "another keyspace");
        let stale = sent + Duration::from_secs(27);
        assert!(!ceilings.rules_out(id(100), stale));
        ceilings.trust(index, 50, Moment { monotonic: stale, ..began }, ttl);
        assert!(!ceilings.rules_out(id(99), stale));
        assert!(ceilings.rules_out(id(100), stale), "fresh again, at the higher value");
    }

    #[test]
    fn a_clock_that_stood_still_or_was_set_back_keeps_no_ceiling_fresh() {
        let (sent, ttl, second) = (Moment::now(), Duration::from_secs(30), Duration::from_secs(1));
        let index = KeyspaceIndex::new(1).unwrap();
        let ceilings = Ceilings::default();
        ceilings.trust(index, 100, sent, ttl);
        let rules_out = |monotonic: Duration, wall| {
            let now = Moment { monotonic: sent.monotonic + monotonic, wall };
            ceilings.rules_out_at(LinkId::new(index, 100), now)
        };
        assert!(rules_out(26 * second, sent.wall + 26 * second));
        assert!(!rules_out(second, sent.wall + 3_600 * second), "the machine was suspended for an hour");
        assert!(!rules_out(27 * second, sent.wall + second), "the wall clock was set back");
        assert!(!rules_out(second, sent.wall - second), "it was set back to before the beat");
    }
}
