//! The plan of a run, drawn from its seed: the size of the system, and the faults with their
//! frequencies. All times are in milliseconds.

use issuer::core::Limits;

use super::rng::Rng;
use crate::Mutant;

/// The interval at which a leader renews its lease and every issuer looks for silent holders.
pub(super) const TICK: u64 = 250;
/// The TTL of the leader key's lease.
pub(super) const LEASE_TTL: u64 = 1_000;
/// The longest pause of a process, longer than every TTL.
pub(super) const PAUSE_MAX: u64 = 4_000;
/// The longest delay of a copy that its sender has given up.
pub(super) const LATE_MAX: u64 = 5_000;
/// The time limit after the last fault within which every holder must create again.
pub(super) const RECOVERY_MAX: u64 = 12_000;

/// Faults that strike once at a time, each with its weight in a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blow {
    CrashIssuer,
    PauseIssuer,
    RetireIssuer,
    RevokeLease,
    EtcdAway,
    CrashHolder,
    PauseHolder,
    ReplaceHolder,
    StoreAway,
}

impl Blow {
    const ALL: [Self; 9] = [
        Self::CrashIssuer,
        Self::PauseIssuer,
        Self::RetireIssuer,
        Self::RevokeLease,
        Self::EtcdAway,
        Self::CrashHolder,
        Self::PauseHolder,
        Self::ReplaceHolder,
        Self::StoreAway,
    ];
}

/// Faults that may strike any message, with rates in thousandths.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rates {
    pub(super) call_lost: u64,
    pub(super) call_doubled: u64,
    pub(super) call_delayed: u64,
    pub(super) txn_lost: u64,
    pub(super) txn_reply_lost: u64,
    pub(super) txn_late: u64,
    pub(super) stale_read: u64,
    pub(super) insert_unknown: u64,
    pub(super) store_failed: u64,
}

/// A restore of etcd: the time of the backup, and the time at which it replaces the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restore {
    pub(super) backup_at: u64,
    pub(super) restore_at: u64,
}

/// A failover of the database to a copy that is behind. Commits in between are lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailOver {
    pub(super) copied_at: u64,
    pub(super) fail_at: u64,
}

/// A capacity that an operator raises, one holder after another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    pub(super) at: u64,
    pub(super) namespace: usize,
    pub(super) capacity: u64,
}

/// The system of a seed, and its faults.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) issuers: usize,
    pub(super) holders: usize,
    pub(super) creators: usize,
    /// The first capacity of each namespace.
    pub(super) capacities: Vec<u64>,
    pub(super) raises: Vec<Raise>,
    pub(super) limits: Limits,
    /// The longest pause between two creates of one creator.
    pub(super) think_max: u64,
    /// Whether holders make, fill and give up reservations beside their creates.
    pub(super) reserves: bool,
    /// How many creates in a thousand have a URL that others create too.
    pub(super) shared_urls: u64,
    pub(super) rates: Rates,
    pub(super) blows: Vec<Blow>,
    pub(super) blow_gap_max: u64,
    /// The time at which the last fault has ended.
    pub(super) calm_at: u64,
    pub(super) restore: Option<Restore>,
    pub(super) fail_over: Option<FailOver>,
}

impl Plan {
    pub(super) fn draw(rng: &mut Rng, mutant: Option<Mutant>) -> Self {
        let calm_at = rng.between(3_000, 9_000);
        let backup_at = rng.between(200, calm_at / 2);
        let restore_at = rng.between(backup_at + 100, calm_at);
        let namespaces = rng.pick(&[1, 1, 2, 3]);
        let capacities: Vec<_> =
            (0..namespaces).map(|_| rng.pick(&[12, 60, 300, 1_500, 4_000, 1 << 20])).collect();
        let raises = raises(rng, calm_at, &capacities);
        // With both faults no store would know the allocations: the two histories would agree on
        // nothing.
        let restore = rng.chance(120).then_some(Restore { backup_at, restore_at });
        let fail_at = rng.between(700, calm_at);
        let fail_over = FailOver { copied_at: fail_at - rng.between(1, 600), fail_at };
        let fail_over = (restore.is_none() && rng.chance(140)).then_some(fail_over);
        Self {
            issuers: rng.pick(&[1, 2, 3, 3]),
            holders: rng.pick(&[1, 2, 3, 4]),
            creators: rng.pick(&[1, 2, 3]),
            capacities,
            raises,
            limits: limits(rng, mutant),
            think_max: rng.pick(&[50, 150, 400]),
            reserves: rng.chance(500),
            shared_urls: rng.pick(&[0, 100, 900]),
            rates: rates(rng),
            blows: blows(rng),
            blow_gap_max: rng.pick(&[500, 1_500, 4_000]),
            calm_at,
            fail_over,
            restore,
        }
    }
}

/// Draws the raises of capacities in order of time; half of the seeds have none.
fn raises(rng: &mut Rng, calm_at: u64, capacities: &[u64]) -> Vec<Raise> {
    let mut reached = capacities.to_vec();
    let count = rng.pick(&[0, 0, 0, 1, 2, 3]);
    let mut times: Vec<_> = (0..count).map(|_| rng.between(300, calm_at)).collect();
    times.sort_unstable();
    let raise = |at| {
        let namespace = rng.index(reached.len());
        let more = rng.pick(&[1, 20, reached[namespace]]);
        reached[namespace] += more;
        Raise { at, namespace, capacity: reached[namespace] }
    };
    times.into_iter().map(raise).collect()
}

fn limits(rng: &mut Rng, mutant: Option<Mutant>) -> Limits {
    let block_min = rng.pick(&[1, 3, 6]);
    let limits = Limits {
        block_min,
        block_max: block_min * rng.pick(&[1, 3, 6]),
        holder_ttl_ms: rng.pick(&[800, 1_500]),
        // At 0 a block could be allocated, leaked and reclaimed within one transaction, and I3
        // could not be checked in the ledger.
        reclaim_after_ms: rng.pick(&[1, 500, 2_000]),
        journal_recent: rng.pick(&[0, 1, 4]),
        journal_slots: rng.pick(&[0, 1, 2, 8]),
        journal_saves: rng.pick(&[0, 1, 16]),
        ..Limits::default()
    };
    Mutant::limits(mutant, limits)
}

/// Draws the rates. Most are low or 0, so that a run makes progress and rare faults coincide.
fn rates(rng: &mut Rng) -> Rates {
    let mut rate = || rng.pick(&[0, 0, 5, 30, 150]);
    Rates {
        call_lost: rate(),
        call_doubled: rate(),
        call_delayed: rate(),
        txn_lost: rate(),
        txn_reply_lost: rate(),
        txn_late: rate(),
        stale_read: rate() * 3,
        insert_unknown: rate(),
        store_failed: rate(),
    }
}

/// Draws the faults, each repeated by its weight.
fn blows(rng: &mut Rng) -> Vec<Blow> {
    let weigh = |blow: &Blow| vec![*blow; rng.pick(&[0, 1, 1, 3])];
    Blow::ALL.iter().flat_map(weigh).collect()
}
