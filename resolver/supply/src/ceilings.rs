//! The trusted ceilings, shared by the heartbeat and the lookups.

use std::sync::{Mutex, MutexGuard};

use codes::{KeyspaceIndex, LinkId};
use holder::ceilings::ReportedCeiling;
use tokio::time::Instant;

use crate::{Clock, safety_rule};

/// The trusted ceilings of all keyspaces. See [`holder::ceilings`].
#[derive(Debug)]
pub struct SharedCeilings {
    clock: Clock,
    /// A std mutex: it is held for a few instructions and never across an await. Only cache misses
    /// reach it.
    trusted: Mutex<holder::Ceilings>,
}

impl SharedCeilings {
    /// Creates an empty collection.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, trusted: Mutex::new(holder::Ceilings::new(safety_rule::rules())) }
    }

    /// Returns the clock by which ceilings expire.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.clock
    }

    fn trusted(&self) -> MutexGuard<'_, holder::Ceilings> {
        self.trusted.lock().expect("no code panics while it holds this lock")
    }

    pub(super) fn trust(&self, index: KeyspaceIndex, told: ReportedCeiling) {
        self.trusted().trust(index, told);
    }

    /// Returns whether no link can have this id, because its number was never allocated.
    #[must_use]
    pub fn rules_out(&self, id: LinkId, now: Instant) -> bool {
        let Some((index, number)) = id.unpack() else { return false };
        self.trusted().rules_out(index, number, self.clock.moment(now))
    }
}
