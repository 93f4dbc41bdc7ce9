//! The ceilings: the end of the allocated numbers as reported by the issuer, and how long it is
//! trusted (G2).
//!
//! 1. A ceiling is trusted for nine tenths of the holder TTL that came with it, counted from before
//!    the beat was sent. The issuer allocates nothing above it for the whole TTL; the last tenth
//!    allows for clocks that run at different speeds.
//! 2. The monotonic clock stops while a machine is suspended, and the wall clock can be set. So a
//!    ceiling is trusted only until either clock says that its time is over.
//! 3. A ceiling never decreases. An issuer that was restored from a backup may report a lower one,
//!    but numbers below the higher one may be in use. For the same reason a ceiling is never below
//!    the end of the database's register.

use std::collections::BTreeMap;

use codes::KeyspaceIndex;
use numbers::Millis;

use crate::rules::{Rule, Rules};

/// An instant on two clocks, each in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time on the monotonic clock, from an arbitrary start.
    pub monotonic: Millis,
    /// The time on the wall clock, since the Unix epoch.
    pub wall: Millis,
}

/// A ceiling from the answer to a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCeiling {
    /// The first number that is not allocated, for certain.
    pub ceiling: u64,
    /// The end of the database's register, read after the answer.
    pub registered_end: u64,
    /// The instant at which the beat was sent, or an earlier one.
    pub sent: Moment,
    /// The holder TTL in milliseconds.
    pub holder_ttl_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Trusted {
    ceiling: u64,
    sent: Moment,
    lasts_ms: u64,
}

/// The trusted ceilings of all keyspaces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ceilings {
    trusted: BTreeMap<KeyspaceIndex, Trusted>,
    rules: Rules,
}

impl Trusted {
    /// Returns whether the ceiling is still within its time on both clocks. A wall clock that was
    /// set back proves nothing.
    fn is_fresh(&self, now: Moment, rules: Rules) -> bool {
        let by_wall = now.wall >= self.sent.wall && now.wall.since(self.sent.wall) < self.lasts_ms;
        let by_monotonic = now.monotonic.since(self.sent.monotonic) < self.lasts_ms;
        (by_wall && by_monotonic) || !rules.keep(Rule::Freshness)
    }
}

impl Ceilings {
    /// Creates an empty collection with these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { trusted: BTreeMap::new(), rules }
    }

    /// Adds or renews the ceiling of a keyspace.
    pub fn trust(&mut self, index: KeyspaceIndex, told: ReportedCeiling) {
        let tenths = if self.rules.keep(Rule::Margin) { 9 } else { 10 };
        let registered = if self.rules.keep(Rule::RegisteredEnd) { told.registered_end } else { 0 };
        let fresh = Trusted {
            ceiling: told.ceiling.max(registered),
            sent: told.sent,
            lasts_ms: told.holder_ttl_ms * tenths / 10,
        };
        let entry = self.trusted.entry(index).or_insert(fresh);
        let ceiling = entry.ceiling.max(fresh.ceiling);
        let ends = |trusted: &Trusted| trusted.sent.monotonic.0 + trusted.lasts_ms;
        if ends(&fresh) >= ends(entry) {
            *entry = fresh;
        }
        entry.ceiling = ceiling;
    }

    /// Returns the ceiling that is trusted now. No number from it on is allocated.
    #[must_use]
    pub fn fresh(&self, index: KeyspaceIndex, now: Moment) -> Option<u64> {
        let trusted = self.trusted.get(&index)?;
        trusted.is_fresh(now, self.rules).then_some(trusted.ceiling)
    }

    /// Returns the last known ceiling, and until when on the monotonic clock it is trusted.
    #[must_use]
    pub fn believed(&self, index: KeyspaceIndex) -> Option<(u64, Millis)> {
        let Trusted { ceiling, sent, lasts_ms } = *self.trusted.get(&index)?;
        let is_bounded = self.rules.keep(Rule::Freshness);
        Some((ceiling, Millis(if is_bounded { sent.monotonic.0 + lasts_ms } else { u64::MAX })))
    }

    /// Returns whether a number is not allocated, for certain.
    #[must_use]
    pub fn rules_out(&self, index: KeyspaceIndex, number: u64, now: Moment) -> bool {
        self.fresh(index, now).is_some_and(|ceiling| number >= ceiling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: u64 = 30_000;

    fn moment(monotonic: u64, wall: u64) -> Moment {
        Moment { monotonic: Millis(monotonic), wall: Millis(wall) }
    }

    fn told(ceiling: u64, sent: Moment) -> ReportedCeiling {
        ReportedCeiling { ceiling, registered_end: 0, sent, holder_ttl_ms: TTL }
    }

    fn keyspace(index: i64) -> KeyspaceIndex {
        KeyspaceIndex::new(index).unwrap()
    }

    #[test]
    fn a_ceiling_is_believed_while_it_is_fresh_and_never_sinks() {
        let (web, began) = (keyspace(1), moment(5_000, 90_000));
        let mut ceilings = Ceilings::default();
        assert!(!ceilings.rules_out(web, 500, began), "nothing is known");
        ceilings.trust(web, told(100, began));
        assert!(ceilings.rules_out(web, 100, began));
        assert!(!ceilings.rules_out(web, 99, began));
        assert!(!ceilings.rules_out(keyspace(2), 500, began), "another keyspace");
        let stale = moment(5_000 + 27_000, 90_000 + 27_000);
        assert!(!ceilings.rules_out(web, 100, stale));
        ceilings.trust(web, told(50, stale));
        assert!(!ceilings.rules_out(web, 99, stale));
        assert!(ceilings.rules_out(web, 100, stale), "fresh again, at the higher value");
    }

    #[test]
    fn a_ceiling_is_never_below_the_end_of_the_register() {
        let (web, now) = (keyspace(1), moment(0, 0));
        let mut ceilings = Ceilings::default();
        ceilings.trust(web, ReportedCeiling { registered_end: 300, ..told(100, now) });
        assert_eq!(ceilings.fresh(web, now), Some(300));
    }

    #[test]
    fn a_clock_that_stood_still_or_was_set_back_keeps_no_ceiling_fresh() {
        let web = keyspace(1);
        let mut ceilings = Ceilings::default();
        ceilings.trust(web, told(100, moment(0, 10_000_000)));
        let rules_out = |monotonic, wall| ceilings.rules_out(web, 100, moment(monotonic, wall));
        assert!(rules_out(26_000, 10_026_000));
        assert!(!rules_out(1_000, 13_600_000), "the machine was suspended for an hour");
        assert!(!rules_out(27_000, 10_001_000), "the wall clock was set back");
        assert!(!rules_out(1_000, 9_999_000), "it was set back to before the beat");
    }
}
