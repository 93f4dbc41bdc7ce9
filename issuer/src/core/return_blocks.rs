//! Return of blocks: used and burned numbers are counted, and unused ones become free.

use numbers::{Block, HolderId, Namespace};

use crate::core::{Answer, Key, OpenBlock, Part, Refusal, Returned, guard::Guard, leader_state::LeaderState};

/// Closes those of the blocks that are still open.
///
/// A block that is not open was closed by an earlier copy of the call, or has been taken from the
/// holder. Either way its numbers are not the holder's to return.
pub(super) fn return_blocks(
    leader: &mut LeaderState,
    holder: &HolderId,
    blocks: Vec<Returned>,
) -> Result<Answer, Refusal> {
    let mut closed = 0;
    for returned in blocks {
        // Only an open block counts, so that a late, repeated or confused call moves nothing.
        let Some(open) = close(leader, holder, &returned.block) else { continue };
        if let Some(end) = returned.registered_end {
            raise_watermark(leader, &returned.block.namespace, end);
        }
        settle(leader, open, returned);
        closed += 1;
    }
    Ok(Answer::Closed { blocks: closed })
}

/// Moves the high watermark up to `end`, because the database has registered numbers that this
/// ledger never allocated: the ledger was restored from an old copy.
///
/// The numbers in between are burned, since the history that could tell more is lost.
fn raise_watermark(leader: &mut LeaderState, namespace: &Namespace, end: u64) {
    let Some(record) = leader.state.namespace_mut(namespace) else { return };
    let end = end.min(record.capacity);
    if let Some(lost) = end.checked_sub(record.high_watermark).filter(|lost| *lost > 0) {
        record.high_watermark = end;
        record.ceiling = record.ceiling.max(end);
        record.announced = record.announced.max(end);
        record.account.allocated += lost;
        record.account.burned += lost;
        leader.state.head_changed = true;
    }
}

/// Removes the block from the holder's open blocks, if it is among them.
fn close(leader: &mut LeaderState, holder: &HolderId, block: &Block) -> Option<OpenBlock> {
    let record = leader.state.holders.get_mut(holder)?;
    let index = record.open.iter().position(|open| open.block == *block)?;
    let open = record.open.remove(index);
    leader.state.touch(Key::Holder(holder.clone()));
    Some(open)
}

/// Books the block's numbers in the account. [`Returned::check`] has verified that they add up.
fn settle(leader: &mut LeaderState, open: OpenBlock, returned: Returned) {
    let Block { namespace, span, generation } = returned.block;
    if let Some(record) = leader.state.namespace_mut(&namespace) {
        record.account.open -= span.len();
        record.account.used += returned.used;
        record.account.burned += returned.burned;
        record.account.free += returned.unused.iter().map(|unused| unused.len()).sum::<u64>();
    }
    let contested = open.contested && leader.limits.guards(Guard::Contested);
    for span in returned.unused {
        leader.state.touch(Key::Free(namespace.clone(), span.start()));
        let part = Part { span, generation, store: open.store.clone(), contested };
        leader.state.free.insert((namespace.clone(), span.start()), part);
    }
}
