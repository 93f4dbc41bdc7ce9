//! The queue of events, ordered by time; events at the same time keep the order in which they were
//! planned.

use std::collections::BTreeMap;

/// A queue of events by time, in milliseconds.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    now: u64,
    planned: u64,
    events: BTreeMap<(u64, u64), E>,
}

impl<E> Agenda<E> {
    /// Creates an empty queue. The time starts at 1, so that 0 may mean "never".
    pub(super) fn new() -> Self {
        Self { now: 1, planned: 0, events: BTreeMap::new() }
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Returns the count of events planned so far.
    pub(super) fn planned(&self) -> u64 {
        self.planned
    }

    /// Plans an event for `delay` milliseconds from now.
    pub(super) fn after(&mut self, delay: u64, event: E) {
        self.at(self.now + delay, event);
    }

    /// Plans an event for a time, or for now if that has passed.
    pub(super) fn at(&mut self, time: u64, event: E) {
        self.planned += 1;
        self.events.insert((time.max(self.now), self.planned), event);
    }

    /// Advances to the next event.
    pub(super) fn next(&mut self) -> Option<E> {
        let ((time, _), event) = self.events.pop_first()?;
        self.now = time;
        Some(event)
    }
}
