//! Conversion between messages and values. The core sees only what was validated here.

use std::ops::RangeInclusive;

use numbers::{
    Block, Generation, HolderId, Incarnation, Instance, Invalid, Mark, Namespace, Seq, Span, StoreEpoch,
};
use proto::issuer::v1 as pb;
use tonic::Status;

use crate::core::{NamespaceReport, Request, Returned, StatusReport};

const BLOCKS_MAX: usize = 64;
/// Maximum number of unused ranges per ReturnBlocks call: they must fit into a transaction.
const UNUSED_MAX: usize = 32;
/// Maximum number of namespaces per Register call and per beat.
const NAMESPACES_MAX: usize = 64;

/// Highest valid mark. Databases count in signed integers, and each must be able to pass it.
const MARK_MAX: u64 = 1 << 62;

/// Returns the status of a message that is not valid.
pub(super) fn malformed(reason: Invalid) -> Status {
    Status::invalid_argument(reason.to_string())
}

fn within(field: &str, value: u64, range: RangeInclusive<u64>, expected: &str) -> Result<u64, Invalid> {
    let is_valid = range.contains(&value);
    is_valid.then_some(value).ok_or_else(|| format!("{field}: expected {expected}, got {value}").into())
}

/// Checks an incarnation or a seq, from 1 to one less than the maximum: a next value exists.
fn positive(field: &str, value: u64) -> Result<u64, Invalid> {
    within(field, value, 1..=u64::MAX - 1, "at least 1 and below 2^64 - 1")
}

fn at_most(field: &str, count: usize, most: usize, what: &str) -> Result<(), Invalid> {
    if count > most {
        return Err(format!("{field}: expected at most {most}{what}, got {count}").into());
    }
    Ok(())
}

pub(super) fn register(message: pb::RegisterRequest) -> Result<Request, Invalid> {
    at_most("namespaces", message.namespaces.len(), NAMESPACES_MAX, "")?;
    let namespaces = message.namespaces.into_iter().map(|spec| {
        let capacity = within("namespaces.capacity", spec.capacity, 1..=Span::LIMIT, "1 to 2^48")?;
        Ok::<_, Invalid>((Namespace::new(spec.name)?, capacity))
    });
    Ok(Request::Register {
        holder: HolderId::new(message.holder)?,
        instance: Instance::new(message.instance)?,
        namespaces: namespaces.collect::<Result<_, _>>()?,
        reserved: message.reserved,
    })
}

pub(super) fn allocate(message: pb::AllocateBlockRequest) -> Result<Request, Invalid> {
    let wanted_len = within("wanted_len", message.wanted_len, 1..=Span::LIMIT, "1 to 2^48")?;
    Ok(Request::Allocate {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        seq: Seq(positive("seq", message.seq)?),
        namespace: Namespace::new(message.namespace)?,
        wanted_len,
        store: StoreEpoch::new(message.store_epoch)?,
    })
}

pub(super) fn keep_alive(message: pb::KeepAliveRequest) -> Result<Request, Invalid> {
    at_most("progress", message.progress.len(), NAMESPACES_MAX, "")?;
    let progress = message.progress.into_iter().map(|progress| {
        let in_hand = within("progress.in_hand", progress.in_hand, 0..=Span::LIMIT, "at most 2^48")?;
        Ok::<_, Invalid>((Namespace::new(progress.namespace)?, in_hand))
    });
    Ok(Request::KeepAlive {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        last_seq: Seq(message.last_seq),
        progress: progress.collect::<Result<_, _>>()?,
        mark: Mark(within("mark", message.mark, 0..=MARK_MAX, "at most 2^62")?),
    })
}

pub(super) fn return_blocks(message: pb::ReturnBlocksRequest) -> Result<Request, Invalid> {
    at_most("blocks", message.blocks.len(), BLOCKS_MAX, "")?;
    let unused: usize = message.blocks.iter().map(|block| block.unused.len()).sum();
    at_most("blocks.unused", unused, UNUSED_MAX, " ranges in one call")?;
    Ok(Request::Return {
        holder: HolderId::new(message.holder)?,
        incarnation: Incarnation(positive("incarnation", message.incarnation)?),
        blocks: message.blocks.into_iter().map(returned).collect::<Result<_, Invalid>>()?,
    })
}

fn returned(message: pb::ReturnedBlock) -> Result<Returned, Invalid> {
    let missing = Invalid::because("blocks.block: expected a block, got none");
    let block = message.block.ok_or(missing)?;
    let unused = message.unused.iter().map(|range| Span::new(range.start, range.len));
    let returned = Returned {
        block: block_in(block)?,
        used: message.used,
        burned: message.burned,
        unused: unused.collect::<Result<_, Invalid>>()?,
        registered_end: (message.registered_end > 0).then_some(message.registered_end),
    };
    returned.check()?;
    Ok(returned)
}

fn block_in(message: pb::Block) -> Result<Block, Invalid> {
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
    let namespaces =
        report.namespaces.into_iter().map(|NamespaceReport { name, record, in_hand }| pb::NamespaceStatus {
            name: name.to_string(),
            capacity: record.capacity,
            high_watermark: record.high_watermark,
            ceiling: record.ceiling,
            allocated: record.account.allocated,
            used: record.account.used,
            open: record.account.open,
            free: record.account.free,
            leaked: record.account.leaked,
            burned: record.account.burned,
            in_hand,
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
