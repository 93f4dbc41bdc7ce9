//! Raises of capacities by an operator: a rolling update, which reaches one holder after another.
//!
//! 1. A holder that the update has reached registers again in the same start, or starts with the
//!    new capacity.
//! 2. A holder that it has not reached yet still registers with the old capacity, and the issuer
//!    refuses that.

use super::world::{Event, World};

/// The time limit in milliseconds within which an update reaches every holder.
const ROLLOUT_MAX: u64 = 1_500;
/// The time limit in milliseconds within which a refused holder is updated.
const REPAIR_MAX: u64 = 400;
/// How many holders in a thousand register once more with their present configuration during an
/// update.
const RELOADS: u64 = 400;

impl World {
    pub(super) fn plan_raises(&mut self) {
        for (index, raise) in self.plan.raises.iter().enumerate() {
            self.agenda.at(raise.at, Event::Raise(index));
        }
    }

    /// Raises a capacity, as an operator does.
    pub(super) fn raise(&mut self, index: usize) {
        let raise = self.plan.raises[index];
        self.namespaces[raise.namespace].1 = raise.capacity;
        for holder in 0..self.current.len() {
            let delay = self.rng.between(0, ROLLOUT_MAX);
            self.agenda.after(delay, Event::Configure { holder, updates: true });
            if self.rng.chance(RELOADS) {
                let delay = self.rng.between(0, ROLLOUT_MAX);
                self.agenda.after(delay, Event::Configure { holder, updates: false });
            }
        }
    }

    /// Registers a holder again: with the capacities of the update, or with its present ones.
    pub(super) fn configure(&mut self, holder: usize, updates: bool) {
        if updates {
            self.configured[holder] = self.namespaces.clone();
        }
        let Some(index) = self.current[holder] else { return };
        let until = self.processes[index].paused_until;
        if until > self.agenda.now() {
            self.agenda.at(until, Event::Configure { holder, updates });
            return;
        }
        self.processes[index].body.configure(&self.configured[holder]);
        self.run_process(index);
    }

    /// Updates a holder that was refused because its configuration is older than the issuer's.
    pub(super) fn repair(&mut self, holder: usize) {
        let delay = self.rng.between(1, REPAIR_MAX);
        self.agenda.after(delay, Event::Configure { holder, updates: true });
    }
}
