//! An append-only spool of blocks on disk.
//!
//! 1. A block is in the spool once [`Writer::append`] has returned: a process that is killed loses
//!    nothing of it. A machine that loses power may lose what [`Reader::next`] has not read.
//! 2. Every block has a checksum. A torn tail is cut off when the spool is opened, and a damaged
//!    block is skipped when it is read: nothing before or after it is lost.
//! 3. Sequence numbers ascend without gaps and are never used again, also after everything was read
//!    and removed.
//! 4. The bytes on disk are bounded. A block that finds no room is refused at once, and leaves
//!    nothing behind.
//! 5. One process has a spool at a time.
//!
//! Segments are files named after the sequence number of their first block. A reader asks for
//! blocks after a position of its own, and releases a segment once that position is stored
//! elsewhere.
//!
//! Rejected: yaque, okaywal and commitlog, which rest; and a ring in one file, whose torn tail
//! could not be told from older blocks.

mod backlog;
mod block;
#[cfg(test)]
mod damage;
mod error;
mod folder;
mod identity;
mod reader;
mod scan;
mod shared;
mod sidecar;
mod writer;

use std::{fs::File, path::Path, sync::Arc};

pub use backlog::{Backlog, BacklogGauge};
pub use block::{BLOCK_MAX, Block, OwnedBlock};
pub use error::{DropReason, SpoolError};
pub use reader::Reader;
pub use sidecar::Sidecars;
pub use writer::Writer;

use shared::{Segment, Shared, State};

/// Numbers left out after a torn tail: more than it can have had blocks.
const LEFT_OUT: u64 = 1 << 32;

/// Bounds of a spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a segment, after which the next one begins.
    pub segment_bytes: u64,
    /// Bytes of all segments.
    pub total_bytes: u64,
}

impl Limits {
    /// Segments of 64 MiB, 4 GiB in all: about 55 million visits.
    pub const DEFAULT: Self = Self { segment_bytes: 64 << 20, total_bytes: 4 << 30 };
}

/// What was found when a spool was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The identity of the spool: random, and the same for its whole life.
    pub identity: u128,
    /// Bytes of a torn tail that were cut off.
    pub cut_bytes: u64,
    /// Bytes of damaged blocks within segments, which reads skip.
    pub damaged_bytes: u64,
}

/// A spool that this process has opened.
pub struct Spool {
    /// The end that appends.
    pub writer: Writer,
    /// The end that reads and removes.
    pub reader: Reader,
    /// Small files beside the segments.
    pub sidecars: Sidecars,
    /// Tells how much waits.
    pub gauge: BacklogGauge,
    /// What was found.
    pub opened: Opened,
}

impl Spool {
    /// Opens the spool in a folder, or creates it. Blocks on the disk.
    pub fn open(folder: &Path, limits: Limits) -> Result<Self, SpoolError> {
        let lock: Arc<File> = Arc::new(folder::claim(folder)?);
        let identity = identity::read_or_create(folder)?;
        let mut opened = Opened { identity, ..Opened::default() };
        let segments = folder::segments(folder)?;
        let (mut next, mut oldest) = (0_u64, None);
        let last = segments.len().saturating_sub(1);
        let mut kept = Vec::new();
        for (place, first) in segments.into_iter().enumerate() {
            let path = folder::segment_path(folder, first);
            let found = scan::scan(&path, first, place == last)?;
            opened.cut_bytes += found.cut_bytes;
            opened.damaged_bytes += found.damaged_bytes;
            next = next.max(found.next);
            oldest = oldest.or(found.oldest);
            kept.push(found.segment);
        }
        if opened.cut_bytes > 0 {
            // The number of a torn block may have been stored as a position already. The name of an
            // empty segment keeps the number that comes next.
            next = next.saturating_add(LEFT_OUT);
            folder::create_segment(folder, next)?;
            kept.push(Segment { first: next, bytes: 0, blocks: 0, events: 0 });
        }
        // Until its store tells, nothing of it is known to be stored.
        let stored = kept.first().map_or(next, |segment| segment.first);
        let state = State { segments: kept.into(), next, stored, oldest };
        let shared = Shared::new(folder, limits, state, lock);
        Ok(Self {
            writer: Writer::new(Arc::clone(&shared)),
            reader: Reader::new(Arc::clone(&shared)),
            gauge: BacklogGauge::new(shared),
            sidecars: Sidecars::new(folder),
            opened,
        })
    }
}
