//! Conversion between messages and values. Requests are validated here, once, so that the core sees
//! only well-formed values.

use numbers::{
    Block, Generation, HolderId, Incarnation, Instance, Mark, NameError, Namespace, Seq, Span, SpanError,
    StoreEpoch,
};
use proto::issuer::v1 as pb;
use tonic::Status;

use crate::core::{Request, Returned, ReturnedError, StatusReport};

/// Maximum number of blocks per ReturnBlocks call.
const BLOCKS_MAX: usize = 64;
/// Maximum number of unused ranges per ReturnBlocks call, over all its blocks: they must fit into
/// one transaction.
const UNUSED_MAX: usize = 32;
/// Maximum number of namespaces per Register call and per beat.
const NAMESPACES_MAX: usize = 64;

/// Highest valid mark. Databases count in signed integers, and each must be able to pass it.
const MARK_MAX: u64 = 1 << 62;

/// The reason why a message is malformed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Malformed {
    #[error(transparent)]
    Name(#[from] NameError),
    #[error(transparent)]
    Span(#[from] SpanError),
    #[error(transparent)]
    Returned(#[from] ReturnedError),
    #[error("{field}: expected {expected}, got {got}")]
    Field { field: &'static str, expected: String, got: String },
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Self {
        Self::invalid_argument(malformed.to_string())
    }
}

fn field(field: &'static str, expected: impl Into<String>, got: impl ToString) -> Malformed {
    Malformed::Field { field, expected: expected.into(), got: got.to_string() }
}

/// Checks an incarnation or a seq, which count from 1.
fn positive(name: &'static str, value: u64) -> Result<u64, Malformed> {
    // The maximum is excluded, so that a next value exists.
    if (1..u64::MAX).contains(&value) {
        Ok(value)
    } else {
        Err(field(name, "at least 1 and below 2^64 - 1", value))
    }
}

fn mark(value: u64) -> Result<Mark, Malformed> {
    if value > MARK_MAX {
        return Err(field("mark", "at most 2^62", value));
    }
    Ok(Mark(value))
}

pub(super) fn register(message: pb::RegisterRequest) -> Result<Request, Malformed> {
    if message.namespaces.len() > NAMESPACES_MAX {
        return Err(field("namespaces", format!("at most {NAMESPACES_MAX}"), message.namespaces.len()));
    }
    let namespaces = message.namespaces.into_iter().map(|spec| {
        if spec.capacity == 0 || spec.capacity > Span::LIMIT {
            return Err(field("namespaces.capacity", "1 to 2^48", spec.capacity));
        }
        Ok((Namespace::new(spec.name)?, spec.capacity))
    });
    Ok(Request::Register {
        holder: HolderId::new(message.holder)?,
        instance: Instance::new(message.instance)?,
        namespaces: namespaces.collect::<Result<_, Malformed>>()?,
        reserved: message.reserved,
    })
}

pub(super) fn allocate(message: pb::AllocateBlockRequest) -> Result<Request, Malformed> {
    if message.wanted_len == 0 || message.wanted_len > Span::LIMIT {
        return Err(field("wanted_len", "1 to 2^48", message.wanted_len));
    }
    Ok(Request::Allocate {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        seq: Seq(positive("seq", message.seq)?),
        namespace: Namespace::new(message.namespace)?,
        wanted_len: message.wanted_len,
        store: StoreEpoch::new(message.store_epoch)?,
    })
}

pub(super) fn keep_alive(message: pb::KeepAliveRequest) -> Result<Request, Malformed> {
    if message.progress.len() > NAMESPACES_MAX {
        return Err(field("progress", format!("at most {NAMESPACES_MAX}"), message.progress.len()));
    }
    let progress = message.progress.into_iter().map(|progress| {
        if progress.in_hand > Span::LIMIT {
            return Err(field("progress.in_hand", "at most 2^48", progress.in_hand));
        }
        Ok((Namespace::new(progress.namespace)?, progress.in_hand))
    });
    Ok(Request::KeepAlive {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        last_seq: Seq(message.last_seq),
        progress: progress.collect::<Result<_, Malformed>>()?,
        mark: mark(message.mark)?,
    })
}

pub(super) fn return_blocks(message: pb::ReturnBlocksRequest) -> Result<Request, Malformed> {
    if message.blocks.len() > BLOCKS_MAX {
        return Err(field("blocks", format!("at most {BLOCKS_MAX}"), message.blocks.len()));
    }
    let unused: usize = message.blocks.iter().map(|block| block.unused.len()).sum();
    if unused > UNUSED_MAX {
        return Err(field("blocks.unused", format!("at most {UNUSED_MAX} ranges in one call"), unused));
    }
    Ok(Request::Return {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        blocks: message.blocks.into_iter().map(returned).collect::<Result<_, _>>()?,
    })
}

fn returned(message: pb::ReturnedBlock) -> Result<Returned, Malformed> {
    let block = message.block.ok_or_else(|| field("blocks.block", "a block", "none"))?;
    let unused = message.unused.iter().map(|range| Span::new(range.start, range.len));
    let returned = Returned {
        block: block_in(block)?,
        used: message.used,
        burned: message.burned,
        unused: unused.collect::<Result<_, _>>()?,
        registered_end: (message.registered_end > 0).then_some(message.registered_end),
    };
    returned.check()?;
    Ok(returned)
}

fn block_in(message: pb::Block) -> Result<Block, Malformed> {
    Ok(Block {
        namespace: Namespace::new(message.namespace)?,
        span: Span::new(message.start, message.len)?,
        generation: Generation(message.generation),
    })
}

pub(super) fn block_out(block: &Block) -> pb::Block {
    pb::Block {
        namespace: block.namespace.to_string(),
        start: block.span.start(),
        len: block.span.len(),
        generation: block.generation.0,
    }
}

pub(super) fn status_out(leader: &str, report: StatusReport) -> pb::GetStatusResponse {
    let namespaces = report.namespaces.into_iter().map(|namespace| pb::NamespaceStatus {
        name: namespace.name.to_string(),
        capacity: namespace.capacity,
        high_watermark: namespace.high_watermark,
        ceiling: namespace.ceiling,
        allocated: namespace.account.allocated,
        used: namespace.account.used,
        open: namespace.account.open,
        free: namespace.account.free,
        leaked: namespace.account.leaked,
        burned: namespace.account.burned,
        in_hand: namespace.in_hand,
        ..pb::NamespaceStatus::default()
    });
    let holders = report.holders.into_iter().map(|holder| pb::HolderStatus {
        id: holder.id.to_string(),
        incarnation: holder.incarnation.0,
        alive: holder.alive,
        reserved: holder.reserved,
        blocks: u32::try_from(holder.blocks).unwrap_or(u32::MAX),
        supplies: Vec::new(),
    });
    pb::GetStatusResponse {
        leader: leader.to_owned(),
        epoch: report.epoch.0,
        namespaces: namespaces.collect(),
        holders: holders.collect(),
    }
}

pub(super) fn supply_out(progress: &pb::Progress) -> pb::Supply {
    let pb::Progress { namespace, in_hand, lasts_ms } = progress.clone();
    pb::Supply { namespace, in_hand, lasts_ms }
}
