//! A holder gets a block: from the free parts first, then from the high watermark.

use crate::{
    block::{Block, Span},
    core::{Answer, Limits, Part, Refusal, Reply, state::State, term::Term},
    ledger::Key,
    names::{HolderId, Namespace},
    tokens::{Generation, Seq},
};

/// Allocates a block, or repeats the last allocation when its seq comes again (I5).
pub(super) fn allocate(
    term: &mut Term,
    holder: &HolderId,
    seq: Seq,
    namespace: &Namespace,
    wanted_len: u64,
) -> Result<Answer, Refusal> {
    let record = term.state.holders.get(holder).ok_or_else(|| Refusal::UnknownHolder(holder.clone()))?;
    if let Some(reply) = record.last_reply.clone().filter(|_| seq == record.last_seq) {
        return Ok(reply.into());
    }
    let expected = record.last_seq.next();
    if seq != expected {
        return Err(Refusal::Seq { expected, got: seq });
    }
    if record.open.len() >= term.limits.open_blocks {
        return Err(Refusal::TooManyBlocks { holder: holder.clone(), blocks: record.open.len() });
    }
    let len = block_len(&term.limits, wanted_len);
    let span = take_numbers(&mut term.state, namespace, len)?;

    let generation = term.state.head.generation.next();
    term.state.head.generation = generation;
    Ok(hand_over(term, holder, seq, Block { namespace: namespace.clone(), span, generation }))
}

/// How long a block is to be. The holder says what it could use; the limits keep a crash loop from leaking the
/// number space and a single block from draining it.
fn block_len(limits: &Limits, wanted_len: u64) -> u64 {
    wanted_len.clamp(limits.block_min, limits.block_max)
}

/// Finds numbers and moves them to `open` in the account. Exhaustion is checked before anything is added, and the
/// last block is cut at the end of the number space, not moved back from it (TiKV's PD once issued its last
/// window twice that way).
fn take_numbers(state: &mut State, namespace: &Namespace, len: u64) -> Result<Span, Refusal> {
    if let Some(part) = first_free(state, namespace) {
        return Ok(take_free(state, namespace, part, len));
    }
    let record =
        state.namespace_mut(namespace).ok_or_else(|| Refusal::UnknownNamespace(namespace.clone()))?;
    let left = record.capacity.saturating_sub(record.high_watermark);
    let exhausted = || Refusal::Exhausted { namespace: namespace.clone(), capacity: record.capacity };
    if left == 0 {
        return Err(exhausted());
    }
    let span = Span::new(record.high_watermark, len.min(left)).map_err(|_| exhausted())?;
    record.high_watermark = span.end();
    record.account.allocated += span.len();
    record.account.open += span.len();
    Ok(span)
}

fn first_free(state: &State, namespace: &Namespace) -> Option<Part> {
    let from = (namespace.clone(), 0);
    state.free.range(from..).next().filter(|((owner, _), _)| owner == namespace).map(|(_, part)| *part)
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

fn hand_over(term: &mut Term, holder: &HolderId, seq: Seq, block: Block) -> Answer {
    debug_assert!(block.generation > Generation(0), "generations start at 1");
    let epoch = term.epoch;
    let reply = Reply { block: block.clone(), epoch };
    if let Some(record) = term.state.holders.get_mut(holder) {
        record.last_seq = seq;
        record.last_reply = Some(reply.clone());
        record.open.push(block);
    }
    term.state.touch(Key::Holder(holder.clone()));
    reply.into()
}
