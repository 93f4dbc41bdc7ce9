//! Reads segments block by block, past damaged ones.

use std::{fs::File, io, os::unix::fs::FileExt as _, path::Path};

use crate::{
    Opened, OwnedBlock, Segment, SpoolError, State,
    block::{HEADER, Header, MAGIC},
    folder::{private, segment_path},
};

/// Scans the segment that begins with a block, and adds it to those before it. The torn tail of the
/// last one is cut off.
pub(crate) fn scan(
    folder: &Path,
    first: u64,
    is_last: bool,
    (state, opened): (&mut State, &mut Opened),
) -> Result<(), SpoolError> {
    let path = segment_path(folder, first);
    let at = |source| SpoolError::Io { path: path.clone(), source };
    let file = private().read(true).write(true).open(&path).map_err(at)?;
    let len = file.metadata().map_err(at)?.len();
    let mut blocks = Blocks::new(&file, 0, len, first);
    let mut segment = Segment { first, bytes: len, ..Segment::default() };
    let (mut next, mut end) = (first, 0);
    while let Some((block, place)) = blocks.next().map_err(at)? {
        segment.blocks += 1;
        segment.events += u64::from(block.count);
        next = block.sequence.saturating_add(1);
        state.oldest.get_or_insert(block.span.0);
        end = place;
    }
    opened.damaged_bytes += blocks.skipped;
    if is_last && end < len {
        file.set_len(end).and_then(|()| file.sync_all()).map_err(at)?;
        opened.damaged_bytes -= len - end;
        opened.cut_bytes += len - end;
        segment.bytes = end;
    }
    state.next = state.next.max(next);
    state.segments.push_back(segment);
    Ok(())
}

/// The valid blocks of a segment from a place on.
pub(crate) struct Blocks<'a> {
    file: &'a File,
    place: u64,
    end: u64,
    /// The lowest number that the next block may have: numbers ascend, so old bytes that look like
    /// a block are not taken for one.
    least: u64,
    /// Bytes that belong to no valid block.
    pub(crate) skipped: u64,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(file: &'a File, place: u64, end: u64, least: u64) -> Self {
        Self { file, place, end, least, skipped: 0 }
    }

    /// Returns the next valid block with the place after it.
    pub(crate) fn next(&mut self) -> io::Result<Option<(OwnedBlock, u64)>> {
        while self.place < self.end {
            if let Some((block, after)) = self.block_at(self.place)? {
                self.place = after;
                self.least = block.sequence.saturating_add(1);
                return Ok(Some((block, after)));
            }
            let from = self.place;
            self.place = self.find_magic(from + 1)?;
            self.skipped += self.place - from;
        }
        Ok(None)
    }

    /// Reads the block at a place. `None`: there is no valid one.
    fn block_at(&self, place: u64) -> io::Result<Option<(OwnedBlock, u64)>> {
        let mut head = [0; HEADER];
        if !self.read_at(place, &mut head)? {
            return Ok(None);
        }
        let Some(header) = Header::read(&head).filter(|header| header.sequence >= self.least) else {
            return Ok(None);
        };
        let mut stored = vec![0; header.stored];
        let body = place + HEADER as u64;
        if !self.read_at(body, &mut stored)? {
            return Ok(None);
        }
        let Some(bytes) = header.decode(&head, &stored) else { return Ok(None) };
        let Header { sequence, count, span, .. } = header;
        Ok(Some((OwnedBlock { sequence, count, span, bytes }, body + header.stored as u64)))
    }

    /// Fills `out` from a place. Returns false if the segment ends before.
    fn read_at(&self, place: u64, out: &mut [u8]) -> io::Result<bool> {
        if self.end - place < out.len() as u64 {
            return Ok(false);
        }
        match self.file.read_exact_at(out, place) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns the place of the next magic from a place on, or the end.
    fn find_magic(&self, from: u64) -> io::Result<u64> {
        let mut window = vec![0; 64 * 1024];
        let mut place = from;
        while place < self.end {
            let len = usize::try_from(self.end - place).unwrap_or(usize::MAX).min(window.len());
            if !self.read_at(place, &mut window[..len])? {
                return Ok(self.end);
            }
            if let Some(found) = window[..len].windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
                return Ok(place + found as u64);
            }
            if len <= MAGIC.len() {
                break;
            }
            // A magic may lie across two windows.
            place += (len - (MAGIC.len() - 1)) as u64;
        }
        Ok(self.end)
    }
}
