//! Injection of faults, without any check of their consequences.

use super::{
    plan::{Blow, PAUSE_MAX},
    summary::Happening,
    world::{Event, World},
};

/// A fault that strikes at a time of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// A fault drawn from the plan. It also schedules the next one.
    Next,
    BackUp,
    CopyStore,
    FailOver,
    Restore,
}

impl World {
    pub(super) fn plan_faults(&mut self) {
        if !self.plan.blows.is_empty() {
            self.next_fault();
        }
        self.plan_fail_over();
        if let Some(restore) = self.plan.restore {
            self.agenda.at(restore.backup_at, Event::Fault(Fault::BackUp));
            self.agenda.at(restore.restore_at, Event::Fault(Fault::Restore));
        }
    }

    fn plan_fail_over(&mut self) {
        if let Some(fail_over) = self.plan.fail_over {
            self.agenda.at(fail_over.copied_at, Event::Fault(Fault::CopyStore));
            self.agenda.at(fail_over.fail_at, Event::Fault(Fault::FailOver));
        }
    }

    fn next_fault(&mut self) {
        let gap = self.rng.between(20, self.plan.blow_gap_max);
        self.agenda.after(gap, Event::Fault(Fault::Next));
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        if self.calm {
            return;
        }
        match fault {
            Fault::Next => {
                let blow = self.rng.pick(&self.plan.blows);
                self.blow(blow);
                self.next_fault();
            }
            Fault::BackUp => self.etcd.back_up(),
            Fault::CopyStore => {
                self.database.copy();
                self.checks.store_copied();
            }
            Fault::FailOver => {
                self.summary.add(Happening::FailOver, 1);
                self.database.fail_over();
                self.checks.failed_over(&self.database);
            }
            Fault::Restore => {
                if let Some(snapshot) = self.etcd.restore() {
                    self.summary.add(Happening::Restore, 1);
                    self.checks.restored(&snapshot);
                }
            }
        }
    }

    fn blow(&mut self, blow: Blow) {
        let now = self.agenda.now();
        // Every fault must end before the calm begins.
        let left = self.plan.calm_at - now;
        let length = self.rng.between(1, PAUSE_MAX).min(left);
        let issuer = self.rng.index(self.issuers.len());
        let holder = self.rng.index(self.current.len());
        match blow {
            Blow::CrashIssuer if self.issuers[issuer].up => {
                self.summary.add(Happening::IssuerCrash, 1);
                self.crash_issuer(issuer, length);
            }
            Blow::PauseIssuer if self.issuers[issuer].up => {
                self.summary.add(Happening::IssuerPause, 1);
                self.issuers[issuer].paused_until = now + length;
            }
            Blow::RetireIssuer if self.issuers[issuer].up && self.issuers[issuer].paused_until <= now => {
                self.summary.add(Happening::IssuerRetired, 1);
                self.retire(issuer);
            }
            Blow::RevokeLease => {
                let led = self.etcd.revoke(now);
                self.summary.add(Happening::LeaseRevoked, u64::from(led));
            }
            Blow::EtcdAway => {
                self.summary.add(Happening::EtcdAway, 1);
                self.etcd.go_away(now, length / 2);
            }
            Blow::StoreAway => {
                self.summary.add(Happening::StoreAway, 1);
                self.database.away_until = now + length / 2;
            }
            Blow::CrashHolder => {
                self.summary.add(Happening::HolderCrash, 1);
                self.crash_holder(holder);
            }
            Blow::PauseHolder | Blow::ReplaceHolder => self.pause_holder(holder, length, blow),
            Blow::CrashIssuer | Blow::PauseIssuer | Blow::RetireIssuer => {}
        }
    }

    /// Ends an issuer's process, and starts it again after at most `down_max` milliseconds.
    pub(super) fn crash_issuer(&mut self, issuer: usize, down_max: u64) {
        self.issuers[issuer].crash();
        let down = self.rng.between(0, down_max);
        self.agenda.after(down, Event::StartIssuer { issuer });
    }

    /// Ends a holder's process, and lets its supervisor start another.
    pub(super) fn crash_holder(&mut self, holder: usize) {
        if let Some(process) = self.current[holder].take() {
            self.kill(process);
            let down = self.rng.between(1, 300);
            self.agenda.after(down, Event::StartHolder { holder });
        }
    }

    /// Pauses a holder's process. In the case of [`Blow::ReplaceHolder`] its supervisor takes it
    /// for dead and starts another.
    fn pause_holder(&mut self, holder: usize, length: u64, blow: Blow) {
        let Some(process) = self.current[holder] else { return };
        self.processes[process].paused_until = self.agenda.now() + length;
        if blow == Blow::ReplaceHolder {
            self.summary.add(Happening::HolderReplaced, 1);
            self.current[holder] = None;
            let down = self.rng.between(1, 300);
            self.agenda.after(down, Event::StartHolder { holder });
        } else {
            self.summary.add(Happening::HolderPause, 1);
        }
    }
}
