//! The end of a run, after the last fault: every holder creates again, all stop, their leftovers
//! are swept, and every number is accounted for.

use std::collections::BTreeSet;

use super::{
    holder::Holder,
    plan::{LATE_MAX, PAUSE_MAX, RECOVERY_MAX, TICK},
    world::{Event, World},
};

/// The time limit in milliseconds for processes to stop.
const STOP_MAX: u64 = 2_500;
/// The time limit in milliseconds for the sweep.
const SWEEP_MAX: u64 = 40_000;
impl World {
    /// Begins the calm after the last fault. Processes that were replaced by another are ended.
    pub(super) fn calm_down(&mut self) {
        self.calm = true;
        for index in 0..self.processes.len() {
            if !self.current.contains(&Some(index)) {
                self.kill(index);
            }
        }
        self.recovered = Some(BTreeSet::new());
        self.agenda.after(RECOVERY_MAX, Event::Overdue);
    }

    /// Records that a holder has created a link, or heard that there is no number left.
    pub(super) fn recover(&mut self, holder: usize) {
        let Some(recovered) = &mut self.recovered else { return };
        recovered.insert(holder);
        if recovered.len() == self.current.len() {
            self.stop();
        }
    }

    pub(super) fn overdue(&mut self) {
        let Some(recovered) = &self.recovered else { return };
        let late: Vec<_> = (0..self.current.len()).filter(|holder| !recovered.contains(holder)).collect();
        self.checks.fail(format!(
            "liveness: of the holders {late:?} none has created a link for {RECOVERY_MAX} ms after the last fault"
        ));
    }

    /// Asks every process to stop.
    fn stop(&mut self) {
        self.recovered = None;
        for process in self.processes.iter().filter(|process| process.tasks.is_some()) {
            process.body.stop();
        }
        let limits = &self.plan.limits;
        let expired = STOP_MAX + limits.holder_ttl_ms + limits.reclaim_after_ms + 4 * TICK;
        let landed = self.plan.calm_at + LATE_MAX + PAUSE_MAX;
        let at = (self.agenda.now() + expired).max(landed);
        self.agenda.at(at, Event::Sweep);
        for index in 0..self.processes.len() {
            self.run_process(index);
        }
    }

    pub(super) fn sweep(&mut self) {
        for index in 0..self.processes.len() {
            self.kill(index);
        }
        let setup = self.setup("sweeper", &self.namespaces);
        let holder = self.current.len();
        self.start_process(holder, setup, Holder::sweep);
        self.agenda.after(SWEEP_MAX, Event::End);
    }

    pub(super) fn finish(&mut self) {
        self.swept = true;
        let now = self.agenda.now();
        let head = self.etcd.at(now).head().cloned();
        self.checks.at_the_end(head.as_ref(), &self.database, &mut self.summary);
    }
}
