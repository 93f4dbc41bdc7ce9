//! Leaked blocks: the open blocks of a holder that is gone, and their way to a new holder.

use numbers::{HolderId, Incarnation, Millis, Namespace, StoreEpoch};

use crate::core::{Key, LeakedBlock, OpenBlock, leader_state::LeaderState};

/// Maximum number of blocks of another database history that one allocation burns, so that a
/// transaction stays within its limit.
pub(super) const BURNED_MAX: usize = 8;

/// Leaks every open block of a holder. Only the database knows which numbers were used.
pub(super) fn leak_open_blocks(leader: &mut LeaderState, now: Millis, holder: &HolderId) {
    let Some(record) = leader.state.holders.get_mut(holder) else { return };
    let incarnation = record.incarnation;
    leader.in_hand.remove(holder);
    for OpenBlock { block, store, .. } in std::mem::take(&mut record.open) {
        let len = block.span.len();
        if let Some(namespace) = leader.state.namespace_mut(&block.namespace) {
            namespace.account.open -= len;
            namespace.account.leaked += len;
        }
        let key = (block.namespace, block.span.start());
        let leaked = LeakedBlock {
            span: block.span,
            generation: block.generation,
            holder: holder.clone(),
            incarnation,
            store,
        };
        leader.state.touch(Key::Leaked(key.0.clone(), key.1));
        leader.leaked_since.insert(key.clone(), now);
        leader.state.leaked.insert(key, leaked);
    }
    leader.state.touch(Key::Holder(holder.clone()));
}

/// Takes a leaked block that this holder may have: its own from an earlier start, or one that has
/// rested for `reclaim_after_ms`.
///
/// A block that the holder lost during its current start is left to others, because the holder may
/// still be minting from it. Blocks of another database history are burned, at most [`BURNED_MAX`]
/// of them.
pub(super) fn take_leaked(
    leader: &mut LeaderState,
    now: Millis,
    asker: (&HolderId, Incarnation),
    namespace: &Namespace,
    store: &StoreEpoch,
) -> Option<LeakedBlock> {
    for _ in 0..BURNED_MAX {
        let key = find(leader, now, asker, namespace)?;
        let block = leader.state.leaked.remove(&key)?;
        leader.leaked_since.remove(&key);
        leader.state.touch(Key::Leaked(key.0, key.1));
        let len = block.span.len();
        let record = leader.state.namespace_mut(namespace)?;
        record.account.leaked -= len;
        if block.store == *store {
            record.account.open += len;
            return Some(block);
        }
        // The database has failed over since: links may be lost whose codes people know.
        record.account.burned += len;
    }
    None
}

fn find(
    leader: &LeaderState,
    now: Millis,
    (holder, incarnation): (&HolderId, Incarnation),
    namespace: &Namespace,
) -> Option<(Namespace, u64)> {
    let of_namespace = leader.state.leaked.range((namespace.clone(), 0)..=(namespace.clone(), u64::MAX));
    let rested = |key| {
        let since = leader.leaked_since.get(key).copied().unwrap_or(leader.since);
        now.since(since) >= leader.limits.reclaim_after_ms
    };
    let mut resting = None;
    for (key, block) in of_namespace {
        match (block.holder == *holder, block.incarnation == incarnation) {
            (true, false) => return Some(key.clone()),
            (false, _) if resting.is_none() && rested(key) => resting = Some(key.clone()),
            _ => {}
        }
    }
    resting
}
