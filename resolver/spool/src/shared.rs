//! What the writing and the reading end have in common.

use std::{
    collections::VecDeque,
    fs::File,
    path::PathBuf,
    sync::{Mutex, MutexGuard},
};

use crate::Limits;

/// A segment, as far as it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) first: u64,
    pub(crate) bytes: u64,
    pub(crate) blocks: u64,
    pub(crate) events: u64,
}

/// The state of a spool, held only for moments.
#[derive(Default)]
pub(crate) struct State {
    /// Segments, ascending. The last one may be written to.
    pub(crate) segments: VecDeque<Segment>,
    pub(crate) next: u64,
    /// The first number that may not be stored elsewhere yet.
    pub(crate) stored: u64,
    /// The time of the first event that is not stored elsewhere, in microseconds since 1970; `None`
    /// if all are.
    pub(crate) oldest: Option<i64>,
}

impl State {
    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}

pub(crate) struct Shared {
    pub(crate) folder: PathBuf,
    pub(crate) limits: Limits,
    pub(crate) state: Mutex<State>,
    /// Held for as long as either end lives.
    pub(crate) _lock: File,
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds this lock")
    }
}
