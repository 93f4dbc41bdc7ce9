//! The ceiling of a namespace: numbers at or above it are allocated to no holder (G2).
//!
//! 1. `high_watermark ≤ ceiling ≤ announced ≤ capacity`, all persisted in `head`. Holders are told
//!    `announced`.
//! 2. A holder trusts a ceiling for one holder TTL from *before* it asked, and no longer. The
//!    issuer uses an announcement one holder TTL after it began. By then every holder has heard it
//!    or has stopped trusting its older copy, so a holder with a fresh copy knows that no number
//!    above it was ever allocated.
//! 3. A keep-alive is answered only after a transaction has committed that was built after the beat
//!    arrived. A deposed leader that does not know it yet cannot commit, so it cannot keep an old
//!    ceiling fresh. An answer that the old leader did send belongs to a beat from before the new
//!    leader's take-over, and an unfinished announcement is counted from that take-over.
//! 4. A holder may rely on an older copy for the longest holder TTL that any leader ever had;
//!    `head` keeps that TTL.
//!
//! Rejected: answering a keep-alive as long as the leader's own lease deadline has not passed. etcd
//! can end a lease early (etcd #15247), and then two leaders would answer for a while.

use numbers::{Millis, Namespace};

use crate::core::{Limits, NamespaceRecord, guard::Guard, leader_state::LeaderState};

/// Divisor of the capacity that gives the headroom between the high watermark and a new ceiling.
///
/// Each code in the headroom costs a query when a scanner tries it. Allocation never waits for the
/// next ceiling as long as less than half of the headroom is used up within one holder TTL.
const HEADROOM_SHARE: u64 = 64;

/// Uses an announcement whose delay is over, and announces the next ceiling when the headroom gets
/// short.
///
/// Both are written with the next transaction. Until it commits, no holder hears the announcement
/// and no block from above the old ceiling is answered.
pub(super) fn advance(leader: &mut LeaderState, now: Millis, namespace: &Namespace) {
    let limits = leader.limits;
    let announced_at = leader.announced_at.get(namespace).copied().unwrap_or(leader.since);
    let due =
        now.since(announced_at) >= leader.state.head.holder_ttl_ms || !limits.guards(Guard::CeilingDelay);
    let Some(record) = leader.state.namespace_mut(namespace) else { return };
    if due {
        record.ceiling = record.announced;
    }
    let next = next_ceiling(&limits, record);
    if record.ceiling == record.announced && next > record.announced {
        record.announced = next;
        leader.announced_at.insert(namespace.clone(), now);
    }
}

/// Returns the ceiling to announce: the announced one as long as more than half of the headroom is
/// left.
fn next_ceiling(limits: &Limits, record: &NamespaceRecord) -> u64 {
    let headroom = headroom(limits, record.capacity);
    let left = record.ceiling - record.high_watermark;
    if left > headroom / 2 {
        return record.announced;
    }
    record.high_watermark.saturating_add(headroom).min(record.capacity)
}

/// Sets the first ceiling of a namespace. It needs no delay, because no holder was told another
/// one.
pub(super) fn open_namespace(limits: &Limits, record: &mut NamespaceRecord) {
    record.ceiling = headroom(limits, record.capacity).min(record.capacity);
    record.announced = record.ceiling;
}

/// Moves the ceiling after the capacity was raised, by an announcement like every other move:
/// holders were told that none of the new numbers exists.
pub(super) fn raise_capacity(leader: &mut LeaderState, now: Millis, namespace: &Namespace) {
    advance(leader, now, namespace);
    if !leader.limits.guards(Guard::RaisedCeiling)
        && let Some(record) = leader.state.namespace_mut(namespace)
    {
        record.ceiling = record.announced;
    }
}

fn headroom(limits: &Limits, capacity: u64) -> u64 {
    (capacity / HEADROOM_SHARE).max(limits.block_max.saturating_mul(limits.headroom_blocks))
}
