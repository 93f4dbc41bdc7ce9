//! Allocation of blocks: from the holder's own leaked blocks first, then from leaked blocks of
//! others, then from free parts, then at the high watermark.

use numbers::{Block, Generation, HolderId, Millis, Namespace, Seq, Span, StoreEpoch};

use crate::core::{
    Answer, Entry, HolderRecord, Key, OpenBlock, Part, Refusal, Reply, ceiling,
    guard::Guard,
    leader_state::LeaderState,
    leak::{BURNED_MAX, take_leaked},
    scarcity,
    state::State,
};

pub(super) struct BlockRequest<'a> {
    pub(super) holder: &'a HolderId,
    pub(super) seq: Seq,
    pub(super) namespace: &'a Namespace,
    pub(super) wanted_len: u64,
    pub(super) store: StoreEpoch,
}

struct TakenSpan {
    span: Span,
    /// The generation that they were leaked under; `None` if they are surely unused.
    leaked: Option<Generation>,
    /// Whether they are those of a leaked block, and not of a free part.
    is_reclaimed: bool,
}

/// Allocates a block, or repeats the last answer if its seq comes again (I5).
pub(super) fn allocate(
    leader: &mut LeaderState,
    now: Millis,
    asked: BlockRequest<'_>,
) -> Result<Answer, Refusal> {
    let unknown = || Refusal::UnknownHolder(asked.holder.clone());
    let record = leader.state.holders.get(asked.holder).ok_or_else(unknown)?;
    let guarded = leader.limits.guards(Guard::Seq);
    let repeats =
        |reply: &Reply| guarded && asked.seq == record.last_seq && reply.block.namespace == *asked.namespace;
    if let Some(reply) = record.last_reply.clone().filter(repeats) {
        // A block that has leaked since then is no longer the holder's. The refusal makes the
        // holder continue with the next seq.
        let Some(open) = record.open.iter().find(|open| open.block == reply.block) else {
            return Err(Refusal::Seq { expected: record.last_seq.next(), got: asked.seq });
        };
        let Reply { block, epoch, leaked } = reply;
        let store = open.store.clone();
        return Ok(Answer::Allocated { block, is_repeated: true, is_reclaimed: false, epoch, leaked, store });
    }
    let expected = record.last_seq.next();
    if guarded && asked.seq != expected {
        return Err(Refusal::Seq { expected, got: asked.seq });
    }
    if record.open.len() >= leader.limits.open_blocks {
        let (holder, blocks) = (asked.holder, record.open.len());
        return Err(Refusal::TooMany(format!(
            "holder {holder:?} has {blocks} open blocks, which is the limit: return some first"
        )));
    }
    let incarnation = record.incarnation;
    // Its codes are published before their rows exist, so its numbers must surely be unused.
    let wants_unused = record.reserved && leader.limits.guards(Guard::ReservedUnused);
    let len = block_len(leader, now, record, &asked);
    let leaked = if wants_unused {
        None
    } else {
        take_leaked(leader, now, (asked.holder, incarnation), asked.namespace, &asked.store)
    };
    let found = match leaked {
        Some(block) => TakenSpan { span: block.span, leaked: Some(block.generation), is_reclaimed: true },
        None => take_numbers(leader, now, &asked, (len, wants_unused))?,
    };
    let generation = leader.state.head.generation.next();
    leader.state.head.generation = generation;
    let block = Block { namespace: asked.namespace.clone(), span: found.span, generation };
    Ok(hand_over(leader, asked, block, (found.leaked, found.is_reclaimed)))
}

/// Returns the length of the next block, in numbers.
///
/// A reservation gets the length that it asks for, up to `block_max`. Any other holder gets at most
/// twice its last block, so that a burst or a wrong measurement costs little. Its first block has
/// the minimum length, so that a crash loop costs little. No block is longer than the holder's
/// share of the numbers left, which may be less than `block_min`.
fn block_len(leader: &LeaderState, now: Millis, record: &HolderRecord, asked: &BlockRequest<'_>) -> u64 {
    let limits = &leader.limits;
    if record.reserved && limits.guards(Guard::ReservedLen) {
        return asked.wanted_len.clamp(1, limits.block_max);
    }
    let last = record.last_len.get(asked.namespace).copied();
    let most = last.map_or(limits.block_min, |len| len.saturating_mul(2)).min(limits.block_max);
    let len = asked.wanted_len.clamp(limits.block_min, most.max(limits.block_min));
    scarcity::share(leader, now, asked.namespace, len)
}

/// Takes numbers from a free part or at the high watermark, and moves them to `open` in the
/// account.
///
/// Exhaustion is checked before anything is added. The last block is cut at the end of the
/// namespace, not moved back from it: TiKV's PD once issued its last window twice by moving it
/// back.
fn take_numbers(
    leader: &mut LeaderState,
    now: Millis,
    asked: &BlockRequest<'_>,
    (len, wants_unused): (u64, bool),
) -> Result<TakenSpan, Refusal> {
    let namespace = asked.namespace;
    burn_doomed(&mut leader.state, asked);
    if let Some(part) = first_free(&leader.state, asked, wants_unused) {
        let leaked = (!part.is_surely_unused(&asked.store)).then_some(part.generation);
        let span = take_free(&mut leader.state, namespace, part, len);
        return Ok(TakenSpan { span, leaked, is_reclaimed: false });
    }
    ceiling::lift(leader, now, namespace);
    let wait_ms = leader.state.head.holder_ttl_ms;
    let record =
        leader.state.namespace_mut(namespace).ok_or_else(|| Refusal::UnknownNamespace(namespace.clone()))?;
    if record.high_watermark >= record.capacity {
        return Err(scarcity::refuse(leader, now, asked.holder, namespace));
    }
    let left = record.ceiling - record.high_watermark;
    if left == 0 {
        return Err(Refusal::CeilingReached { namespace: namespace.clone(), wait_ms });
    }
    let span = Span::new(record.high_watermark, len.min(left))
        .map_err(|_| Refusal::Exhausted { namespace: namespace.clone(), capacity: record.capacity })?;
    record.high_watermark = span.end();
    record.account.allocated += span.len();
    record.account.open += span.len();
    Ok(TakenSpan { span, leaked: None, is_reclaimed: false })
}

/// Burns doomed free parts (see [`Part::is_doomed`]), at most [`BURNED_MAX`] at a time, so that a
/// transaction stays within its limit.
fn burn_doomed(state: &mut State, asked: &BlockRequest<'_>) {
    let namespace = asked.namespace;
    let parts = state.free.range((namespace.clone(), 0)..=(namespace.clone(), u64::MAX));
    let doomed = parts.filter(|(_, part)| part.is_doomed(&asked.store)).take(BURNED_MAX);
    for (key, len) in doomed.map(|(key, part)| (key.clone(), part.span.len())).collect::<Vec<_>>() {
        state.free.remove(&key);
        state.touch(Key::Free(key.0, key.1));
        if let Some(record) = state.namespace_mut(namespace) {
            record.account.free -= len;
            record.account.burned += len;
        }
    }
}

/// Returns the first free part that is not doomed, and for a reservation surely unused.
fn first_free(state: &State, asked: &BlockRequest<'_>, wants_unused: bool) -> Option<Part> {
    let namespace = asked.namespace;
    let parts = state.free.range((namespace.clone(), 0)..=(namespace.clone(), u64::MAX));
    let fits =
        |part: &&Part| part.is_surely_unused(&asked.store) || !(wants_unused || part.is_doomed(&asked.store));
    parts.map(|(_, part)| part).find(fits).cloned()
}

fn take_free(state: &mut State, namespace: &Namespace, part: Part, len: u64) -> Span {
    let (front, rest) = part.span.take_front(len);
    state.free.remove(&(namespace.clone(), front.start()));
    state.touch(Key::Free(namespace.clone(), front.start()));
    if let Some(span) = rest {
        state.touch(Key::Free(namespace.clone(), span.start()));
        state.free.insert((namespace.clone(), span.start()), Part { span, ..part });
    }
    if let Some(record) = state.namespace_mut(namespace) {
        record.account.free -= front.len();
        record.account.open += front.len();
    }
    front
}

fn hand_over(
    leader: &mut LeaderState,
    asked: BlockRequest<'_>,
    block: Block,
    (leaked, is_reclaimed): (Option<Generation>, bool),
) -> Answer {
    debug_assert!(block.generation > Generation(0), "generations start at 1");
    let store = asked.store.clone();
    let open = OpenBlock { block: block.clone(), store: asked.store, contested: leaked.is_some() };
    let entry = Entry { holder: asked.holder.clone(), seq: asked.seq, epoch: leader.epoch, leaked, open };
    leader.starving.remove(&(block.namespace.clone(), entry.holder.clone()));
    leader.state.allocate(&leader.limits, entry);
    Answer::Allocated { block, is_repeated: false, is_reclaimed, epoch: leader.epoch, leaked, store }
}
