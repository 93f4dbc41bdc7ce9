//! The end of a spool that reads and removes.

use std::{
    fs::{self, File},
    io,
    sync::Arc,
};

use crate::{
    OwnedBlock, Segment, Shared, SpoolError,
    folder::{segment_path, sync_folder},
    scan::Blocks,
};

/// Reads blocks in their order, and removes segments that are no longer needed.
pub struct Reader {
    pub(crate) shared: Arc<Shared>,
    /// Where the block after the last one that was read begins.
    pub(crate) cursor: Option<Cursor>,
    /// Bytes of damaged blocks that were skipped so far.
    pub skipped_bytes: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    segment: u64,
    place: u64,
    /// The number of the block there.
    next: u64,
}

impl Reader {
    /// Returns blocks from a number on, in their order: at least one if there is any, then as many
    /// as have fewer than `bytes_max` bytes together, and at most `blocks_max`. Damaged ones are
    /// left out.
    ///
    /// Their segments are synced first. So a position that is stored elsewhere is never ahead of
    /// what outlasts a loss of power, and no later block gets a number before it.
    pub fn next(
        &mut self,
        least: u64,
        bytes_max: usize,
        blocks_max: usize,
    ) -> Result<Vec<OwnedBlock>, SpoolError> {
        let (mut blocks, mut bytes) = (Vec::new(), 0);
        for segment in self.segments_from(least) {
            let path = segment_path(&self.shared.folder, segment.first);
            let file = match File::open(&path) {
                Ok(file) => file,
                // Removed by an earlier release whose answer was lost.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(SpoolError::Io { path, source }),
            };
            let at = |error| SpoolError::Io { path: path.clone(), source: error };
            file.sync_data().map_err(at)?;
            let (start, first) = self.start(segment, least);
            let mut found = Blocks::new(&file, start, segment.bytes, first);
            while let Some((block, after)) = found.next().map_err(at)? {
                self.cursor = Some(Cursor {
                    segment: segment.first,
                    place: after,
                    next: block.sequence.saturating_add(1),
                });
                if block.sequence < least {
                    continue;
                }
                bytes += block.bytes.len();
                blocks.push(block);
                if blocks.len() >= blocks_max || bytes >= bytes_max {
                    self.skipped_bytes += found.skipped;
                    return Ok(blocks);
                }
            }
            self.skipped_bytes += found.skipped;
        }
        Ok(blocks)
    }

    /// Removes segments all of whose blocks have numbers before this one. The last segment stays:
    /// its name keeps the numbers ascending. One that cannot be removed is removed by a later call.
    pub fn release(&mut self, before: u64) -> Result<(), SpoolError> {
        self.note_stored(before);
        loop {
            let first = {
                let state = self.shared.state();
                let (Some(first), Some(second)) = (state.segments.front(), state.segments.get(1)) else {
                    return Ok(());
                };
                if second.first > before {
                    return Ok(());
                }
                first.first
            };
            let path = segment_path(&self.shared.folder, first);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(SpoolError::Io { path, source });
                }
                _ => {}
            }
            let _ = sync_folder(&self.shared.folder);
            self.shared.state().segments.pop_front();
        }
    }

    /// Continues with a number, if the spool's next one is lower: the position that is stored
    /// elsewhere is ahead, because the folder was put back from an older copy. Returns whether it
    /// was.
    pub fn continue_from(&mut self, position: u64) -> bool {
        let is_behind = {
            let mut state = self.shared.state();
            let is_behind = state.next < position;
            state.next = state.next.max(position);
            is_behind
        };
        self.note_stored(position);
        is_behind
    }

    /// Returns the bytes on disk in thousandths of their bound.
    pub fn filled_permille(&self) -> u64 {
        self.shared.state().bytes().saturating_mul(1_000) / self.shared.limits.total_bytes.max(1)
    }

    /// Notes that blocks before a number are stored elsewhere, for the gauge.
    fn note_stored(&mut self, position: u64) {
        {
            let mut state = self.shared.state();
            state.stored = position;
            if position >= state.next {
                state.oldest = None;
                return;
            }
        }
        // If it cannot be read, the gauge tells an older time until the next batch is stored.
        if let Ok(Some(oldest)) = self.time_of(position) {
            self.shared.state().oldest = Some(oldest);
        }
    }

    /// Returns the time of the first event in the first block from a number on. The block is read
    /// again by the next read, which begins there.
    fn time_of(&mut self, least: u64) -> io::Result<Option<i64>> {
        for segment in self.segments_from(least) {
            let file = File::open(segment_path(&self.shared.folder, segment.first))?;
            let (mut place, mut next) = self.start(segment, least);
            let mut found = Blocks::new(&file, place, segment.bytes, next);
            while let Some((block, after)) = found.next()? {
                if block.sequence >= least {
                    self.cursor = Some(Cursor { segment: segment.first, place, next });
                    return Ok(Some(block.span.0));
                }
                (place, next) = (after, block.sequence.saturating_add(1));
            }
        }
        Ok(None)
    }

    /// Returns the segments that may have blocks from a number on.
    fn segments_from(&self, least: u64) -> Vec<Segment> {
        let state = self.shared.state();
        let mut segments: Vec<Segment> = state.segments.iter().copied().collect();
        let passed = segments.partition_point(|segment| segment.first <= least).saturating_sub(1);
        segments.drain(..passed);
        segments
    }

    /// Returns where to begin in a segment, and the lowest number that a block there may have.
    fn start(&self, segment: Segment, least: u64) -> (u64, u64) {
        let known = self.cursor.filter(|cursor| cursor.segment == segment.first && cursor.next <= least);
        known.map_or((0, segment.first), |cursor| (cursor.place, cursor.next))
    }
}
