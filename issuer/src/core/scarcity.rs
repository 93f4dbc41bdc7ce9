//! Scarcity: how the last numbers of a namespace reach the holders that ask for them.
//!
//! 1. A block is at most a fraction of the holder's fair share of the numbers left. So the first
//!    holder to ask does not take a whole small namespace, nor the whole tail of a large one.
//! 2. When nothing is left, a number may still be unused: in a holder's block, in a leaked block
//!    that rests, or in a part that only others may have. The asking holder is told that numbers
//!    are in other hands, and asks again. The other holders hear with their next beat that it
//!    starves, and return their unused numbers.
//! 3. "Exhausted" is answered only if every holder with an open block has reported, since its last
//!    allocation, that it has used all of it, and blocks with burned numbers are back. Such a
//!    report stays true, because a used number never becomes unused again. A holder that is silent,
//!    or whose report does not cover its last allocation, counts as having numbers.
//! 4. A reservation holds its numbers on purpose. They count neither as left nor as in other hands.
//!
//! Rejected: taking numbers away from a holder. Only the holder knows which ones it has claimed. To
//! find out without it takes a take-over in the database, which is what happens when the holder is
//! gone.

use numbers::{HolderId, Millis, Namespace};

use crate::core::{
    HolderRecord, Refusal,
    guard::Guard,
    leader_state::{LeaderState, NumbersReport},
};

/// Number of beats per holder TTL while numbers are scarce.
const BEATS_PER_TTL: u64 = 15;
/// Divisor of the holder TTL: a holder starves for that long after its last request.
const STARVES_SHARE: u64 = 3;

/// Returns `len`, cut to the holder's share of the numbers left; at least 1.
pub(super) fn share(leader: &LeaderState, now: Millis, namespace: &Namespace, len: u64) -> u64 {
    let parts = |holders: u64| leader.limits.fair_shares.saturating_mul(holders.max(1));
    let left = left(leader, namespace);
    // The live holders are counted only if it matters, which is near the end of the namespace.
    let known = u64::try_from(leader.state.holders.len()).unwrap_or(u64::MAX);
    let is_plenty = |holders| left.checked_div(parts(holders)).is_none_or(|part| part >= len);
    if is_plenty(known) {
        return len;
    }
    let live = live_minters(leader, now);
    if is_plenty(live) { len } else { (left / parts(live)).max(1) }
}

/// Returns whether numbers are scarce: several holders mint, and a share is below the minimum.
pub(super) fn is_scarce(leader: &LeaderState, now: Millis, namespace: &Namespace) -> bool {
    let is_open = leader.state.head.namespaces.get(namespace).is_some_and(|record| record.account.open > 0);
    let shortest = leader.limits.block_min;
    is_open && share(leader, now, namespace, shortest) < shortest && live_minters(leader, now) > 1
}

/// Returns how many numbers are left: never allocated, or free.
fn left(leader: &LeaderState, namespace: &Namespace) -> u64 {
    let record = leader.state.head.namespaces.get(namespace);
    record.map_or(0, |record| record.capacity - record.high_watermark + record.account.free)
}

/// Returns how many holders were heard within the holder TTL, without reservations.
fn live_minters(leader: &LeaderState, now: Millis) -> u64 {
    let mints = |(id, record): &(&HolderId, &HolderRecord)| !record.reserved && !leader.is_silent(now, id);
    u64::try_from(leader.state.holders.iter().filter(mints).count()).unwrap_or(u64::MAX)
}

/// Returns the refusal of a holder for which nothing is left, and records whether it starves.
pub(super) fn refuse(
    leader: &mut LeaderState,
    now: Millis,
    holder: &HolderId,
    namespace: &Namespace,
) -> Refusal {
    let starving = (namespace.clone(), holder.clone());
    if is_used_up(leader, now, namespace) || !leader.limits.guards(Guard::InHand) {
        leader.starving.remove(&starving);
        let record = leader.state.head.namespaces.get(namespace);
        let capacity = record.map_or(0, |record| record.capacity);
        return Refusal::Exhausted { namespace: namespace.clone(), capacity };
    }
    let patience = patience(leader);
    leader.starving.retain(|_, since| now.since(*since) < patience);
    leader.starving.insert(starving, now);
    let wait_ms = scarce_beat_ms(leader.limits.holder_ttl_ms);
    Refusal::InOtherHands { namespace: namespace.clone(), wait_ms }
}

/// Returns whether no unused number is left, not counting those of reservations.
fn is_used_up(leader: &LeaderState, now: Millis, namespace: &Namespace) -> bool {
    let all = (namespace.clone(), 0)..=(namespace.clone(), u64::MAX);
    let guarded = leader.limits.guards(Guard::ReservedApart);
    let mut holders = leader.state.holders.iter().filter(|(_, record)| !(record.reserved && guarded));
    leader.state.free.range(all.clone()).next().is_none()
        && leader.state.leaked.range(all).next().is_none()
        && !holders.any(|(id, record)| may_have(leader, now, (id, record), namespace))
}

fn may_have(
    leader: &LeaderState,
    now: Millis,
    (id, record): (&HolderId, &HolderRecord),
    namespace: &Namespace,
) -> bool {
    if !record.open.iter().any(|open| open.block.namespace == *namespace) {
        return false;
    }
    let covers = |report: &&NumbersReport| {
        report.last_seq >= record.last_seq || !leader.limits.guards(Guard::FreshReport)
    };
    let report = leader.in_hand.get(id).filter(covers).filter(|_| !leader.is_silent(now, id));
    let numbers = report.and_then(|report| report.numbers.iter().find(|(name, _)| name == namespace));
    numbers.is_none_or(|(_, count)| *count > 0)
}

/// Returns whether another holder is starving in this namespace.
pub(super) fn others_starve(
    leader: &LeaderState,
    now: Millis,
    holder: &HolderId,
    namespace: &Namespace,
) -> bool {
    let patience = patience(leader);
    let mut starving = leader.starving.iter();
    starving.any(|((name, id), since)| name == namespace && id != holder && now.since(*since) < patience)
}

fn patience(leader: &LeaderState) -> u64 {
    leader.limits.holder_ttl_ms / STARVES_SHARE
}

/// Returns the interval between beats while numbers are scarce, in milliseconds.
pub fn scarce_beat_ms(holder_ttl_ms: u64) -> u64 {
    (holder_ttl_ms / BEATS_PER_TTL).max(1)
}
