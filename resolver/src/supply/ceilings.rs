//! What the issuer said of the end of the allocated numbers, and for how long it may be believed (G2).
//!
//! 1. A ceiling is believed for nine tenths of the holder TTL that came with it, counted from *before* the beat was sent; the
//!    rest is for clocks that run at different speeds. The issuer allocates nothing above it for the whole TTL.
//! 2. A ceiling never sinks, not even if a ledger from a backup says less: numbers below the higher one may be in use.
//! 3. Nor is it below what the database has registered: the same backup would put it there.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use tokio::time::Instant;

use crate::codes::{KeyspaceIndex, LinkId};

/// The trusted copies of all keyspaces that this resolver asks about.
#[derive(Debug, Default)]
pub struct Ceilings {
    /// A std mutex: it is held for a few instructions and never across an await. Only misses of the cache come here.
    trusted: Mutex<HashMap<KeyspaceIndex, Trusted>>,
}

#[derive(Clone, Copy, Debug)]
struct Trusted {
    ceiling: u64,
    until: Instant,
}

impl Ceilings {
    fn trusted(&self) -> MutexGuard<'_, HashMap<KeyspaceIndex, Trusted>> {
        self.trusted.lock().expect("no code panics while it holds this lock")
    }

    /// Believes a ceiling that answered a beat.
    pub(super) fn trust(&self, index: KeyspaceIndex, ceiling: u64, sent: Instant, holder_ttl: Duration) {
        let until = sent + holder_ttl * 9 / 10;
        let mut trusted = self.trusted();
        let entry = trusted.entry(index).or_insert(Trusted { ceiling, until });
        entry.ceiling = entry.ceiling.max(ceiling);
        entry.until = entry.until.max(until);
    }

    /// Whether surely no link has this id: its number was never allocated.
    #[must_use]
    pub fn rules_out(&self, id: LinkId, now: Instant) -> bool {
        let Some((index, number)) = id.unpack() else { return false };
        self.trusted().get(&index).is_some_and(|trusted| number >= trusted.ceiling && now < trusted.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_is_believed_while_it_is_fresh_and_never_sinks() {
        let (sent, ttl) = (Instant::now(), Duration::from_secs(30));
        let index = KeyspaceIndex::new(1).unwrap();
        let id = |number| LinkId::new(index, number);
        let ceilings = Ceilings::default();
        assert!(!ceilings.rules_out(id(500), sent), "nothing is known");
        ceilings.trust(index, 100, sent, ttl);
        assert!(ceilings.rules_out(id(100), sent));
        assert!(!ceilings.rules_out(id(99), sent));
        let other = LinkId::new(KeyspaceIndex::new(2).unwrap(), 500);
        assert!(!ceilings.rules_out(other, sent), "another keyspace");
        let stale = sent + Duration::from_secs(27);
        assert!(!ceilings.rules_out(id(100), stale));
        ceilings.trust(index, 50, stale, ttl);
        assert!(!ceilings.rules_out(id(99), stale));
        assert!(ceilings.rules_out(id(100), stale), "fresh again, at the higher value");
    }
}
