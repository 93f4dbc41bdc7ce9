//! Conversion of the core's calls to messages for the issuer, and of the issuer's answers.

use holder::{Answer, Closed, Refused, Registered};
use numbers::{Block, Generation, Incarnation, Mark, Namespace, Seq, Span, StoreEpoch};
use proto::issuer::v1 as pb;

pub(super) fn registered(answer: pb::RegisterResponse) -> Registered {
    let pb::RegisterResponse { incarnation, epoch: _, last_seq, holder_ttl_ms, ledger, mark } = answer;
    Registered {
        incarnation: Incarnation(incarnation),
        last_seq: Seq(last_seq),
        holder_ttl_ms: holder_ttl_ms.max(1_000),
        // An issuer of an earlier release sends none.
        ledger: (!ledger.is_empty()).then_some(ledger),
        mark: Mark(mark),
    }
}

pub(super) fn allocated(answer: pb::AllocateBlockResponse) -> Result<Answer, Refused> {
    let block = answer.block.and_then(block).ok_or(Refused::Malformed("a block"))?;
    let leaked = (answer.leaked_generation > 0).then_some(Generation(answer.leaked_generation));
    Ok(Answer::Allocated { block, leaked, store: StoreEpoch::new(answer.store_epoch).ok() })
}

/// Converts a block of a message; `None` if it is invalid.
pub(super) fn block(message: pb::Block) -> Option<Block> {
    Some(Block {
        namespace: Namespace::new(message.namespace).ok()?,
        span: Span::new(message.start, message.len).ok()?,
        generation: Generation(message.generation),
    })
}

pub(super) fn returned_block(closed: &Closed, registered_end: Option<u64>) -> pb::ReturnedBlock {
    let Closed { block, used, burned, unused, .. } = closed;
    pb::ReturnedBlock {
        block: Some(pb::Block {
            namespace: block.namespace.to_string(),
            start: block.span.start(),
            len: block.span.len(),
            generation: block.generation.0,
        }),
        used: *used,
        burned: *burned,
        unused: unused.iter().map(|span| pb::Range { start: span.start(), len: span.len() }).collect(),
        registered_end: registered_end.unwrap_or(0),
    }
}
