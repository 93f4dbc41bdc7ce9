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
mod reader;
mod scan;
mod sidecar;
mod writer;

use std::{
    collections::VecDeque,
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
};

pub use backlog::{Backlog, BacklogGauge};
pub use block::{BLOCK_MAX, Block, OwnedBlock};
pub use error::{DropReason, SpoolError};
pub use folder::bytes_in;
pub use reader::Reader;
pub use sidecar::Sidecars;
pub use writer::Writer;

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

/// Findings of the opening of a spool.
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
    /// Findings of its opening.
    pub opened: Opened,
}

/// A segment, as far as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Segment {
    first: u64,
    bytes: u64,
    blocks: u64,
    events: u64,
}

/// The state of a spool, held only for moments.
#[derive(Default)]
struct State {
    /// Segments, ascending. The last one may be written to.
    segments: VecDeque<Segment>,
    next: u64,
    /// The first number that may not be stored elsewhere yet.
    stored: u64,
    /// The time of the first event that is not stored elsewhere, in microseconds since 1970; `None`
    /// if all are.
    oldest: Option<i64>,
}

impl State {
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}

/// State shared by the writing and the reading end.
struct Shared {
    folder: PathBuf,
    limits: Limits,
    state: Mutex<State>,
    /// Held for as long as either end lives.
    _lock: File,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}

impl Spool {
    /// Opens the spool in a folder, or creates it. Blocks on the disk.
    pub fn open(folder: &Path, limits: Limits) -> Result<Self, SpoolError> {
        let lock = folder::claim(folder)?;
        let identity = folder::identity(folder)?;
        let (mut state, mut opened) = (State::default(), Opened { identity, ..Opened::default() });
        let segments = folder::segments(folder)?;
        for first in &segments {
            scan::scan(folder, *first, segments.last() == Some(first), (&mut state, &mut opened))?;
        }
        if opened.cut_bytes > 0 {
            // The number of a torn block may have been stored as a position already. The name of an
            // empty segment keeps the number that comes next.
            state.next = state.next.saturating_add(LEFT_OUT);
            folder::create_segment(folder, state.next)?;
            state.segments.push_back(Segment { first: state.next, ..Segment::default() });
        }
        // Until its store tells, nothing of it is known to be stored.
        state.stored = state.segments.front().map_or(state.next, |segment| segment.first);
        let folder = folder.to_owned();
        let sidecars = Sidecars { folder: folder.clone() };
        let shared = Arc::new(Shared { folder, limits, state: Mutex::new(state), _lock: lock });
        let reader = Reader { shared: Arc::clone(&shared), cursor: None, skipped_bytes: 0 };
        Ok(Self {
            writer: Writer::new(Arc::clone(&shared)),
            reader,
            gauge: BacklogGauge(shared),
            sidecars,
            opened,
        })
    }
}
