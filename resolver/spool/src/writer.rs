//! The end of a spool that appends.

use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write as _},
    sync::Arc,
};

use crate::{
    BLOCK_MAX, Block, DropReason, Segment, Shared,
    block::encode,
    folder::{private, segment_path, sync_folder},
};

/// Appends blocks.
pub struct Writer {
    shared: Arc<Shared>,
    open: Option<Open>,
    /// The encoded block; its memory is used again and again.
    encoded: Vec<u8>,
    write_all: WriteAll,
}

/// Writes to a file. A test puts a disk that fails in its place.
type WriteAll = Box<dyn FnMut(&mut File, &[u8]) -> io::Result<()> + Send>;

struct Open {
    file: File,
    bytes: u64,
}

impl Writer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let write_all = Box::new(|file: &mut File, bytes: &[u8]| file.write_all(bytes));
        Self { shared, open: None, encoded: Vec::new(), write_all }
    }

    /// Appends a block, and returns its number. Once this returns, the block outlasts the process.
    pub fn append(&mut self, block: &Block<'_>) -> Result<u64, DropReason> {
        if block.bytes.len() > BLOCK_MAX {
            return Err(DropReason::TooLarge);
        }
        let (sequence, before) = {
            let state = self.shared.state();
            (state.next, state.bytes())
        };
        encode(block, sequence, &mut self.encoded);
        let len = self.encoded.len() as u64;
        if before + len > self.shared.limits.total_bytes {
            return Err(DropReason::SpoolFull);
        }
        self.write(sequence).map_err(|error| DropReason::of(&error))?;
        let mut state = self.shared.state();
        state.next = sequence.saturating_add(1);
        if let Some(segment) = state.segments.back_mut() {
            segment.bytes += len;
            segment.blocks += 1;
            segment.events += u64::from(block.count);
        }
        state.oldest.get_or_insert(block.span.0);
        Ok(sequence)
    }

    /// Writes the encoded block to the end of the current segment, or to a new one.
    fn write(&mut self, sequence: u64) -> io::Result<()> {
        let len = self.encoded.len() as u64;
        let is_full = |open: &Open| open.bytes > 0 && open.bytes + len > self.shared.limits.segment_bytes;
        if self.open.as_ref().is_none_or(is_full) {
            self.open = Some(self.next_segment(sequence)?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        match (self.write_all)(&mut open.file, &self.encoded) {
            Ok(()) => {
                open.bytes += len;
                Ok(())
            }
            Err(error) => {
                self.take_back();
                Err(error)
            }
        }
    }

    /// Removes what a failed write has left. If that fails too, the segment is given up: readers
    /// skip its torn tail, and the next block begins another one.
    fn take_back(&mut self) {
        let Some(open) = &mut self.open else { return };
        let back = open.file.set_len(open.bytes).and_then(|()| open.file.seek(SeekFrom::End(0)));
        if back.is_err() {
            self.open = None;
        }
    }

    /// Opens the last segment if it has room and no torn tail, or else begins one.
    fn next_segment(&self, sequence: u64) -> io::Result<Open> {
        let last = self.shared.state().segments.back().copied();
        let is_new = self.open.is_none();
        if let Some(last) = last.filter(|last| is_new && last.bytes < self.shared.limits.segment_bytes) {
            let mut file =
                private().read(true).append(true).open(segment_path(&self.shared.folder, last.first))?;
            if file.seek(SeekFrom::End(0))? == last.bytes {
                return Ok(Open { file, bytes: last.bytes });
            }
        }
        let path = segment_path(&self.shared.folder, sequence);
        // A file of this name has no block: its first one would have this number.
        let file = private().create(true).write(true).truncate(true).open(&path)?;
        sync_folder(&self.shared.folder)?;
        let mut state = self.shared.state();
        if state.segments.back().is_none_or(|last| last.first != sequence) {
            state.segments.push_back(Segment { first: sequence, ..Segment::default() });
        }
        Ok(Open { file, bytes: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limits, Spool};

    /// Returns a disk that fills once, after some bytes. If it is stuck, the file cannot be
    /// truncated afterwards.
    fn filling(after: usize, is_stuck: bool) -> WriteAll {
        let mut has_failed = false;
        Box::new(move |file: &mut File, bytes: &[u8]| {
            if std::mem::replace(&mut has_failed, true) {
                return file.write_all(bytes);
            }
            file.write_all(&bytes[..after.min(bytes.len())])?;
            if is_stuck {
                *file = File::open("/dev/null")?;
            }
            Err(io::ErrorKind::StorageFull.into())
        })
    }

    fn append(writer: &mut Writer, number: u8) -> Result<u64, DropReason> {
        let bytes = vec![number; 300];
        writer.append(&Block { bytes: &bytes, count: 1, span: (0, 0) })
    }

    fn read(folder: &std::path::Path) -> Vec<(u64, u8)> {
        let mut spool = Spool::open(folder, Limits::DEFAULT).unwrap();
        let blocks = spool.reader.next(0, usize::MAX, usize::MAX).unwrap();
        blocks.iter().map(|block| (block.sequence, block.bytes[0])).collect()
    }

    #[test]
    fn a_disk_that_fills_within_a_block_refuses_it_and_leaves_nothing_of_it() {
        for is_stuck in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            {
                let Spool { mut writer, mut reader, .. } =
                    Spool::open(folder.path(), Limits::DEFAULT).unwrap();
                assert_eq!(append(&mut writer, 1), Ok(0));
                for after in 0..60 {
                    writer.write_all = filling(after, is_stuck);
                    assert_eq!(append(&mut writer, 9), Err(DropReason::DiskFull), "{after}");
                    assert_eq!(append(&mut writer, 2), Ok(after as u64 + 1), "{after}");
                }
                assert_eq!(reader.next(0, usize::MAX, usize::MAX).unwrap().len(), 61);
            }
            let expected = (0..61).map(|number| (number, if number == 0 { 1 } else { 2 }));
            assert_eq!(read(folder.path()), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_full_spool_refuses_blocks_until_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { segment_bytes: 100, total_bytes: 400 };
        let Spool { mut writer, mut reader, .. } = Spool::open(folder.path(), limits).unwrap();
        let mut stored = 0;
        while append(&mut writer, 1).is_ok() {
            stored += 1;
        }
        assert!(stored > 2 && reader.filled_permille() <= 1_000);
        assert_eq!(append(&mut writer, 1), Err(DropReason::SpoolFull));
        reader.release(stored).unwrap();
        assert_eq!(append(&mut writer, 1), Ok(stored));
        let huge = vec![0; BLOCK_MAX + 1];
        let huge = Block { bytes: &huge, count: 1, span: (0, 0) };
        assert_eq!(writer.append(&huge), Err(DropReason::TooLarge));
    }
}
