//! What is going to happen, in the order of time; what happens at the same time does so in the order of its planning.

use std::collections::BTreeMap;

/// A queue of events by time, in milliseconds.
#[derive(Debug)]
pub(super) struct Agenda<E> {
    now: u64,
    planned: u64,
    events: BTreeMap<(u64, u64), E>,
}

impl<E> Agenda<E> {
    /// Nothing planned, at a time past 0, so that "never" may be 0.
    pub(super) fn new() -> Self {
        Self { now: 1, planned: 0, events: BTreeMap::new() }
    }

    /// The time.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// How many events have been planned.
    pub(super) fn planned(&self) -> u64 {
        self.planned
    }

    /// Plans an event for some milliseconds from now.
    pub(super) fn after(&mut self, delay: u64, event: E) {
        self.at(self.now + delay, event);
    }

    /// Plans an event for a time, or for now when that has passed.
    pub(super) fn at(&mut self, time: u64, event: E) {
        self.planned += 1;
        self.events.insert((time.max(self.now), self.planned), event);
    }

    /// Moves on to the next event.
    pub(super) fn next(&mut self) -> Option<E> {
        let ((time, _), event) = self.events.pop_first()?;
        self.now = time;
        Some(event)
    }
}
