//! etcd as a process: the store, the lease of the leader key, and the copies of it that are behind.
//!
//! A restore takes the place of the store as `etcdutl snapshot restore --bump-revision` does: no lease survives it, no call
//! on its way to the old members reaches the new ones, and revisions go on where no client has been.

use issuer::ledger::{Snapshot, Txn, TxnOutcome};
use numbers::Epoch;

use super::plan::LEASE_TTL;
use crate::{Mutant, stores::FakeEtcd};

/// The store with what stands around it.
#[derive(Debug, Default)]
pub(super) struct Etcd {
    store: FakeEtcd,
    /// How often it was restored: calls to the members before that are lost.
    pub(super) history: u32,
    leader: usize,
    lease_until: u64,
    away_until: u64,
    stale: Option<Snapshot>,
    backup: Option<FakeEtcd>,
}

impl Etcd {
    /// The store, as of now: a lease that has run out takes the leader key with it.
    pub(super) fn at(&mut self, now: u64) -> &FakeEtcd {
        if self.store.leader.is_some() && now >= self.lease_until {
            self.store.vacate();
        }
        &self.store
    }

    /// Whether no call gets through.
    pub(super) fn is_away(&self, now: u64) -> bool {
        now < self.away_until
    }

    /// Loses its quorum for a while. Leases do not run out meanwhile: a new leader of etcd gives them a full time again.
    pub(super) fn go_away(&mut self, now: u64, length: u64) {
        self.at(now);
        self.away_until = now + length;
        self.lease_until = self.lease_until.max(self.away_until + LEASE_TTL);
    }

    /// Who holds the leader key.
    pub(super) fn leader(&mut self, now: u64) -> Option<(usize, Epoch)> {
        self.at(now).leader.map(|epoch| (self.leader, epoch))
    }

    /// Creates the leader key if nobody holds it.
    pub(super) fn campaign(&mut self, now: u64, issuer: usize) -> Option<Epoch> {
        self.at(now);
        let epoch = self.store.campaign()?;
        self.leader = issuer;
        self.lease_until = now + LEASE_TTL;
        Some(epoch)
    }

    /// Keeps a lease alive; false when it is gone.
    pub(super) fn beat(&mut self, now: u64, epoch: Epoch) -> bool {
        let holds = self.at(now).leader == Some(epoch);
        if holds {
            self.lease_until = now + LEASE_TTL;
        }
        holds
    }

    /// Gives the leader key up, if it is still of this term.
    pub(super) fn resign(&mut self, epoch: Epoch) {
        if self.store.leader == Some(epoch) {
            self.store.vacate();
        }
    }

    /// Ends the lease though its leader lives; whether there was one.
    pub(super) fn revoke(&mut self, now: u64) -> bool {
        let led = self.at(now).leader.is_some();
        if led {
            self.store.vacate();
        }
        led
    }

    /// Runs a transaction.
    pub(super) fn commit(&mut self, now: u64, txn: &Txn, mutant: Option<Mutant>) -> TxnOutcome {
        self.at(now);
        self.store.commit(txn, mutant)
    }

    /// Everything as of now, or as a member that is behind has it.
    pub(super) fn load(&mut self, stale: bool) -> Snapshot {
        let now = self.store.snapshot();
        if stale { self.stale.clone().unwrap_or(now) } else { now }
    }

    /// Leaves a member behind.
    pub(super) fn fall_behind(&mut self) {
        self.stale = Some(self.store.snapshot());
    }

    /// Copies the store.
    pub(super) fn back_up(&mut self) {
        self.backup = Some(self.store.clone());
    }

    /// Puts the backup in the place of the store; what holds from then on. None when there is no backup.
    pub(super) fn restore(&mut self) -> Option<Snapshot> {
        let mut restored = self.backup.take()?;
        let reached = loop {
            self.store.vacate();
            if let Some(epoch) = self.store.campaign() {
                break epoch;
            }
        };
        loop {
            restored.vacate();
            if restored.campaign() > Some(reached) {
                break;
            }
        }
        restored.vacate();
        self.store = restored;
        self.history += 1;
        self.stale = None;
        Some(self.store.snapshot())
    }
}
