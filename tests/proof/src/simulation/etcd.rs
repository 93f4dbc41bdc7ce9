//! etcd as a process: the store, the lease of the leader key, and the copies of the store that are
//! behind.
//!
//! A restore replaces the store as `etcdutl snapshot restore --bump-revision` does. No lease
//! survives it, no call on its way to the old members reaches the new ones, and revisions continue
//! above those that any client has seen.

use issuer::ledger::{Snapshot, Txn, TxnOutcome};
use numbers::Epoch;

use super::plan::LEASE_TTL;
use crate::{Mutant, stores::FakeEtcd};

/// The store, with its lease, backup and members that are behind.
#[derive(Debug, Default)]
pub(super) struct Etcd {
    store: FakeEtcd,
    /// The count of restores. Calls to the members before the last one are lost.
    pub(super) history: u32,
    leader: usize,
    lease_until: u64,
    away_until: u64,
    stale: Option<Snapshot>,
    backup: Option<FakeEtcd>,
}

impl Etcd {
    /// Returns the store as of `now`. A lease that has expired removes the leader key.
    pub(super) fn at(&mut self, now: u64) -> &FakeEtcd {
        if self.store.leader.is_some() && now >= self.lease_until {
            self.store.vacate();
        }
        &self.store
    }

    /// Returns whether no call gets through.
    pub(super) fn is_away(&self, now: u64) -> bool {
        now < self.away_until
    }

    /// Loses the quorum for a while. Leases do not expire meanwhile, because a new leader of etcd
    /// renews them for a full TTL.
    pub(super) fn go_away(&mut self, now: u64, length: u64) {
        self.at(now);
        self.away_until = now + length;
        self.lease_until = self.lease_until.max(self.away_until + LEASE_TTL);
    }

    /// Returns the issuer that has the leader key, with its epoch.
    pub(super) fn leader(&mut self, now: u64) -> Option<(usize, Epoch)> {
        self.at(now).leader.map(|epoch| (self.leader, epoch))
    }

    /// Creates the leader key if it does not exist.
    pub(super) fn campaign(&mut self, now: u64, issuer: usize) -> Option<Epoch> {
        self.at(now);
        let epoch = self.store.campaign()?;
        self.leader = issuer;
        self.lease_until = now + LEASE_TTL;
        Some(epoch)
    }

    /// Renews a lease; false if it has ended.
    pub(super) fn beat(&mut self, now: u64, epoch: Epoch) -> bool {
        let holds = self.at(now).leader == Some(epoch);
        if holds {
            self.lease_until = now + LEASE_TTL;
        }
        holds
    }

    /// Deletes the leader key, if it is still of this term.
    pub(super) fn resign(&mut self, epoch: Epoch) {
        if self.store.leader == Some(epoch) {
            self.store.vacate();
        }
    }

    /// Ends the lease of a living leader. Returns whether there was one.
    pub(super) fn revoke(&mut self, now: u64) -> bool {
        let led = self.at(now).leader.is_some();
        if led {
            self.store.vacate();
        }
        led
    }

    /// Executes a transaction.
    pub(super) fn commit(&mut self, now: u64, txn: &Txn, mutant: Option<Mutant>) -> TxnOutcome {
        self.at(now);
        self.store.commit(txn, mutant)
    }

    /// Returns all records as of now, or as a member that is behind has them.
    pub(super) fn load(&mut self, stale: bool) -> Snapshot {
        let now = self.store.snapshot();
        if stale { self.stale.clone().unwrap_or(now) } else { now }
    }

    /// Leaves a member behind at the present state.
    pub(super) fn fall_behind(&mut self) {
        self.stale = Some(self.store.snapshot());
    }

    /// Makes a backup of the store.
    pub(super) fn back_up(&mut self) {
        self.backup = Some(self.store.clone());
    }

    /// Replaces the store by the backup, and returns the restored records; `None` without a backup.
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
