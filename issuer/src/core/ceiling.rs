//! The ceiling of a namespace: numbers at or above it are allocated to nobody (G2).
//!
//! 1. `high_watermark ≤ ceiling ≤ announced ≤ capacity`, all persisted in `head`. Holders are told `announced`.
//! 2. A holder trusts what it was told for one holder TTL from *before* it asked, and not longer. The issuer uses an
//!    announcement one holder TTL after it began: by then every holder has heard it or has stopped trusting its older copy. So
//!    a holder with a fresh copy knows that no number above it was ever allocated.
//! 3. A keep-alive is answered only after a transaction was committed that was built after the beat came. A deposed leader
//!    that does not know it yet can commit nothing, so it cannot keep an old ceiling fresh; an answer that the old leader
//!    did give belongs to a beat from before the new leader's take-over, from where an unfinished announcement is counted.
//! 4. The promise that older copies rest on is the longest holder TTL that any leader ever had; `head` keeps it.
//!
//! Rejected: to answer a keep-alive while the leader's own lease deadline has not passed. etcd can end a lease early (etcd
//! #15247), and then two leaders would answer for a while.

use numbers::{Millis, Namespace};

use crate::core::{Limits, NamespaceRecord, guard::Guard, term::Term};

/// Part of the number space that lies between the high watermark and a new ceiling: codes there cost a query each when a
/// scanner tries them, and allocation never has to wait while this much is not used up within one holder TTL.
const HEADROOM_SHARE: u64 = 64;

/// Uses an announcement whose time has come, and makes the next one when the room below the ceiling gets short. Both are written
/// with the next transaction: until then nobody is told, and nothing is allocated by them.
pub(super) fn advance(term: &mut Term, now: Millis, namespace: &Namespace) {
    let limits = term.limits;
    let announced_at = term.announced_at.get(namespace).copied().unwrap_or(term.since);
    let due = now.since(announced_at) >= term.state.head.holder_ttl_ms || !limits.guards(Guard::CeilingDelay);
    let Some(record) = term.state.namespace_mut(namespace) else { return };
    if due {
        record.ceiling = record.announced;
    }
    let next = next_ceiling(&limits, record);
    if record.ceiling == record.announced && next > record.announced {
        record.announced = next;
        term.announced_at.insert(namespace.clone(), now);
    }
}

/// The ceiling to announce: the current one while less than half of the headroom is used up.
fn next_ceiling(limits: &Limits, record: &NamespaceRecord) -> u64 {
    let headroom = headroom(limits, record.capacity);
    let left = record.ceiling - record.high_watermark;
    if left > headroom / 2 {
        return record.announced;
    }
    record.high_watermark.saturating_add(headroom).min(record.capacity)
}

/// Sets the first ceiling of a namespace. It needs no delay: nobody was told another.
pub(super) fn open_namespace(limits: &Limits, record: &mut NamespaceRecord) {
    record.ceiling = headroom(limits, record.capacity).min(record.capacity);
    record.announced = record.ceiling;
}

/// Makes room for numbers past the old capacity. They are announced first: holders were told that
/// none of them exists.
pub(super) fn raise_capacity(term: &mut Term, now: Millis, namespace: &Namespace) {
    advance(term, now, namespace);
    if !term.limits.guards(Guard::RaisedCeiling)
        && let Some(record) = term.state.namespace_mut(namespace)
    {
        record.ceiling = record.announced;
    }
}

fn headroom(limits: &Limits, capacity: u64) -> u64 {
    (capacity / HEADROOM_SHARE).max(limits.block_max.saturating_mul(limits.headroom_blocks))
}
